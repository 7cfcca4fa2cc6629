"""What is trained of the model: low-rank adapters beside its layers."""

import dataclasses
from typing import Any

from hf_models import Adapters, adapted
from plan_file import Plan
from strict import InputError


def tuned(model: Any, plan: Plan) -> Any:
    """Return the model frozen, with adapters.

    Raises:
        InputError: plan.json was changed to another task, or peft refuses.
    """
    if plan.lora is None:
        raise InputError(f"task: these files train adapters, not {plan.task}; export it again")
    adapters = Adapters(
        **dataclasses.asdict(plan.lora),
        dtype=plan.settings.adapter_dtype,
        input_gradients=plan.settings.input_gradients,
    )
    return adapted(model, adapters)
