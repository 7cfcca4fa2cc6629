"""The steps of a policy that writes the answers that it is trained on.

A trace has the same batch and length in all its parts. A run writes the answers of several
micro-batches at once, from the prompt on: what does that is taken at sizes of its own, which no
micro-batch changes.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from trainwright.profile.memo import KEPT
from trainwright.profile.profile import SCALE, Ints, OpTable, Profile, Segment, monomials
from trainwright.profile.trace import ALLOC

WRITES = ("prefill", "decode")
"""Segments that write answers: all prompts, and one token at the longest context."""
SCORES = ("score", "compare")
"""Segments that give answers their log-probabilities: the policy's, and the reference's."""


@dataclass(frozen=True, slots=True)
class Answers:
    """What is written at once on one GPU."""

    rows: int
    prompt: int
    """Tokens."""
    tokens: int
    """Of an answer, at most."""
    scored: bool
    """Whether the policy's log-probabilities of that moment are kept."""


@lru_cache(maxsize=KEPT)
def placed(profile: Profile, answers: Answers) -> Profile:
    """Return the profile whose answers are written at sizes of their own.

    Its rows of sizes come three times: as they were, of all prompts, and of the last token.
    """
    context = answers.prompt + answers.tokens - 1
    first, last = (answers.rows, answers.prompt), (answers.rows, context)
    middle = answers.rows, answers.prompt + answers.tokens // 2
    count = len(profile.sizes)
    segments = {
        name: _further(segment, count) if name in WRITES else segment
        for name, segment in profile.segments.items()
        if name != "score" or answers.scored
    }
    ops = _fixed(_fixed(profile.ops, "prefill", first), "decode", middle)
    apart = (_constant(profile.sizes, *at) for at in (first, last))
    sizes = np.concatenate([profile.sizes, *apart])
    return replace(profile, sizes=sizes, segments=segments, ops=ops)


def _further(segment: Segment, rows: int) -> Segment:
    """Return the segment with the sizes of so many rows later."""
    return replace(segment, b=np.where(segment.code == ALLOC, segment.b + rows, segment.b))


def _constant(coefficients: Ints, batch: int, length: int) -> Ints:
    """Return polynomials that are everywhere what these are at a point."""
    found = np.zeros_like(coefficients)
    found[..., 0] = -(-(coefficients @ monomials(batch, length)) // SCALE) * SCALE
    return found


def _fixed(ops: OpTable, phase: str, at: tuple[int, int]) -> OpTable:
    """Return the calls, those of a phase with the costs that they have at a point."""
    there: NDArray[np.bool_] = np.array(ops.phase) == phase

    def fixed(coefficients: Ints) -> Ints:
        found = coefficients.copy()
        found[there] = _constant(coefficients[there], *at)
        return found

    return replace(
        ops,
        flops=fixed(ops.flops),
        bytes_read=fixed(ops.bytes_read),
        bytes_written=fixed(ops.bytes_written),
        dims=fixed(ops.dims),
    )
