"""The benchmarks of a GPU and of its link; of the processor's products where there is none."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

from trainwright.explain import Unit
from trainwright.messages import Message, UserError
from trainwright.probe import host, nvml, occupied
from trainwright.probe.benchmark import Choices, Cost, Outcome, Progress
from trainwright.probe.measurements import Measurement, now
from trainwright.probe.nvml import Nvidia
from trainwright.worker import client

GIB = 1 << 30
START_S = 15.0
"""Until torch is imported and CUDA has its context; assumed."""
TORCH_BYTES = 1 << 30
"""System memory of a process with torch and CUDA; assumed."""
PINNED_SHARE = 0.1
"""Of the system's memory that may be pinned at most; assumed, nobody else can have it meanwhile."""
KINDS, DIRECTIONS = 5, 4
"""Tests of products, and of the link."""
LINK_SHARE = 0.7 * 0.85
"""Of a link's rate that a healthy one exceeds: 85 % is usual with packets of 256 bytes."""
PINNED_GAIN = 1.3
"""Pinned over pageable: below it an IOMMU or a virtual machine stands between (assumed)."""


def gpu_cost(choices: Choices) -> Cost:
    """Return what the benchmark of products and copies takes."""
    return Cost(START_S + choices.seconds * (KINDS + 1), memory_bytes=TORCH_BYTES + GIB)


def link_cost(choices: Choices) -> Cost:
    """Return what the benchmark of the link takes, and of the all-reduce over several GPUs."""
    gpus = _gpus()
    more = choices.seconds + START_S if gpus > 1 else 0.0
    memory = TORCH_BYTES * (1 + (gpus if gpus > 1 else 0)) + GIB
    return Cost(START_S + choices.seconds * DIRECTIONS + more, memory_bytes=memory)


def run_gpu(
    choices: Choices,
    on_progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Outcome:
    """Measure products and copies with the torch of the chosen Python.

    Raises:
        UserError: it has no torch, or it was cancelled.
    """
    return _measured(choices, ("products", "copy"), on_progress, cancelled)


def run_link(
    choices: Choices,
    on_progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Outcome:
    """Measure copies to and from the GPU; with several, how fast they sum gradients.

    Raises:
        UserError: there is no GPU, or no torch for it, or it was cancelled.
    """
    found = _measured(choices, ("link",), on_progress, cancelled)
    if not found.measurements:
        raise UserError.of("bench.no-gpu", interpreter=choices.interpreter)
    if _gpus() < 2:
        return found
    try:
        summed = all_reduce(choices, _gpus(), "nccl", on_progress, cancelled)
    except UserError as error:
        if error.message.id == "worker.cancelled":
            raise
        return Outcome(found.measurements, (*found.notes, error.message))
    return Outcome((*found.measurements, *summed), found.notes)


def _gpus() -> int:
    read = nvml.read()
    return len(read.gpus) if isinstance(read, Nvidia) else 0


def _measured(
    choices: Choices,
    parts: Sequence[str],
    on_progress: Progress | None,
    cancelled: Callable[[], bool] | None,
) -> Outcome:
    here, read = host.read(), nvml.read(identifiers=True)
    memory = here.memory_bytes if isinstance(here.memory_bytes, int) else 4 * GIB
    with closing(occupied.Watch(read)) as watch:

        def progress(share: float, id: str) -> None:
            watch.look()
            if on_progress is not None:
                on_progress(share, id)

        answer = client.run(
            "bench_device",
            {
                "device": "auto",
                "parts": list(parts),
                "seconds": choices.seconds,
                "host_bytes": round(PINNED_SHARE * memory),
            },
            interpreter=choices.interpreter,
            timeout_s=10 * gpu_cost(choices).seconds + 60,
            silence_s=choices.patience_s,
            on_progress=progress,
            cancelled=cancelled,
        )
    cpu = here.cpu if isinstance(here.cpu, str) else "CPU"
    driver = read.driver if isinstance(read, Nvidia) and isinstance(read.driver, str) else ""
    found = outcome(answer, cpu, driver, now(), watch.slowing, watch.links)
    if answer["device"]["type"] == "cuda" and isinstance(read, Nvidia) and len(read.gpus) > 1:
        note = Message.of("bench.note.first", gpu=answer["device"]["name"], count=len(read.gpus))
        return Outcome(found.measurements, (note, *found.notes))
    if "link" not in parts and answer["device"]["type"] == "cpu":
        id = "bench.note.no-cuda" if isinstance(read, Nvidia) and read.gpus else "bench.note.cpu"
        note = Message.of(id, version=answer["versions"]["torch"])
        return Outcome(found.measurements, (note, *found.notes))
    return found


def outcome(
    answer: Mapping[str, Any],
    cpu: str,
    driver: str,
    date: str,
    slowing: set[str],
    links: Mapping[str, float],
) -> Outcome:
    """Return what the program's answer says, with the flags that it deserves.

    Raises:
        UserError: it is not such an answer.
    """
    try:
        device = answer["device"]
        on = device["name"] if device["type"] == "cuda" else cpu
        versions = {"torch": str(answer["versions"]["torch"])}
        if device["type"] == "cuda" and driver:
            versions["driver"] = driver
        marks = ["cpu"] if device["type"] == "cpu" else []
        marks += ["throttled"] if slowing else []
        marks += _link_flags(answer["link"], _link_of(device["uuid"], links))
        measurements = tuple(
            Measurement(
                what, float(found["value"]), unit, on, date,
                float(found["low"]), float(found["high"]),
                _conditions(found, slowing), versions, tuple(marks),
            )
            for what, unit, found in _found(answer)
        )  # fmt: skip
        skipped = dict(answer["skipped"])
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise UserError.of("bench.rubbish", program="bench_device") from error
    notes = [Message.of(f"bench.flag.{flag}") for flag in marks if flag != "cpu"]
    notes += [
        Message.of("bench.note.skipped", what=name, reason=reason)
        for name, reason in skipped.items()
    ]
    return Outcome(measurements, tuple(notes))


def _found(answer: Mapping[str, Any]) -> Iterator[tuple[str, Unit, Mapping[str, Any]]]:
    for kind, found in answer["products"].items():
        yield f"product.{kind}", Unit.FLOP_PER_SECOND, found
    for name, found in answer["copy"].items():
        yield f"copy.{name}", Unit.BYTES_PER_SECOND, found
    for name, found in answer["link"].items():
        yield f"link.{name}", Unit.BYTES_PER_SECOND, found


def _conditions(found: Mapping[str, Any], slowing: set[str]) -> dict[str, str | int]:
    conditions: dict[str, str | int] = {
        name: found[name] for name in ("shape", "bytes") if name in found
    }
    return conditions | ({"slowed_by": ", ".join(sorted(slowing))} if slowing else {})


def _link_of(uuid: str, links: Mapping[str, float]) -> float | None:
    """Return the rate of a GPU's link; torch's UUIDs lack NVML's ``GPU-``."""
    return next((rate for name, rate in links.items() if uuid and name.endswith(uuid)), None)


def _link_flags(found: Mapping[str, Any], limit: float | None) -> Iterator[str]:
    pinned, pageable = found.get("h2d.pinned"), found.get("h2d.pageable")
    if pinned is None:
        return
    if limit is not None and pinned["value"] < LINK_SHARE * limit:
        yield "slow-link"
    if pageable is not None and pinned["value"] < PINNED_GAIN * pageable["value"]:
        yield "pinned-alike"


def all_reduce(
    choices: Choices,
    world: int,
    backend: str,
    on_progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> tuple[Measurement, ...]:
    """Return how fast so many GPUs sum gradients; processes, with ``gloo``.

    Raises:
        UserError: they cannot, or it was cancelled.
    """
    answer = client.run(
        "bench_reduce",
        {"backend": backend, "world": world, "seconds": choices.seconds},
        interpreter=choices.interpreter,
        timeout_s=10 * gpu_cost(choices).seconds + 60,
        silence_s=choices.patience_s,
        on_progress=on_progress,
        cancelled=cancelled,
    )
    cpu = host.read().cpu
    try:
        found = answer["bus_bytes_per_s"]
        return (
            Measurement(
                what=f"reduce.{backend}",
                value=float(found["value"]),
                unit=Unit.BYTES_PER_SECOND,
                on=answer["name"] or (cpu if isinstance(cpu, str) else "CPU"),
                date=now(),
                low=float(found["low"]),
                high=float(found["high"]),
                conditions={"world": world},
                versions={"torch": str(answer["versions"]["torch"])},
                flags=() if backend == "nccl" else ("cpu",),
            ),
        )
    except (LookupError, TypeError, ValueError) as error:
        raise UserError.of("bench.rubbish", program="bench_reduce") from error
