"""What is trained of the model: virtual tokens before its text."""

from typing import Any

from hf_models import prompted
from plan_file import Plan
from strict import InputError


def tuned(model: Any, plan: Plan) -> Any:
    """Return the model frozen, with virtual tokens.

    Raises:
        InputError: plan.json was changed to another task, or peft refuses.
    """
    if not plan.virtual_tokens:
        raise InputError(
            f"task: these files train virtual tokens, not {plan.task}; export it again"
        )
    return prompted(model, plan.task, plan.virtual_tokens)
