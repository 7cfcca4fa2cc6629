"""A measured step compared with what the model of a plan predicts for it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from trainwright.catalog.query import find_gpu
from trainwright.diagnose.budget import Budget, Use
from trainwright.diagnose.evidence import Evidence
from trainwright.estimate.time.steptime import TimeEstimate
from trainwright.messages import Message, UserError
from trainwright.plan.evaluate import Facts

Part = Literal["step", "input", "transfer", "communication", "launch", "kernels", "computing"]
"""What both sides know of a step; ``computing`` is kernels and launches, which a host's clock
cannot tell apart."""

_MEASURED: dict[Use, Part] = {
    "input": "input", "transfer": "transfer", "communication": "communication",
    "launch": "launch", "allocator": "launch", "tensor-core": "kernels", "matrix": "kernels",
    "memory-bound": "kernels", "kernels": "kernels", "optimizer": "kernels", "compute": "kernels",
    "waiting": "kernels",
}  # fmt: skip
_PREDICTED: dict[str, Part] = {
    "load": "input", "decode": "input", "transfer": "transfer", "communication": "communication",
    "launch": "launch", "forward": "kernels", "recompute": "kernels", "offload": "kernels",
    "backward": "kernels", "optimizer": "kernels",
}  # fmt: skip
_COMPUTING: tuple[Part, ...] = ("launch", "kernels")
_FED: tuple[Part, ...] = ("input", "transfer")


@dataclass(frozen=True, slots=True)
class Compared:
    """A part of the step; seconds a step, None where nobody measured or predicts it."""

    part: Part
    measured: float | None
    predicted: float | None

    @property
    def times(self) -> float | None:
        """How many times as long it took as predicted."""
        return self.measured / self.predicted if self.measured and self.predicted else None

    @property
    def name(self) -> Message:
        """What the part is, for people."""
        return Message.of(f"diagnose.part.{self.part}")

    @property
    def shown(self) -> tuple[Message, Message, Message]:
        """What was measured, what is predicted, and how many times as long it took."""
        times = _UNKNOWN
        if self.times is not None:
            times = Message.of("diagnose.value.times", value=self.times)
        return _seconds(self.measured), _seconds(self.predicted), times


_UNKNOWN = Message.of("diagnose.predicted.unknown")


def _seconds(seconds: float | None) -> Message:
    if seconds is None:
        return _UNKNOWN
    return Message.of("diagnose.budget.seconds", seconds=seconds)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The whole step and its parts, or why there are none."""

    parts: tuple[Compared, ...]
    notes: tuple[Message, ...] = ()


def compared(
    budget: Budget | None, evidence: Evidence, facts: Facts, time: TimeEstimate
) -> Comparison:
    """Return the measured step, part by part, with what is predicted for a plan's."""
    if time.serving is not None:
        return Comparison((), (Message.of("diagnose.predicted.serves"),))
    if budget is None or not budget.of_step:
        return Comparison((), (Message.of("diagnose.predicted.no-step"),))
    if time.step_seconds is None:
        return Comparison((), (time.refusal,) if time.refusal is not None else ())
    measured = _measured(budget)
    predicted = _predicted(time, apart=budget.on_device)
    order: tuple[Part, ...] = ("input", "transfer", "communication", *_COMPUTING, "computing")
    parts = (Compared(each, measured.get(each), predicted.get(each)) for each in order)
    whole = Compared("step", budget.seconds, time.step_seconds.value)
    notes = (*_differences(evidence, facts), *([time.reason] if time.reason is not None else []))
    return Comparison((whole, *(each for each in parts if each.measured or each.predicted)), notes)


def _measured(budget: Budget) -> dict[Part, float]:
    """Return the seconds of each part; on a device what was not seen took no time."""
    found: dict[Part, float] = dict.fromkeys(_PREDICTED.values(), 0.0) if budget.on_device else {}
    for share in budget.shares:
        part = _MEASURED.get(share.use)
        if part is not None:
            part = part if budget.on_device or part not in _COMPUTING else "computing"
            found[part] = found.get(part, 0.0) + share.seconds
    return found


def _predicted(time: TimeEstimate, *, apart: bool) -> dict[Part, float]:
    """Return the seconds of each part that adds to the step; input only of a known data set."""
    found: dict[Part, float] = {}
    for stage in time.stages:
        part = _PREDICTED.get(stage.name)
        if part is not None and not stage.hidden:
            part = part if apart or part not in _COMPUTING else "computing"
            found[part] = found.get(part, 0.0) + stage.seconds.value
    fed = {part: found.get(part, 0.0) for part in _FED} if time.pipeline is not None else {}
    return found | fed


def _differences(evidence: Evidence, facts: Facts) -> Iterator[Message]:
    """Yield in what the run is another than the plan's, as far as the evidence says."""
    planned = facts.machine.gpu.record
    names = [gpu.name for gpu in evidence.gpus or () if gpu.name]
    if evidence.gpus == () or (evidence.setup is not None and evidence.setup.device == "cpu"):
        yield Message.of("diagnose.predicted.no-gpu", planned=planned.name)
    elif names and _id(names[0]) != planned.id:
        yield Message.of("diagnose.predicted.other-gpu", seen=names[0], planned=planned.name)
    batch, count = facts.settings.micro_batch, facts.settings.accumulation
    seen = evidence.setup
    if seen is not None and seen.batch is not None and seen.batch != batch:
        yield Message.of("diagnose.predicted.other-batch", seen=seen.batch, planned=batch)
    accumulated = seen.accumulation if seen is not None else None
    if accumulated is None and count > 1:
        yield Message.of("diagnose.predicted.accumulates", planned=count)
    elif accumulated is not None and accumulated != count:
        yield Message.of("diagnose.predicted.other-steps", seen=accumulated, planned=count)


def _id(name: str) -> str | None:
    """Return the catalog's GPU of a name; None where it has none."""
    try:
        return find_gpu(name).record.id
    except UserError:
        return None
