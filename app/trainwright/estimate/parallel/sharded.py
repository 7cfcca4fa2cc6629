"""A run whose weights, gradients and optimizer state are shared out over GPUs.

Derived from the run on one GPU, for each rank alike. Every rule was seen in torch 2.13
(``torch/distributed/fsdp/_fully_shard``) and DeepSpeed 0.19.8, and in runs of both on CPUs:
``tests/accuracy/test_sharded.py`` has those of torch.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from trainwright.estimate.cuda import ITEMSIZE, Hidden
from trainwright.estimate.lifetimes import TERM, TERMS, Layout, without
from trainwright.estimate.parallel.passes import Span, spans
from trainwright.estimate.pinned_memory import power_of_two
from trainwright.profile.memo import KEPT
from trainwright.profile.profile import PHASES, Ints, Profile
from trainwright.profile.structure import Structure
from trainwright.workload import FullSettings
from trainwright.workload.settings import SHARDED, Strategy

FSDP_SOURCE = "torch 2.13: distributed/fsdp/_fully_shard, FSDPParamGroup"
DEEPSPEED_SOURCE = "deepspeed 0.19.8: runtime/zero/stage_1_and_2.py, stage3.py"

BUCKET_ELEMENTS = 500_000_000
"""``reduce_bucket_size`` of DeepSpeed's own defaults."""
LIVE_ELEMENTS = 1_000_000_000
"""``stage3_max_live_parameters`` and ``stage3_max_reuse_distance`` of DeepSpeed's defaults."""

_OPTIMIZER = PHASES.index("optimizer")
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
        master=settings.casts_shares,
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
class _Gradients:
    """Births of gradients in order, as event numbers; arrays align."""

    events: Ints
    nbytes: Ints
    wide: Ints
    """Bytes in which they are reduced."""

    def within(self, begin: int, end: int) -> "_Gradients":
        """Return those from one event on, before another."""
        first, last = np.searchsorted(self.events, (begin, end))
        return self.only(slice(first, max(first, last)))

    def only(self, which: slice | NDArray[np.bool_]) -> "_Gradients":
        """Return some of them."""
        return _Gradients(self.events[which], self.nbytes[which], self.wide[which])


def sharded(layout: Layout, parts: tuple[Structure, ...], sharding: Sharding) -> Layout:
    """Return the layout of one rank.

    ``parts`` is what the layout was joined from: the setup, then the steps.
    """
    passes = tuple(spans(layout, parts))
    constant = layout.bytes_of(1, 1)
    gradients = _gradients(layout, constant, sharding)
    if sharding.kind == "fsdp2":
        groups = _group_bytes(layout, constant, passes[0], gradients)  # alike for each
        lives = [
            life for span in passes for life in _fsdp(layout, span, gradients, groups, sharding)
        ]
    else:
        lives = [*_zero(layout, passes, parts, gradients, sharding)]
    shares = _shares(layout, constant, sharding)
    sizes = {storage: nbytes for storage, (_, nbytes) in shares.items()}
    held = _with_lives(_resized(layout, sizes, _source(sharding)), lives)
    if not sharding.offload:
        return held
    once = set(layout.storage[gradients.within(0, passes[0].end).events].tolist())
    return replace(
        without(held, sizes), aside=(*held.aside, *_aside(layout, shares, once, sharding))
    )


def _shares(layout: Layout, constant: Ints, sharding: Sharding) -> dict[int, tuple[str, int]]:
    """Return what is split by storage: what it is, and a rank's share of its bytes."""
    kept = {"zero1": ("optimizer",), "zero2": ("optimizer", "gradients")}
    terms = kept.get(sharding.kind, ("parameters", "optimizer", "gradients"))
    kinds = layout.term.copy()
    if "optimizer" in terms:  # what an update takes for a moment is as large as its state
        passing = (layout.phase == _OPTIMIZER) & (kinds == TERM["temporaries"])
        kinds[passing] = TERM["optimizer"]
    born = layout.storage > 0
    births = np.flatnonzero(born & np.isin(kinds, [TERM[term] for term in terms]))
    nbytes, kinds = constant[layout.size[births]], kinds[births]
    own = np.isin(layout.storage[births], _parameters(layout.profile))
    split = np.where(kinds == TERM["parameters"], own, True)
    split &= (kinds != TERM["optimizer"]) | (nbytes > _FP32)
    births, nbytes, kinds = births[split], nbytes[split], kinds[split]
    shares = -(-nbytes * _widened(layout, births, kinds, nbytes, sharding) // sharding.ranks)
    if sharding.kind == "zero3":  # they lie in one buffer, which stays
        shares[kinds == TERM["gradients"]] = 0
    columns = (layout.storage[births], kinds, shares)
    return {
        storage: (TERMS[kind], share)
        for storage, kind, share in zip(*(one.tolist() for one in columns), strict=True)
    }


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


def _widened(
    layout: Layout, births: Ints, kinds: NDArray[np.uint8], nbytes: Ints, sharding: Sharding
) -> NDArray[np.int64]:
    """Return by how much storages grow where what trains is kept in fp32.

    DeepSpeed keeps weights and gradients in 16 bits, and fp32 copies apart from them. A
    library's own state has its own type, whatever that of the weights.
    """
    factors = np.ones(len(births), dtype=np.int64)
    if not sharding.master:
        return factors
    traced = layout.size[births] < layout.first_hidden
    factors[traced & (_itemsizes(layout.profile)[layout.op[births]] == 2)] = 2
    weights = kinds == TERM["parameters"]
    if _trains_all(layout.profile):
        factors[weights] = 2
    else:  # of adapters: what is as large as a gradient, and has its type
        halves = (factors == 2) & (kinds == TERM["gradients"])
        factors[weights & np.isin(nbytes, nbytes[halves])] = 2
    if sharding.kind != "fsdp2":
        factors[kinds != TERM["optimizer"]] = 1
    return factors


@lru_cache(maxsize=KEPT)
def _itemsizes(profile: Profile) -> NDArray[np.int64]:
    """Return the bytes of an element of what each op makes; the last is that of no op."""
    return np.array([ITEMSIZE.get(one, _FP32) for one in profile.ops.dtype] + [_FP32])


@lru_cache(maxsize=KEPT)
def _parameters(profile: Profile) -> NDArray[np.int64]:
    """Return the storages of weights."""
    return np.array([one for one, kind in profile.category.items() if kind == "parameter"])


def _source(sharding: Sharding) -> str:
    return FSDP_SOURCE if sharding.kind == "fsdp2" else DEEPSPEED_SOURCE


def _trains_all(profile: Profile) -> bool:
    return int(profile.model.get("frozen_bytes", 0)) == 0


def _fsdp(
    layout: Layout,
    span: Span,
    gradients: _Gradients,
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
        yield from _reduced(gradients.within(span.backward, last), last, last)
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
        yield from _reduced(gradients.within(back, done), done, following)
    yield from _of_root(span, gradients)


def _arriving(layout: Layout, when: list[int], nbytes: int, sharding: Sharding) -> Iterator[_Life]:
    """Yield a rank's share of a group on its way from system memory: until it is gathered."""
    if sharding.offload:
        wide = 2 if sharding.master and _trains_all(layout.profile) else 1
        for event in when:
            share = _hidden("arriving", sharding.share(nbytes * wide))
            yield _Life(event, event + 1, share, "gathered")


def _reduced(mine: _Gradients, done: int, until: int) -> Iterator[_Life]:
    """Yield whole gradients until they are reduced, and what reduce-scatter reads."""
    for event, nbytes in zip(mine.events.tolist(), mine.nbytes.tolist(), strict=True):
        yield _Life(event, done, _hidden("whole-gradient", nbytes), "gradients")
    if wide := int(mine.wide.sum()):
        yield _Life(done, until, _hidden("reduced", wide), "buckets")


def _of_root(span: Span, gradients: _Gradients) -> Iterator[_Life]:
    """Yield the root's gradients, which wait for the end of the backward pass."""
    mine = gradients.within(span.backward, span.end)
    inside = np.zeros(len(mine.events), dtype=np.bool_)
    for _, _, back, done in span.blocks:
        inside |= (mine.events >= back) & (mine.events < done)
    yield from _reduced(mine.only(~inside), span.end, span.end + 1)


@lru_cache(maxsize=1024)  # blocks are alike
def _hidden(rule: str, nbytes: int, source: str = FSDP_SOURCE) -> Hidden:
    return Hidden(rule, source, nbytes=nbytes)


def _gradients(layout: Layout, constant: Ints, sharding: Sharding) -> _Gradients:
    """Return the gradients of a run in the order of their births."""
    events = np.flatnonzero((layout.storage > 0) & (layout.term == TERM["gradients"]))
    nbytes = constant[layout.size[events]]
    wide = nbytes * _widened(layout, events, layout.term[events], nbytes, sharding)
    return _Gradients(events, nbytes, wide)


def _group_bytes(
    layout: Layout, constant: Ints, span: Span, gradients: _Gradients
) -> tuple[list[int], int]:
    """Return the bytes of each block's weights, and of those outside all blocks.

    They are those of its gradients where everything trains. Of frozen weights the order of their
    making tells: blocks repeat.
    """
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
        found = [int(gradients.within(*block[2:]).nbytes.sum()) for block in span.blocks]
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
    passes: tuple[Span, ...],
    parts: tuple[Structure, ...],
    gradients: _Gradients,
    sharding: Sharding,
) -> Iterator[_Life]:
    """Yield what DeepSpeed holds beside shares of what there is."""
    setup = len(parts[0].storage)
    count = len(gradients.events) // max(len(parts) - 1, 1)
    trained = int(gradients.nbytes[:count].sum())
    ops = layout.op[gradients.events[:1]] if count else np.array([-1])
    itemsize = int(_itemsizes(layout.profile)[ops[0]])
    elements = trained // itemsize
    master = _hidden("master", sharding.share(elements * _FP32), DEEPSPEED_SOURCE)
    yield _Life(setup, None, master, "parameters")
    bucket = _hidden("reduce-bucket", BUCKET_ELEMENTS * itemsize, DEEPSPEED_SOURCE)
    if sharding.kind == "zero3":
        yield _Life(setup, None, bucket, "buckets")
        flat = _hidden("gradient-partitions", sharding.share(trained), DEEPSPEED_SOURCE)
        yield _Life(setup, None, flat, "gradients")  # grad_partitions_flat_buffer
        whole = int(layout.profile.model.get("parameters", elements))
        live = min(whole, LIVE_ELEMENTS) * itemsize
        for span in passes:
            yield _Life(
                span.forward,
                span.end,
                _hidden("gathered", live, DEEPSPEED_SOURCE),
                "gathered",
            )
    else:
        for span in passes:
            # Its layer has let go of what it read when the first gradient asks (setup_buckets).
            events = gradients.within(span.backward, span.end).events[:2]
            begin = int(events[-1]) if len(events) else span.backward
            yield _Life(begin, span.end, bucket, "buckets")
    steps = [event for event in np.flatnonzero(np.diff(layout.phase.astype(np.int16)) != 0) + 1
             if layout.phase[event] == _OPTIMIZER]  # fmt: skip
    wide = _hidden("gradient-share", sharding.share(elements * _FP32), DEEPSPEED_SOURCE)
    for event in steps:
        after = np.flatnonzero(layout.phase[event:] != _OPTIMIZER)
        end = int(event + after[0]) if after.size else len(layout.storage)
        yield _Life(int(event), end, wide, "gradients")


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
    rows = [known.setdefault(life.hidden, len(known)) for life in lives]
    numbers = int(np.abs(layout.storage).max(initial=0)) + 1 + np.arange(len(lives))
    born = np.array([life.born for life in lives])
    dies = np.array([-1 if life.dies is None else life.dies for life in lives])
    sizes = layout.first_hidden + np.array(rows)
    terms = np.array([TERM[life.term] for life in lives])
    die = dies >= 0
    at = np.append(dies[die], born)
    order = np.argsort(at, kind="stable")
    at, storage = at[order], np.append(-numbers[die], numbers)[order]
    size, term = np.append(sizes[die], sizes)[order], np.append(terms[die], terms)[order]
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
