"""The loss in chunks of tokens, derived from a trace that makes all scores at once.

The head and the loss of a chunk run in the forward pass and keep nothing; in the backward pass
they run again, from the last chunk to the first (``ChunkedLoss`` of worker/programs/step.py).
What comes before the head, and after the gradient of its input, stays as it was traced.
"""

from dataclasses import replace
from functools import cache, lru_cache
from itertools import count
from typing import Any

import numpy as np

from trainwright.profile.head import TOKENS, Birth, Reading, UnlikeError
from trainwright.profile.memo import KEPT
from trainwright.profile.profile import MONOMIALS, Ints, OpTable, Profile, Segment
from trainwright.profile.trace import ALLOC, COPY_DEAD, FREE, PACK, RELEASE, UNPACK

CHUNKS = 8
"""``CHUNKS`` of worker/programs/step.py."""

_SQUARES = [MONOMIALS.index("SS"), MONOMIALS.index("BSS")]
Event = tuple[int, int, int, int]
"""(code, a, b, c) of the log."""


@lru_cache(maxsize=KEPT)
def chunked(profile: Profile) -> Profile | None:
    """Return the profile with its loss in chunks.

    None where the trace does not show how: the scores are changed between head and loss, the
    head has a bias, or its gradient is added to that of tied embeddings in a way of its own.
    """
    if "vocabulary" not in profile.model:
        return None
    tables = _Tables(profile)
    segments = dict(profile.segments)
    try:
        for name in ("micro", "again"):
            segments[name] = _Rewriting(tables, segments[name], first=name == "micro").segment()
    except (UnlikeError, KeyError, StopIteration, ValueError):
        return None
    return tables.profile(segments)


class _Tables:
    """A profile's sizes and operator rows, with those of a chunk added where they are needed."""

    def __init__(self, profile: Profile) -> None:
        self.old = profile
        self.category = dict(profile.category)
        last = max(
            max(int(s.a.max(initial=0)), int(s.b.max(initial=0))) for s in profile.segments.values()
        )
        self.fresh = count(last + 1)
        self._sizes = {tuple(row): number for number, row in enumerate(profile.sizes.tolist())}
        self._count = len(profile.sizes)
        self._new: list[tuple[int, ...]] = []
        self._rows: dict[tuple[Any, ...], int] = {}
        self.part = cache(self._part)
        """The row of a chunk's size; what does not grow with the tokens stays."""
        self.row = cache(self._row)
        """An operator's row for one chunk."""

    def _size(self, coefficients: Ints) -> int:
        """Return the row of a size."""
        wanted = _frozen(coefficients)
        if wanted not in self._sizes:
            self._sizes[wanted] = self._count + len(self._new)
            self._new.append(wanted)
        return self._sizes[wanted]

    def of(self, size: int) -> Ints:
        """Return the coefficients of a row of sizes."""
        known = size < self._count
        row = self.old.sizes[size] if known else np.array(self._new[size - self._count])
        return np.asarray(row, dtype=np.int64)

    def _part(self, size: int) -> int:
        return self._size(_shared(self.of(size)))

    def times(self, size: int, factor: int) -> int:
        """Return the row of a multiple of a size."""
        return self._size(factor * self.of(size))

    def _row(self, like: int, phase: str = "") -> int:
        ops = self.old.ops
        costs = (ops.flops, ops.bytes_read, ops.bytes_written, ops.dims)
        shared = (_frozen(_shared(cost[like])) for cost in costs)
        return self._added(ops.name[like], phase or ops.phase[like], ops.dtype[like], *shared)

    def moved(self, name: str, phase: str, dtype: str, read: int, written: int) -> int:
        """Return the row of an operator that reads and writes storages of the given sizes."""
        nbytes = self.of(read), self.of(written)
        dims = np.zeros_like(self.old.ops.dims[0])
        dims[0] = nbytes[1] // _ITEMSIZE[dtype]
        none = (0,) * len(MONOMIALS)
        return self._added(name, phase, dtype, none, *map(_frozen, (*nbytes, dims)))

    def _added(self, *row: Any) -> int:
        return self._rows.setdefault(row, len(self.old.ops.name) + len(self._rows))

    def profile(self, segments: dict[str, Segment]) -> Profile:
        """Return the profile with the added rows and the given segments."""
        ops, rows = self.old.ops, list(self._rows)
        name, phase, dtype = ([row[at] for row in rows] for at in range(3))
        flops, read, written, dims = (
            np.concatenate([known, np.array([row[at] for row in rows], dtype=np.int64)])
            for at, known in enumerate(
                (ops.flops, ops.bytes_read, ops.bytes_written, ops.dims), start=3
            )
        )
        table = OpTable(
            name=(*ops.name, *name),
            phase=(*ops.phase, *phase),
            region=(*ops.region, *(_HEAD,) * len(rows)),
            dtype=(*ops.dtype, *dtype),
            flops=flops,
            bytes_read=read,
            bytes_written=written,
            dims=dims,
        )
        sizes = np.concatenate([self.old.sizes, np.array(self._new, dtype=np.int64)])
        return replace(self.old, sizes=sizes, segments=segments, ops=table, category=self.category)


_HEAD = -2
"""Region of the head and the loss."""
_ITEMSIZE = {"bfloat16": 2, "float16": 2, "float32": 4}


def _shared(coefficients: Ints) -> Ints:
    """Return polynomials for a chunk's tokens."""
    if coefficients[..., _SQUARES].any():
        raise UnlikeError
    part = coefficients.copy()
    part[..., TOKENS] //= CHUNKS
    return part


def _frozen(values: Ints) -> Any:
    """Return an array as nested tuples, which can be a key."""
    return tuple(map(_frozen, values)) if values.ndim > 1 else tuple(values.tolist())


class _Rewriting:
    """One segment, written with its loss in chunks."""

    def __init__(self, tables: _Tables, segment: Segment, *, first: bool) -> None:
        self._tables, self._segment = tables, segment
        self._read = Reading(tables.old, segment)
        self._forward = self._read.forward()
        self._backward = back = self._read.backward(self._forward)
        own = back.of_weight and tables.old.category.get(back.of_weight.storage) == "gradient"
        if first and back.of_weight and not (own or back.of_master):
            raise UnlikeError  # Tied embeddings add theirs, and autograd adds in another order.
        self._log, self._ops = self._read.log, self._read.ops
        self._casts = "cast" in tables.category.values()
        self._parts: list[Ints] = []
        """Stretches of the new log; (n, 4)."""
        self._ran: list[int] = []

    def segment(self) -> Segment:
        """Return the segment with its loss in chunks."""
        forward, backward = self._forward, self._backward
        (start, end), (back, done) = forward.span, backward.span
        self._copy(slice(start), slice(forward.first.op))
        holders = self._all_forward()
        self._copy(slice(end, back), slice(forward.loss.op + 1, backward.loss.op))
        self._all_backward(holders)
        self._copy(slice(done, None), slice(backward.last.op + 1, None))
        category = self._tables.category
        category.pop(forward.scores.storage)
        category[forward.hidden.storage] = "output"
        code, a, b, c = np.concatenate(self._parts).astype(np.int32).T.copy()
        ops = np.array(self._ran, dtype=np.int32)
        return Segment(code.astype(np.uint8), a, b, c, ops, self._segment.inputs)

    def _copy(self, span: slice, ops: slice) -> None:
        """Write a span as traced, less what the chunks replace."""
        forward, (back, done) = self._forward, self._backward.span
        inside, part = self._log[back:done], self._log[span].astype(np.int64)
        replaced = inside[inside[:, 0] == RELEASE, 1]
        code, storage, _, op = part.T  # views
        holds = np.isin(code, (PACK, UNPACK, RELEASE, COPY_DEAD)) & np.isin(storage, replaced)
        freed = code == FREE
        gone = freed & (storage == forward.upcast.storage) if forward.upcast else False
        # What the model returns is the head's input.
        storage[freed & (storage == forward.scores.storage)] = forward.hidden.storage
        op[(code == ALLOC) & (op >= 0)] += len(self._ran) - (ops.start or 0)
        self._parts.append(part[~(holds | gone)])
        self._ran += self._ops[ops]

    def _write(self, *events: Event) -> None:
        self._parts.append(np.array(events, dtype=np.int64).reshape(-1, 4))

    def _run(self, row: int) -> int:
        self._ran.append(row)
        return len(self._ran) - 1

    def _born(self, size: int, op: int, storage: int | None = None) -> int:
        storage = next(self._tables.fresh) if storage is None else storage
        self._write((ALLOC, storage, size, op))
        return storage

    def _note(self, code: int, *ids: int | None) -> None:
        self._write(*((code, one, 0, 0) for one in ids if one is not None))

    def _part(self, like: Birth | None, phase: str = "", storage: int | None = None) -> int | None:
        """Run for one chunk what made a storage in the trace; return the chunk's storage."""
        if like is None:
            return None
        op = self._run(self._tables.row(self._ops[like.op], phase))
        storage = self._born(self._tables.part(like.size), op, storage)
        if self._casts and like is self._forward.weight_cast:
            self._tables.category[storage] = "cast"
        return storage

    def _all_forward(self) -> list[tuple[int, int]]:
        """Write the chunks' forward passes; return the holders of each."""
        forward, tables = self._forward, self._tables
        for made in forward.labels:
            self._born(made.size, self._run(self._ops[made.op]), made.storage)
        self._note(FREE, *(made.storage for made in forward.labels[:-1]))
        holders, losses = [], []
        for number in range(CHUNKS):
            pair = next(tables.fresh), next(tables.fresh)
            kept = forward.hidden.storage, forward.labels[-1].storage
            self._write(*((PACK, holder, it, -1) for holder, it in zip(pair, kept, strict=True)))
            if number == 0 and (cast := forward.weight_cast):  # autocast keeps it for the others
                self._part(cast, "loss", cast.storage)
            taken = self._part(forward.input_cast, "loss")
            softmax, loss, total, upcast = self._scores("loss", taken)
            self._note(FREE, upcast, softmax, total)
            holders.append(pair)
            losses.append(loss)
        one, each = forward.loss.size, tables.times(forward.loss.size, CHUNKS)
        joined = tables.moved("aten.stack.default", "loss", "float32", each, each)
        stacked = self._born(each, self._run(joined))
        summed = tables.moved("aten.sum.default", "loss", "float32", each, one)
        self._born(one, self._run(summed), forward.loss.storage)
        self._note(FREE, *losses, stacked)
        return holders

    def _scores(self, phase: str, taken: int | None) -> tuple[int | None, int, int, int | None]:
        """Run head and loss of a chunk; return softmax, loss, total, and the scores in fp32."""
        forward = self._forward
        scores = self._part(forward.scores, phase)
        if phase == "loss" or self._backward.of_weight is None:  # autograd does not keep it
            self._note(FREE, taken)
        upcast = self._part(forward.upcast, phase)
        if upcast is not None:
            self._note(FREE, scores)
        softmax = self._part(forward.softmax, phase)
        op = self._run(self._tables.row(self._ops[forward.loss.op], phase))
        loss, total = (self._born(made.size, op) for made in (forward.loss, forward.total))
        return softmax, loss, total, scores if upcast is None else upcast

    def _all_backward(self, holders: list[tuple[int, int]]) -> None:
        """Write the chunks' second forward passes and their gradients, the last chunk first."""
        backward, tables = self._backward, self._tables
        back, done = backward.span
        traced = self._log[back:done].tolist()
        inside = {a for code, a, *_ in traced if code == ALLOC}
        of_loss = [a for code, a, *_ in traced if code == FREE and a not in inside]
        parts = []
        of_weight: int | None = None
        for number, pair in enumerate(reversed(holders)):
            of_hidden, more = self._gradients(pair, of_loss if number == CHUNKS - 1 else [])
            if number > 1:
                self._note(FREE, more)
            self._note(RELEASE, *pair)
            if backward.of_weight is not None and self._forward.input_cast is None:
                self._note(COPY_DEAD, pair[0])
            of_weight = self._added(number, of_weight, more)
            raised = self._part(backward.raised)
            self._note(FREE, of_hidden if raised is not None else None)
            parts.append(of_hidden if raised is None else raised)
        freed = {a for code, a, *_ in traced if code == FREE}
        if (master := backward.of_master) is not None:
            self._born(master.size, self._run(self._ops[master.op]), master.storage)
            self._note(FREE, of_weight)
        if (weight := master or backward.of_weight) is not None and weight.storage in freed:
            self._note(FREE, weight.storage)
        whole = backward.raised or backward.of_hidden
        product = self._tables.old.ops.dtype[self._ops[backward.of_hidden.op]]
        dtype = "float32" if backward.raised else product
        joined = tables.moved("aten.cat.default", "backward", dtype, whole.size, whole.size)
        self._born(whole.size, self._run(joined), whole.storage)
        self._note(FREE, *parts)

    def _gradients(self, pair: tuple[int, int], of_loss: list[int]) -> tuple[int, int | None]:
        """Write a chunk's second forward pass and backward pass; return its gradients.

        ``of_loss`` is what the last of them needs no longer.
        """
        forward, backward = self._forward, self._backward
        self._note(UNPACK, *pair)
        weight = self._part(forward.weight_cast, "recompute")
        taken = self._part(forward.input_cast, "recompute")
        softmax, loss, total, scores = self._scores("recompute", taken)
        self._note(FREE, scores, loss)
        kept = backward.of_weight is not None and forward.input_cast is None
        self._note(COPY_DEAD, None if kept else pair[0])
        of_softmax = self._part(backward.loss)
        self._note(FREE, *of_loss, total)
        self._note(COPY_DEAD, pair[1])
        of_scores = self._part(backward.softmax)
        self._note(FREE, softmax, of_softmax)
        if (downcast := self._part(backward.downcast)) is not None:
            self._note(FREE, of_scores)
        of_weight, of_hidden = self._part(backward.of_weight), self._part(backward.of_hidden)
        taken = taken if backward.of_weight else None
        self._note(FREE, weight, taken, of_scores if downcast is None else downcast)
        assert of_hidden is not None, "a trained head passes its gradient on"
        return of_hidden, of_weight

    def _added(self, number: int, total: int | None, more: int | None) -> int | None:
        """Add a chunk's gradient of the weight: autograd makes a sum once, then adds to it."""
        made = self._backward.of_weight
        if made is None or more is None or number == 0:
            return more
        dtype = self._tables.old.ops.dtype[self._ops[made.op]]
        name = "aten.add.Tensor" if number == 1 else "aten.add_.Tensor"
        both = self._tables.times(made.size, 2)
        op = self._run(self._tables.moved(name, "backward", dtype, both, made.size))
        if number > 1:
            return total
        self._born(made.size, op, made.storage)
        self._note(FREE, total, more)
        return made.storage
