"""Device memory of a training step: what lives when, what the allocator reserves, who holds it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import hypot
from typing import Any

import numpy as np

from trainwright.estimate import cuda
from trainwright.estimate.calibration import memory_calibration
from trainwright.estimate.cuda import Device
from trainwright.estimate.memory.allocator import Replay
from trainwright.estimate.memory.breakdown import Curve, curve
from trainwright.estimate.memory.ceiling import Ceiling, ceiling
from trainwright.estimate.memory.layout import (
    Engine,
    Layout,
    inference_layout,
    loop_of,
    training_layout,
)
from trainwright.estimate.memory.outside import bytes_outside, host_memory, outside, paged_state
from trainwright.estimate.memory.replays import Point, Run, run_at
from trainwright.estimate.memory.textbook import textbook_line
from trainwright.estimate.offload import pinned_bytes
from trainwright.estimate.parallel.sharded import sharding_of
from trainwright.estimate.parallel.stages import Stage, deciding, edge_bytes, stages_of
from trainwright.estimate.serving.served import Served
from trainwright.explain import Interval, Kind, Quantity, Unit, total
from trainwright.machine.machine import Gpu, System
from trainwright.messages import Message
from trainwright.profile.memo import with_profile
from trainwright.profile.profile import Ints, Profile
from trainwright.workload import FullSettings

__all__ = [
    "Curve",
    "MemoryEstimate",
    "allocated_peak_bytes",
    "estimate_memory",
    "first_look",
    "runs_within",
]

_WORTH_BOUNDS = 0.01
"""Share of the peak between torch.compile's bounds below which they are not told; assumed."""
ALLOCATOR_SOURCE = "replay of torch: c10/cuda/CUDACachingAllocator.cpp"


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """The memory side of a report; every figure is of one GPU."""

    allocated_peak: Quantity
    """torch.cuda.max_memory_allocated; its parts are the terms and sum to it exactly."""
    reserved_peak: Quantity
    """torch.cuda.max_memory_reserved, by replay."""
    device_used: Quantity
    """Reserved, context, and what the display and other programs hold."""
    device_used_p95: Quantity
    """The verdict is decided on this."""
    device_total: Quantity
    free: Quantity
    """Total less used; negative when it does not fit."""
    out_of_memory: bool
    """Whether the replay with the capacity as limit failed, as torch would."""
    curve: Curve
    derivation: Quantity
    """The textbook line with this model's numbers, and below it every term."""
    host: Quantity | None = None
    """System memory that offloading takes; None where the plan puts nothing there."""

    @property
    def terms(self) -> tuple[Quantity, ...]:
        """What the allocated peak is made of."""
        return self.allocated_peak.parts


@dataclass(frozen=True, slots=True)
class _Asked:
    """What makes a layout, and of what: alike for all plans that share one."""

    make: Callable[..., Layout]
    arguments: tuple[tuple[str, Any], ...]

    def layout(self) -> Layout:
        """Return the run, valid for every batch and sequence length."""
        return self.make(**dict(self.arguments))


_ANY = Device("NVIDIA", 9)  # only the size of workspaces differs from GPU to GPU


def _peak(asked: _Asked, batch: Ints, sequence: Ints, context: Ints | None = None) -> Ints:
    """Return the quick peak at each point, in bytes; what all GPUs share is worked out once."""
    values = dict(asked.arguments)
    alike = replace(asked, arguments=tuple({**values, "device": _ANY}.items()))
    workspace = cuda.cublas_workspace(values["device"])
    return _ceiling_of(values["profile"], alike).peak(batch, sequence, context, workspace=workspace)


@with_profile(100)
def _ceiling_of(_profile: Profile, asked: _Asked) -> Ceiling:
    """Return the moments that can be the peak.

    A search keeps these for all that it tries: they take kilobytes, their layouts a megabyte each.
    """
    return ceiling(asked.layout())


def _asked(
    profile: Profile,
    gpu: Gpu,
    settings: FullSettings,
    *,
    infer: bool = False,
    gpu_count: int = 1,
    served: Served | None = None,
    kept: float | None = None,
    stage: Stage | None = None,
) -> _Asked:
    """Return what makes the run that a plan stands for.

    ``kept`` is the share that torch.compile saves of what it may compute again; by default
    the middle where the plan compiles. ``stage`` is one of the plan's pipeline.
    """
    device = cuda.alike(Device.of(gpu.record, gpu.workspace))  # so that layouts are made once
    if kept is None:
        kept = memory_calibration().compile_kept if settings.compile else 1.0
    common = {"profile": profile, "device": device, "channels_last": settings.channels_last}
    if infer:
        return _Asked(inference_layout, tuple({**common, "served": served}.items()))
    arguments = {
        **common,
        "accumulation": min(settings.accumulation, 2),
        "checkpointing": settings.recomputing,
        "optimizer": settings.update,
        "replicas": min(gpu_count, 2) if settings.strategy == "ddp" else 1,
        "sharding": sharding_of(settings, gpu_count),
        "stage": stage,
        "offload": settings.optimizer_offload,
        "kept": kept,
        "loop": loop_of(settings),
        "engine": _engine(gpu, settings),
    }
    return _Asked(training_layout, tuple(arguments.items()))


def _engine(gpu: Gpu, settings: FullSettings) -> Engine | None:
    """Return the vLLM that shares the GPU, where one writes the answers that are trained on."""
    if not settings.beside:
        return None
    return Engine(int(settings.beside * gpu.total.value), settings.generation == "vllm-sleep")


def estimate_memory(  # Long: half of it is what it takes, and the one value that it returns.
    profile: Profile,
    gpu: Gpu,
    settings: FullSettings,
    *,
    batch: int,
    sequence: int,
    new_tokens: int | None = None,
    gpu_count: int = 1,
    nodes: int = 1,
    system: System = "linux",
    served: Served | None = None,
) -> MemoryEstimate:
    """Return the memory of one GPU, in bytes.

    Args:
        profile: Of the structure that the settings ask for.
        gpu: With what the driver offers and what others hold.
        settings: Complete; ``batch`` is the micro-batch, not read from here.
        batch: Samples a micro-batch; for inference requests at once.
        sequence: Tokens a sample, or a prompt; 0 where the model has no sequence.
        new_tokens: Tokens to generate; given for inference, and only there.
        gpu_count: GPUs that train together.
        nodes: Computers alike that they are spread over.
        system: Expandable segments exist on Linux only; torch ignores them elsewhere.
        served: By which engine; None for what was traced.

    Raises:
        KeyError: the profile knows neither the optimizer nor one to derive it from.
    """
    run = _run(profile, gpu, settings, batch, sequence, new_tokens, gpu_count, system, served)
    layout = run.layout
    held = outside(gpu, gpu_count)
    total_bytes = int(gpu.total.value)
    room = total_bytes - int(sum(part.value for part in held))
    limited = run.within(room)
    shown = run.within(None) if limited.out_of_memory else limited
    held_by = run.held(shown)
    terms = held_by.terms
    fusing = (0.0, 0.0)
    if settings.compile and new_tokens is None:
        fusing = _fusing(profile, gpu, settings, batch, sequence, gpu_count)
    allocated = _allocated(terms, shown, settings, fusing)
    reserved = _reserved(allocated, shown, fusing)
    paged = paged_state(layout, room - reserved.value)
    pinned = pinned_bytes(profile, settings.recomputing, batch, sequence)
    used = total(Message.of("memory.used"), (reserved, *held, *paged), role="used")
    margin = hypot(_margin(used, allocated, held), fusing[1])
    passes = not limited.out_of_memory and not run.within(int(room - margin)).out_of_memory
    p95 = _p95(used, margin, total_bytes if passes else None)
    return MemoryEstimate(
        allocated_peak=allocated,
        reserved_peak=reserved,
        device_used=used,
        device_used_p95=p95,
        device_total=gpu.total,
        free=_free(gpu.total, used),
        out_of_memory=limited.out_of_memory,
        curve=held_by.curve,
        derivation=textbook_line(profile, terms, settings.precision, batch),
        host=host_memory(layout, paged, (gpu_count if settings.several else 1) * pinned, nodes),
    )


def runs_within(
    profile: Profile,
    gpu: Gpu,
    settings: FullSettings,
    *,
    batch: int,
    sequence: int,
    new_tokens: int | None = None,
    gpu_count: int = 1,
    system: System = "linux",
    served: Served | None = None,
) -> bool:
    """Return whether the replay ends within the device, without a margin.

    For searching: it stops where memory runs out, and an estimate that follows goes on from it.
    """
    run = _run(profile, gpu, settings, batch, sequence, new_tokens, gpu_count, system, served)
    room = int(gpu.total.value) - bytes_outside(gpu, gpu_count)
    return not run.within(room).out_of_memory


def _run(
    profile: Profile,
    gpu: Gpu,
    settings: FullSettings,
    batch: int,
    sequence: int,
    new_tokens: int | None,
    gpu_count: int,
    system: System,
    served: Served | None,
) -> Run:
    """Return the replays of the run that a plan stands for."""
    infer = new_tokens is not None
    stage = largest_stage(profile, gpu, settings, batch=batch, sequence=sequence)
    asked = _asked(
        profile, gpu, settings, infer=infer, gpu_count=gpu_count, served=served, stage=stage
    )
    expandable = settings.allocator == "expandable" and system == "linux"
    return run_at(asked.layout(), Point.of(batch, sequence, new_tokens, served), expandable)


def first_look(
    profile: Profile,
    gpu: Gpu,
    settings: FullSettings,
    *,
    batch: int,
    sequence: int,
    new_tokens: int | None = None,
    gpu_count: int = 1,
    served: Served | None = None,
) -> tuple[int, Curve]:
    """Return (allocated peak in bytes, curve) without a replay: for the first repaint."""
    infer = new_tokens is not None
    stage = largest_stage(profile, gpu, settings, batch=batch, sequence=sequence)
    asked = _asked(
        profile, gpu, settings, infer=infer, gpu_count=gpu_count, served=served, stage=stage
    )
    layout = asked.layout()
    point = Point.of(batch, sequence, new_tokens, served)
    seen = curve(layout, point.bytes_of(layout))
    return int(seen.live.sum(axis=0).max(initial=0)), seen


def allocated_peak_bytes(
    profile: Profile,
    gpu: Gpu,
    settings: FullSettings,
    *,
    batch: Ints | int,
    sequence: Ints | int,
    new_tokens: Ints | int | None = None,
    gpu_count: int = 1,
    served: Served | None = None,
) -> Ints:
    """Return the allocated peak at many points at once, in bytes; (points,).

    For searching: the layout is kept, and a point costs about a microsecond. It lies 0 to
    3 % below the replayed peak, since unsplit tails of blocks are not in it.
    """
    infer = new_tokens is not None
    asked = _asked(profile, gpu, settings, infer=infer, gpu_count=gpu_count, served=served)
    batches, lengths = np.broadcast_arrays(np.atleast_1d(batch), np.atleast_1d(sequence))
    if stages := stage_peaks(profile, gpu, settings, batch=batches, sequence=lengths):
        return np.max([*stages.values()], axis=0)  # type: ignore[no-any-return]
    if new_tokens is None:
        return _peak(asked, batches, lengths)
    if served is None or served.traced:
        contexts = np.broadcast_to(lengths + np.atleast_1d(new_tokens) - 1, lengths.shape)
        return _peak(asked, batches, lengths, contexts)
    new = np.broadcast_to(np.atleast_1d(new_tokens), lengths.shape)
    counted = zip(batches.tolist(), lengths.tolist(), new.tolist(), strict=True)
    points = [Point.of(count, prompt, tokens, served) for count, prompt, tokens in counted]
    at = (np.array([getattr(p, name) for p in points]) for name in ("batch", "sequence", "pool"))
    computed, tokens, pool = at
    total_bytes: Ints = _peak(asked, computed, tokens) + pool
    return total_bytes


def stage_peaks(
    profile: Profile,
    gpu: Gpu,
    settings: FullSettings,
    *,
    batch: Ints | int,
    sequence: Ints | int,
    among: Callable[[tuple[Stage, ...]], tuple[Stage, ...]] = deciding,
) -> dict[Stage, Ints]:
    """Return the allocated peak of each pipeline stage that can need the most; (points,) each.

    At other batches than the settings' own, there are so many more or fewer micro-batches.
    ``among`` picks the stages. Empty without a pipeline.
    """
    batches, lengths = np.broadcast_arrays(np.atleast_1d(batch), np.atleast_1d(sequence))
    samples = settings.micro_batch * settings.accumulation
    several = np.maximum(samples // batches, settings.pipeline_stages or 1)
    return {
        stage: _stage_peak(profile, gpu, settings, stage, batches, lengths, several)
        for stage in among(stages_of(settings, profile))
    }


def _stage_peak(
    profile: Profile,
    gpu: Gpu,
    settings: FullSettings,
    stage: Stage,
    batches: Ints,
    lengths: Ints,
    several: Ints,
) -> Ints:
    """Return the peak of a stage with ``several`` micro-batches at each point; (points,).

    Those beyond the first few do what these do, and only take more at the stage's edges.
    """
    found = np.zeros(len(batches), dtype=np.int64)
    shown = {count: replace(stage, micro_batches=count).short for count in set(several.tolist())}
    for short in set(shown.values()):
        at = np.array([shown[count] == short for count in several.tolist()])
        more = several[at] - short.micro_batches
        few = _peak(_asked(profile, gpu, settings, stage=short), batches[at], lengths[at])
        found[at] = few + more * edge_bytes(profile, short, batches[at], lengths[at])
    return found


def largest_stage(
    profile: Profile, gpu: Gpu, settings: FullSettings, *, batch: int, sequence: int
) -> Stage | None:
    """Return the pipeline stage that needs the most memory; None without a pipeline."""
    peaks = stage_peaks(profile, gpu, settings, batch=batch, sequence=sequence)
    return max(peaks, key=lambda one: int(peaks[one][0]), default=None)


def _fusing(
    profile: Profile, gpu: Gpu, settings: FullSettings, batch: int, sequence: int, gpu_count: int
) -> tuple[float, float]:
    """Return how far below and above the estimate torch.compile's bounds lie, in bytes."""
    points = np.array([batch]), np.array([sequence])
    least, middle, most = (
        float(_peak(_asked(profile, gpu, settings, gpu_count=gpu_count, kept=kept), *points)[0])
        for kept in (0.0, None, 1.0)
    )
    return max(middle - least, 0.0), max(most - middle, 0.0)


def _around(value: float, margin: float, fusing: tuple[float, float]) -> Interval:
    """Return the interval of independent spreads, of which torch.compile's is one-sided twice."""
    below, above = (hypot(margin, spread) for spread in fusing)
    return Interval(max(value - below, 0), value + above)


def _note_of_compiling(
    value: float, settings: FullSettings, fusing: tuple[float, float]
) -> Message | None:
    if not settings.compile:
        return None
    if sum(fusing) < _WORTH_BOUNDS * value:
        return Message.of("memory.note.compile")
    bounds = {"low": value - fusing[0], "high": value + fusing[1]}
    return Message.of("memory.note.fusing", **bounds)


def _allocated(
    terms: tuple[Quantity, ...], run: Replay, settings: FullSettings, fusing: tuple[float, float]
) -> Quantity:
    value = run.allocated_peak
    margin = memory_calibration().z95 * _sigma_allocated(terms)
    return Quantity(
        Message.of("memory.allocated"),
        value,
        Unit.BYTES,
        Kind.ESTIMATED,
        parts=terms,
        source=ALLOCATOR_SOURCE,
        interval=_around(value, margin, fusing),
        note=_note_of_compiling(value, settings, fusing),
        role="allocated",
    )


def _reserved(allocated: Quantity, run: Replay, fusing: tuple[float, float]) -> Quantity:
    value = run.reserved_peak
    margin = memory_calibration().z95 * _sigma_reserved(value, allocated)
    cached = Quantity(
        Message.of("memory.cached"),
        value - allocated.value,
        Unit.BYTES,
        Kind.ESTIMATED,
        source=ALLOCATOR_SOURCE,
        role="cached",
    )
    return Quantity(
        Message.of("memory.reserved"),
        value,
        Unit.BYTES,
        Kind.ESTIMATED,
        parts=(allocated, cached),
        source=ALLOCATOR_SOURCE,
        interval=_around(value, margin, fusing),
        note=Message.of("memory.note.releases", count=run.releases) if run.releases else None,
        role="reserved",
    )


def _sigma_allocated(terms: tuple[Quantity, ...]) -> float:
    """Return the standard deviation of the allocated peak, terms taken as independent."""
    sigma = memory_calibration().relative_sigma
    whole = sum(term.value for term in terms) * sigma["whole"]
    return hypot(whole, *(term.value * sigma[term.role] for term in terms))


def _sigma_reserved(reserved: float, allocated: Quantity) -> float:
    """Return the standard deviation of the reserved peak."""
    cached = max(reserved - allocated.value, 0) * memory_calibration().relative_sigma["cached"]
    return hypot(_sigma_allocated(allocated.parts), cached)


def _margin(used: Quantity, allocated: Quantity, held: tuple[Quantity, ...]) -> float:
    """Return the distance from device use to its p95."""
    inside = memory_calibration().z95 * _sigma_reserved(used.parts[0].value, allocated)
    spread = [part.interval.high - part.value for part in held if part.interval]
    return hypot(inside, *spread)


def _p95(used: Quantity, margin: float, ceiling_bytes: int | None) -> Quantity:
    """Return device use that is exceeded in 5 % of cases.

    Cached segments are given back before torch fails. So where the step also passes in what
    the margin leaves of the card, the p95 is at most the whole card: ``ceiling_bytes``.
    """
    value = used.value + margin
    if ceiling_bytes is not None:
        value = max(min(value, ceiling_bytes), used.value)
    return Quantity(
        Message.of("memory.used-p95"),
        value,
        Unit.BYTES,
        Kind.ESTIMATED,
        formula="use + 1.645·σ",
        parts=(
            used,
            Quantity(
                Message.of("memory.margin"),
                value - used.value,
                Unit.BYTES,
                Kind.ASSUMED,
                source=memory_calibration().source,
                role="margin",
            ),
        ),
        role="used-p95",
    )


def _free(total_bytes: Quantity, used: Quantity) -> Quantity:
    return Quantity(
        Message.of("memory.free"),
        total_bytes.value - used.value,
        Unit.BYTES,
        Kind.ESTIMATED,
        formula="total − use",
        parts=(total_bytes, used),
        role="free",
    )
