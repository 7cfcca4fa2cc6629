"""Which plans the rows of the plan form apply to."""

from collections.abc import Callable

from trainwright.plan.effective import in_force
from trainwright.plan.schema import Plan
from trainwright.workload.engines import SHARING
from trainwright.workload.objectives import TASKS


def trains(plan: Plan) -> bool:
    """Return whether there is a backward pass."""
    return plan.workload.trains


def trains_text(plan: Plan) -> bool:
    """Return whether tokens are trained on."""
    return plan.workload.trains and (writes(plan) or has_input("sequence_length")(plan))


def trains_rows(plan: Plan) -> bool:
    """Return whether tokens are trained on whose rows are given."""
    return trains_text(plan) and not writes(plan)


def writes(plan: Plan) -> bool:
    """Return whether a model is trained on answers of its own."""
    return plan.workload.writes is not None


def generates(plan: Plan) -> bool:
    """Return whether tokens are written."""
    return writes(plan) or not plan.workload.trains


def shares(plan: Plan) -> bool:
    """Return whether an engine takes a share of the memory at its start."""
    if writes(plan):
        return plan.settings.generation in ("vllm", "vllm-sleep")
    return plan.settings.engine in SHARING


def splits_layers(plan: Plan) -> bool:
    """Return whether each layer may be split over several GPUs: on shares, or by an engine."""
    serves = not plan.workload.trains and plan.settings.engine in (None, *SHARING)
    return plan.settings.strategy == "fsdp2" or (serves and plan.machine.gpu_count > 1)


def has_objective(plan: Plan) -> bool:
    """Return whether there is a choice of what a language model is trained for."""
    return plan.workload.task in TASKS and trains_text(plan)


def has_input(name: str) -> Callable[[Plan], bool]:
    """Return what tells whether a plan gives an input."""
    return lambda plan: getattr(plan.workload.inputs, name) is not None


def checkpoints(plan: Plan) -> bool:
    """Return whether blocks can be computed again."""
    return plan.workload.trains and plan.workload.task != "prefix"


def updates(plan: Plan) -> str:
    """Return the optimizer; empty where nothing is trained."""
    return (in_force(plan).optimizer or "adamw") if plan.workload.trains else ""


def quantizes(plan: Plan) -> bool:
    """Return whether trained adapters lie over quantised weights."""
    return plan.workload.task == "qlora"


def adapts(plan: Plan) -> bool:
    """Return whether there are low-rank adapters."""
    return plan.workload.low_rank
