"""Which targets run a plan whose GPUs share weights, gradients, optimizer state or layers."""

from collections.abc import Mapping

from trainwright.export.lost import Replacements
from trainwright.export.model import definition
from trainwright.messages import UserError
from trainwright.plan.schema import Plan
from trainwright.workload import FullSettings
from trainwright.workload.settings import DIVIDED, Optimizer, Quantization, Strategy

ZERO: tuple[Strategy, ...] = ("zero1", "zero2", "zero3")
RUNS: Mapping[str, tuple[Strategy, ...]] = {
    "plain": ("fsdp2", "pp"),
    **dict.fromkeys(("slurm", "skypilot", "dstack", "kubeflow", "ray"), ("fsdp2", "pp")),
    "accelerate": ("fsdp2",),
    "transformers": ("fsdp2",),
    "deepspeed": ZERO,
    "torchtitan": ("fsdp2",),
}
"""Target -> strategies that its files run, beside single and ddp."""
ON_NODES = tuple(RUNS)
"""Targets that write what starts the run on several computers."""
PACKED = tuple(
    name for name, strategies in RUNS.items() if "fsdp2" in strategies and name != "torchtitan"
)
"""Targets whose files share weights in 4 bits, packed in the type that computes."""
FOUR_BITS: tuple[Quantization, ...] = ("nf4", "fp4")
SPLIT = ("plain", "slurm", "skypilot", "dstack", "kubeflow", "ray")
"""Targets whose files split layers over GPUs."""
OPTIMIZERS: Mapping[Strategy, tuple[Optimizer, ...]] = {
    "fsdp2": ("adamw", "sgd", "muon"),
    **dict.fromkeys((*ZERO, "pp"), ("adamw", "sgd")),
}
"""Strategy -> optimizers that move shares. torch's Adafactor fails on them (2.13), and those of
bitsandbytes know whole tensors alone."""
CONTIGUOUS: Replacements = {"channels_last": {True: False}}
"""Shares are flat, and ``fully_shard`` and DeepSpeed refuse weights in another layout."""


def replaced(settings: FullSettings, own: Replacements) -> Replacements:
    """Return what a target writes instead of what it lacks: its own, and that of shares."""
    return {**own, **CONTIGUOUS} if settings.shards else own


def require_runnable(name: str, plan: Plan, settings: FullSettings) -> None:
    """Refuse what the target's files cannot share between GPUs, or computers.

    Raises:
        UserError: the strategy, or something else of the plan with it.
    """
    nodes, strategy = plan.machine.nodes, settings.strategy
    if nodes > 1 and settings.several and name not in ON_NODES:
        raise UserError.of("export.no-nodes", name=name, nodes=nodes, able=list(ON_NODES))
    if strategy not in DIVIDED:
        return
    if strategy not in RUNS.get(name, ()):
        able = [target for target, strategies in RUNS.items() if strategy in strategies]
        raise UserError.of("export.no-sharding", name=name, strategy=strategy, able=able)
    if settings.tensor_degree is not None and name not in SPLIT:
        raise UserError.of("export.no-splitting", name=name, able=list(SPLIT))
    if settings.optimizer not in OPTIMIZERS[strategy]:
        raise UserError.of(
            "export.sharding-optimizer",
            strategy=strategy,
            optimizer=settings.optimizer,
            able=list(OPTIMIZERS[strategy]),
        )
    packed = settings.quantization
    quantized = packed != "none" and not (packed in FOUR_BITS and name in PACKED)
    if quantized or plan.workload.prompted or (strategy in ZERO and plan.workload.adapts):
        raise UserError.of(
            "export.sharding-task",
            name=name,
            strategy=strategy,
            task=plan.workload.task,
            able=list(PACKED),
        )
    if (model := definition(plan)).kind == "diffusers":
        raise UserError.of("export.sharding-model", strategy=strategy, model=model.title)
