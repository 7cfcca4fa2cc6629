"""What came of a plan's step that was run here: figures beside their predictions."""

import statistics
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import log
from typing import Any, Literal

from trainwright.estimate import correction
from trainwright.estimate.correction import Verified
from trainwright.explain import Interval, Kind, Quantity, Unit
from trainwright.messages import Message, UserError
from trainwright.plan.evaluate import evaluate, look_again
from trainwright.plan.trial import Trial
from trainwright.probe import measurements

_TOLD = 0.02
"""Share of the allocated bytes that convolutions take for themselves from which it is told:
predictions are as exact as that."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What the child answered."""

    allocated: Quantity
    reserved: Quantity | None
    device_used: Quantity | None
    step: Quantity
    steps: int
    scatter: float
    """Standard deviation of the logarithm of the steps' seconds."""
    context_bytes: int | None
    workspace_bytes: int | None
    tensors: Quantity | None = None
    """Of ``allocated``, on the CPU: without what convolutions take only while they compute."""
    loader: Mapping[str, Any] | None = None
    profile: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One figure, predicted and measured; either may be absent, for a reason."""

    name: str
    """allocated | reserved | device | step."""
    predicted: Quantity | None
    measured: Quantity | None
    because: Message | None = None
    """Why one of them is absent."""

    @property
    def difference(self) -> float | None:
        """Measured over predicted, less one."""
        if self.predicted is None or self.measured is None or not self.predicted.value:
            return None
        return self.measured.value / self.predicted.value - 1

    @property
    def inside(self) -> bool | None:
        """Whether the measured value lies in the interval of the predicted one."""
        if self.predicted is None or self.measured is None or self.predicted.interval is None:
            return None
        interval = self.predicted.interval
        return interval.low <= self.measured.value <= interval.high


@dataclass(frozen=True, slots=True)
class RanOut:
    """Memory ran out: an answer too."""

    side: Literal["device", "host"]
    stage: str
    """Id of the message that says what was being done."""
    asked: str
    """What torch said."""
    limit: int | None
    """Bytes that there were."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a trial."""

    trial: Trial
    measured: Measured | None
    ran_out: RanOut | None = None
    rows: tuple[Row, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether every figure lies where it was expected."""
        return self.ran_out is None and not any(row.inside is False for row in self.rows)


def verdict(outcome: Outcome) -> Message:
    """Return in one sentence whether what was predicted is what happened."""
    gone = outcome.ran_out
    if gone is not None:
        return _sentence(outcome, gone)
    outside = [row.name for row in outcome.rows if row.inside is False]
    if outside:
        return Message.of(
            "verify.outside", rows=[Message.of(f"verify.row.{name}") for name in outside]
        )
    return Message.of("verify.inside")


def _sentence(outcome: Outcome, gone: RanOut) -> Message:
    need = outcome.trial.predicted.device_used.value
    id = f"verify.out-of-memory.{gone.side}"
    stage = Message.of(gone.stage or "worker.starting")
    if gone.limit is None:
        return Message.of(f"{id}-unknown", need=need, stage=stage)
    return Message.of(id, need=need, limit=gone.limit, stage=stage)


def measured_of(trial: Trial, answer: Mapping[str, Any]) -> Measured:
    """Return the answer as quantities.

    Raises:
        UserError: it is none.
    """
    try:
        times = [float(one) for one in answer["step_seconds"]]
        allocated = int(answer["allocated_peak_bytes"])
        median = statistics.median(times)
        if allocated <= 0 or min(times) <= 0:
            raise ValueError(allocated)
    except (KeyError, TypeError, ValueError, statistics.StatisticsError) as error:
        raise UserError.of("worker.bad-result", reason=type(error).__name__) from error
    cpu = trial.here.device == "cpu"
    resident = _whole(answer, "resident_peak_bytes")
    used = resident if cpu else _whole(answer, "device_used_bytes")
    context = _whole(answer, "context_bytes")
    if cpu and resident is not None and resident > allocated:
        context = resident - allocated
    log_source = "torch.profiler: log of torch's CPU allocator"
    return Measured(
        allocated=_bytes(
            "allocated", allocated, log_source if cpu else "torch.cuda.max_memory_allocated"
        ),
        reserved=_optional(
            "reserved", _whole(answer, "reserved_peak_bytes"), "torch.cuda.max_memory_reserved"
        ),
        device_used=_optional("device", used, "/proc: VmHWM" if cpu else "NVML: memory in use"),
        step=Quantity(
            Message.of("verify.row.step"),
            median,
            Unit.SECONDS,
            Kind.MEASURED,
            source=f"median of {len(times)} steps",
            interval=Interval(min(times), max(times), 1.0),
            role="step",
        ),
        steps=len(times),
        scatter=statistics.pstdev([log(one) for one in times]),
        context_bytes=context,
        workspace_bytes=_whole(answer, "workspace_bytes"),
        tensors=_optional(
            "allocated",
            _whole(answer, "between_convolutions_bytes"),
            f"{log_source}, while no convolution is computed",
        ),
        loader=answer["loader"] if isinstance(answer.get("loader"), dict) else None,
        profile=answer["profile"] if isinstance(answer.get("profile"), dict) else None,
    )


def _whole(answer: Mapping[str, Any], name: str) -> int | None:
    value = answer.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _bytes(name: str, value: int, source: str) -> Quantity:
    return Quantity(
        Message.of(f"verify.row.{name}"),
        value,
        Unit.BYTES,
        Kind.MEASURED,
        source=source,
        role=name,
    )


def _optional(name: str, value: int | None, source: str) -> Quantity | None:
    return _bytes(name, value, source) if value is not None else None


def rows_of(trial: Trial, measured: Measured) -> tuple[Row, ...]:
    """Return each figure, predicted beside measured."""
    predicted, cpu = trial.predicted, trial.here.device == "cpu"
    untimed = Message.of("verify.no-time-on-cpu" if cpu else "verify.no-time")
    unread = Message.of("verify.not-read")
    return (
        Row("allocated", predicted.allocated, measured.tensors or measured.allocated),
        Row(
            "reserved",
            predicted.reserved,
            measured.reserved,
            Message.of("verify.no-allocator") if cpu else None,
        ),
        Row(
            "process" if cpu else "device",
            predicted.device_used,
            measured.device_used,
            unread if measured.device_used is None else None,
        ),
        Row("step", predicted.step, measured.step, untimed if predicted.step is None else None),
    )


def counted(outcome: Outcome, measured: Measured) -> Message:
    """Return how much was run: steps, and how many micro-batches of each."""
    settings, run = outcome.trial.settings, outcome.trial.micro_batches
    steps, batch, whole = measured.steps, settings.micro_batch, settings.accumulation
    if run == whole:
        return Message.of("verify.counts-all", steps=steps, count=whole, batch=batch)
    return Message.of("verify.counts", steps=steps, run=run, all=whole, batch=batch)


def memory_notes(measured: Measured) -> tuple[Message, ...]:
    """Return what the CPU's convolutions take beside the tensors; empty where it is little."""
    tensors, allocated = measured.tensors, measured.allocated.value
    if tensors is None or allocated - tensors.value < _TOLD * allocated:
        return ()
    own = allocated - tensors.value
    return (Message.of("verify.convolutions", own=own, together=allocated),)


def loader_notes(measured: Measured) -> tuple[Message, ...]:
    """Return what the plan's own data did to the step; empty without any."""
    loader = measured.loader
    if loader is None:
        return ()
    if problem := loader.get("problem"):
        return (Message.of("verify.loader-problem", reason=problem),)
    wait, step = float(loader["wait_seconds"]), float(loader["step_seconds"])
    return (Message.of("verify.loader", wait=wait, step=step, share=wait / step),)


def as_verified(outcome: Outcome) -> Verified | None:
    """Return what a correction would keep of an outcome; None where nothing was measured."""
    measured, trial = outcome.measured, outcome.trial
    if measured is None:
        return None
    step, facts = trial.predicted.step, trial.facts
    ratio, prior = None, correction.PRIOR
    kernels = facts is not None and evaluate(trial.plan, facts).time.bottleneck == "gpu"
    if step is not None and facts is not None and kernels:
        known = facts.machine.gpu.slowness
        ratio = measured.step.value / step.value * (known.value if known is not None else 1.0)
        if step.interval is not None and step.interval.high > step.value:
            prior = log(step.interval.high / step.value) / correction.Z90
    return Verified(
        device=trial.here.id,
        driver=trial.here.driver,
        torch=trial.here.torch,
        date=measurements.now(),
        plan=trial.digest,
        steps=measured.steps,
        context_bytes=measured.context_bytes,
        workspace_bytes=measured.workspace_bytes,
        ratio=ratio,
        scatter=measured.scatter,
        prior=prior,
    )


def keep(outcome: Outcome) -> bool:
    """Keep what an outcome says of this computer; return whether it says anything.

    Raises:
        UserError: it cannot be written.
    """
    found = as_verified(outcome)
    if found is None:
        return False
    correction.keep(found)
    look_again()
    return True


def evidence(profile: Mapping[str, Any]) -> dict[str, Any]:
    """Return a profiler's summary as the ``profile`` of a diagnosis's record has it."""
    keys = ("idle", "kernels_a_step", "kernel_median_seconds")
    return {key: profile[key] for key in keys if profile.get(key) is not None} | {
        "top": [{"name": one["name"], "share": one["share"]} for one in profile["operators"]]
    }


def as_json(outcome: Outcome) -> dict[str, Any]:
    """Return the outcome as plain data: the contract of ``verify --json``."""
    trial, gone, measured = outcome.trial, outcome.ran_out, outcome.measured
    return {
        "holds": outcome.holds,
        "device": asdict(trial.here),
        "settings": trial.settings.model_dump(mode="json"),
        "rows": [_row(row) for row in outcome.rows],
        "out_of_memory": asdict(gone) if gone is not None else None,
        "steps": measured.steps if measured is not None else 0,
        "micro_batches_run": trial.micro_batches,
        "loader": dict(measured.loader) if measured and measured.loader else None,
        "profile": dict(measured.profile) if measured and measured.profile else None,
        "evidence": evidence(measured.profile) if measured and measured.profile else None,
        "allocated_with_convolutions_bytes": measured.allocated.value if measured else None,
        "predicted_peak_bytes": round(trial.predicted.allocated.value),
    }


def _row(row: Row) -> dict[str, Any]:
    predicted, measured = row.predicted, row.measured
    interval = predicted.interval if predicted is not None else None
    return {
        "name": row.name,
        "predicted": predicted.value if predicted is not None else None,
        "predicted_kind": predicted.kind.value if predicted is not None else None,
        "interval90": [interval.low, interval.high] if interval is not None else None,
        "measured": measured.value if measured is not None else None,
        "unit": (predicted or measured).unit.value if predicted or measured else None,  # type: ignore[union-attr]
        "difference": row.difference,
        "inside": row.inside,
    }
