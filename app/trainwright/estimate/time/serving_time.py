"""Time of serving: the first token, and tokens a second, as an engine runs them.

An engine replays recorded launches, so that its passes follow from matrices and caches
(``serving_pass``). transformers launches every traced kernel from Python: a pass takes as long as
its kernels, or as the CPU takes to launch them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import ceil
from typing import Literal

from trainwright.estimate.serving.served import Served
from trainwright.estimate.serving.serving_pass import (
    Bound,
    Pass,
    ServingModel,
    calibration,
    decode_load,
    prefill_s,
    serving_model,
)
from trainwright.estimate.time.operator_clock import OperatorClock
from trainwright.explain import Kind, Quantity, Unit
from trainwright.explain.quantity import Interval
from trainwright.machine.machine import Gpu
from trainwright.messages import Message
from trainwright.profile.profile import Profile
from trainwright.workload import FullSettings

SOURCE = "resources/calibration/serving.json"

Limit = Bound | Literal["launches"]
"""What generating waits for."""


@dataclass(frozen=True, slots=True)
class Phase:
    """Seconds of reading prompts, or of generating all tokens but the first."""

    kernels: float
    """That the GPU works."""
    launches: float = 0.0
    """That the CPU takes to launch them; 0 where the engine replays a recorded graph."""

    @property
    def seconds(self) -> float:
        """What the phase takes."""
        return max(self.kernels, self.launches)


@dataclass(frozen=True, slots=True)
class Round:
    """One round of requests: all prompts are read, then all tokens generated."""

    prefill: Phase
    decode: Phase
    single: Phase
    """Reading the prompt of one request alone."""
    limit: Limit | None
    """None where nothing is generated, or the trace's kernels are what it waits for."""
    pass_: Pass | None = None
    """A pass of generating, where an engine's own passes were timed."""
    vendor: str = "NVIDIA"
    known: bool = True
    """Whether the catalog has the rates that this needs; else the time is a bound."""

    @property
    def host(self) -> float:
        """Seconds of launches, as one stage beside both phases' kernels."""
        both = (self.prefill, self.decode)
        if all(phase.launches <= phase.kernels for phase in both):
            return sum(phase.launches for phase in both)
        return sum(phase.seconds for phase in both)

    @property
    def factor(self) -> float | None:
        """The factor of the 90 % interval; None where it is the traced kernels' own."""
        known = calibration()
        if self.limit == "launches":
            return known.eager_interval_factor
        return known.factor(self.vendor) if self.pass_ is not None else None


def engine_model(gpu: Gpu, served: Served, *, width: int) -> ServingModel | None:
    """Return the model in its engine, or None where the trace must speak for it.

    So it is with transformers, and where the configuration does not tell all matrices: hybrids.
    """
    engine = served.engine
    if engine.id not in calibration().engines or served.model is None or served.shape is None:
        return None
    if served.shape.has_state:
        return None
    return serving_model(
        served.model,
        served.shape,
        engine,
        gpu.record,
        format=served.format,
        dtype=served.dtype,
        width=width,
        limit_w=gpu.power_limit_w,
        split=served.tensor,
    )


def engine_round(
    model: ServingModel, served: Served, vendor: str, *, requests: int, prompt: int, new: int
) -> Round:
    """Return a round of requests that arrive together."""
    engine = served.engine
    whole = prefill_s(model, engine, requests, max(prompt, 1))
    alone = prefill_s(model, engine, 1, max(prompt, 1))
    run = model.run(decode_load(requests, prompt, new))
    if served.split is not None:
        run = replace(run, overhead=run.overhead + served.split.handed_s)
    return Round(
        prefill=Phase(whole),
        decode=Phase((new - 1) * run.seconds),
        single=Phase(alone),
        limit=run.bound if new > 1 else None,
        pass_=run,
        vendor=vendor,
        known=model.rates.peak is not None,
    )


def traced_round(
    stages: Callable[[int], dict[str, tuple[float, float]]],
    vendor: str,
    *,
    requests: int,
    s_per_kernel: float,
) -> Round:
    """Return a round of traced kernels; ``stages``: requests -> stage -> (seconds, launches).

    ``s_per_kernel``: in which Python launches each; 0 where a recorded graph does.
    """
    all_of, one = stages(requests), stages(1)

    def phase(found: dict[str, tuple[float, float]], name: str) -> Phase:
        seconds, launches = found.get(name, (0.0, 0.0))
        return Phase(seconds, launches * s_per_kernel)

    decode = phase(all_of, "generate")
    return Round(
        prefill=phase(all_of, "prefill"),
        decode=decode,
        single=phase(one, "prefill"),
        limit="launches" if decode.launches > decode.kernels else None,
        vendor=vendor,
    )


def round_of(
    clock: OperatorClock, profile: Profile, settings: FullSettings, batch: int, served: Served
) -> Round:
    """Return the round of so many requests that arrive together."""
    situation = clock.situation
    gpu, vendor = situation.gpu, situation.gpu.record.vendor
    model = engine_model(gpu, served, width=settings.itemsize)
    if model is not None:
        return engine_round(
            model,
            served,
            vendor,
            requests=served.each(batch),
            prompt=situation.sequence,
            new=clock.new_tokens,
        )

    def stages(requests: int) -> dict[str, tuple[float, float]]:
        return {
            name: (float(counts @ times.seconds), float((counts @ times.launches).sum()))
            for name, times, counts in clock.stages(profile, settings, requests)
        }

    return traced_round(
        stages,
        vendor,
        requests=served.each(batch),
        s_per_kernel=_launch_s(clock, profile, settings, served),
    )


def _launch_s(
    clock: OperatorClock, profile: Profile, settings: FullSettings, served: Served
) -> float:
    """Return the seconds in which the CPU launches a kernel; 0 where a recorded graph does."""
    if served.engine.id != "transformers":
        return 0.0
    generates = "decode" in profile.segments
    known = clock.efficiency
    each = calibration().eager_s_per_kernel if generates else known.host_s_per_kernel.value
    return each * (known.compile_launches.value if settings.compile else 1.0)


# What is shown


@dataclass(frozen=True, slots=True)
class ServingTime:
    """The figures of serving, with their intervals."""

    first_token: Quantity
    """Of one request that finds the engine idle."""
    first_token_all: Quantity
    """Until the last of all requests that arrive together has its first token."""
    per_request: Quantity | None
    """Tokens a second that one request gets while all generate; None where none does."""
    together: Quantity | None
    """The same for all requests."""
    limit: Limit | None


def serving_time(
    found: Round,
    *,
    requests: int,
    asked: int,
    new: int,
    factor: float | None,
    reason: Message | None,
) -> ServingTime:
    """Return the figures of a round of so many requests at once.

    Where more were asked for, the last of them wait for whole rounds of the others.
    ``factor`` is of the 90 % interval; ``reason`` says why they are bounds and have none.
    """

    def figure(id: str, value: float, unit: Unit, *parts: Quantity, formula: str = "") -> Quantity:
        interval = Interval(value / factor, value * factor) if factor is not None else None
        name = Message.of(f"time.serving.{id}")
        return Quantity(
            name, value, unit, Kind.ESTIMATED, formula, parts, SOURCE, interval, reason, role=id
        )

    first = figure("first-token", found.single.seconds, Unit.SECONDS)
    rounds = ceil(asked / requests) - 1
    before = rounds * (found.prefill.seconds + found.decode.seconds)
    last = figure("first-token-all", before + found.prefill.seconds, Unit.SECONDS)
    if new < 2 or not found.decode.seconds:
        return ServingTime(first, last, None, None, None)
    step = found.decode.seconds / (new - 1)
    parts = tuple(pass_parts(found.pass_)) if found.pass_ is not None else ()
    one = figure("pass", step, Unit.SECONDS, *parts, formula=_PASS if parts else "")
    each = figure("per-request", 1 / step, Unit.TOKENS_PER_SECOND, one, formula="1 / t")
    whole = figure("together", requests / step, Unit.TOKENS_PER_SECOND, one, formula="n / t")
    return ServingTime(first, last, each, whole, found.limit)


_PASS = "(weights^p + products^p)^(1/p) + cache + activations + sums + overhead"


def pass_parts(run: Pass) -> list[Quantity]:
    """Return what a pass is made of, each with its seconds."""
    named = {
        "weights": run.weights,
        "products": run.products,
        "cache": run.cache,
        "activations": run.activations,
        **({"sums": run.sums} if run.sums else {}),
        "overhead": run.overhead,
    }
    return [
        Quantity(
            Message.of(f"time.serving.part.{name}"),
            seconds,
            Unit.SECONDS,
            Kind.ESTIMATED,
            source=SOURCE,
        )
        for name, seconds in named.items()
    ]


def phase_quantity(name: str, phase: Phase, run: Pass | None) -> Quantity:
    """Return a phase as a stage of the round, with what one pass of it is made of."""
    parts = tuple(pass_parts(run)) if run is not None else ()
    whole = Quantity(
        Message.of(f"time.stage.{name}"),
        phase.kernels,
        Unit.SECONDS,
        Kind.ESTIMATED,
        formula=f"n · ({_PASS})",
        source=SOURCE,
        role=name,
    )
    if not parts or not phase.kernels:
        return whole
    scale = phase.kernels / sum(part.value for part in parts)
    return replace(
        whole, parts=tuple(replace(part, value=part.value * scale) for part in parts if part.value)
    )


def round_notes(found: Round, reason: Message | None, factor: float) -> Iterator[Message]:
    """Yield where the times of a round come from."""
    if reason is not None:
        yield reason
    elif found.pass_ is not None:
        yield Message.of("time.note.serving-interval", factor=factor)
    elif found.limit == "launches":
        yield Message.of("time.note.serving-launches")
    else:
        yield Message.of("time.note.interval-none", factor=factor)
