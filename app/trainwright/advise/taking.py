"""A plan with what a search chose: open keys stay open, and carry value and reason."""

from collections.abc import Iterable, Mapping
from math import isfinite
from numbers import Real
from typing import Any

from trainwright.advise.advice import Reason
from trainwright.messages import Message
from trainwright.plan.chosen import Chosen
from trainwright.plan.schema import Plan
from trainwright.workload import FullSettings

_ALWAYS = ("precision", "strategy", "attention", "channels_last", "allocator", "quantization")
_TRAINING = ("micro_batch", "accumulation", "checkpointing", "optimizer", "compile")
_UNUSUAL = {
    "cross_entropy": "full",
    "expanded_heads": False,
    "activation_offload": False,
    "optimizer_in_backward": False,
    "optimizer_offload": "none",
    "shard_degree": None,
    "shard_offload": False,
    "tensor_degree": None,
    "pipeline_stages": None,
}
"""Keys of training that are marked as chosen only where they are not what they usually are."""
_BEST = Message.of("advise.chosen.best")


def with_settings(plan: Plan, taken: FullSettings, reasons: Iterable[Reason] = ()) -> Plan:
    """Return the plan with complete settings chosen for its open keys; fixed ones stay."""
    known = {reason.setting: reason for reason in reasons}
    found = {}
    more = (*_TRAINING, *_UNUSUAL) if plan.workload.trains else ("tensor_degree",)
    names = (*_ALWAYS, *more)
    for name in names:
        value = getattr(taken, name)
        if getattr(plan.settings, name) is None and _UNUSUAL.get(name) != value:
            found[name] = _chosen(value, known.get(name))
    workers = known.get("loader.num_workers")
    if workers is not None and plan.settings.loader.num_workers is None:
        found[workers.setting] = _chosen(taken.num_workers, workers)
    return plan.model_copy(update={"chosen": found})


def _chosen(value: Any, reason: Reason | None) -> Chosen:
    said = reason.because if reason is not None else _BEST
    plain = {name: _plain(one) for name, one in said.values.items()}
    if reason is None or None in plain.values():
        return Chosen(value=value, because=_BEST.id)
    return Chosen(value=value, because=said.id, values=_whole(plain), source=reason.source[:200])


def _plain(value: Any) -> bool | int | float | str | None:
    """Return a value as a file holds it; None where it has no such form."""
    if isinstance(value, bool | int | str):
        return value[:200] if isinstance(value, str) else value
    if isinstance(value, Real):
        return float(value) if isfinite(value) else None
    return None


def _whole(values: Mapping[str, Any]) -> dict[str, bool | int | float | str]:
    return {name: value for name, value in values.items() if value is not None}
