"""Which settings are compared: the values that each free key may take, and their products."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from trainwright.catalog import GpuRecord
from trainwright.profile.profile import Profile
from trainwright.workload import FullSettings, Settings, Workload
from trainwright.workload.defaults import best_precision, unsupported_precision

KEYS = (
    "precision",
    "strategy",
    "batch",
    "checkpointing",
    "optimizer",
    "attention",
    "channels_last",
    "allocator",
)
"""What is searched. ``batch`` is (micro_batch, accumulation): their product is fixed.
Everything else follows from rules."""

Values = Mapping[str, tuple[Any, ...]]
"""Key -> values, the one that surprises least first."""

_RECIPES = {"optimizer": ("adafactor", "sgd"), "precision": ("bf16",)}
"""Values that train differently, so that they are taken only where nothing else fits:
another update rule, and weights without an fp32 master copy."""

_EVERY = (2, 3, 4, 6, 8)
"""Spacings of checkpointed blocks worth telling apart; larger ones free next to nothing."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One point of the space."""

    precision: str
    strategy: str
    micro_batch: int
    accumulation: int
    checkpointing: str
    optimizer: str
    attention: str
    channels_last: bool
    allocator: str
    surprise: int = field(default=0, compare=False)
    """How far from the defaults: ties go to the smaller."""
    recipe: int = field(default=0, compare=False)
    """How many values train differently than the default would."""
    freed: str = field(default="", compare=False)
    """The fixed key that this candidate disregards; empty where it obeys the plan."""

    def settings(self, base: FullSettings) -> FullSettings:
        """Return the settings, with what is not searched taken from ``base``."""
        searched = {
            name: getattr(self, name)
            for name in ("micro_batch", "accumulation", *KEYS)
            if name != "batch"
        }
        return base.model_copy(update=searched)


def values(
    settings: Settings,
    base: FullSettings,
    workload: Workload,
    record: GpuRecord,
    profile: Profile,
    gpu_count: int,
) -> Values:
    """Return the values worth comparing for each key, whether the plan fixes it or not."""
    trains, precisions = workload.trains, _precisions(workload, record)
    layers = profile.blocks if trains and workload.task != "prefix" else 0
    early = base.optimizer_in_backward or base.optimizer_offload == "cpu"
    found: dict[str, tuple[Any, ...]] = {
        "precision": tuple(p for p in precisions if not (early and p == "fp16-mixed")),
        "strategy": ("ddp", "single") if gpu_count > 1 and trains and not early else ("single",),
        "batch": tuple(batches(base, workload, 1)),
        "checkpointing": _checkpointings(layers, base),
        "optimizer": _optimizers(base) if trains else (base.optimizer,),
        "attention": _attentions(profile),
        "channels_last": (False, True) if _convolutional(profile) else (False,),
        "allocator": ("native", "expandable") if record.vendor == "NVIDIA" else ("native",),
    }
    return {key: _with_own(key, known, settings, base) for key, known in found.items()}


def _optimizers(base: FullSettings) -> tuple[str, ...]:
    return ("adamw",) if base.optimizer_offload == "cpu" else ("adamw", "adafactor")


def _precisions(workload: Workload, record: GpuRecord) -> tuple[str, ...]:
    """Return the default first, then slower or less exact ones that run on the GPU.

    fp16-mixed has the rate of bf16-mixed and needs loss scaling, so that it is compared
    only where there is no bf16 (stas00, ml-engineering, dtype).
    """
    if not workload.trains:
        best = best_precision(record)
        return tuple(dict.fromkeys(("bf16" if best == "bf16-mixed" else best, "fp32")))
    best = best_precision(record)
    others = ("tf32", "fp32", *_RECIPES["precision"])
    return tuple(
        dict.fromkeys(
            (best, *(p for p in others if unsupported_precision(p, record) is None))  # type: ignore[arg-type]
        )
    )


def _checkpointings(blocks: int, base: FullSettings) -> tuple[str, ...]:
    """Return the default first; what moves blocks' inputs away needs some that are moved."""
    if blocks < 1:
        return ("none",)
    plain = () if base.activation_offload else ("none",)
    return (*plain, *(f"every-{k}" for k in reversed(_EVERY) if k < blocks), "full")


def _attentions(profile: Profile) -> tuple[str, ...]:
    """Return kernels that may differ; sdpa takes flash by itself where it can."""
    return ("sdpa", "eager") if profile.kernels else ("sdpa",)


def _convolutional(profile: Profile) -> bool:
    return any("convolution" in name for name in profile.ops.name)


def batches(base: FullSettings, workload: Workload, gpus: int) -> Iterator[tuple[int, int]]:
    """Yield (micro-batch, accumulation), largest micro-batch first, whose product is exact."""
    if not workload.trains:
        yield base.micro_batch, base.accumulation
        return
    assert workload.effective_batch is not None, "the schema requires it for training"
    share, rest = divmod(workload.effective_batch, gpus)
    if rest:
        return
    if base.optimizer_in_backward:
        yield share, 1
        return
    for micro in range(share, 0, -1) if share <= 4096 else _large_divisors(share):
        if share % micro == 0:
            yield micro, share // micro


def _large_divisors(share: int) -> Iterator[int]:
    """Yield divisors of a very large share, largest first, without trying each number."""
    small = [d for d in range(1, int(share**0.5) + 1) if share % d == 0]
    yield from sorted({*small, *(share // d for d in small)}, reverse=True)


def _with_own(
    key: str, known: tuple[Any, ...], settings: Settings, base: FullSettings
) -> tuple[Any, ...]:
    """Return the values with the plan's own among them."""
    if key == "batch" or getattr(settings, key) is None:
        return known
    own = getattr(base, key)
    return known if own in known else (own, *known)


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


def candidates(
    space: Values,
    held: Mapping[str, Any],
    base: FullSettings,
    workload: Workload,
    gpu_count: int,
    *,
    disobedient: bool = True,
) -> Iterator[list[Candidate]]:
    """Yield the points that obey the fixed keys, then those that disregard exactly one.

    They come in lists whose members differ only in the batch.
    """
    yield from _products(space, held, base, workload, gpu_count, "")
    for key in held if disobedient else ():
        rest = {name: value for name, value in held.items() if name != key}
        for group in _products(space, rest, base, workload, gpu_count, key):
            yield [one for one in group if not _obeys(one, key, held[key])]


def _products(
    space: Values,
    held: Mapping[str, Any],
    base: FullSettings,
    workload: Workload,
    gpu_count: int,
    freed: str,
) -> Iterator[list[Candidate]]:
    lists = {
        key: (held[key],) if key in held and key != "batch" else known
        for key, known in space.items()
        if key not in ("batch", "strategy")
    }
    strategies = (held["strategy"],) if "strategy" in held else space["strategy"]
    ranks = [{value: rank for rank, value in enumerate(space[key])} for key in lists]
    for index, strategy in enumerate(strategies):
        gpus = gpu_count if strategy == "ddp" else 1
        pairs = [
            pair
            for pair in batches(base, workload, gpus)
            if "batch" not in held or _matches(pair, held["batch"])
        ]
        for chosen in product(*lists.values()):
            surprise = index + sum(rank[value] for rank, value in zip(ranks, chosen, strict=True))
            named = dict(zip(lists, chosen, strict=True))
            recipe = sum(
                named[key] in odd and held.get(key) != named[key] for key, odd in _RECIPES.items()
            )
            yield [
                Candidate(
                    strategy=strategy,
                    micro_batch=micro,
                    accumulation=accumulation,
                    surprise=surprise,
                    recipe=recipe,
                    freed=freed,
                    **named,
                )
                for micro, accumulation in pairs
            ]


def _matches(batch: tuple[int, int], wanted: Sequence[int | None]) -> bool:
    return all(want in (None, value) for value, want in zip(batch, wanted, strict=True))


def _obeys(candidate: Candidate, key: str, value: Any) -> bool:
    if key == "batch":
        return _matches((candidate.micro_batch, candidate.accumulation), value)
    return bool(getattr(candidate, key) == value)
