"""A learning rate to start from, where the plan leaves it to the script."""

from dataclasses import dataclass

from trainwright.messages import Message
from trainwright.plan.schema import Plan
from trainwright.workload import FullSettings


@dataclass(frozen=True, slots=True)
class LearningRate:
    """A value and why it was written."""

    value: float
    because: Message


_LION_RATIO = 1 / 5
"""Lion takes 3 to 10 times less than AdamW: Chen et al. 2023, arXiv 2302.06675, section 5."""


_OF_OBJECTIVE = {
    "dpo": ((1e-6, 1e-5), "TRL: DPOConfig, ten times that with adapters"),
    "reward": ((1e-4, 1e-3), "TRL: RewardConfig, ten times that with adapters"),
    "grpo": ((1e-6, 1e-5), "TRL: GRPOConfig, ten times that with adapters"),
}
_PROMPTED = {
    "prompt": (3e-2, "PEFT, guide to prompt tuning"),
    "prefix": (1e-2, "PEFT, guide to prefix tuning"),
}


def learning_rate(plan: Plan, settings: FullSettings, effective: int) -> LearningRate:
    """Return the plan's own learning rate, or a common one for the task and optimizer.

    Sources: LoRA 2e-4, Dettmers et al. 2023 (arXiv 2305.14314, table 9); fine-tuning 2e-5,
    Taori et al. 2023 (Alpaca); pretraining 3e-4, Touvron et al. 2023 (arXiv 2307.09288);
    images with AdamW 5e-4 · batch / 512, Touvron et al. 2021 (arXiv 2012.12877); SGD
    0.1 · batch / 256, Goyal et al. 2017 (arXiv 1706.02677); Adafactor 1e-3, Raffel et al.
    2020 (arXiv 1910.10683); pairs of answers 1e-6 and reward models 1e-4, with adapters
    ten times that: TRL 1.16 (DPOConfig, RewardConfig, and its guide to PEFT).
    """
    if settings.learning_rate is not None:
        return LearningRate(settings.learning_rate, Message.of("export.reason.yours"))
    value, source = _common(plan, settings, effective)
    return LearningRate(value, Message.of("export.reason.learning-rate", source=source))


def _common(plan: Plan, settings: FullSettings, effective: int) -> tuple[float, str]:
    task = plan.workload.task
    if plan.workload.objective is not None:
        values, source = _OF_OBJECTIVE[plan.workload.objective]
        return values[plan.workload.adapts], source
    if settings.optimizer == "sgd":
        return 0.1 * effective / 256, "Goyal 2017: 0.1 · batch / 256"
    if task in _PROMPTED:
        return _PROMPTED[task]
    if settings.optimizer == "adafactor" and task not in ("lora", "qlora"):
        return 1e-3, "Raffel 2020 (T5)"
    if task in ("lora", "qlora"):
        value, source = 2e-4, "Dettmers 2023 (QLoRA)"
    elif plan.workload.inputs.image_size is not None:
        value, source = 5e-4 * effective / 512, "Touvron 2021 (DeiT): 5e-4 · batch / 512"
    elif task == "full":
        value, source = 2e-5, "Taori 2023 (Alpaca)"
    else:
        value, source = 3e-4, "Touvron 2023 (Llama 2)"
    if settings.optimizer == "lion":
        return value * _LION_RATIO, f"{source}; Chen 2023: Lion 1/5"
    return value, source
