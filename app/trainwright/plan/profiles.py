"""Stored profiles that answer for a structure, and those that are derived from them."""

import math
from dataclasses import dataclass, fields, replace

from trainwright.profile import store
from trainwright.profile.chunked import chunked
from trainwright.profile.foreach import with_foreach
from trainwright.profile.profile import Profile
from trainwright.profile.spec import DEFAULT_LORA, Method, TraceSpec

_NEARLY: dict[str, tuple[str, float, float]] = {
    "dropout": ("lora.dropout", 0.08, 0.02),
    "input_gradients": ("input_gradients", 0.01, 0.01),
    "loss_in_model": ("loss_in_model", 0.01, 0.01),
    "cross_entropy": ("cross_entropy", 0.08, 0.08),
    "tile": ("cross_entropy", 0.0, 0.0),
    "adapters": ("adapter_dtype", 0.01, 0.01),
    "nested": ("double_quantization", 0.05, 0.05),
    "outputs": ("output_kept", 0.01, 0.01),
    "rank": ("lora.rank", 0.03, 0.03),
    "targets": ("lora.targets", 0.15, 0.02),
    "precision": ("precision", 0.02, 0.02),
    "single": ("micro_batch", 0.02, 0.02),
}
"""What differs -> the plan's key, and by which share it changes a step's memory at most: as it is,
and where all blocks are checkpointed.

Nine runs of TRL, axolotl, LLaMA-Factory, torchtune and the Trainer, each traced as it is and
compared with the nearest stored profile; rounded up.
"""
_MOST_RANK = 64


@dataclass(frozen=True, slots=True)
class Nearby:
    """The stored profile of a step that hardly differs."""

    profile: Profile
    left_out: tuple[str, ...]
    """Keys of the plan that differ."""
    share: float
    """By which they change memory at most."""


def stored(spec: TraceSpec) -> Profile | None:
    """Return the stored profile; where a model has no attention, that of any kernel."""
    if (profile := store.load(spec)) is not None:
        return profile
    for kernel in ("flash", "efficient"):
        other = store.load(replace(spec, kernel=kernel)) if spec.kernel != kernel else None
        if other is not None and not other.kernels:
            return other
    return _in_chunks(spec) or _unfused(spec)


def nearest(spec: TraceSpec, *, checkpointed: bool = False) -> Nearby | None:
    """Return the stored profile of a step that hardly differs.

    None where nothing is stored, or the step differs by more than a few percent of memory.
    """
    plain, method = Method(), spec.method
    names = [one.name for one in fields(Method)]
    differs = [name for name in names if getattr(method, name) != getattr(plain, name)]
    rank, targets = spec.lora
    differs += ["rank"] if rank != DEFAULT_LORA[0] else []
    differs += ["targets"] if targets else []
    precision = spec.precision
    if precision == "bf16" and spec.task in ("lora", "qlora"):  # only the mixed one ships
        precision = "bf16-mixed"
        differs.append("precision")
    if rank > _MOST_RANK or not _NEARLY.keys() >= set(differs):
        return None
    loss = "full" if method.cross_entropy == "full" else "chunked"
    near = replace(plain, cross_entropy=loss)  # type: ignore[arg-type]
    profile = stored(replace(spec, method=near, lora=DEFAULT_LORA, precision=precision))
    if profile is None and spec.single:  # batch 1 takes other paths in few places
        differs.append("single")
        profile = stored(
            replace(spec, method=near, lora=DEFAULT_LORA, precision=precision, single=False)
        )
    if profile is None:
        return None
    found = [_NEARLY[name] for name in differs]
    shares = [less if checkpointed else share for _, share, less in found]
    # They are independent of one another.
    return Nearby(profile, tuple(dict.fromkeys(key for key, _, _ in found)), math.hypot(*shares))


def _in_chunks(spec: TraceSpec) -> Profile | None:
    """Return the profile of a loss in chunks, derived from the stored one of the whole loss."""
    if spec.method.cross_entropy != "chunked" or spec.method.loss_in_model:
        return None
    method = replace(spec.method, cross_entropy="full", scores="upcast")
    whole = stored(replace(spec, method=method))
    return chunked(whole) if whole is not None else None


def _unfused(spec: TraceSpec) -> Profile | None:
    """Return the profile with the update of AdamW without ``fused``, derived from the fused."""
    if spec.asked != "adamw-foreach":
        return None
    fused = stored(replace(spec, asked="adamw"))
    return with_foreach(fused) if fused is not None else None
