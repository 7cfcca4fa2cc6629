"""Models of transformers: by configuration or with weights, quantized and adapted as asked."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch
from strict import InputError

EXPANDED = "sdpa_expanded"
"""SDPA with a key and a value for each query head: torch's memory-efficient kernel takes no
grouped heads, and transformers repeats them only where a batch has a mask."""


@dataclass(frozen=True)
class Weights:
    """How the weights come into being."""

    where: str | None
    """Folder or hub id; None starts from random ones."""
    dtype: torch.dtype
    attention: str
    quantization: str
    """none, int8, nf4 or fp4: of frozen weights."""
    nested: bool
    """Whether the scales of 4-bit weights are quantised too."""
    preparation: str
    """none, all or norms: what of the other weights is cast to fp32."""
    shared: bool = False
    """Whether several GPUs divide them: quantised on the CPU, and in a type that is gathered."""


@dataclass(frozen=True)
class Adapters:
    """Low-rank adapters; no targets means every linear layer except the output head."""

    rank: int
    alpha: float
    targets: list[str]
    variant: str
    """lora, rslora or dora."""
    dropout: float
    dtype: str
    """fp32, or weights for the type of the model's own."""
    input_gradients: bool
    """Whether the output of the frozen embeddings gets a gradient."""


def model_class(config: Any) -> Any:
    """Return the auto class of the configuration's architecture.

    Raises:
        InputError: the architecture does something else than these scripts train for.
    """
    import transformers

    kinds = {
        "ForCausalLM": "CausalLM",
        "WithLMHeadModel": "Seq2SeqLM",
        "LMHeadModel": "CausalLM",
        "ForMaskedLM": "MaskedLM",
        "ForPreTraining": "MaskedLM",
        "ForImageClassification": "ImageClassification",
        "ForConditionalGeneration": "Seq2SeqLM",
    }
    name = next(iter(config.architectures or ()), "")
    ends = [kind for ending, kind in kinds.items() if name.endswith(ending)]
    for kind in ends or (() if name else ("Seq2SeqLM", "MaskedLM", "CausalLM")):
        auto = getattr(transformers, f"AutoModelFor{kind}")
        if type(config) in auto._model_mapping:
            return auto
    raise InputError(f"{name or config.model_type}: these scripts have no data and loss for it")


def build_transformer(config: Any, weights: Weights) -> Any:
    """Return the model; a cache of keys and values would only cost memory in training."""
    config.use_cache = False
    kind = model_class(config)
    if weights.attention == EXPANDED:
        _register_expanded()
    options = {"dtype": weights.dtype, "attn_implementation": weights.attention}
    if weights.where is None:
        return kind.from_config(config, **options)
    packed = getattr(config, "quantization_config", None)
    method = packed.get("quant_method") if isinstance(packed, dict) else None
    if weights.quantization != "none":
        options["quantization_config"] = _quantized(weights)
        if weights.shared:
            options["device_map"] = {"": "cpu"}
    elif method in UNPACKED_BY:  # nothing trains such weights as they are
        options["quantization_config"] = _unpacking(UNPACKED_BY[method])
    model = kind.from_pretrained(weights.where, **options)
    model.config.use_cache = False
    return prepared(model, weights)


def _register_expanded() -> None:
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    AttentionInterface.register(EXPANDED, _expanded_attention)
    AttentionMaskInterface.register(EXPANDED, sdpa_mask)


def _expanded_attention(module: Any, query: Any, key: Any, value: Any, mask: Any, **options: Any):
    """Attend as sdpa does; the module that it sees has no groups of heads."""
    from transformers.integrations.sdpa_attention import repeat_kv, sdpa_attention_forward

    groups = query.shape[1] // key.shape[1]
    ungrouped = SimpleNamespace(is_causal=getattr(module, "is_causal", True))
    key, value = repeat_kv(key, groups), repeat_kv(value, groups)
    return sdpa_attention_forward(ungrouped, query, key, value, mask, **options)


def prepared(model: Any, weights: Weights) -> Any:
    """Return the model, what is not quantised cast to fp32 as the plan says."""
    if weights.preparation == "none":
        return model
    from peft import prepare_model_for_kbit_training

    model = prepare_model_for_kbit_training(model, use_gradient_checkpointing=False)
    if weights.preparation == "norms":
        model.get_input_embeddings().to(weights.dtype)
        model.get_output_embeddings().to(weights.dtype)
    return model


def adapted(model: Any, adapters: Adapters) -> Any:
    """Return the model frozen, with fp32 adapters beside its linear layers.

    Raises:
        InputError: peft is missing, or no layer has one of the names.
    """
    try:
        from peft import LoraConfig, get_peft_model
    except ImportError as error:
        raise InputError("LoRA needs peft: pip install peft") from error
    whole = adapters.targets == ["all-linear"]  # PEFT knows the word, not a list of it
    targets = "all-linear" if whole else adapters.targets or _usual(model)
    lora = LoraConfig(
        r=adapters.rank,
        lora_alpha=adapters.alpha,
        lora_dropout=adapters.dropout,
        target_modules=targets,
        use_rslora=adapters.variant == "rslora",
        use_dora=adapters.variant == "dora",
    )
    dtype = model.dtype
    if adapters.input_gradients:
        model.enable_input_require_grads()
    try:
        model = get_peft_model(model, lora)
    except ValueError as error:
        raise InputError(f"lora: {' '.join(str(error).split())[:300]}") from error
    for name, parameter in model.named_parameters():
        if adapters.dtype == "weights" and parameter.requires_grad and "magnitude" not in name:
            parameter.data = parameter.data.to(dtype)
    return model


EXPERTS = {"gate", "gate_proj", "up_proj", "down_proj", "w1", "w2", "w3"}
"""What PEFT takes for the experts of a mixture and their router."""


REFUSING = ("falcon_h1", "falcon_mamba", "mamba", "mamba2", "nemotron_h")
REFUSED = {"out_proj", "conv1d"}
"""Model types with layers that PEFT 0.21 refuses to adapt, and those layers."""


def _usual(model: Any) -> str | list[str]:
    """Return every linear layer but the head, the experts of a mixture and what PEFT refuses.

    "all-linear" would adapt stacked experts too, through a copy of all of them at every use.
    """
    spared = REFUSED if model.config.model_type in REFUSING else set()
    if any(type(module).__name__.endswith("Experts") for module in model.modules()):
        spared = spared | EXPERTS
    if not spared:
        return "all-linear"
    head = model.get_output_embeddings()
    named = ((name.rpartition(".")[2], module) for name, module in model.named_modules())
    linear = {
        name for name, module in named if isinstance(module, torch.nn.Linear) and module is not head
    }
    return sorted(linear - spared)


def prompted(model: Any, task: str, tokens: int) -> Any:
    """Return the model frozen, with trained tokens before the text: prompt or prefix tuning.

    Raises:
        InputError: peft is missing, or the model does not take such tokens.
    """
    try:
        from peft import PrefixTuningConfig, PromptTuningConfig, get_peft_model
    except ImportError as error:
        raise InputError("virtual tokens need peft: pip install peft") from error
    kind = PromptTuningConfig if task == "prompt" else PrefixTuningConfig
    try:
        return get_peft_model(model, kind(task_type="CAUSAL_LM", num_virtual_tokens=tokens))
    except ValueError as error:
        raise InputError(f"virtual_tokens: {' '.join(str(error).split())[:300]}") from error


UNPACKED_BY = {
    "mxfp4": "Mxfp4Config",
    "fp8": "FineGrainedFP8Config",
    "compressed-tensors": "CompressedTensorsConfig",
}
"""How a checkpoint is packed -> the class of transformers that unpacks it as it is loaded."""


def _unpacking(name: str) -> Any:
    import transformers

    try:
        return getattr(transformers, name)(dequantize=True)
    except ImportError as error:
        raise InputError(f"{name}: {' '.join(str(error).split())[:300]}") from error


def _quantized(weights: Weights) -> Any:
    from importlib.util import find_spec

    if find_spec("bitsandbytes") is None:
        raise InputError("quantized weights need bitsandbytes: pip install bitsandbytes")
    import transformers

    if weights.quantization == "int8":
        return transformers.BitsAndBytesConfig(load_in_8bit=True)
    return transformers.BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type=weights.quantization,
        bnb_4bit_use_double_quant=weights.nested,
        bnb_4bit_compute_dtype=weights.dtype,
        # Another type than that of the computing would be cast when it is gathered.
        bnb_4bit_quant_storage=weights.dtype if weights.shared else torch.uint8,
    )
