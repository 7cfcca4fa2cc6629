"""The run that a plan stands for: traced storages, and those that no trace shows."""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from trainwright.estimate import cuda
from trainwright.estimate.cuda import Device, Hidden
from trainwright.estimate.lifetimes import TERM, TERMS, Insert, Layout, inserted, joined
from trainwright.estimate.memory.compiled import fused
from trainwright.estimate.memory.state import as_ruled, offloaded
from trainwright.estimate.optimizers import traced_name
from trainwright.estimate.parallel.sharded import Sharding, sharded
from trainwright.estimate.parallel.stages import Stage, staged
from trainwright.estimate.serving.served import Served, engine_layout, windowed_layout
from trainwright.profile.expand import (
    PLAIN_LOOP,
    Loop,
    inference_structure,
    training_structure,
)
from trainwright.profile.memo import KEPT
from trainwright.profile.profile import PHASES, Profile, evaluate
from trainwright.workload import FullSettings

__all__ = ["TERM", "TERMS", "Engine", "Inference", "Layout", "Training"]

_BACKWARD = PHASES.index("backward")

_KEPT = 4
"""Layouts that are kept, of one to four megabytes each; assumed: an answer and edits taken back."""


@dataclass(frozen=True, slots=True)
class Engine:
    """A vLLM in the same process, that writes the answers that are trained on."""

    nbytes: int
    """Of its share of the memory."""
    sleeps: bool
    """Whether it gives them back before each update."""


@dataclass(frozen=True, slots=True)
class Training:
    """What makes the run of a training: alike for all plans that share one."""

    profile: Profile
    device: Device
    accumulation: int
    checkpointing: str
    optimizer: str
    channels_last: bool = False
    replicas: int = 1
    offload: str = "none"
    kept: float = 1.0
    """Share that torch.compile saves of what it may compute again."""
    loop: Loop = PLAIN_LOOP
    sharding: Sharding | None = None
    stage: Stage | None = None
    engine: Engine | None = None

    def layout(self) -> Layout:
        """Return two optimizer steps after the setup, with what CUDA libraries take.

        Raises:
            KeyError: neither the optimizer nor the one that it is derived from was traced.
        """
        return _trained(self)


@dataclass(frozen=True, slots=True)
class Inference:
    """What makes a run that trains nothing."""

    profile: Profile
    device: Device
    channels_last: bool = False
    served: Served | None = None

    def layout(self) -> Layout:
        """Return setup, prefill, and the last decoded token at its full context.

        With an engine other than the traced one: its weights, its cache, and the prefill of what
        it computes at once.
        """
        return _inferred(self)


@lru_cache(maxsize=_KEPT)
def _trained(run: Training) -> Layout:
    profile, optimizer = run.profile, run.optimizer
    traced = traced_name(profile, optimizer)
    parts = training_structure(
        profile, min(run.accumulation, 2), run.checkpointing, f"optimizer:{traced}", 2, run.loop
    )
    setup = len(parts[0].storage)
    layout = fused(joined(profile, parts, steady=2), run.kept)
    layout = replace(layout, channels_last=run.channels_last)
    if traced != optimizer:
        layout = as_ruled(layout, optimizer)
    if run.offload == "cpu":
        layout = offloaded(layout, optimizer)
    if run.sharding is not None:
        layout = sharded(layout, parts, run.sharding)
    if run.stage is not None:
        layout = staged(layout, parts, run.stage)
    if run.engine is not None:
        layout = _with_engine(layout, setup, run.engine)
    if run.replicas > 1:
        layout = _with_buckets(layout, setup)
    return _with_kernels(_with_cublas(layout, run.device))


@lru_cache(maxsize=_KEPT)
def _inferred(run: Inference) -> Layout:
    profile, served = run.profile, run.served
    parts = inference_structure(profile)
    if served is not None and not served.traced:
        layout = engine_layout(profile, parts, served)
    else:
        layout = windowed_layout(profile, parts, served)
    layout = replace(layout, channels_last=run.channels_last)
    return _with_kernels(_with_cublas(layout, run.device))


def _with_cublas(layout: Layout, device: Device) -> Layout:
    """Add a workspace at the first product of each host thread: ours and autograd's."""
    nbytes = cuda.cublas_workspace(device)
    gemm = _calls_cublas(layout.profile)
    multiplies = (layout.storage > 0) & (layout.op >= 0)
    if nbytes == 0 or not gemm.any():
        return layout
    multiplies[multiplies] = gemm[layout.op[multiplies]]
    backward = layout.phase == _BACKWARD
    inserts = []
    for thread, rule in zip((~backward, backward), cuda.WORKSPACES, strict=True):
        events = np.flatnonzero(multiplies & thread)
        if events.size:
            workspace = Hidden(rule, device.workspace_source, nbytes=nbytes)
            inserts.append(Insert(int(events[0]) + 1, (workspace,), "workspaces", lasts=True))
    return inserted(layout, inserts)


@lru_cache(maxsize=KEPT)
def _calls_cublas(profile: Profile) -> NDArray[np.bool_]:
    """Return which op rows are products of matrices."""
    return np.array([name.startswith(cuda.GEMMS) for name in profile.ops.name], dtype=np.bool_)


@lru_cache(maxsize=KEPT)
def _kernels(profile: Profile) -> dict[int, tuple[Hidden, ...]]:
    """Return what each op row takes while it runs, for those that take anything."""
    rows = range(len(profile.ops.name))
    return {row: found for row in rows if (found := cuda.hidden_of(profile, row))}


def _with_kernels(layout: Layout) -> Layout:
    """Add what attention and convolution kernels take while they run."""
    hidden = _kernels(layout.profile)
    if not hidden:
        return layout
    takes = (layout.storage > 0) & np.isin(layout.op, list(hidden))
    # Outputs of one call are born one after the other; the kernel runs after the last.
    following = np.append(layout.op[1:], -1)
    goes_on = np.append(takes[1:], False) & (following == layout.op)
    last = np.flatnonzero(takes & ~goes_on)
    inserts = [
        Insert(int(event) + 1, hidden[int(layout.op[event])], "workspaces", lasts=False)
        for event in last
    ]
    return inserted(layout, inserts)


def _with_engine(layout: Layout, event: int, engine: Engine) -> Layout:
    """Add what an engine beside the training holds: always, or before the steady step alone."""
    share = Hidden("engine", "trl 1.16: generation/vllm_generation.py", nbytes=engine.nbytes)
    place = layout.steady if engine.sleeps else event
    found = inserted(layout, [Insert(place, (share,), "engine", lasts=not engine.sleeps)])
    if not engine.sleeps:
        return found
    phase = np.where(found.term == TERM["engine"], PHASES.index("decode"), found.phase)
    return replace(found, phase=phase.astype(np.uint8), steady=layout.steady)


def gradient_bytes(layout: Layout) -> int:
    """Return the bytes of the gradients of one step; DDP's buckets take as many."""
    constant = evaluate(layout.profile.sizes, 1, 1)
    steady = slice(layout.steady, None)
    gradients = (layout.storage[steady] > 0) & (layout.term[steady] == TERM["gradients"])
    return int(constant[layout.size[steady][gradients]].sum())


def _with_buckets(layout: Layout, event: int) -> Layout:
    """Add DDP's gradient buckets, made when the model is wrapped."""
    total = gradient_bytes(layout)
    full, rest = divmod(total, cuda.BUCKET)
    bucket = Hidden("bucket", cuda.DDP_SOURCE, nbytes=cuda.BUCKET)
    last = (Hidden("last-bucket", cuda.DDP_SOURCE, nbytes=rest),) if rest else ()
    if not total:
        return layout
    return inserted(layout, [Insert(event, (bucket,) * full + last, "buckets", lasts=True)])


def loop_of(settings: FullSettings) -> Loop:
    """Return what the plan's loop holds longer than the step needs."""
    return Loop(
        settings.output_kept,
        settings.gradients_cleared,
        settings.loss_in_model,
        writes=settings.generation == "transformers",
    )
