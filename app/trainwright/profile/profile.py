"""What one training step does, for any batch size and sequence length."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainwright.messages import Message

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

STATED = "profile.assumed."
"""Ids of sentences about what a recipe decides where the step depends on data."""

MONOMIALS = ("1", "B", "S", "BS", "SS", "BSS")
SCALE = 1024
"""Coefficients are integers in 1/1024: strided maps give fractions."""


def monomials(batch: int, sequence: int) -> Ints:
    """Return the values of ``MONOMIALS`` at a point."""
    b, s = batch, sequence
    return np.array([1, b, s, b * s, s * s, b * s * s], dtype=np.int64)


def evaluate(coefficients: Ints, batch: int, sequence: int) -> Ints:
    """Return ceil(coefficients · monomials / SCALE) for each row; shape (n,) from (n, 6)."""
    result: Ints = -(-(coefficients @ monomials(batch, sequence)) // SCALE)
    return result


@dataclass(frozen=True, slots=True)
class Segment:
    """A fitted segment: the log of ``trace.RawSegment`` with sizes as row numbers."""

    code: NDArray[np.uint8]
    a: NDArray[np.int32]
    b: NDArray[np.int32]
    """ALLOC: row of ``Profile.sizes``; PACK: storage id."""
    c: NDArray[np.int32]
    ops: NDArray[np.int32]
    inputs: tuple[tuple[int, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class OpTable:
    """Distinct operator calls, with costs as polynomials; rows align."""

    name: tuple[str, ...]
    phase: tuple[str, ...]
    region: tuple[int, ...]
    """0 in a block, -1 outside, -2 after the last block, -3 in a recurrent layer outside."""
    dtype: tuple[str, ...]
    flops: Ints
    """(rows, 6)."""
    bytes_read: Ints
    bytes_written: Ints
    dims: Ints
    """(rows, 7, 6): ``trace.OpRow.dims``; unused dimensions are 0."""


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """Events and ops of one structure of the step, as polynomials in batch and sequence."""

    sizes: Ints
    """(rows, 6): bytes of the distinct allocation sizes."""
    segments: dict[str, Segment]
    ops: OpTable
    category: dict[int, str]
    """Storage id -> parameter | reference | buffer | gradient | optimizer | input | output |
    cast (of a parameter) | kept_by_graph (as long as an output lives)."""
    model: dict[str, Any]
    assumptions: dict[str, int]
    """What was answered for tensors without data, and how often; under the id of a sentence,
    a number that the recipe of the model decides."""
    kernels: dict[str, int]
    versions: dict[str, str]
    exact: bool
    """Whether the polynomials matched the trace at the point not used for the fit; where
    not, the profile answers only for ``points``."""
    points: tuple[tuple[int, int], ...]
    covers_single: bool = False
    """Whether batch 1 was traced and found to be the same structure."""
    repeats: bool = True
    """Whether a second step did what the first had done; where not, it is not ``exact``."""

    def answers(self, batch: int, sequence: int) -> bool:
        """Return whether the polynomials hold at a point."""
        return self.exact or (batch, sequence) in self.points

    @property
    def guessed(self) -> dict[str, int]:
        """Answers by rule to what depends on data, and how often they were given."""
        return {what: n for what, n in self.assumptions.items() if not what.startswith(STATED)}

    @property
    def stated(self) -> tuple[Message, ...]:
        """What the recipe decides where the step depends on data."""
        return tuple(
            Message.of(what, number=number)
            for what, number in self.assumptions.items()
            if what.startswith(STATED)
        )

    @property
    def convolves(self) -> bool:
        """Whether any operator is a convolution."""
        return any("convolution" in name for name in self.ops.name)

    @property
    def blocks(self) -> int:
        """Number of blocks that checkpointing may wrap."""
        return int(self.model.get("blocks", 0))


@dataclass(frozen=True, slots=True, eq=False)
class Events:
    """What an allocator sees: births and deaths of storages in order, at one point.

    Arrays align. ``storage`` is positive at a birth and negative at the death of the same
    id; ``size`` is the bytes asked for, on both. Ids are unique over the whole sequence.
    """

    storage: Ints
    size: Ints
    op: NDArray[np.int32]
    """Row in ``Profile.ops`` of the op that made it; -1 at deaths and where there is none."""
    phase: NDArray[np.uint8]
    """Index into ``PHASES``."""
    term: NDArray[np.uint8]
    """Index into ``CATEGORIES`` of what the storage is for, on births and deaths."""

    @property
    def signed(self) -> Ints:
        """Bytes that each event adds: the size at a birth, its negative at a death."""
        return np.where(self.storage > 0, self.size, -self.size)


PHASES = ("setup", "forward", "backward", "optimizer", "prefill", "decode", "score")
"""``decode`` is one generated token at the longest context, ``score`` gives answers that were
generated their log-probabilities."""

CATEGORIES = (
    "parameters",
    "gradients",
    "optimizer",
    "activations",
    "casts",
    "logits",
    "temporaries",
    "inputs",
    "kv_cache",
    "workspaces",
    "reference",
)
"""What a storage is for. ``casts`` are autocast's low-precision copies of weights, ``logits``
whatever the head and the loss make, ``temporaries`` what dies in the phase of its birth,
``reference`` the model that a policy is compared with."""
