"""The benchmark of loader processes: pictures a second by the number of workers."""

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any

from trainwright.explain import Unit
from trainwright.messages import Message, UserError
from trainwright.probe import host
from trainwright.probe.benchmark import Choices, Cost, Outcome, Progress
from trainwright.probe.measurements import Measurement, now
from trainwright.worker import client

MOST_WORKERS = 64
"""Assumed: more loaders than that nobody starts, and each takes some 50 MB here."""
WORKER_BYTES = 50e6
START_S = 0.5
"""Seconds until a worker has read its pictures; assumed."""
GAIN = 1.1
"""Rate by which a doubling of the workers is worth it; assumed."""


def counts() -> list[int]:
    """Return 1, 2, 4 ... workers up to the cores that may be used."""
    cores = host.read().cores
    most = min(cores if isinstance(cores, int) else 1, MOST_WORKERS)
    doubled = [1 << power for power in range(most.bit_length())]
    return sorted({*doubled, most})


def cost(choices: Choices) -> Cost:
    """Return what the benchmark takes."""
    workers = counts()
    seconds = 3.0 + (choices.seconds + START_S) * (len(workers) + 3)
    return Cost(seconds, memory_bytes=round(WORKER_BYTES * max(workers)))


def run(
    choices: Choices,
    on_progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Outcome:
    """Measure with the libraries of the chosen Python.

    Raises:
        UserError: it has no Pillow, or it was cancelled.
    """
    answer = client.run(
        "bench_decode",
        {"seconds": choices.seconds, "workers": counts()},
        interpreter=choices.interpreter,
        timeout_s=10 * cost(choices).seconds + 60,
        silence_s=choices.patience_s,
        on_progress=on_progress,
        cancelled=cancelled,
    )
    cpu = host.read().cpu
    return outcome(answer, cpu if isinstance(cpu, str) else "CPU", now())


def outcome(answer: Mapping[str, Any], cpu: str, date: str) -> Outcome:
    """Return what the program's answer says.

    Raises:
        UserError: it is not such an answer.
    """
    try:
        measurements = tuple(_measurements(answer, cpu, date))
        skipped = dict(answer["skipped"])
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise UserError.of("bench.rubbish", program="bench_decode") from error
    notes = [
        Message.of("bench.note.skipped", what=name, reason=reason)
        for name, reason in skipped.items()
        if reason
    ]
    absent = [name for name, reason in skipped.items() if not reason]
    if absent:
        notes.append(Message.of("bench.note.absent", libraries=absent))
    return Outcome(measurements, tuple(notes))


def _measurements(answer: Mapping[str, Any], cpu: str, date: str) -> Iterator[Measurement]:
    picture = answer["picture"]
    each = float(picture["bytes"])
    conditions: dict[str, str | int | float | bool] = {
        "picture_bytes": round(each),
        "picture": f"{picture['width']}x{picture['height']}",
    }
    for name, found in answer["libraries"].items():
        versions = {name: str(found["version"])}
        rates = {int(count): float(rate) for count, rate in found["rates"].items()}

        def measured(
            what: str, value: float, unit: Unit, versions: Mapping[str, str] = versions
        ) -> Measurement:
            return Measurement(what, value, unit, cpu, date, None, None, conditions, versions)

        for count, rate in rates.items():
            yield measured(f"decode.{name}.{count}", rate, Unit.SAMPLES_PER_SECOND)
        yield measured(f"decode.{name}.core", rates[1] * each, Unit.BYTES_PER_SECOND)
        if len(rates) > 1:
            yield measured(f"decode.{name}.saturation", saturation(rates), Unit.COUNT)


def saturation(rates: Mapping[int, float]) -> int:
    """Return the workers beyond which more bring little."""
    ordered = sorted(rates)
    for fewer, more in pairwise(ordered):
        if rates[more] < GAIN * rates[fewer]:
            return fewer
    return ordered[-1]
