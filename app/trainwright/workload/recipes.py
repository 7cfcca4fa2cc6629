"""Recipes: who runs the training step, and what that library's own loop sets.

A recipe is data. It sets the defaults of settings; each of them can be set alone in a plan, and
then stands. Where a default means nothing to a task, it is left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trainwright.workload import objectives
from trainwright.workload.settings import USUAL_IMPLEMENTATION, RecipeName, Settings
from trainwright.workload.workload import Workload


@dataclass(frozen=True, slots=True)
class Recipe:
    """The defaults of one library's loop."""

    library: str
    """With its version, as it was read."""
    source: str
    """Where the library says so."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Defaults of any training, by key."""
    adapters: Mapping[str, Any] = field(default_factory=dict)
    """Further ones of lora and qlora."""
    checkpointed: Mapping[str, Any] = field(default_factory=dict)
    """Further ones of lora and qlora whose blocks are checkpointed."""
    quantized: Mapping[str, Any] = field(default_factory=dict)
    """Further ones of qlora alone."""

    def defaults(self, task: str, *, checkpointed: bool) -> dict[str, Any]:
        """Return the defaults of a task, by key."""
        found = dict(self.settings)
        if task in ("lora", "qlora"):
            found |= self.adapters
            found |= self.checkpointed if checkpointed else {}
        if task == "qlora":
            found |= self.quantized
        return found


_TRANSFORMERS_4: dict[str, Any] = {
    "optimizer_implementation": "foreach",
    "scores_upcast": "returned",
    "loss_in_model": True,
    "expanded_heads": True,
    "separate_experts": True,
    "reentrant": True,
}
"""What the Trainer of transformers 4 and its models do, until the loss was made elsewhere."""

_TRL: dict[str, Any] = {
    "optimizer_implementation": "fused",
    "checkpointing": "full",
    "cross_entropy": "tiled",
}
"""What the trainers of TRL have in common."""
_TRL_QUANTIZED = {"adapter_dtype": "weights", "double_quantization": False}

RECIPES: Mapping[RecipeName, Recipe] = {
    "plain": Recipe("torch 2.13", "the step that the plain export runs"),
    "hf-trainer": Recipe(
        "transformers 5.24",
        "training_args.py: optim is adamw_torch_fused from torch 2.8 on; trainer.py, compute_loss "
        "and training_step; loss/loss_utils.py, ForCausalLMLoss",
        {"optimizer_implementation": "fused", "loss_in_model": True},
        quantized={"double_quantization": False},
    ),
    "hf-trainer-4.46": Recipe(
        "transformers 4.46 and 4.47",
        "training_args.py: optim is adamw_torch, and torch takes foreach; loss/loss_utils.py, "
        "ForCausalLMLoss: logits.float(), then shift_logits.contiguous(); repeat_kv before SDPA",
        _TRANSFORMERS_4 | {"scores_upcast": "shifted"},
        checkpointed={"input_gradients": True},
        quantized={"double_quantization": False},
    ),
    "hf-trainer-4.41": Recipe(
        "transformers 4.41 to 4.45",
        "as 4.30 to 4.40, but modeling_llama.py, LlamaRotaryEmbedding: no tables",
        _TRANSFORMERS_4,
        checkpointed={"input_gradients": True},
        quantized={"double_quantization": False},
    ),
    "hf-trainer-4.30": Recipe(
        "transformers 4.30 to 4.40",
        "training_args.py: optim is adamw_torch, and torch takes foreach; modeling_llama.py, "
        "forward: logits = logits.float(), then shift_logits.contiguous(); repeat_kv before SDPA; "
        "LlamaRotaryEmbedding: cosines and sines of all positions in each layer; "
        "modeling_utils.py, gradient_checkpointing_enable: re-entrant",
        _TRANSFORMERS_4 | {"position_tables": True},
        checkpointed={"input_gradients": True},
        quantized={"double_quantization": False},
    ),
    "hf-trainer-4.3": Recipe(
        "transformers 4.0 to 4.9 with torch before 1.11",
        "optimization.py, AdamW: one parameter at a time; trainer.py: model.zero_grad(), which "
        "sets gradients to zero before torch 2.0; torch 1.10, tools/autograd/derivatives.yaml, "
        "_softmax",
        {
            "optimizer_implementation": "for-loop",
            "gradients_cleared": "zeroed",
            "scores_upcast": "shifted",
            "loss_in_model": True,
            "expanded_heads": True,
            "softmax_inputs": True,
        },
    ),
    "trl-sft": Recipe(
        "trl 1.15 and 1.16",
        "trainer/sft_trainer.py, __init__: adapters of quantised models in bf16, "
        "enable_input_require_grads; trainer/base_config.py: gradient_checkpointing; "
        "trainer/utils.py, add_fused_lm_head",
        _TRL,
        checkpointed={"input_gradients": True},
        quantized=_TRL_QUANTIZED,
    ),
    "trl-dpo": Recipe(
        "trl 1.16",
        "trainer/dpo_trainer.py, __init__: as its SFTTrainer, and no dropout; _compute_loss: the "
        "reference runs after the policy",
        _TRL,
        checkpointed={"input_gradients": True},
        quantized=_TRL_QUANTIZED,
    ),
    "trl-reward": Recipe(
        "trl 1.16",
        "trainer/reward_trainer.py, __init__: no dropout; compute_loss: the model makes no loss",
        {"optimizer_implementation": "fused", "checkpointing": "full"},
        checkpointed={"input_gradients": True},
        quantized=_TRL_QUANTIZED,
    ),
    "trl-grpo": Recipe(
        "trl 1.16",
        "trainer/grpo_trainer.py, __init__: as its SFTTrainer; _generate_and_score_completions: "
        "answers are written and scored before an update",
        _TRL,
        checkpointed={"input_gradients": True},
        quantized=_TRL_QUANTIZED,
    ),
    "trl-sft-0.9": Recipe(
        "trl 0.9 to 0.15 with transformers 4.46 and 4.47",
        "trainer/sft_trainer.py: prepare_model_for_kbit_training, then "
        "peft_module_casting_to_bf16 (trainer/utils.py); the rest as of its Trainer",
        _TRANSFORMERS_4 | {"scores_upcast": "shifted"},
        checkpointed={"input_gradients": True},
        quantized={"kbit_preparation": "norms", "double_quantization": False},
    ),
    # Both run transformers' Trainer, and quantise the scales of 4-bit weights too.
    "llama-factory": Recipe(
        "LLaMA-Factory 0.9.5",
        "train/sft/trainer.py, compute_loss: transformers' own; model/model_utils/"
        "checkpointing.py: on, re-entrant, and hidden states get gradients; model/adapter.py: "
        "trained weights in fp32; hparams/model_args.py: double_quantization, and "
        "upcast_layernorm is off",
        {
            "optimizer_implementation": "fused",
            "checkpointing": "full",
            "reentrant": True,
            "loss_in_model": True,
        },
        checkpointed={"input_gradients": True},
    ),
    "axolotl": Recipe(
        "axolotl 0.19",
        "utils/schemas/training.py: adamw_torch_fused; core/trainers/base.py, compute_loss; "
        "loaders/adapter.py, enable_input_require_grads; loaders/model.py, "
        "_configure_embedding_dtypes: embeddings, head and norms are cast back to the weights' "
        "type after prepare_model_for_kbit_training",
        {"optimizer_implementation": "fused", "loss_in_model": True},
        adapters={"input_gradients": True},
    ),
    "peft-script": Recipe(
        "peft 0.21 with a loop of one's own",
        "docs/source/developer_guides/quantization.md; utils/other.py, "
        "prepare_model_for_kbit_training; torch.optim.AdamW by itself takes foreach",
        {"optimizer_implementation": "foreach", "output_kept": "next", "loss_in_model": True},
        adapters={"input_gradients": True},
        quantized={"kbit_preparation": "all", "double_quantization": False},
    ),
    "accelerate": Recipe(
        "accelerate 1.15",
        "examples/complete_nlp_example.py: outputs = model(**batch), loss = outputs.loss; "
        "torch.optim.AdamW by itself takes foreach",
        {"optimizer_implementation": "foreach", "output_kept": "next", "loss_in_model": True},
    ),
    "lightning": Recipe(
        "lightning 2.5 and 2.6",
        "loops/optimization/automatic.py, Closure: training_step, then zero_grad, then backward",
        {"optimizer_implementation": "foreach", "gradients_cleared": "before-backward"},
    ),
    "nanogpt": Recipe(
        "karpathy/nanoGPT, train.py and model.py",
        "configure_optimizers: fused; logits, loss = model(X, Y); F.cross_entropy of the logits",
        {
            "optimizer_implementation": "fused",
            "scores_upcast": "none",
            "loss_in_model": True,
            "output_kept": "next",
        },
    ),
    "torchvision": Recipe(
        "torchvision 0.28, references/classification and segmentation",
        "train_one_epoch: output = model(image), then zero_grad, then backward",
        {"gradients_cleared": "before-backward", "output_kept": "next"},
    ),
    "diffusers-script": Recipe(
        "diffusers 0.39 to 0.42, examples/text_to_image",
        "train_text_to_image.py: model_pred = unet(...)[0] in the loop; torch.optim.AdamW by "
        "itself takes foreach",
        {"optimizer_implementation": "foreach", "output_kept": "next"},
    ),
}
"""By name. Values that a library shares with the plain step are left out."""


def by_recipe(settings: Settings, workload: Workload) -> Settings:
    """Return the settings with the recipe's defaults where a key is free.

    Raises:
        UserError: the recipe is not one of the workload's objective.
    """
    settings = objectives.with_recipe(settings, workload)
    if settings.recipe is None:
        return settings
    recipe = RECIPES[settings.recipe]
    policy = settings.checkpointing or recipe.settings.get("checkpointing", "none")
    checkpointed = policy != "none" or bool(settings.activation_offload)
    defaults = recipe.defaults(workload.task, checkpointed=checkpointed)
    free = {key: value for key, value in defaults.items() if getattr(settings, key) is None}
    if not checkpointed:
        free.pop("reentrant", None)
    if not implements(settings.optimizer):
        free.pop("optimizer_implementation", None)
    return settings.model_copy(update=free)


def implements(optimizer: str | None) -> bool:
    """Return whether there is a choice of how an optimizer runs; None is the default one."""
    return (optimizer or "adamw") in USUAL_IMPLEMENTATION
