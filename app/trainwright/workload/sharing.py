"""How GPUs share weights and layers: what a plan may ask for together."""

from trainwright.messages import UserError
from trainwright.workload.engines import SHARING
from trainwright.workload.settings import (
    DIVIDED,
    SHARDED_OPTIMIZERS,
    Precision,
    Settings,
    Strategy,
)
from trainwright.workload.workload import Workload


def check_sharding(settings: Settings, strategy: Strategy) -> None:
    """Refuse what weights, gradients or state that are shared out cannot go with."""
    if settings.shard_offload and strategy != "fsdp2":
        raise UserError.of("workload.offload-of-shards", key="settings.shard_offload")
    optimizer = settings.optimizer or "adamw"
    if strategy in DIVIDED and optimizer not in SHARDED_OPTIMIZERS:
        raise UserError.of(
            "workload.sharded-optimizer",
            key="settings.optimizer",
            value=optimizer,
            strategy=strategy,
            instead=list(SHARDED_OPTIMIZERS),
        )


def shard_degree(settings: Settings, strategy: Strategy, gpus: int, nodes: int) -> int | None:
    """Return how many GPUs share one copy; None where all do."""
    key, degree = "settings.shard_degree", settings.shard_degree
    if degree is None:
        return None
    if strategy != "fsdp2":
        raise UserError.of("workload.degree-of-shards", key=key)
    each = gpus // nodes
    if gpus % degree or (each % degree and degree % each):
        possible = [n for n in divisors(gpus) if n > 1 and not (each % n and n % each)]
        raise UserError.of(
            "workload.shard-degree",
            key=key,
            value=degree,
            gpus=gpus,
            nodes=nodes,
            possible=possible,
        )
    if degree == gpus:
        return None
    if settings.shard_offload:
        raise UserError.of("workload.copies-offloaded", key=key)
    return degree


def tensor_degree(
    settings: Settings, strategy: Strategy, workload: Workload, gpus: int, nodes: int
) -> int | None:
    """Return over how many GPUs each layer is split; None where none is.

    Every layer waits for the others' parts, so that they stay in one computer. What no other
    setting mends is refused first.
    """
    key, degree = "settings.tensor_degree", settings.tensor_degree
    if degree is None:
        return None
    each = gpus // nodes
    serves = not workload.trains
    if serves and settings.engine not in (None, *SHARING):
        values = {"engine": settings.engine, "others": list(SHARING)}
        raise UserError.of("workload.tensor-engine", key=key, **values)
    if not serves and (
        workload.task not in ("pretrain", "full") or workload.objective or workload.frozen
    ):
        raise UserError.of("workload.tensor-task", key=key)
    if each < 2:
        raise UserError.of("workload.tensor-alone", key=key)
    if each % degree:
        possible = [n for n in divisors(each) if n > 1]
        raise UserError.of(
            "workload.tensor-degree", key=key, value=degree, gpus=each, possible=possible
        )
    if serves:
        return degree
    if strategy != "fsdp2":
        raise UserError.of("workload.tensor-strategy", key=key)
    if settings.cross_entropy not in (None, "full"):
        raise UserError.of("workload.tensor-loss", key=key)
    for other in ("shard_degree", "shard_offload", "compile"):
        if getattr(settings, other):
            raise UserError.of("workload.tensor-with", key=key, other=f"settings.{other}")
    return degree


_NOT_STAGED = (
    *("shard_degree", "tensor_degree", "shard_offload", "reshard_after_forward", "compile"),
    *("channels_last", "activation_offload", "recipe", "output_kept", "gradients_cleared"),
    *("loss_in_model", "softmax_inputs", "expanded_heads", "position_tables", "reentrant"),
    "framework",
)
"""Keys that are not planned together with pipeline stages, whatever is given."""


def pipeline_stages(
    settings: Settings, strategy: Strategy, workload: Workload, precision: Precision, gpus: int
) -> int | None:
    """Return how many parts the layers are cut into; None where each GPU has all of them.

    What no other setting mends is refused first.
    """
    key, count = "settings.strategy", settings.pipeline_stages
    if strategy != "pp":
        if count is not None:
            raise UserError.of("workload.stages-strategy", key="settings.pipeline_stages")
        return None
    if workload.task not in ("pretrain", "full") or workload.objective or workload.frozen:
        raise UserError.of("workload.stages-task", key=key)
    if gpus < 2:
        raise UserError.of("workload.stages-alone", key=key)
    count = count or gpus
    if gpus % count:
        raise UserError.of(
            "workload.stages-count",
            key="settings.pipeline_stages",
            value=count,
            gpus=gpus,
            possible=[n for n in divisors(gpus) if n > 1],
        )
    others = [name for name in _NOT_STAGED if getattr(settings, name)]
    others += ["cross_entropy"] if settings.cross_entropy not in (None, "full") else []
    others += ["precision"] if precision == "fp16-mixed" else []
    if others:
        raise UserError.of("workload.stages-with", key=key, other=f"settings.{others[0]}")
    return count


def divisors(number: int) -> list[int]:
    """Return all divisors, the smallest first."""
    small = [d for d in range(1, int(number**0.5) + 1) if number % d == 0]
    return sorted({*small, *(number // d for d in small)})
