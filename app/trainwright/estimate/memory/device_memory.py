"""Device memory of a training step: what lives when, what the allocator reserves, who holds it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import hypot

import numpy as np

from trainwright.estimate import cuda
from trainwright.estimate.calibration import memory_calibration
from trainwright.estimate.cuda import Device
from trainwright.estimate.memory.allocator import Replay
from trainwright.estimate.memory.breakdown import Curve, curve
from trainwright.estimate.memory.ceiling import Ceiling, ceiling
from trainwright.estimate.memory.layout import (
    Engine,
    Inference,
    Layout,
    Training,
    loop_of,
)
from trainwright.estimate.memory.outside import bytes_outside, host_memory, outside, paged_state
from trainwright.estimate.memory.replays import Point, Run, run_at
from trainwright.estimate.memory.textbook import textbook_line
from trainwright.estimate.parallel.sharded import sharding_of
from trainwright.estimate.parallel.stages import Stage, deciding, edge_bytes, stages_of
from trainwright.estimate.pinned_memory import pinned_bytes
from trainwright.estimate.serving.served import Served
from trainwright.explain import Interval, Kind, Quantity, Unit, total
from trainwright.machine.machine import Gpu, System
from trainwright.messages import Message
from trainwright.profile.memo import with_profile
from trainwright.profile.profile import Ints, Profile
from trainwright.workload import FullSettings

__all__ = [
    "Asked",
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
class Asked:
    """What the memory of a GPU is asked of: a profile, a machine, settings and inputs."""

    profile: Profile
    """Of the structure that the settings ask for."""
    gpu: Gpu
    """With what the driver offers and what others hold."""
    settings: FullSettings
    """Complete; the micro-batch is ``batch``, not read from here."""
    batch: int
    """Samples a micro-batch; for inference requests at once."""
    sequence: int
    """Tokens a sample, or a prompt; 0 where the model has no sequence."""
    new_tokens: int | None = None
    """Tokens to generate; given for inference, and only there."""
    gpu_count: int = 1
    """GPUs that train together."""
    nodes: int = 1
    """Computers alike that they are spread over."""
    system: System = "linux"
    """Expandable segments exist on Linux only; torch ignores them elsewhere."""
    served: Served | None = None
    """By which engine; None for what was traced."""

    @property
    def point(self) -> Point:
        """Where the run is looked at."""
        return Point.of(self.batch, self.sequence, self.new_tokens, self.served)


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


_ANY = Device("NVIDIA", 9)  # only the size of workspaces differs from GPU to GPU


def _peak(
    run: Training | Inference, batch: Ints, sequence: Ints, context: Ints | None = None
) -> Ints:
    """Return the quick peak at each point, in bytes; what all GPUs share is worked out once."""
    workspace = cuda.cublas_workspace(run.device)
    found = _ceiling_of(run.profile, replace(run, device=_ANY))
    return found.peak(batch, sequence, context, workspace=workspace)


@with_profile(100)
def _ceiling_of(_profile: Profile, run: Training | Inference) -> Ceiling:
    """Return the moments that can be the peak.

    A search keeps these for all that it tries: they take kilobytes, their layouts a megabyte each.
    """
    return ceiling(run.layout())


def _run_of(
    asked: Asked, *, kept: float | None = None, stage: Stage | None = None
) -> Training | Inference:
    """Return what makes the run that a plan stands for.

    ``kept`` is the share that torch.compile saves of what it may compute again; by default
    the middle where the plan compiles. ``stage`` is one of the plan's pipeline.
    """
    profile, gpu, settings = asked.profile, asked.gpu, asked.settings
    device = cuda.alike(Device.of(gpu.record, gpu.workspace))  # so that layouts are made once
    if asked.new_tokens is not None:
        return Inference(profile, device, settings.channels_last, asked.served)
    if kept is None:
        kept = memory_calibration().compile_kept if settings.compile else 1.0
    return Training(
        profile,
        device,
        accumulation=min(settings.accumulation, 2),
        checkpointing=settings.recomputing,
        optimizer=settings.update,
        channels_last=settings.channels_last,
        replicas=min(asked.gpu_count, 2) if settings.strategy == "ddp" else 1,
        offload=settings.optimizer_offload,
        kept=kept,
        loop=loop_of(settings),
        sharding=sharding_of(settings, asked.gpu_count),
        stage=stage,
        engine=_engine(gpu, settings),
    )


def _engine(gpu: Gpu, settings: FullSettings) -> Engine | None:
    """Return the vLLM that shares the GPU, where one writes the answers that are trained on."""
    if not settings.beside:
        return None
    return Engine(int(settings.beside * gpu.total.value), settings.generation == "vllm-sleep")


def estimate_memory(asked: Asked) -> MemoryEstimate:
    """Return the memory of one GPU, in bytes.

    Raises:
        KeyError: the profile knows neither the optimizer nor one to derive it from.
    """
    profile, gpu, settings = asked.profile, asked.gpu, asked.settings
    run = _replays(asked)
    layout = run.layout
    held = outside(gpu, asked.gpu_count)
    total_bytes = int(gpu.total.value)
    room = total_bytes - int(sum(part.value for part in held))
    limited = run.within(room)
    shown = run.within(None) if limited.out_of_memory else limited
    held_by = run.held(shown)
    terms = held_by.terms
    fuses = settings.compile and asked.new_tokens is None
    fusing = _fusing(asked) if fuses else (0.0, 0.0)
    allocated = _allocated(terms, shown, settings, fusing)
    reserved = _reserved(allocated, shown, fusing)
    paged = paged_state(layout, room - reserved.value)
    pinned = pinned_bytes(profile, settings.recomputing, asked.batch, asked.sequence)
    pinned *= asked.gpu_count if settings.several else 1
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
        derivation=textbook_line(profile, terms, settings.precision, asked.batch),
        host=host_memory(layout, paged, pinned, asked.nodes),
    )


def runs_within(asked: Asked) -> bool:
    """Return whether the replay ends within the device, without a margin.

    For searching: it stops where memory runs out, and an estimate that follows goes on from it.
    """
    room = int(asked.gpu.total.value) - bytes_outside(asked.gpu, asked.gpu_count)
    return not _replays(asked).within(room).out_of_memory


def _replays(asked: Asked) -> Run:
    """Return the replays of the run that a plan stands for."""
    expandable = asked.settings.allocator == "expandable" and asked.system == "linux"
    return run_at(_layout(asked), asked.point, expandable)


def _layout(asked: Asked) -> Layout:
    """Return the run; of a pipeline, that of the stage that needs the most memory."""
    peaks = stage_peaks(asked)
    stage = max(peaks, key=lambda one: int(peaks[one][0]), default=None)
    return _run_of(asked, stage=stage).layout()


def first_look(asked: Asked) -> tuple[int, Curve]:
    """Return (allocated peak in bytes, curve) without a replay: for the first repaint."""
    layout = _layout(asked)
    seen = curve(layout, asked.point.bytes_of(layout))
    return int(seen.live.sum(axis=0).max(initial=0)), seen


def allocated_peak_bytes(
    asked: Asked, batch: Ints | int | None = None, sequence: Ints | int | None = None
) -> Ints:
    """Return the allocated peak at many points at once, in bytes; (points,).

    ``batch`` and ``sequence`` are those of the points, by default what is asked.
    For searching: the layout is kept, and a point costs about a microsecond. It lies 0 to
    3 % below the replayed peak, since unsplit tails of blocks are not in it.
    """
    run, new, served = _run_of(asked), asked.new_tokens, asked.served
    batches, lengths = _points(asked, batch, sequence)
    if stages := stage_peaks(asked, batches, lengths):
        return np.max([*stages.values()], axis=0)  # type: ignore[no-any-return]
    if new is None:
        return _peak(run, batches, lengths)
    if served is None or served.traced:
        return _peak(run, batches, lengths, lengths + new - 1)
    counted = zip(batches.tolist(), lengths.tolist(), strict=True)
    points = [Point.of(count, prompt, new, served) for count, prompt in counted]
    at = (np.array([getattr(p, name) for p in points]) for name in ("batch", "sequence", "pool"))
    computed, tokens, pool = at
    total_bytes: Ints = _peak(run, computed, tokens) + pool
    return total_bytes


def _points(
    asked: Asked, batch: Ints | int | None, sequence: Ints | int | None
) -> tuple[Ints, Ints]:
    """Return batches and lengths side by side; what is not given is what is asked."""
    batches = np.atleast_1d(asked.batch if batch is None else batch)
    lengths = np.atleast_1d(asked.sequence if sequence is None else sequence)
    one, other = np.broadcast_arrays(batches, lengths)
    return one, other


def stage_peaks(
    asked: Asked,
    batch: Ints | int | None = None,
    sequence: Ints | int | None = None,
    *,
    among: Callable[[tuple[Stage, ...]], tuple[Stage, ...]] = deciding,
) -> dict[Stage, Ints]:
    """Return the allocated peak of each pipeline stage that can need the most; (points,) each.

    At other batches than the settings' own, there are so many more or fewer micro-batches.
    ``among`` picks the stages. Empty without a pipeline.
    """
    settings = asked.settings
    batches, lengths = _points(asked, batch, sequence)
    samples = settings.micro_batch * settings.accumulation
    several = np.maximum(samples // batches, settings.pipeline_stages or 1)
    return {
        stage: _stage_peak(asked, stage, batches, lengths, several)
        for stage in among(stages_of(settings, asked.profile))
    }


def _stage_peak(asked: Asked, stage: Stage, batches: Ints, lengths: Ints, several: Ints) -> Ints:
    """Return the peak of a stage with ``several`` micro-batches at each point; (points,).

    Those beyond the first few do what these do, and only take more at the stage's edges.
    """
    found = np.zeros(len(batches), dtype=np.int64)
    shown = {count: replace(stage, micro_batches=count).short for count in set(several.tolist())}
    for short in set(shown.values()):
        at = np.array([shown[count] == short for count in several.tolist()])
        more = several[at] - short.micro_batches
        few = _peak(_run_of(asked, stage=short), batches[at], lengths[at])
        found[at] = few + more * edge_bytes(asked.profile, short, batches[at], lengths[at])
    return found


def _fusing(asked: Asked) -> tuple[float, float]:
    """Return how far below and above the estimate torch.compile's bounds lie, in bytes."""
    points = np.array([asked.batch]), np.array([asked.sequence])
    least, middle, most = (
        float(_peak(_run_of(asked, kept=kept), *points)[0]) for kept in (0.0, None, 1.0)
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
