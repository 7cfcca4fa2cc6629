"""A whole run as the allocator will see it: traced and hidden storages, sizes as rows.

A layout holds for every batch and sequence length; sizes are looked up in ``bytes_of``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from trainwright.estimate import cuda
from trainwright.estimate.cuda import Device, Hidden
from trainwright.estimate.optimizers import as_ruled, traced_name
from trainwright.profile.expand import inference_structure, training_structure
from trainwright.profile.profile import CATEGORIES, PHASES, Ints, Profile, evaluate
from trainwright.profile.structure import Structure

TERMS = (*CATEGORIES, "buckets", "rounding")
"""``buckets`` are DDP's; ``rounding`` is what the allocator gives beyond what was asked."""

TERM = {name: number for number, name in enumerate(TERMS)}
_BACKWARD = PHASES.index("backward")


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Births and deaths of one run; arrays align."""

    profile: Profile
    storage: Ints
    """Positive at a birth, negative at a death."""
    size: NDArray[np.int32]
    """Row of what ``bytes_of`` returns."""
    op: NDArray[np.int32]
    phase: NDArray[np.uint8]
    term: NDArray[np.uint8]
    """Index into ``TERMS``."""
    steady: int
    """First event of the last step; of the prefill for inference."""
    hidden: tuple[Hidden, ...]
    """What size rows beyond those of the profile stand for."""
    channels_last: bool = False

    @property
    def rows(self) -> int:
        """Number of the profile's size rows; they come twice, the second time for decoding."""
        return len(self.profile.sizes)

    def bytes_of(self, batch: int, sequence: int, context: int | None = None) -> Ints:
        """Return the bytes of each size row.

        Args:
            batch: Samples a micro-batch, or requests at once.
            sequence: Tokens a sample or a prompt; 0 where there is none.
            context: Tokens before the last one decoded; only for inference.
        """
        late = sequence if context is None else context
        sizes = self.profile.sizes
        hidden = [
            cuda.hidden_bytes(one, self.profile, batch, sequence, channels_last=self.channels_last)
            for one in self.hidden
        ]
        return np.concatenate(
            [
                evaluate(sizes, batch, sequence),
                evaluate(sizes, batch, late),
                np.array(hidden, dtype=np.int64),
            ]
        )


@lru_cache(maxsize=256)
def training_layout(
    profile: Profile,
    device: Device,
    *,
    accumulation: int,
    checkpointing: str,
    optimizer: str,
    channels_last: bool = False,
    replicas: int = 1,
) -> Layout:
    """Return two optimizer steps after the setup, with what CUDA libraries take.

    Raises:
        KeyError: neither the optimizer nor the one that it is derived from was traced.
    """
    traced = traced_name(profile, optimizer)
    parts = training_structure(
        profile, min(accumulation, 2), checkpointing, f"optimizer:{traced}", 2
    )
    layout = _joined(profile, parts, steady=2)
    layout = replace(layout, channels_last=channels_last)
    if traced != optimizer:
        layout = as_ruled(layout, optimizer)
    if replicas > 1:
        layout = _with_buckets(layout, len(parts[0].storage))
    return _with_kernels(_with_cublas(layout, device))


@lru_cache(maxsize=64)
def inference_layout(profile: Profile, device: Device, *, channels_last: bool = False) -> Layout:
    """Return setup, prefill, and the last decoded token at its full context."""
    layout = _joined(profile, inference_structure(profile), steady=1)
    layout = replace(layout, channels_last=channels_last)
    return _with_kernels(_with_cublas(layout, device))


def _joined(profile: Profile, parts: Sequence[Structure], *, steady: int) -> Layout:
    storage, size, op, phase, term = (
        np.concatenate([getattr(part, field) for part in parts])
        for field in ("storage", "size", "op", "phase", "term")
    )
    first = sum(len(part.storage) for part in parts[:steady])
    return Layout(profile, storage, size, op, phase, term, first, ())


@dataclass(frozen=True, slots=True)
class _Insert:
    """Hidden storages born before an event; those that do not last die at once."""

    event: int
    hidden: tuple[Hidden, ...]
    term: str
    lasts: bool


def _inserted(layout: Layout, inserts: Sequence[_Insert]) -> Layout:
    """Return the layout with hidden storages; the same ``Hidden`` shares a size row."""
    if not inserts:
        return layout
    known = {one: row for row, one in enumerate(layout.hidden)}
    first_row, fresh = 2 * layout.rows, int(np.abs(layout.storage).max(initial=0))
    at: list[int] = []
    storage: list[int] = []
    size: list[int] = []
    term: list[int] = []
    for insert in sorted(inserts, key=lambda one: one.event):
        born = range(fresh + 1, fresh + 1 + len(insert.hidden))
        fresh += len(insert.hidden)
        sizes = [first_row + known.setdefault(one, len(known)) for one in insert.hidden]
        ids = [*born] if insert.lasts else [*born, *(-key for key in born)]
        times = len(ids) // len(insert.hidden)
        at += [insert.event] * len(ids)
        storage += ids
        size += sizes * times
        term += [TERM[insert.term]] * len(ids)
    before = np.maximum(np.array(at) - 1, 0)
    early = int(np.count_nonzero(np.array(at) <= layout.steady))
    return replace(
        layout,
        storage=np.insert(layout.storage, at, storage),
        size=np.insert(layout.size, at, size),
        op=np.insert(layout.op, at, layout.op[before]),
        phase=np.insert(layout.phase, at, layout.phase[before]),
        term=np.insert(layout.term, at, term),
        steady=layout.steady + early,
        hidden=tuple(known),
    )


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
    for thread, rule in ((~backward, "cublas-forward"), (backward, "cublas-backward")):
        events = np.flatnonzero(multiplies & thread)
        if events.size:
            workspace = Hidden(rule, cuda.CUBLAS_SOURCE, nbytes=nbytes)
            inserts.append(_Insert(int(events[0]) + 1, (workspace,), "workspaces", lasts=True))
    return _inserted(layout, inserts)


@lru_cache(maxsize=64)
def _calls_cublas(profile: Profile) -> NDArray[np.bool_]:
    """Return which op rows are products of matrices."""
    return np.array([name.startswith(cuda.GEMMS) for name in profile.ops.name], dtype=np.bool_)


@lru_cache(maxsize=64)
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
        _Insert(int(event) + 1, hidden[int(layout.op[event])], "workspaces", lasts=False)
        for event in last
    ]
    return _inserted(layout, inserts)


def _with_buckets(layout: Layout, event: int) -> Layout:
    """Add DDP's gradient buckets, made when the model is wrapped."""
    constant = evaluate(layout.profile.sizes, 1, 1)
    steady = slice(layout.steady, None)
    gradients = (layout.storage[steady] > 0) & (layout.term[steady] == TERM["gradients"])
    total = int(constant[layout.size[steady][gradients]].sum())
    full, rest = divmod(total, cuda.BUCKET)
    bucket = Hidden("bucket", cuda.DDP_SOURCE, nbytes=cuda.BUCKET)
    last = (Hidden("last-bucket", cuda.DDP_SOURCE, nbytes=rest),) if rest else ()
    if not total:
        return layout
    return _inserted(layout, [_Insert(event, (bucket,) * full + last, "buckets", lasts=True)])
