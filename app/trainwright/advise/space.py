"""Which settings are compared: the values that each open key may take, and their order.

Values that only save memory and cost time (a loss in chunks, checkpointing, moving activations)
stand in a lattice over the others: each step down takes no less time than the one above.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any

from trainwright.catalog import GpuRecord, Precision, supports
from trainwright.profile.profile import Profile
from trainwright.workload import FullSettings, Inputs, Settings, Workload
from trainwright.workload.defaults import OFFLOADED, best_precision, unsupported_precision
from trainwright.workload.settings import (
    DIVIDED,
    SHARDED_OPTIMIZERS,
    USUAL_IMPLEMENTATION,
    Effect,
    effect,
)

ROOTS = (
    *("precision", "strategy", "shard_degree", "tensor_degree", "attention", "expanded_heads"),
    *("channels_last", "optimizer", "optimizer_in_backward", "optimizer_offload"),
)
"""Keys whose values may be faster or slower than one another."""
SAVERS = ("cross_entropy", "checkpointing", "activation_offload", "allocator")
"""Keys whose values save memory for time, or for nothing; in this order they are given up."""
KEYS = (*ROOTS[:2], "batch", *ROOTS[2:], *SAVERS)
"""What is searched. ``batch`` is (micro_batch, accumulation): their product is fixed.
Everything else follows from rules."""

Values = Mapping[str, tuple[Any, ...]]
"""Key -> values; those of savers by the time that they take, others' default first."""

_EVERY = (2, 3, 4, 6, 8)
"""Spacings of checkpointed blocks worth telling apart; larger ones free next to nothing."""
_MOVES_NOTHING = ("none", "selective")
"""Checkpointing without blocks whose inputs could wait in system memory."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One point of the space."""

    precision: str
    strategy: str
    shard_degree: int | None
    micro_batch: int
    accumulation: int
    checkpointing: str
    optimizer: str
    attention: str
    channels_last: bool
    allocator: str
    cross_entropy: str = "full"
    expanded_heads: bool = False
    activation_offload: bool = False
    optimizer_in_backward: bool = False
    optimizer_offload: str = "none"
    tensor_degree: int | None = None
    """Searched of served models; of training the plan's own."""
    surprise: int = field(default=0, compare=False)
    """How far from what the plan has now: ties go to the smaller."""
    effect: Effect = field(default=Effect.SAME, compare=False)
    """The greatest of its open values."""
    departure: int = field(default=0, compare=False)
    """The effects of its open values together: AdamW in bf16 departs less than Adafactor in it."""
    freed: str = field(default="", compare=False)
    """The fixed key that this candidate disregards; empty where it obeys the plan."""

    @property
    def departs(self) -> tuple[Effect, int]:
        """Return how much it changes the training: the smaller the better."""
        return self.effect, self.departure

    def settings(self, base: FullSettings) -> FullSettings:
        """Return the settings, with what is not searched taken from ``base``."""
        searched = {
            name: getattr(self, name)
            for name in ("micro_batch", "accumulation", *KEYS)
            if name != "batch"
        }
        if self.strategy not in ("fsdp2", "single"):  # single: served, or one GPU
            searched["tensor_degree"] = None
        if self.strategy != "pp":
            searched["pipeline_stages"] = None
        if self.optimizer != base.optimizer:  # how another one runs is its usual way
            usual = USUAL_IMPLEMENTATION.get(self.optimizer)
            searched["optimizer_implementation"] = usual
        return base.model_copy(update=searched)


def values(
    settings: Settings,
    base: FullSettings,
    workload: Workload,
    record: GpuRecord,
    profile: Profile,
    gpu_count: int,
    memory_bytes: int | None,
    nodes: int = 1,
    splits: Sequence[int] = (),
) -> Values:
    """Return the values worth comparing for each key, whether the plan fixes it or not.

    All GPUs that the plan names are used where they can share the batch. Nothing is moved to a
    system memory (``memory_bytes``) that is not known. ``workload`` has all its inputs. An engine
    may split layers over ``splits`` GPUs.
    """
    trains = workload.trains
    layers = profile.blocks if trains and workload.task != "prefix" else 0
    whole = workload.effective_batch or 0
    shares = gpu_count > 1 and trains and whole % base.ranks_of(gpu_count) == 0
    nvidia = record.vendor == "NVIDIA"
    moves = nvidia and trains and memory_bytes is not None
    engine = not trains and base.engine != "transformers"  # its kernels are its own
    strategies, staged = _strategies(workload, base), base.pipeline_stages is not None
    found: dict[str, tuple[Any, ...]] = {
        "precision": _precisions(workload, record, profile)[: 1 if engine else None],
        "strategy": strategies if shares else ("single",),
        "shard_degree": _degrees(strategies, base, gpu_count, nodes),
        "tensor_degree": (None, *splits) if splits else (base.tensor_degree,),
        "batch": tuple(batches(base, workload, 1)),
        "attention": ("sdpa", "eager") if profile.kernels and not engine else ("sdpa",),
        "expanded_heads": (
            (False, True) if may_expand(profile, base, workload, record) else (base.expanded_heads,)
        ),
        "channels_last": (False, True) if convolves_images(profile, workload.inputs) else (False,),
        "optimizer": ("adamw", "adamw-8bit", "adafactor") if trains else (base.optimizer,),
        "optimizer_in_backward": (False,),
        "optimizer_offload": ("none", "cpu") if moves else ("none",),
        "cross_entropy": _losses(workload, base, profile),
        "checkpointing": _checkpointings(layers),
        "activation_offload": (False, True) if layers and moves and not staged else (False,),
        "allocator": ("native", "expandable") if nvidia else ("native",),
    }
    return {key: _with_own(key, known, settings, base) for key, known in found.items()}


def _strategies(workload: Workload, base: FullSettings) -> tuple[str, ...]:
    """Return whole copies and shares of them; of shares that the plan asks for, those alone.

    How GPUs share a reference, or what writes answers, is not planned.
    """
    if workload.objective is not None:
        return ("ddp",)
    return (base.strategy,) if base.strategy in DIVIDED else ("ddp", "fsdp2")


def _degrees(
    strategies: tuple[str, ...], base: FullSettings, gpu_count: int, nodes: int
) -> tuple[int | None, ...]:
    """Return the copies worth comparing: one over all GPUs, and one in each computer."""
    each = gpu_count // nodes
    alone = base.shard_offload or base.tensor_degree is not None
    copies = "fsdp2" in strategies and not alone and 1 < each < gpu_count
    return (None, each) if copies else (None,)


def _losses(workload: Workload, base: FullSettings, profile: Profile) -> tuple[str, ...]:
    """Return how the loss may be made: in chunks too where it is that of the next token.

    Its labels are then shifted by one.
    """
    if workload.objective is not None or base.together > 1:
        return (base.cross_entropy,)
    shifted = set(zip(profile.ops.name, profile.ops.phase, strict=True))
    generates = workload.trains and ("aten.constant_pad_nd.default", "loss") in shifted
    return ("full", "chunked") if generates else ("full",)


NAN_CHIPS = ("TU116", "TU117")
"""GTX 16 and small Quadro T: convolutions in fp16 return NaN (ultralytics, pull request 17977;
pytorch, issue 77955)."""


def _precisions(workload: Workload, record: GpuRecord, profile: Profile) -> tuple[str, ...]:
    """Return the default first, then slower or less exact ones that run on the GPU.

    fp16-mixed has the rate of bf16-mixed and needs loss scaling, so that it is compared
    only where there is no bf16 (stas00, ml-engineering, dtype).
    """
    best = best_precision(record)
    if workload.trains and best == "fp16-mixed" and turns_to_nan(profile, record):
        return ("fp32",)
    if not workload.trains:
        return tuple(dict.fromkeys((best.removesuffix("-mixed"), "fp32")))
    others: tuple[Precision, ...] = ("tf32", "fp32", "bf16")
    return tuple(dict.fromkeys((best, *(one for one in others if _runs(one, record)))))


def _runs(precision: Precision, record: GpuRecord) -> bool:
    refused = unsupported_precision(precision, record) is not None
    emulated = record.compute_capability is None and supports(record, precision) is not True
    return not (refused or emulated)


def _checkpointings(blocks: int) -> tuple[str, ...]:
    if blocks < 1:
        return ("none",)
    return ("none", *(f"every-{k}" for k in reversed(_EVERY) if k < blocks), "full")


def may_expand(profile: Profile, base: FullSettings, workload: Workload, record: GpuRecord) -> bool:
    """Return whether attention runs by torch's math kernel, as grouped heads do without flash.

    CUDA's memory-efficient kernel takes them once keys and values are repeated for each query
    head (``aten/src/ATen/native/transformers/cuda/sdp_utils.cpp``).
    """
    grouped = profile.kernels.get("math", 0) > 0 and not base.expanded_heads
    return grouped and workload.trains and record.vendor == "NVIDIA"


def turns_to_nan(profile: Profile, record: GpuRecord) -> bool:
    """Return whether the model has convolutions that return NaN in fp16 on the chip."""
    return record.chip in NAN_CHIPS and profile.convolves


def convolves_images(profile: Profile, inputs: Inputs) -> bool:
    """Return whether images are convolved: convolutions over time have no layout to choose."""
    return inputs.image_size is not None and profile.convolves


def batches(base: FullSettings, workload: Workload, gpus: int) -> Iterator[tuple[int, int]]:
    """Yield (micro-batch, accumulation), largest micro-batch first, whose product is exact.

    Each pipeline stage needs a micro-batch.
    """
    if not workload.trains:
        yield base.micro_batch, base.accumulation
        return
    assert workload.effective_batch is not None, "the schema requires it for training"
    share, rest = divmod(workload.effective_batch, gpus)
    if rest:
        return
    for micro in range(share, 0, -1) if share <= 4096 else _large_divisors(share):
        if share % micro == 0 and share // micro >= (base.pipeline_stages or 1):
            yield micro, share // micro


def _large_divisors(share: int) -> Iterator[int]:
    """Yield divisors of a very large share, largest first, without trying each number."""
    small = [d for d in range(1, int(share**0.5) + 1) if share % d == 0]
    yield from sorted({*small, *(share // d for d in small)}, reverse=True)


def _with_own(
    key: str, known: tuple[Any, ...], settings: Settings, base: FullSettings
) -> tuple[Any, ...]:
    """Return the values with the plan's own among them; the usual precision may be none of them."""
    open_precision = key == "precision" and settings.precision is None
    if key == "batch" or open_precision or getattr(base, key) in known:
        return known
    return (getattr(base, key), *known)


def fixed(settings: Settings, base: FullSettings) -> dict[str, Any]:
    """Return the searched keys that the plan fixes, with their values."""
    found = {
        key: getattr(base, key)
        for key in KEYS
        if key != "batch" and getattr(settings, key) is not None
    }
    if settings.micro_batch is not None or settings.accumulation is not None:
        found["batch"] = (settings.micro_batch, settings.accumulation)
    return found


@dataclass(frozen=True)
class Space:
    """The points that keep to what is held; ``freed`` names a fixed key that they disregard."""

    values: Values
    held: Mapping[str, Any]
    base: FullSettings
    workload: Workload
    gpu_count: int
    freed: str = ""
    disobeyed: Any = None
    """The value of the freed key that is not looked at."""

    @property
    def obeyed(self) -> tuple[str, Any] | None:
        """Return the key that the points must disregard, with the plan's value."""
        return (self.freed, self.disobeyed) if self.freed else None

    @cached_property
    def open(self) -> dict[str, tuple[Any, ...]]:
        """Return the values of each key but the batch, where a held key has one."""
        found = {
            key: (self.held[key],) if key in self.held else known
            for key, known in self.values.items()
            if key != "batch"
        }
        if found["activation_offload"] == (True,):
            moving = [one for one in found["checkpointing"] if one not in _MOVES_NOTHING]
            found["checkpointing"] = tuple(moving)
        return found

    @cached_property
    def _surprise(self) -> dict[str, dict[Any, int]]:
        """Return how much each value surprises: not at all where the plan has it now."""
        ranks = {}
        for key, known in self.open.items():
            own = getattr(self.base, key)
            ordered = (own, *(value for value in known if value != own))
            ranks[key] = {value: rank for rank, value in enumerate(ordered)}
        return ranks

    def roots(self, effect_: Effect) -> Iterator[list[Candidate]]:
        """Yield the points of an effect that save no memory, in lists that differ in the batch."""
        lists = {key: self.open[key] for key in ROOTS}
        for chosen in product(*lists.values()):
            named = dict(zip(lists, chosen, strict=True))
            largest = max(self._effects(named), default=Effect.SAME)
            if largest is effect_ and self._allows(named):
                first = {key: self.open[key][0] for key in SAVERS}
                yield self._points(named | first, self._pairs(named))

    def _pairs(self, named: Mapping[str, Any]) -> Mapping[tuple[int, int], None]:
        """Return the batches in order, each to be found at once."""
        gpus = self.gpu_count if named["strategy"] != "single" else 1
        return self._shared if gpus > 1 else self._alone

    @cached_property
    def _alone(self) -> Mapping[tuple[int, int], None]:
        return self._held_batches(1)

    @cached_property
    def _shared(self) -> Mapping[tuple[int, int], None]:
        return self._held_batches(self.base.ranks_of(self.gpu_count))

    def _held_batches(self, gpus: int) -> Mapping[tuple[int, int], None]:
        held = self.held.get("batch", (None, None))
        accumulates = not self.base.optimizer_in_backward
        return dict.fromkeys(
            pair
            for pair in batches(self.base, self.workload, gpus)
            if _matches(pair, held) and (accumulates or pair[1] == 1)
        )

    def _points(
        self, named: Mapping[str, Any], pairs: Iterable[tuple[int, int]]
    ) -> list[Candidate]:
        surprise = sum(self._surprise[key][value] for key, value in named.items())
        effects = self._effects(named)
        rest: dict[str, Any] = {
            "surprise": surprise,
            "effect": max(effects, default=Effect.SAME),
            "departure": sum(effects),
            "freed": self.freed,
        }
        return [
            Candidate(micro_batch=micro, accumulation=steps, **named, **rest)
            for micro, steps in pairs
        ]

    def _effects(self, named: Mapping[str, Any]) -> list[Effect]:
        """Return the effects of the open values; what a recipe does is what was asked."""
        if not self.workload.trains:
            return []
        own = self.base.recipe is not None
        return [
            effect(key, value)
            for key, value in named.items()
            if key not in self.held and not (own and value == getattr(self.base, key))
        ]

    def below(self, point: Candidate, *, saving: bool = False) -> Iterator[Candidate]:
        """Yield the points one step down, each of the lattice once; none takes less time.

        ``saving``: only where less is allocated, which no allocator changes.
        """
        last = max(
            (at for at, key in enumerate(SAVERS) if getattr(point, key) != self.open[key][0]),
            default=0,
        )
        for key in SAVERS[last : -1 if saving else None]:
            known = self.open[key]
            if getattr(point, key) != known[0]:
                continue
            for value in known[1:]:
                if not (key == "activation_offload" and point.checkpointing in _MOVES_NOTHING):
                    more = self._surprise[key][value] - self._surprise[key][known[0]]
                    changed: dict[str, Any] = {key: value, "surprise": point.surprise + more}
                    yield replace(point, **changed)

    def root(self, point: Candidate) -> Candidate:
        """Return the point above all others of a point's lattice, which saves no memory."""
        values: dict[str, Any] = {key: self.open[key][0] for key in SAVERS}
        return replace(point, **values)

    def leanest(self, root: Candidate) -> Candidate:
        """Return the point of the lattice below a root that takes the least memory."""
        values: dict[str, Any] = {key: self.open[key][-1] for key in SAVERS[:-1]}
        return replace(root, **values)

    def without_moves(self, root: Candidate) -> Iterator[Candidate]:
        """Yield a root and the points below it that move nothing, with the first allocator.

        Those that share a way to compute the loss and a checkpointing share a structure.
        """
        for loss, level in product(self.open["cross_entropy"], self.open["checkpointing"]):
            yield replace(root, cross_entropy=loss, checkpointing=level)

    def below_each(self, checkpointing: str) -> int:
        """Return how many points differ from one with this checkpointing in moves and allocator."""
        moves = self.open["activation_offload"]
        possible = [one for one in moves if not (one and checkpointing in _MOVES_NOTHING)]
        return len(possible) * len(self.open["allocator"])

    def has(self, point: Candidate) -> bool:
        """Return whether a point is in the space."""
        pair = (point.micro_batch, point.accumulation)
        named = {key: getattr(point, key) for key in self.open}
        known = all(value in self.open[key] for key, value in named.items())
        moves = not point.activation_offload or point.checkpointing not in _MOVES_NOTHING
        return known and moves and self._allows(named) and pair in self._pairs(named)

    def _allows(self, named: Mapping[str, Any]) -> bool:
        """Return whether values go together; attention that is written out repeats heads anyway."""
        twice = named["attention"] != "sdpa" and named["expanded_heads"]
        return not (twice and len(self.open["expanded_heads"]) > 1) and _goes_together(named)

    def placed(self, point: Candidate) -> Candidate:
        """Return a point with its own surprise and effect."""
        named = {key: getattr(point, key) for key in self.open}
        return self._points(named, [(point.micro_batch, point.accumulation)])[0]


def _goes_together(named: Mapping[str, Any]) -> bool:
    """Return whether an update within backward, on the CPU or on shares goes with the rest."""
    moved, early = named["optimizer_offload"] == "cpu", named["optimizer_in_backward"]
    shared = named["strategy"] in DIVIDED
    if named["strategy"] == "pp" and named["precision"] == "fp16-mixed":
        return False
    if shared and named["optimizer"] not in SHARDED_OPTIMIZERS:
        return False
    if named["shard_degree"] is not None and named["strategy"] != "fsdp2":
        return False
    if (moved or early) and (named["precision"] == "fp16-mixed" or named["strategy"] != "single"):
        return False
    return not moved or (not early and named["optimizer"] in OFFLOADED)


def _matches(batch: tuple[int, int], wanted: Sequence[int | None]) -> bool:
    return all(want in (None, value) for value, want in zip(batch, wanted, strict=True))


def obeys(candidate: Candidate, key: str, value: Any) -> bool:
    """Return whether a candidate keeps to what a plan fixes."""
    if key == "batch":
        return _matches((candidate.micro_batch, candidate.accumulation), value)
    return bool(getattr(candidate, key) == value)
