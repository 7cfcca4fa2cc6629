"""The stages of a step laid on what works in them, so that what runs side by side is visible."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from trainwright.estimate.time.stepterms import Bottleneck
from trainwright.estimate.time.steptime import Lane, Stage, TimeEstimate
from trainwright.explain import Quantity
from trainwright.explain.quantity import total
from trainwright.messages import Message

LANES: tuple[Lane, ...] = ("storage", "cpu", "link", "gpu", "network")

_LANE: dict[str, Lane] = {
    "load": "storage",
    "decode": "cpu",
    "launch": "cpu",
    "transfer": "link",
    "offload": "link",
    "communication": "network",
}
_INPUT = ("load", "decode", "transfer")
_ORDER = (
    *(*_INPUT, "prefill", "generate", "score", "forward", "recompute", "offload", "backward"),
    *("communication", "optimizer", "launch"),
)
"""How stages follow each other; of micro-batches, each stage is shown as their sum."""
_LIMITING: dict[Bottleneck, str] = {
    "storage": "load",
    "decode": "decode",
    "transfer": "transfer",
    "communication": "communication",
    "launch": "launch",
}


@dataclass(frozen=True, slots=True)
class Bar:
    """A stage at work, in seconds from the start of the step."""

    stage: Stage
    lane: Lane
    start: float
    end: float
    beside: bool
    """Whether other work hides it, if only in part: the GPU does not wait for all of it."""


@dataclass(frozen=True, slots=True)
class Wait:
    """The GPU idle, and for which stage."""

    stage: Stage
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Timeline:
    """A step as bars on lanes, in the order of ``LANES`` and of the step."""

    step: float
    bars: tuple[Bar, ...]
    waits: tuple[Wait, ...]
    idle: Quantity | None
    """What the GPU waits in all; None where it never does."""
    limiting: tuple[Lane, str] | None
    """Lane and stage that bound the step; None without stages."""

    @property
    def lanes(self) -> tuple[Lane, ...]:
        """Lanes on which anything happens."""
        used = {bar.lane for bar in self.bars} | ({"gpu"} if self.waits else set())
        return tuple(lane for lane in LANES if lane in used)


def lane_of(stage: Stage) -> Lane:
    """Return what works in a stage."""
    return stage.lane or _LANE.get(stage.name, "gpu")


def timeline(time: TimeEstimate) -> Timeline:
    """Return the step as bars.

    A step in the middle of a run: loading, decoding and transfer that have workers of their own
    make the next samples ready from the start of the step on. Waiting for kernel launches is
    spread over the whole step, and shown at its end.
    """
    stages = sorted(time.stages, key=lambda stage: _rank(stage.name))
    bars: list[Bar] = []
    waits: list[Wait] = []
    now = 0.0
    for stage in stages:
        end = now if stage.hidden else now + stage.seconds.value
        lane = lane_of(stage)
        if lane != "gpu" and end > now:
            waits.append(Wait(stage, now, end))
        bars.append(_bar(stage, lane, now, end))
        now = end
    bars.sort(key=lambda bar: LANES.index(bar.lane))
    return Timeline(now, tuple(bars), tuple(waits), _idle(waits), _limiting(time, stages))


def _rank(name: str) -> int:
    return _ORDER.index(name) if name in _ORDER else len(_ORDER)


def _bar(stage: Stage, lane: Lane, now: float, end: float) -> Bar:
    """Return where a stage works, of which the GPU waits from ``now`` to ``end``."""
    beside = stage.hidden or stage.works > stage.seconds.value * (1 + 1e-9)
    if lane == "gpu" or not beside:
        return Bar(stage, lane, now, end, beside=stage.hidden)
    if stage.name == "communication":  # it ends when the GPU may go on
        return Bar(stage, lane, max(0.0, end - stage.works), end, beside=True)
    return Bar(stage, lane, 0.0, stage.works, beside=True)


def _idle(waits: list[Wait]) -> Quantity | None:
    if not waits:
        return None
    parts = sorted((wait.stage.seconds for wait in waits), key=lambda part: -part.value)
    return replace(total(Message.of("time.idle"), parts, role="idle"), formula="Σ")


def _limiting(time: TimeEstimate, stages: list[Stage]) -> tuple[Lane, str] | None:
    named = _LIMITING.get(time.bottleneck) if time.bottleneck is not None else None
    if named is not None:
        found: Iterator[Stage] = (stage for stage in stages if stage.name == named)
    else:
        on_gpu = [stage for stage in stages if lane_of(stage) == "gpu"]
        found = iter(sorted(on_gpu, key=lambda stage: -stage.seconds.value)[:1])
    stage = next(found, None)
    return None if stage is None else (lane_of(stage), stage.name)
