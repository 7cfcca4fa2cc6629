"""Which plans the rows of the plan form apply to."""

from collections.abc import Callable

from trainwright.plan.chosen import in_force
from trainwright.plan.schema import Plan
from trainwright.workload.objectives import TASKS


def trains(plan: Plan) -> bool:
    """Return whether there is a backward pass."""
    return plan.workload.trains


def trains_text(plan: Plan) -> bool:
    """Return whether tokens are trained on."""
    return plan.workload.trains and plan.workload.inputs.sequence_length is not None


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
    return plan.workload.task in ("lora", "qlora")
