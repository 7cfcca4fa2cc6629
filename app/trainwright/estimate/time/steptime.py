"""Time of a training step: a roofline over the traced ops, with stated efficiencies."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from trainwright.estimate.input.inputs import Pipeline, described, waits
from trainwright.estimate.time import timenotes
from trainwright.estimate.time.clock import Clock
from trainwright.estimate.time.compiling import Compiling, compiling
from trainwright.estimate.time.measured import usable
from trainwright.estimate.time.operators import class_parts
from trainwright.estimate.time.roofline import classify
from trainwright.estimate.time.scaling import ScalingPoint, exchange_quantity, scaling
from trainwright.estimate.time.scaling import notes as scaling_notes
from trainwright.estimate.time.serving_time import (
    SOURCE,
    ServingTime,
    phase_quantity,
    round_notes,
    serving_time,
)
from trainwright.estimate.time.stepterms import Bottleneck, StepTerms
from trainwright.estimate.time.unrolled import recurrent_share, refusal
from trainwright.estimate.time.writing import FACTOR
from trainwright.explain import Quantity
from trainwright.explain.quantity import Interval, Kind, Unit
from trainwright.messages import Message
from trainwright.profile.profile import Profile
from trainwright.workload import FullSettings, Workload

__all__ = ["Bottleneck", "Lane", "Stage", "TimeEstimate", "estimate_time"]

Lane = Literal["storage", "cpu", "link", "gpu", "network"]
"""What works in a stage: the drive, the CPU's cores, the bus to the GPU, the GPU, and what joins
several GPUs."""

_SOURCE = "resources/calibration/steptime.json"


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of the step; those that are not hidden sum to the step."""

    name: str
    """forward | recompute | backward | optimizer | prefill | generate | score | launch |
    communication | load | decode | transfer. ``launch`` is the time that the GPU waits for the
    CPU."""
    seconds: Quantity
    hidden: bool
    """Whether it runs beside another stage and adds nothing to the step."""
    busy: float | None = None
    """Seconds that the stage works, beside others or waited for. Default: ``seconds``, which of
    a stage that is partly hidden are only those that the GPU waits."""
    lane: Lane | None = None
    """What works. Default: by the stage's name, see ``timeline``."""

    @property
    def works(self) -> float:
        """Seconds that the stage works."""
        return self.seconds.value if self.busy is None else self.busy


@dataclass(frozen=True, slots=True)
class TimeEstimate:
    """The time side of a report: figures, or why there are none."""

    step_seconds: Quantity | None
    """One optimizer step: all micro-batches and the update; serving: one round of requests.
    None where ``refusal`` says why no time is predicted."""
    samples_per_second: Quantity | None
    """Over all GPUs; its interval is 90 %. None as above."""
    tokens_per_second: Quantity | None
    """None where the model has no sequence. Serving: generated tokens, None where none are."""
    run_seconds: Quantity | None
    """None where samples or epochs are not given."""
    bottleneck: Bottleneck | None
    """None as above."""
    stages: tuple[Stage, ...]
    reason: Message | None = None
    """Why this is a bound and no estimate: the catalog lacks a rate of this GPU. The figures
    then have no interval, and this as their note."""
    notes: tuple[Message, ...] = ()
    """What was assumed."""
    scaling: tuple[ScalingPoint, ...] = ()
    """The plan on 1 to all of its GPUs; of one GPU, what a second would do. Empty for serving."""
    epoch_seconds: Quantity | None = None
    """Once through all samples; None where they are not given."""
    compiling: Compiling | None = None
    """What torch.compile costs and gains; None where it is off."""
    serving: ServingTime | None = None
    """First tokens, and tokens a second of each request; None for training."""
    pipeline: Pipeline | None = None
    """What feeds the GPUs; None without a data set."""
    refusal: Message | None = None
    """Why no time is predicted; nothing else is then known here."""


# Long: half of it is the one value that it returns.
def estimate_time(
    profile: Profile,
    clock: Clock,
    settings: FullSettings,
    batch: int,
    requests: int | None = None,
) -> TimeEstimate:
    """Return the time of one optimizer step, with its derivation.

    ``batch`` is samples a micro-batch on one GPU, ``requests`` those that come at once where
    fewer are served at once. A clock that has timed other settings in the same situation saves
    its work.

    Raises:
        KeyError: the optimizer is not in the profile.
    """
    gpu, workload = clock.situation.gpu, clock.situation.workload
    terms = clock.terms(profile, settings, batch)
    if (refused := refusal(profile, clock, settings, batch)) is not None:
        return _unpredicted(refused)
    if clock.situation.served is not None:
        return _served_time(profile, clock, settings, batch, requests or batch)
    reason = _missing_rates(profile, clock, settings)
    compiled = compiling(clock, profile, settings, batch) if settings.compile else None
    stages = (
        *_written(terms),
        *_kernel_stages(profile, clock, settings, batch),
        *_other_stages(profile, clock, settings, terms),
    )
    points = scaling(profile, clock, settings, batch) if reason is None else ()
    around = clock.factor(profile, settings, batch)
    if workload.writes is not None:
        around = replace(around, value=max(around.value, FACTOR))
    step = Quantity(
        Message.of("time.step" if workload.trains else "time.round"),
        terms.step,
        Unit.SECONDS,
        Kind.ESTIMATED,
        formula="max(Σ GPU, Σ launches) + communication + waiting",
        parts=tuple(stage.seconds for stage in stages if not stage.hidden),
        source=_SOURCE,
        note=reason or (gpu.slowness.note if gpu.slowness is not None else None),
        role="step",
    )
    fed = _pipeline(profile, clock, settings, batch, terms)
    ranks = settings.ranks_of(clock.situation.gpu_count)
    samples: float = batch * settings.accumulation * ranks if workload.trains else batch
    if workload.inputs.batching == "packed":
        samples *= workload.inputs.samples_a_row
    rated = _rates_of(
        step,
        TimeEstimate(
            step_seconds=step,
            samples_per_second=None,
            tokens_per_second=None,
            run_seconds=None,
            bottleneck=terms.bottleneck,
            stages=stages,
            reason=reason,
            notes=(
                *timenotes.measured(clock, settings),
                *timenotes.notes(clock, compiled, workload, reason, around),
                *_recurrent(profile, clock, settings, batch),
                *timenotes.split(clock, profile, settings),
                *timenotes.piped(clock, profile, settings, batch),
                *scaling_notes(points, profile, clock, settings, batch),
                *(fed.notes if fed else ()),
            ),
            scaling=points,
            pipeline=fed,
            compiling=compiled,
        ),
        samples,
        _tokens_of_sample(profile, clock),
        clock,
    )
    return rated if reason is not None else _within(rated, around.value)


def _unpredicted(refused: Message) -> TimeEstimate:
    return TimeEstimate(
        step_seconds=None,
        samples_per_second=None,
        tokens_per_second=None,
        run_seconds=None,
        bottleneck=None,
        stages=(),
        notes=(refused,),
        refusal=refused,
    )


# Long: half of it is the one value that it returns.
def _served_time(
    profile: Profile, clock: Clock, settings: FullSettings, batch: int, asked: int
) -> TimeEstimate:
    """Return the time of a round of the requests that run at once, of all that were asked for."""
    found, terms = clock.round(profile, settings, batch), clock.terms(profile, settings, batch)
    reason = _missing_rates(profile, clock, settings) if found.pass_ is None else None
    if not found.known:
        gpu = clock.situation.gpu.record.name
        reason = Message.of("time.bound-bandwidth", gpu=gpu, dtype=settings.precision)
    stages: tuple[Stage, ...]
    if found.pass_ is not None:
        phases = {"prefill": found.prefill, "generate": found.decode}
        stages = tuple(
            Stage(
                name, phase_quantity(name, phase, found.pass_ if name != "prefill" else None), False
            )
            for name, phase in phases.items()
            if phase.kernels
        )
    else:
        stages = (
            *_kernel_stages(profile, clock, settings, batch),
            *_other_stages(profile, clock, settings, terms),
        )
    factor = clock.margin(profile, settings, batch)
    step = Quantity(
        Message.of("time.round"),
        terms.step,
        Unit.SECONDS,
        Kind.ESTIMATED,
        formula="prefill + generate",
        parts=tuple(stage.seconds for stage in stages if not stage.hidden),
        source=SOURCE if found.pass_ is not None else _SOURCE,
        note=reason,
        role="step",
    )
    estimate = TimeEstimate(
        step_seconds=step,
        samples_per_second=None,
        tokens_per_second=None,
        run_seconds=None,
        bottleneck=terms.bottleneck,
        stages=stages,
        reason=reason,
        notes=tuple(round_notes(found, reason, factor)),
        serving=serving_time(
            found,
            requests=batch,
            asked=asked,
            new=clock.new_tokens,
            factor=None if reason else factor,
            reason=reason,
        ),
    )
    rated = _rates_of(step, estimate, batch, _tokens_of_sample(profile, clock), clock)
    return rated if reason is not None else _within(rated, factor)


def _within(estimate: TimeEstimate, factor: float) -> TimeEstimate:
    """Return the estimate with every figure's interval at a factor."""

    def around(quantity: Quantity | None) -> Quantity | None:
        if quantity is None:
            return None
        interval = Interval(quantity.value / factor, quantity.value * factor)
        return replace(quantity, interval=interval)

    return replace(
        estimate,
        step_seconds=around(estimate.step_seconds),
        samples_per_second=around(estimate.samples_per_second),
        tokens_per_second=around(estimate.tokens_per_second),
        run_seconds=around(estimate.run_seconds),
        epoch_seconds=around(estimate.epoch_seconds),
    )


def _recurrent(
    profile: Profile, clock: Clock, settings: FullSettings, batch: int
) -> Iterator[Message]:
    """Yield that the figure has recurrent layers in it, whose part is negligible."""
    if layers := profile.model.get("recurrent"):
        share = recurrent_share(profile, clock, settings, batch)
        yield Message.of("time.note.recurrent", layers=layers, share=share)


def _pipeline(
    profile: Profile, clock: Clock, settings: FullSettings, batch: int, terms: StepTerms
) -> Pipeline | None:
    source = clock.feeding(profile, settings, batch)
    if source is None:
        return None
    samples, size = clock.samples(settings, batch), clock.situation.workload.inputs.image_size
    device = terms.computing + terms.exposed
    return described(source, samples, device, clock.pipeline, size)


def _tokens_of_sample(profile: Profile, clock: Clock) -> int:
    """Return the tokens that a sample trains on, or that a request generates; 0 without."""
    workload = clock.situation.workload
    if workload.trains:
        return workload.rows * (workload.inputs.mean_tokens or clock.situation.sequence)
    return clock.new_tokens if "decode" in profile.segments else 0


def _rates_of(
    step: Quantity, estimate: TimeEstimate, samples: float, length: int, clock: Clock
) -> TimeEstimate:
    """Return the estimate with what follows from the step: rates and the whole run."""
    workload = clock.situation.workload
    what, rate, tokens_name = ("samples-a-step", "samples-per-second", "tokens-per-second")
    unit, formula = Unit.SAMPLES_PER_SECOND, "samples / step"
    if not workload.trains:
        what, rate, tokens_name = (
            "requests-a-round",
            "requests-per-second",
            "generated-per-second",
        )
        unit, formula = Unit.REQUESTS_PER_SECOND, "requests / round"
    count = Quantity(Message.of(f"time.{what}"), samples, Unit.COUNT, Kind.YOURS, role="samples")
    per_second = Quantity(
        Message.of(f"time.{rate}"),
        samples / step.value,
        unit,
        Kind.ESTIMATED,
        formula=formula,
        parts=(count, step),
        note=estimate.reason,
    )
    tokens = None
    if length:
        tokens = replace(
            per_second,
            name=Message.of(f"time.{tokens_name}"),
            value=per_second.value * length,
            unit=Unit.TOKENS_PER_SECOND,
            formula=f"{length:,} · {formula}",
        )
    epoch = _passes("time.epoch", 1, workload, per_second) if workload.trains else None
    run = _passes("time.run", workload.epochs or 1, workload, per_second)
    return replace(
        estimate,
        samples_per_second=per_second,
        tokens_per_second=tokens,
        epoch_seconds=epoch,
        run_seconds=run,
    )


def _passes(id: str, epochs: float, workload: Workload, per_second: Quantity) -> Quantity | None:
    """Return the time of going through all samples; None where they are not given."""
    if workload.samples is None:
        return None
    return Quantity(
        Message.of(id),
        workload.samples * epochs / per_second.value,
        Unit.SECONDS,
        Kind.ESTIMATED,
        formula=f"{workload.samples:,} · {epochs:g} / (samples/s)",
        parts=(per_second,),
        note=per_second.note,
    )


def _missing_rates(profile: Profile, clock: Clock, settings: FullSettings) -> Message | None:
    """Return why the time is only a bound, or None."""
    rates = clock.rates(settings.precision)
    table = classify(profile)
    used = {table.dtypes[index] for index in np.unique(table.dtype[table.flops.any(axis=1)])}
    missing = sorted(used & rates.missing)
    if not missing:
        return None
    name = clock.situation.gpu.record.name
    kind = "time.bound-vector" if rates.vector is not None else "time.bound-bandwidth"
    return Message.of(kind, gpu=name, dtype=", ".join(missing))


def _kernel_stages(
    profile: Profile, clock: Clock, settings: FullSettings, batch: int
) -> Iterator[Stage]:
    for stage, times, counts in clock.stages(profile, settings, batch):
        aside = settings.optimizer_offload == "cpu" or settings.shard_offload
        if stage == "optimizer" and aside:
            yield Stage(stage, _offloaded(profile, clock, settings), hidden=False, lane="cpu")
            continue
        seen = usable(clock.situation.gpu.measured, settings.precision)
        parts = tuple(class_parts(profile, times, counts, seen))
        seconds = Quantity(
            Message.of(f"time.stage.{stage}"),
            float(counts @ times.seconds),
            Unit.SECONDS,
            Kind.ESTIMATED,
            formula="Σ n · (((FLOP / (peak · e))^p + (bytes / (bandwidth · m))^p)^(1/p) + gap)",
            parts=parts,
            source=_SOURCE,
            role=stage,
        )
        yield Stage(stage, seconds, hidden=False)
    if settings.activation_offload:
        yield Stage("offload", _moving(profile, clock, settings, batch), hidden=False)


def _written(terms: StepTerms) -> Iterator[Stage]:
    """Yield what writing and scoring answers take of a step."""
    for name, formula in (("generate", "Σ tokens / steps"), ("score", "n · forward")):
        if seconds := terms.gpu.get(name):
            quantity = _seconds(f"time.stage.{name}", seconds, formula)
            yield Stage(name, replace(quantity, role=name), hidden=False)


def _moving(profile: Profile, clock: Clock, settings: FullSettings, batch: int) -> Quantity:
    """Return the way of checkpointed blocks' inputs to system memory and back."""
    return Quantity(
        Message.of("time.stage.offload"),
        clock.moving(profile, settings, batch),
        Unit.SECONDS,
        Kind.ESTIMATED,
        formula="2 · bytes / link",
        source=_SOURCE,
        role="offload",
    )


def _offloaded(profile: Profile, clock: Clock, settings: FullSettings) -> Quantity:
    """Return the update on the CPU: bound by the system's memory, or by the bus."""
    return Quantity(
        Message.of("time.offloaded"),
        clock.offloaded(profile, settings),
        Unit.SECONDS,
        Kind.ASSUMED,
        formula="max(n · weights / memory, weights / link)",
        source=_SOURCE,
        role="optimizer",
    )


def _other_stages(
    profile: Profile, clock: Clock, settings: FullSettings, terms: StepTerms
) -> Iterator[Stage]:
    """Yield what is not kernels: waiting for launches, gradients on the wire, input."""
    kernels = sum(terms.gpu.values())
    if terms.host > kernels:
        per_kernel = clock.efficiency.host_s_per_kernel
        launches = _seconds("time.launches", terms.host, f"{per_kernel.value * 1e6:g} µs · n")
        wait = _seconds("time.stage.launch", terms.host - kernels, "launches - Σ GPU", launches)
        yield Stage("launch", replace(wait, role="launch"), hidden=False, busy=terms.host)
    if terms.communication > 0:
        exposed = exchange_quantity(profile, clock, settings, terms)
        exposed = replace(exposed, role="communication")
        yield Stage("communication", exposed, hidden=False, busy=terms.communication)
    for name, seconds, hidden, busy in waits(
        terms.input, terms.preparing, terms.waiting, serial=terms.workers == 0
    ):
        yield Stage(name, seconds, hidden, busy)


def _seconds(id: str, value: float, formula: str, *parts: Quantity) -> Quantity:
    return Quantity(
        Message.of(id), value, Unit.SECONDS, Kind.ESTIMATED, formula, parts, source=_SOURCE
    )
