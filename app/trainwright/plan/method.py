"""How a plan's training departs from the plain step of its task."""

from trainwright.messages import UserError
from trainwright.profile.spec import Method
from trainwright.workload import FullSettings, Lora, Workload


def method(workload: Workload, settings: FullSettings, *, has_sequence: bool) -> Method:
    """Return what of the plan changes forward and backward; what it leaves alone is the default.

    Raises:
        UserError: the model has no tokens, and a key speaks of them.
    """
    if settings.cross_entropy != "full" and not has_sequence:
        value = settings.cross_entropy
        raise UserError.of("plan.no-tokens", key="settings.cross_entropy", value=value)
    if workload.prompted and not has_sequence:
        raise UserError.of("plan.no-text", key="workload.task", task=workload.task)
    lora = workload.lora or Lora()
    return Method(
        dora=lora.variant == "dora",
        dropout=lora.dropout > 0,
        frozen=tuple(sorted(set(workload.frozen))),
        virtual_tokens=workload.prompted,
        cross_entropy=settings.cross_entropy,
        kbit=settings.kbit_preparation,
        nested=settings.double_quantization,
        adapters=settings.adapter_dtype,
        input_gradients=settings.input_gradients,
        scores=settings.scores_upcast,
        loss_in_model=settings.loss_in_model,
        # Flash attention's own kernel groups heads, and what is written out repeats them anyway.
        expanded_heads=settings.expanded_heads and settings.attention == "sdpa",
        softmax_inputs=settings.softmax_inputs,
        separate_experts=settings.separate_experts,
        outputs=settings.output_kept != "no",
    )
