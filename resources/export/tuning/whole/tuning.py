"""What is trained of the model: the model itself."""

from typing import Any

from plan_file import Plan
from strict import InputError


def tuned(model: Any, plan: Plan) -> Any:
    """Return the model.

    Raises:
        InputError: plan.json was changed to another task.
    """
    if plan.task not in ("pretrain", "full"):
        raise InputError(f"task: these files train whole models, not {plan.task}; export it again")
    return model
