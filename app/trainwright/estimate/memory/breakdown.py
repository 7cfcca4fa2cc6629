"""Who holds the memory: the allocated peak by term and member, and live bytes over a step."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from trainwright.estimate.memory.allocator import Replay, rounded
from trainwright.estimate.memory.layout import TERM, TERMS, Layout
from trainwright.estimate.memory.notation import formula
from trainwright.explain import Kind, Quantity, Unit
from trainwright.messages import Message
from trainwright.profile.profile import PHASES, Ints

_LARGEST = 6
"""Members that a term lists by name."""

_OF_WEIGHTS = {"parameters", "gradients", "optimizer"}
"""Terms whose members are told by what they are rather than by the op that made them."""

_KIND_OF_RULE = {
    "convolution": Kind.ASSUMED,  # no source gives its size
    "bucket": Kind.ESTIMATED,  # of the traced gradients
    "last-bucket": Kind.ESTIMATED,
}
"""Hidden storages whose size is not what a source says."""


@dataclass(frozen=True, slots=True)
class Curve:
    """Live bytes over one steady step, by term; for the chart."""

    position: NDArray[np.int64]
    """Event number; (n,)."""
    live: NDArray[np.int64]
    """Bytes of each term after each event; (terms, n), rows as ``terms``."""
    terms: tuple[str, ...]
    """Categories, in stacking order."""
    phases: tuple[tuple[str, int, int], ...]
    """(phase, first event, event after the last)."""


def curve(layout: Layout, sizes: Ints, block: Ints | None = None) -> Curve:
    """Return live bytes by term through the steady step.

    Args:
        layout: The run.
        sizes: What ``layout.bytes_of`` returned.
        block: Bytes of the block of each event, from the replay; without it, for a first
            look, sizes as the allocator rounds them.
    """
    asked = sizes[layout.size]
    given = rounded(asked) if block is None else block
    sign = np.sign(layout.storage)
    changes, start = sign * asked, layout.steady
    position = np.arange(len(layout.storage) - start, dtype=np.int64)
    live = np.zeros((len(TERMS), len(position)), dtype=np.int64)
    live[layout.term[start:], position] = changes[start:]
    np.add.at(live[:, 0], layout.term[:start], changes[:start])
    np.cumsum(live, axis=1, out=live)
    live[TERM["rounding"]] = np.cumsum(sign * (given - asked))[start:]
    shown = np.flatnonzero(live.any(axis=1))
    return Curve(
        position=position,
        live=live[shown],
        terms=tuple(TERMS[kind] for kind in shown),
        phases=tuple(_phases(layout.phase[start:])),
    )


def _phases(phase: NDArray[np.uint8]) -> Iterable[tuple[str, int, int]]:
    edges = [0, *(np.flatnonzero(np.diff(phase)) + 1).tolist(), len(phase)]
    for first, after in pairwise(edges):
        if after > first:
            yield PHASES[int(phase[first])], first, after


def peak_terms(layout: Layout, sizes: Ints, replay: Replay) -> tuple[Quantity, ...]:
    """Return what the allocated peak is made of, largest first; the sum is exact."""
    births = _alive_at(layout, replay.peak)
    asked = sizes[layout.size[births]]
    terms = []
    for kind in np.unique(layout.term[births]).tolist():
        of_kind = layout.term[births] == kind
        if total := int(asked[of_kind].sum()):
            members = _members(layout, TERMS[kind], births[of_kind], asked[of_kind])
            terms.append(_term(TERMS[kind], total, members))
    granule = int((rounded(asked) - asked).sum())
    unsplit = replay.allocated_peak - int(rounded(asked).sum())
    if granule + unsplit:
        terms.append(_rounding(granule, unsplit))
    return tuple(sorted(terms, key=lambda term: -term.value))


def _alive_at(layout: Layout, event: int) -> Ints:
    """Return the births, as event numbers, of what is live after an event."""
    seen = layout.storage[: event + 1]
    birth = np.full(int(np.abs(seen).max(initial=0)) + 1, -1, dtype=np.int64)
    births = np.flatnonzero(seen > 0)
    birth[seen[births]] = births
    birth[-seen[seen < 0]] = -1
    result: Ints = np.sort(birth[birth >= 0])
    return result


def _term(name: str, value: int, members: tuple[Quantity, ...]) -> Quantity:
    kinds = {member.kind for member in members}
    return Quantity(
        Message.of(f"memory.term.{name}"),
        value,
        Unit.BYTES,
        kinds.pop() if len(kinds) == 1 else Kind.ESTIMATED,
        parts=members,
        role=name,
    )


def _members(layout: Layout, term: str, births: Ints, asked: Ints) -> tuple[Quantity, ...]:
    """Return a term's largest groups of equal storages, and the others as one."""
    keys = np.stack([layout.size[births], _alike(layout)[layout.op[births]]])
    groups, inverse, counts = np.unique(keys, axis=1, return_inverse=True, return_counts=True)
    totals = np.bincount(inverse.ravel(), weights=asked).astype(np.int64)
    order = np.argsort(-totals, kind="stable")
    members = [
        _member(layout, term, *map(int, (*groups[:, at], counts[at], totals[at])))
        for at in order[:_LARGEST]
    ]
    left = order[_LARGEST:]
    if rest := int(totals[left].sum()):
        count = int(counts[left].sum())
        name = Message.of("memory.member.others", count=count)
        members.append(Quantity(name, rest, Unit.BYTES, Kind.ESTIMATED))
    return tuple(member for member in members if member.value)


def _alike(layout: Layout) -> NDArray[np.int64]:
    """Return for each op row the first of the same name and dtype; -1 for none, at the end."""
    first: dict[tuple[str, str], int] = {}
    ops = layout.profile.ops
    rows = enumerate(zip(ops.name, ops.dtype, strict=True))
    return np.array([*(first.setdefault(kind, row) for row, kind in rows), -1], dtype=np.int64)


def _member(layout: Layout, term: str, size: int, op: int, count: int, value: int) -> Quantity:
    if size >= layout.first_hidden:
        return _hidden_member(layout, size, op, count, value)
    ops = layout.profile.ops
    name, dtype = (_plain(ops.name[op]), ops.dtype[op]) if op >= 0 else ("", "")
    coefficients = layout.profile.sizes[size % layout.rows]
    text = formula(coefficients, dtype, layout.profile.model)
    if term in _OF_WEIGHTS:
        each = value // count
        kind = "experts" if each in layout.profile.model.get("expert_sizes", ()) else term
        message = Message.of(f"memory.member.{kind}", count=count)
    elif name:
        message = Message.of("memory.member.op", count=count, op=name, dtype=dtype)
    else:
        message = Message.of("memory.member.tensors", count=count)
    return Quantity(
        message,
        value,
        Unit.BYTES,
        Kind.ESTIMATED,
        formula=f"{count}·({text})" if count > 1 else text,
        source="trace",
    )


def _hidden_member(layout: Layout, size: int, op: int, count: int, value: int) -> Quantity:
    hidden = layout.hidden[size - layout.first_hidden]
    op_name = _plain(layout.profile.ops.name[op]) if hidden.size and op >= 0 else ""
    return Quantity(
        Message.of(f"memory.hidden.{hidden.rule}", count=count),
        value,
        Unit.BYTES,
        _KIND_OF_RULE.get(hidden.rule, Kind.QUOTED),
        formula=hidden.formula or op_name,
        source=hidden.source,
    )


def _plain(name: str) -> str:
    """Return ``mm`` from ``aten.mm.default``."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else name


def _rounding(granule: int, unsplit: int) -> Quantity:
    source = "torch: c10/core/AllocatorConfig.h"
    parts = tuple(
        Quantity(
            Message.of(f"memory.rounding.{name}"), value, Unit.BYTES, Kind.ESTIMATED, source=source
        )
        for name, value in (("granule", granule), ("unsplit", unsplit))
        if value
    )
    return Quantity(
        Message.of("memory.term.rounding"),
        granule + unsplit,
        Unit.BYTES,
        Kind.ESTIMATED,
        parts=parts,
        role="rounding",
    )
