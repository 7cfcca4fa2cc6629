"""A run whose layers lie on several GPUs one after the other: pipeline stages, one forward and one
backward pass in turn (1F1B).

Derived from the run on one GPU, for each stage. The order is that of torch 2.13's ``Schedule1F1B``
(``torch/distributed/pipelining/schedules.py``), what it holds that of its ``PipelineStage``
(``stage.py``). ``tests/accuracy/test_staged.py`` compares with runs of both.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from trainwright.estimate.cuda import ITEMSIZE
from trainwright.estimate.lifetimes import TERM, Layout, joined
from trainwright.estimate.parallel.passes import Span, spans, stride_of
from trainwright.estimate.parallel.sharded import repeating
from trainwright.profile.memo import KEPT
from trainwright.profile.profile import PHASES, Ints, Profile, Segment, evaluate
from trainwright.profile.structure import Structure
from trainwright.profile.trace import ALLOC
from trainwright.workload import FullSettings

_FORWARD, _OPTIMIZER = PHASES.index("forward"), PHASES.index("optimizer")
_SCALAR = 64
"""Bytes up to which what an update makes belongs to no parameter: norms and counts of steps."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One GPU's part of the layers."""

    index: int
    of: int
    begin: int
    """Its first layer."""
    end: int
    """The layer after its last."""
    micro_batches: int
    """Of an optimizer step."""

    @property
    def first(self) -> bool:
        """Whether the table of tokens is here."""
        return self.index == 0

    @property
    def last(self) -> bool:
        """Whether norm, head and loss are here."""
        return self.index == self.of - 1

    @property
    def in_flight(self) -> int:
        """Micro-batches whose forward pass is done before the first backward pass begins."""
        return min(self.of - self.index, self.micro_batches)

    @property
    def short(self) -> "Stage":
        """The same with as few micro-batches as show all that more of them do again."""
        return replace(self, micro_batches=min(self.micro_batches, self.in_flight + 1))


def stages_of(settings: FullSettings, profile: Profile) -> tuple[Stage, ...]:
    """Return the stages of a plan; none without a pipeline."""
    count, layers = settings.pipeline_stages or 1, profile.blocks
    if count < 2 or layers < count:
        return ()
    table, layer = parameters_of(profile)
    cuts = pairwise(cut(layers, count, round(table / layer)))
    return tuple(Stage(n, count, *pair, settings.accumulation) for n, pair in enumerate(cuts))


def parameters_of(profile: Profile) -> tuple[float, float]:
    """Return the parameters of the table of tokens, which the head has too, and of a layer."""
    model = profile.model
    table = float(model.get("vocabulary", 0) * model.get("hidden", 0))
    return table, (float(model["parameters"]) - 2 * table) / profile.blocks


def cut(layers: int, count: int, head: int) -> list[int]:
    """Return the first layer of each stage, and the layers of all.

    The head works as long as ``head`` layers, so that the last stage has so many less than the
    others: a product takes as long as its matrix is large. What is left over goes to the stages
    before it, since the first ones have the most micro-batches in flight. The exports cut in the
    same places (resources/export/plain/stages).
    """
    last = min(max((layers + head) // count - head, 1), layers - count + 1)
    each, more = divmod(layers - last, count - 1)
    sizes = [each + (n >= count - 1 - more) for n in range(count - 1)]
    return [*(sum(sizes[:n]) for n in range(count)), layers]


def deciding(stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
    """Return the stages that can need the most: of those alike, the one with the most in flight."""
    kinds: dict[tuple[bool, bool, int], Stage] = {}
    for stage in stages:
        kinds.setdefault((stage.first, stage.last, stage.end - stage.begin), stage)
    return tuple(kinds.values())


def staged(layout: Layout, parts: tuple[Structure, ...], stage: Stage) -> Layout:
    """Return the layout of one stage.

    ``parts`` is what the layout was joined from: the setup, then steps of two micro-batches. The
    second stands for all later ones.
    """
    return _Cutter(layout, parts, stage).layout()


@dataclass(frozen=True, slots=True)
class _Pass:
    """What a stage does for one micro-batch: events of its forward and of its backward pass."""

    forward: Ints
    backward: Ints
    gradients: Ints
    """Storages of gradients that outlive it."""


class _Cutter:
    """Cuts a stage's events out of a whole run, and puts them in the order of 1F1B."""

    def __init__(self, layout: Layout, parts: tuple[Structure, ...], stage: Stage) -> None:
        self.run, self.parts, self.stage = layout, parts, stage
        self.constant = layout.bytes_of(1, 1)
        ids = int(np.abs(layout.storage).max(initial=0)) + 1
        born, dies = (np.flatnonzero(sign * layout.storage > 0) for sign in (1, -1))
        self.born, self.dies = np.full(ids, -1), np.full(ids, len(layout.storage))
        self.born[layout.storage[born]] = born
        self.dies[-layout.storage[dies]] = dies
        kinds = layout.profile.category.items()
        weights = [storage for storage, kind in kinds if kind == "parameter"]
        self.weights = layout.storage[born][np.isin(layout.storage[born], weights)]
        self.mine = self._mine()

    def layout(self) -> Layout:
        """Return setup and steps of the stage."""
        setup = len(self.parts[0].storage)
        others = self.weights[~self.mine]
        first = np.arange(setup)
        pieces = [(first[~np.isin(np.abs(self.run.storage[:setup]), others)], 0)]
        found, start, steady = _passes(self.run.profile, self.parts), setup, 0
        for number, part in enumerate(self.parts[1:]):
            steady = sum(len(piece) for piece, _ in pieces)
            start += len(part.storage)
            pieces += self._step(found[2 * number], found[2 * number + 1], number, start)
        made = self._picked(pieces)
        return self._with_boundaries(replace(made, steady=steady), len(pieces[0][0]), found[0])

    def _mine(self) -> NDArray[np.bool_]:
        """Return which of the weights are the stage's."""
        layout, stage = self.run, self.stage
        sizes = self.constant[layout.size[self.born[self.weights]]].tolist()
        place = repeating(sizes, layout.profile.blocks)
        assert place is not None, "a pipeline is planned of layers that are alike"
        first, period = place
        block = (np.arange(len(sizes)) - first) // period
        mine = (stage.begin <= block) & (block < stage.end)
        mine |= stage.first & (block < 0)
        mine |= stage.last & (block >= layout.profile.blocks)
        found: NDArray[np.bool_] = mine
        return found

    # A step

    def _step(self, one: Span, two: Span, number: int, end: int) -> Iterator[tuple[Ints, int]]:
        """Yield the events of an optimizer step, with what is added to their storages."""
        stage, ids = self.stage, len(self.born)
        passes = [self._pass(span, name, number) for span, name in ((one, "micro"), (two, "again"))]
        for forward, n in order(stage.in_flight, stage.short.micro_batches):
            done = passes[min(n, 1)]
            yield (done.forward if forward else done.backward), max(n - 1, 0) * ids
        yield self._update(two.end, end, passes[0].gradients), 0

    def _pass(self, span: Span, name: str, number: int) -> _Pass:
        """Return what the stage does of a micro-batch.

        Storages that others free die where the stage's own pass ends. What it hands on is held to
        the end of its backward pass, as torch's stage does.
        """
        storage, stage = self.run.storage, self.stage
        ahead, back = self._windows(span)
        births = np.concatenate([np.arange(*window) for window in (*ahead, *back)])
        births = births[storage[births] > 0]
        inputs = self._carried(name, number)
        dropped = self.run.term[births] == TERM["inputs"]
        if not stage.first:
            dropped |= storage[births] == inputs[0]
        births = births[~dropped]
        kept, lasting = storage[births], self.run.term[births] == TERM["gradients"]
        deaths = self.dies[kept]
        lasting &= deaths >= span.end
        when = np.minimum(deaths, span.end)
        if not stage.last:
            when[kept == inputs[stage.end]] = span.end
        events = np.concatenate([births, deaths[~lasting & (deaths < len(storage))]])
        times = np.concatenate([births, when[~lasting & (deaths < len(storage))]])
        events = events[np.argsort(times, kind="stable")]
        times = np.sort(times, kind="stable")
        return _Pass(events[times < span.backward], events[times >= span.backward], kept[lasting])

    def _windows(self, span: Span) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """Return where the stage's events lie in a forward and in a backward pass."""
        stage, blocks = self.stage, span.blocks
        until = blocks[stage.end][0] if not stage.last else span.backward
        since = blocks[stage.end][3] if not stage.last else span.backward
        done = blocks[stage.begin][3] if not stage.first else span.end
        ahead = [(span.forward, blocks[0][0]), (blocks[stage.begin][0], until)]
        return ahead, [(since, done)]

    def _carried(self, name: str, number: int) -> list[int]:
        """Return the storage that each layer is handed by the one before it."""
        offset = number * stride_of(self.parts)
        return [one + offset for one in _handed(self.run.profile.segments[name])]

    def _update(self, begin: int, end: int, gradients: Ints) -> Ints:
        """Return the events of an update of the stage's parameters."""
        storage = self.run.storage
        births = begin + np.flatnonzero(storage[begin:end] > 0)
        kept = storage[births[self._of_mine(births)]]
        known = np.concatenate([kept, gradients])
        return begin + np.flatnonzero(np.isin(np.abs(storage[begin:end]), known))

    def _of_mine(self, births: Ints) -> NDArray[np.bool_]:
        """Return which births of an update are for the stage's parameters.

        Updates go through the parameters in their order, one by one or call by call. So the next
        storage of a parameter's size is that parameter's, or that of the next of this size.
        """
        layout = self.run
        sizes = self.constant[layout.size[self.born[self.weights]]]
        elements = sizes // (sizes.sum() // int(layout.profile.model["parameters"]))
        places = {n: np.flatnonzero(elements == n) for n in set(elements.tolist())}
        found, at = np.ones(len(births), dtype=np.bool_), 0
        for number, birth in enumerate(births.tolist()):
            nbytes, row = int(self.constant[layout.size[birth]]), int(layout.op[birth])
            size = ITEMSIZE.get(layout.profile.ops.dtype[row], 4) if row >= 0 else 4
            known = places.get(nbytes // size)
            if nbytes <= _SCALAR or known is None:
                continue
            at = int(known[np.searchsorted(known, at) % len(known)])
            found[number] = self.mine[at]
        return found

    # Together

    def _picked(self, pieces: list[tuple[Ints, int]]) -> Layout:
        """Return the events of the pieces; a storage that is moved gets an id of its own."""
        run = self.run
        events = np.concatenate([piece for piece, _ in pieces])
        shifts = np.concatenate([np.full(len(piece), shift) for piece, shift in pieces])
        storage = run.storage[events]
        return replace(
            run,
            storage=storage + np.sign(storage) * shifts,
            size=run.size[events],
            op=run.op[events],
            phase=run.phase[events],
            term=run.term[events],
        )

    def _with_boundaries(self, layout: Layout, event: int, span: Span) -> Layout:
        """Return the layout with what waits at the stage's edges, from an event on.

        The gradient that was sent last is held until the next one is.
        """
        run, stage = self.run, self.stage
        inside = slice(span.forward, span.backward)
        inputs = (run.storage[inside] > 0) & (run.term[inside] == TERM["inputs"])
        hidden = int(run.size[self.born[self._carried("micro", 0)[stage.begin]]])
        found = edges(stage, hidden, run.size[inside][inputs].tolist()) * stage.micro_batches
        found += [] if stage.first else [(hidden, "buckets")]
        rows, terms = zip(*found, strict=True)
        fresh = int(np.abs(layout.storage).max()) + 1
        return replace(
            layout,
            storage=np.insert(layout.storage, event, np.arange(fresh, fresh + len(rows))),
            size=np.insert(layout.size, event, rows),
            op=np.insert(layout.op, event, [-1] * len(rows)),
            phase=np.insert(layout.phase, event, [_FORWARD] * len(rows)),
            term=np.insert(layout.term, event, [TERM[term] for term in terms]),
            steady=layout.steady + len(rows),
        )


def edges(stage: Stage, hidden: int, inputs: list[int]) -> list[tuple[int, str]]:
    """Return (size row, term) of what a stage keeps for each micro-batch, for good.

    A buffer of its own for each activation and each gradient that comes in, and tokens or labels.
    ``hidden`` is the row of an activation, ``inputs`` those of tokens, the last one of labels.
    """
    found = [] if stage.first else [(hidden, "activations")]
    found += [] if stage.last else [(hidden, "buckets")]
    found += [(row, "inputs") for row in inputs[:-1] if stage.first]
    return found + [(row, "inputs") for row in inputs[-1:] if stage.last]


def _handed(segment: Segment) -> list[int]:
    """Return the storage that each layer is handed: the input that not all of them share."""
    lists = [ids for _, ids in sorted(segment.inputs)]
    common = set(lists[0]).intersection(*lists[1:])
    return [next(one for one in ids if one not in common) for ids in lists]


@lru_cache(maxsize=KEPT)
def handed_row(profile: Profile) -> int:
    """Return the size row of what a layer hands to the next one."""
    segment = profile.segments["micro"]
    hidden = _handed(segment)[-1]
    return int(segment.b[(segment.code == ALLOC) & (segment.a == hidden)][0])


def edge_bytes(profile: Profile, stage: Stage, batch: Ints, sequence: Ints) -> Ints:
    """Return the bytes that each further micro-batch takes at the stage's edges; (points,)."""
    rows = [row for row, _ in edges(stage, *_edge_rows(profile))]
    points = zip(batch.tolist(), sequence.tolist(), strict=True)
    return np.array([evaluate(profile.sizes[rows], *point).sum() for point in points])


@lru_cache(maxsize=KEPT)
def _edge_rows(profile: Profile) -> tuple[int, list[int]]:
    """Return the size row of an activation, and those of tokens and labels."""
    segment = profile.segments["micro"]
    inputs = [storage for storage, kind in profile.category.items() if kind == "input"]
    born = (segment.code == ALLOC) & np.isin(segment.a, inputs)
    return handed_row(profile), segment.b[born].tolist()


@lru_cache(maxsize=2)
def _passes(profile: Profile, parts: tuple[Structure, ...]) -> tuple[Span, ...]:
    """Return the passes of the run that parts make: alike for all of its stages."""
    return tuple(spans(joined(profile, parts, steady=2), parts))


def order(in_flight: int, micro_batches: int) -> Iterator[tuple[bool, int]]:
    """Yield (whether it is forward, micro-batch) of each pass of a stage, in order."""
    yield from ((True, n) for n in range(in_flight))
    for n in range(micro_batches):
        yield False, n
        if n + in_flight < micro_batches:
            yield True, n + in_flight
