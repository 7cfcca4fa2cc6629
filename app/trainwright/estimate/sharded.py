"""A run whose weights, gradients and optimizer state are shared out over GPUs.

Derived from the run on one GPU, for each rank alike. Every rule was seen in torch 2.13
(``torch/distributed/fsdp/_fully_shard``) and DeepSpeed 0.19.8, and in runs of both on CPUs:
``tests/accuracy/test_sharded.py`` has those of torch.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from trainwright.estimate.cuda import ITEMSIZE, Hidden
from trainwright.estimate.lives import TERM, TERMS, Layout, without
from trainwright.estimate.offload import power_of_two
from trainwright.profile.profile import PHASES, Profile, Segment
from trainwright.profile.structure import Structure
from trainwright.profile.trace import ALLOC, BEGIN, END, PACK, UNPACK
from trainwright.workload import FullSettings
from trainwright.workload.settings import SHARDED, Strategy

FSDP_SOURCE = "torch 2.13: distributed/fsdp/_fully_shard, FSDPParamGroup"
DEEPSPEED_SOURCE = "deepspeed 0.19.8: runtime/zero/stage_1_and_2.py, stage3.py"

BUCKET_ELEMENTS = 500_000_000
"""``reduce_bucket_size`` of DeepSpeed's own defaults."""
LIVE_ELEMENTS = 1_000_000_000
"""``stage3_max_live_parameters`` and ``stage3_max_reuse_distance`` of DeepSpeed's defaults."""

_FORWARD, _BACKWARD, _OPTIMIZER = (
    PHASES.index(name) for name in ("forward", "backward", "optimizer")
)
_FP32 = 4


@dataclass(frozen=True, slots=True)
class Sharding:
    """How a run is shared out."""

    kind: Strategy
    """Of ``SHARDED``."""
    ranks: int
    """That share one copy. HSDP's other copies change nothing here: torch's all-reduce works in
    the very bytes that become the gradient's share."""
    reshard: bool = True
    """Of fsdp2: whether a block's weights are dropped after its forward pass."""
    master: bool = False
    """Whether what trains is kept in fp32, where the run was traced in 16 bits."""
    offload: bool = False
    """Of fsdp2: whether the shares lie in system memory."""

    def share(self, nbytes: int) -> int:
        """Return a rank's share of what is split evenly, padded as torch pads it."""
        return -(-nbytes // self.ranks)


def sharding_of(settings: FullSettings, gpu_count: int) -> Sharding | None:
    """Return how a plan's run is shared out; None where each GPU holds all of it."""
    if settings.strategy not in SHARDED or gpu_count < 2:
        return None
    return Sharding(
        settings.strategy,
        settings.shards_of(gpu_count),
        settings.reshard_after_forward,
        master=settings.precision in ("bf16-mixed", "fp16-mixed"),
        offload=settings.shard_offload,
    )


@dataclass(frozen=True, slots=True)
class _Life:
    """A storage that no trace shows: born before one event, dead before another."""

    born: int
    dies: int | None
    hidden: Hidden
    term: str


@dataclass(frozen=True, slots=True)
class Span:
    """Where one micro-batch's pass lies in a run, as event numbers."""

    forward: int
    backward: int
    end: int
    blocks: tuple[tuple[int, int, int, int], ...]
    """Of each block in order: forward begins, ends, backward begins, ends. A block without a
    backward pass has -1 for both."""


def sharded(layout: Layout, parts: tuple[Structure, ...], sharding: Sharding) -> Layout:
    """Return the layout of one rank.

    ``parts`` is what the layout was joined from: the setup, then the steps.
    """
    spans = tuple(passes_of(layout, parts))
    gradients = _gradients(layout)
    if sharding.kind == "fsdp2":
        groups = _group_bytes(layout, spans[0], gradients)  # the model's, alike for each pass
        lives = [
            life for span in spans for life in _fsdp(layout, span, gradients, groups, sharding)
        ]
    else:
        lives = [*_zero(layout, spans, parts, gradients, sharding)]
    shares = _shares(layout, sharding)
    sizes = {storage: nbytes for storage, (_, nbytes) in shares.items()}
    held = _with_lives(_resized(layout, sizes, _source(sharding)), lives)
    if not sharding.offload:
        return held
    once = set(layout.storage[gradients[gradients < spans[0].end]].tolist())
    return replace(
        without(held, sizes), aside=(*held.aside, *_aside(layout, shares, once, sharding))
    )


def _shares(layout: Layout, sharding: Sharding) -> dict[int, tuple[str, int]]:
    """Return what is split by storage: what it is, and a rank's share of its bytes."""
    kept = {"zero1": ("optimizer",), "zero2": ("optimizer", "gradients")}
    terms = kept.get(sharding.kind, ("parameters", "optimizer", "gradients"))
    constant, found = layout.bytes_of(1, 1), dict[int, tuple[str, int]]()
    held = np.isin(layout.term, [TERM[term] for term in terms])
    if "optimizer" in terms:  # what an update takes for a moment is as large as its state
        held |= (layout.phase == _OPTIMIZER) & (layout.term == TERM["temporaries"])
    births = np.flatnonzero(held & (layout.storage > 0))
    columns = (births, layout.storage[births], layout.term[births], constant[layout.size[births]])
    for event, storage, term, nbytes in zip(*(one.tolist() for one in columns), strict=True):
        kind = "optimizer" if TERMS[term] == "temporaries" else TERMS[term]
        if kind == "parameters" and layout.profile.category.get(storage) != "parameter":
            continue
        if kind != "optimizer" or nbytes > _FP32:
            widened = nbytes * _widened(layout, event, kind, sharding)
            found[storage] = kind, sharding.share(widened)
    return found


def _aside(
    layout: Layout, shares: dict[int, tuple[str, int]], once: set[int], sharding: Sharding
) -> Iterator[tuple[str, int]]:
    """Yield what system memory holds of all ranks' shares.

    Weights and gradients are pinned, for which torch takes a power of two of bytes each. ``once``
    are the gradients of one micro-batch: later ones add to the same bytes.
    """
    held = dict.fromkeys(("parameters", "gradients", "optimizer"), 0)
    lasting = set(layout.storage[layout.term == TERM["optimizer"]].tolist())
    for storage, (kind, nbytes) in shares.items():
        if kind == "optimizer":
            held[kind] += nbytes if storage in lasting else 0
        elif kind == "parameters" or storage in once:
            held[kind] += power_of_two(nbytes)
    roles = {"parameters": "weights", "gradients": "gradients", "optimizer": "state"}
    for kind, nbytes in held.items():
        yield f"host-{roles[kind]}", nbytes * sharding.ranks


def _widened(layout: Layout, event: int, kind: str, sharding: Sharding) -> int:
    """Return by how much a storage grows where what trains is kept in fp32.

    DeepSpeed keeps weights and gradients in 16 bits, and fp32 copies apart from them. A
    library's own state has its own type, whatever that of the weights.
    """
    if not sharding.master or (kind != "optimizer" and sharding.kind != "fsdp2"):
        return 1
    if kind == "parameters":
        return 2 if _trains_all(layout.profile) else 1
    return 1 if layout.size[event] >= layout.first_hidden else _twice_halves(layout, event)


def _twice_halves(layout: Layout, event: int) -> int:
    """Return 2 where an element has two bytes: it is kept in four."""
    return 2 if _itemsize(layout, event) == 2 else 1


def _itemsize(layout: Layout, event: int) -> int:
    op = int(layout.op[event])
    return ITEMSIZE.get(layout.profile.ops.dtype[op], _FP32) if op >= 0 else _FP32


def _source(sharding: Sharding) -> str:
    return FSDP_SOURCE if sharding.kind == "fsdp2" else DEEPSPEED_SOURCE


def _trains_all(profile: Profile) -> bool:
    return int(profile.model.get("frozen_bytes", 0)) == 0


def _fsdp(
    layout: Layout,
    span: Span,
    gradients: NDArray[np.int64],
    groups: tuple[list[int], int],
    sharding: Sharding,
) -> Iterator[_Life]:
    """Yield what one micro-batch gathers and reduces.

    A group's weights are gathered flat and copied out: two of them live while a block works,
    the flat copy of its own going forward, of the next one's going back. The root's stay to the
    end. What a block has for reduce-scatter lives until the next block's is made.
    """
    bytes_of, root = groups
    gathered = [_hidden("gathered", size) for size in bytes_of]
    last = span.end
    yield _Life(span.forward, last, _hidden("gathered-root", root), "gathered")
    yield from _arriving(layout, [span.forward], root, sharding)
    if not span.blocks:
        mine = gradients[(gradients >= span.backward) & (gradients < last)]
        yield from _reduced(layout, mine, last, last, sharding)
        return
    for number, (begin, end, back, done) in enumerate(span.blocks):
        following = span.blocks[number + 1][0] if number + 1 < len(span.blocks) else span.backward
        yield _Life(begin, following, gathered[number], "gathered")  # the flat copy
        again = [back] if back >= 0 and sharding.reshard else []
        yield from _arriving(layout, [begin, *again], bytes_of[number], sharding)
        if back < 0:
            yield _Life(begin, end, gathered[number], "gathered")
        elif not sharding.reshard:
            yield _Life(begin, done, gathered[number], "gathered")
        else:
            yield _Life(begin, end, gathered[number], "gathered")
            yield _Life(back, done, gathered[number], "gathered")
    backs = [(back, done, size) for (_, _, back, done), size
             in zip(span.blocks, gathered, strict=True) if back >= 0][::-1]  # fmt: skip
    if sharding.reshard:  # the next block's are fetched while one works
        for (back, done, _), (_, _, size) in pairwise(backs):
            yield _Life(back, done, size, "gathered")
    for (back, done, _), following in zip(backs, [*(b[1] for b in backs[1:]), last], strict=True):
        mine = gradients[(gradients >= back) & (gradients < done)]
        yield from _reduced(layout, mine, done, following, sharding)
    yield from _of_root(layout, span, gradients, sharding)


def _arriving(layout: Layout, when: list[int], nbytes: int, sharding: Sharding) -> Iterator[_Life]:
    """Yield a rank's share of a group on its way from system memory: until it is gathered."""
    if sharding.offload:
        wide = 2 if sharding.master and _trains_all(layout.profile) else 1
        for event in when:
            share = _hidden("arriving", sharding.share(nbytes * wide))
            yield _Life(event, event + 1, share, "gathered")


def _reduced(
    layout: Layout, mine: NDArray[np.int64], done: int, until: int, sharding: Sharding
) -> Iterator[_Life]:
    """Yield whole gradients until they are reduced, and what reduce-scatter reads."""
    constant = layout.bytes_of(1, 1)
    wide = 0
    for event in mine.tolist():
        nbytes = int(constant[layout.size[event]])
        yield _Life(event, done, _hidden("whole-gradient", nbytes), "gradients")
        wide += nbytes * _widened(layout, event, "gradients", sharding)
    if wide:
        yield _Life(done, until, _hidden("reduced", wide), "buckets")


def _of_root(
    layout: Layout, span: Span, gradients: NDArray[np.int64], sharding: Sharding
) -> Iterator[_Life]:
    """Yield the root's gradients, which wait for the end of the backward pass."""
    inside = np.zeros(len(gradients), dtype=np.bool_)
    for _, _, back, done in span.blocks:
        inside |= (gradients >= back) & (gradients < done)
    mine = gradients[~inside & (gradients >= span.backward) & (gradients < span.end)]
    yield from _reduced(layout, mine, span.end, span.end + 1, sharding)


def _hidden(rule: str, nbytes: int, source: str = FSDP_SOURCE) -> Hidden:
    return Hidden(rule, source, nbytes=nbytes)


def _gradients(layout: Layout) -> NDArray[np.int64]:
    """Return the births of gradients, as event numbers."""
    return np.flatnonzero((layout.storage > 0) & (layout.term == TERM["gradients"]))


def _group_bytes(layout: Layout, span: Span, gradients: NDArray[np.int64]) -> tuple[list[int], int]:
    """Return the bytes of each block's weights, and of those outside all blocks.

    They are those of its gradients where everything trains. Of frozen weights the order of their
    making tells: blocks repeat.
    """
    constant = layout.bytes_of(1, 1)
    profile = layout.profile
    held = (layout.storage > 0) & (layout.term == TERM["parameters"])
    births = np.flatnonzero(held[: layout.steady])
    pairs = zip(
        layout.storage[births].tolist(), constant[layout.size[births]].tolist(), strict=True
    )
    sizes = [size for storage, size in pairs if profile.category.get(storage) == "parameter"]
    whole = sum(sizes)
    if not span.blocks:
        return [], whole
    alike = repeating(sizes, len(span.blocks))
    found = None
    if alike is not None:
        found = [sum(sizes[alike[0] : sum(alike)])] * len(span.blocks)
    elif _trains_all(profile):
        found = [
            int(constant[layout.size[gradients[(gradients >= back) & (gradients < done)]]].sum())
            for _, _, back, done in span.blocks
        ]
    if found is None:
        outside = sum(size for size in sizes if size >= _embedding(profile))
        found = [(whole - outside) // len(span.blocks)] * len(span.blocks)
    return found, whole - sum(found)


def _embedding(profile: Profile) -> int:
    """Return the fewest bytes of a table of tokens; more than any weight where there is none."""
    tokens, width = profile.model.get("vocabulary", 0), profile.model.get("hidden", 0)
    return int(tokens * width) or 1 << 62


def repeating(sizes: list[int], blocks: int) -> tuple[int, int] | None:
    """Return (first, period) of so many blocks alike, one after the other; None without."""
    for period in range(len(sizes) // blocks, 0, -1):
        for first in range(len(sizes) - period * blocks + 1):
            one = sizes[first : first + period]
            if sizes[first : first + period * blocks] == one * blocks:
                return first, period
    return None


def _zero(
    layout: Layout,
    spans: tuple[Span, ...],
    parts: tuple[Structure, ...],
    gradients: NDArray[np.int64],
    sharding: Sharding,
) -> Iterator[_Life]:
    """Yield what DeepSpeed holds beside shares of what there is."""
    constant = layout.bytes_of(1, 1)
    setup = len(parts[0].storage)
    first = gradients[: len(gradients) // max(len(parts) - 1, 1)]
    trained = int(constant[layout.size[first]].sum())
    itemsize = _itemsize(layout, int(first[0])) if len(first) else _FP32
    elements = trained // itemsize
    master = _hidden("master", sharding.share(elements * _FP32), DEEPSPEED_SOURCE)
    yield _Life(setup, None, master, "parameters")
    bucket = _hidden("reduce-bucket", BUCKET_ELEMENTS * itemsize, DEEPSPEED_SOURCE)
    if sharding.kind == "zero3":
        yield _Life(setup, None, bucket, "buckets")
        whole = int(layout.profile.model.get("parameters", elements))
        live = min(whole, LIVE_ELEMENTS) * itemsize
        for span in spans:
            yield _Life(
                span.forward,
                span.end,
                _hidden("gathered", live, DEEPSPEED_SOURCE),
                "gathered",
            )
    else:
        for span in spans:
            yield _Life(span.backward, span.end, bucket, "buckets")
    steps = [event for event in np.flatnonzero(np.diff(layout.phase.astype(np.int16)) != 0) + 1
             if layout.phase[event] == _OPTIMIZER]  # fmt: skip
    wide = _hidden("gradient-share", sharding.share(elements * _FP32), DEEPSPEED_SOURCE)
    for event in steps:
        after = np.flatnonzero(layout.phase[event:] != _OPTIMIZER)
        end = int(event + after[0]) if after.size else len(layout.storage)
        yield _Life(int(event), end, wide, "gradients")


def passes_of(layout: Layout, parts: tuple[Structure, ...]) -> Iterator[Span]:
    """Yield the passes of all micro-batches of all steps."""
    born = np.full(int(np.abs(layout.storage).max(initial=0)) + 1, -1, dtype=np.int64)
    births = np.flatnonzero(layout.storage > 0)
    born[layout.storage[births[::-1]]] = births[::-1]
    profile = layout.profile
    start = len(parts[0].storage)
    stride = stride_of(parts)
    for number, part in enumerate(parts[1:]):
        runs = _runs(part.phase, start)
        segments = [profile.segments[name] for name in ("micro", "again")
                    if name in profile.segments]  # fmt: skip
        passes = [
            (ahead[1], back[1], back[2])
            for ahead, back in pairwise(runs)
            if (ahead[0], back[0]) == (_FORWARD, _BACKWARD)
        ]
        for segment, (forward, backward, end) in zip(segments, passes, strict=False):
            blocks = _blocks(layout, segment, born, number * stride, (backward, end))
            yield Span(forward, backward, end, tuple(blocks))
        start += len(part.storage)


def stride_of(parts: tuple[Structure, ...]) -> int:
    """Return how far the ids of a step lie beyond those of the step before it."""
    if len(parts) < 3:
        return 0
    one, two = (part.storage[np.argmax(part.storage > 0)] for part in parts[1:3])
    return int(two - one)


def _runs(phase: NDArray[np.uint8], start: int) -> list[tuple[int, int, int]]:
    """Return (phase, first event, event after the last) of each stretch of one phase."""
    edges = [0, *(np.flatnonzero(np.diff(phase)) + 1).tolist(), len(phase)]
    return [(int(phase[a]), start + a, start + b) for a, b in pairwise(edges) if b > a]


def _blocks(
    layout: Layout,
    segment: Segment,
    born: NDArray[np.int64],
    offset: int,
    backward: tuple[int, int],
) -> Iterator[tuple[int, int, int, int]]:
    """Yield where each block's passes begin and end."""
    code, a, c = segment.code, segment.a, segment.c
    allocated = np.flatnonzero(code == ALLOC)
    storages = a[allocated] + offset
    births = np.where(storages < len(born), born[np.minimum(storages, len(born) - 1)], -1)
    allocated, births = allocated[births >= 0], births[births >= 0]

    def event(position: int) -> int:
        """Return the first birth from a position of the log on."""
        at = int(np.searchsorted(allocated, position))
        return int(births[at]) if at < len(births) else backward[1]

    holders = {int(a[at]): int(c[at]) for at in np.flatnonzero(code == PACK)}
    asked: dict[int, int] = {}
    for at in np.flatnonzero(code == UNPACK).tolist():
        asked.setdefault(holders.get(int(a[at]), -1), at)
    begins = {int(a[at]): at for at in np.flatnonzero(code == BEGIN).tolist()}
    ends = {int(a[at]): at for at in np.flatnonzero(code == END).tolist()}
    numbers = sorted(begins)
    back = {n: _before_recompute(layout, event(asked[n])) for n in numbers if n in asked}
    for number in numbers:
        begin, end = event(begins[number]), event(ends[number])
        if number not in back or end > backward[1]:
            yield begin, min(end, backward[0]), -1, -1
            continue
        earlier = [back[n] for n in numbers if n < number and n in back]
        yield begin, min(end, backward[0]), back[number], min(earlier, default=backward[1])


def _before_recompute(layout: Layout, event: int) -> int:
    """Return the event before which a block's forward pass runs again, or the event itself."""
    ops = layout.profile.ops.phase
    at = event
    while at > 0 and (
        layout.storage[at - 1] < 0
        or (layout.op[at - 1] >= 0 and ops[int(layout.op[at - 1])] in ("forward", "recompute"))
    ):
        if layout.phase[at - 1] != _BACKWARD:
            break
        at -= 1
    return at


def _resized(layout: Layout, ids: dict[int, int], source: str) -> Layout:
    """Return the layout in which some storages have other bytes."""
    known = {one: row for row, one in enumerate(layout.hidden)}
    row_of = np.full(int(np.abs(layout.storage).max(initial=0)) + 1, -1, dtype=np.int32)
    rows = dict[int, int]()
    for nbytes in dict.fromkeys(ids.values()):
        one = Hidden("share", source, nbytes=nbytes)
        rows[nbytes] = layout.first_hidden + known.setdefault(one, len(known))
    row_of[list(ids)] = [rows[nbytes] for nbytes in ids.values()]
    found = row_of[np.abs(layout.storage)]
    return replace(layout, size=np.where(found < 0, layout.size, found), hidden=tuple(known))


def _with_lives(layout: Layout, lives: list[_Life]) -> Layout:
    """Return the layout with storages that no trace shows; deaths go before births."""
    lives = [life for life in lives if life.hidden.nbytes and life.born != life.dies]
    if not lives:
        return layout
    known = {one: row for row, one in enumerate(layout.hidden)}
    fresh = int(np.abs(layout.storage).max(initial=0))
    events = []
    for number, life in enumerate(lives, start=fresh + 1):
        row = layout.first_hidden + known.setdefault(life.hidden, len(known))
        events.append((life.born, 1, number, row, TERM[life.term]))
        if life.dies is not None:
            events.append((life.dies, 0, -number, row, TERM[life.term]))
    events.sort(key=lambda one: one[:2])
    at, _, storage, size, term = (np.array(column) for column in zip(*events, strict=True))
    before = np.maximum(at - 1, 0)
    return replace(
        layout,
        storage=np.insert(layout.storage, at, storage),
        size=np.insert(layout.size, at, size),
        op=np.insert(layout.op, at, layout.op[before]),
        phase=np.insert(layout.phase, at, layout.phase[before]),
        term=np.insert(layout.term, at, term),
        steady=layout.steady + int(np.count_nonzero(at <= layout.steady)),
        hidden=tuple(known),
    )
