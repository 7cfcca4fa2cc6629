"""Kinds that describe a model: config.json, generation_config.json, adapter_config.json."""

from typing import Any

from trainwright.review.kinds.huggingface import DTYPES
from trainwright.review.kinds.kind import (
    Key,
    Kind,
    among,
    at_least_one,
    key,
    names,
    positive,
    real,
    truth,
    where,
    whole,
    word,
)


def _quantization(value: Any) -> str | None:
    """Return what ``quantization_config.quant_method`` stands for."""
    known = {"bitsandbytes": None, "gptq": "int4", "awq": "int4", "fp8": "fp8", "mxfp4": None}
    name = str(value).lower()
    if name not in known:
        raise ValueError(value)
    return known[name]


MODEL_CONFIG = Kind(
    name="model-config",
    tool="config.json",
    keys={
        "model_type": key("model_type"),
        "_name_or_path": Key("named", word),
        "max_position_embeddings": Key("positions", whole),
        "torch_dtype": Key("checkpoint_dtype", among(DTYPES)),
        "dtype": Key("checkpoint_dtype", among(DTYPES)),
        "use_cache": Key("use_cache", truth, lambda value: value),
        "num_attention_heads": Key("heads", whole),
        "num_key_value_heads": Key("kv_heads", whole),
        "quantization_config.load_in_4bit": Key("quantization", where("nf4")),
        "quantization_config.load_in_8bit": Key("quantization", where("int8")),
        "quantization_config.quant_method": Key("packed", _quantization),
        "quantization_config.bnb_4bit_use_double_quant": Key("double_quantization", truth),
    },
    marks=frozenset({"model_type", "architectures", "transformers_version"}),
    open=("",),
    strict=False,
    traced=True,
)
GENERATION_CONFIG = Kind(
    name="generation-config",
    tool="generation_config.json",
    keys={
        "max_new_tokens": key("new_tokens", whole),
        "use_cache": Key("generates_with_cache", truth),
    },
    marks=frozenset(
        {"max_new_tokens", "do_sample", "temperature", "top_p", "top_k", "_from_model_config"}
    ),
    open=("",),
    strict=False,
)
PEFT = Kind(
    name="peft",
    tool="PEFT adapter_config.json",
    keys={
        "base_model_name_or_path": key("model"),
        "peft_type": Key(
            "adapter",
            among(
                {
                    "lora": "lora",
                    "prompt_tuning": "prompt",
                    "prefix_tuning": "prefix",
                }
            ),
        ),
        "r": key("rank", at_least_one),
        "lora_alpha": key("alpha", positive),
        "lora_dropout": key("dropout", real),
        "target_modules": Key("targets", names),
        "modules_to_save": Key("modules_to_save", lambda value: value or None),
        "use_rslora": Key("variant", where("rslora")),
        "use_dora": Key("variant", where("dora")),
        "num_virtual_tokens": key("virtual_tokens", whole),
    },
    marks=frozenset({"peft_type", "r", "target_modules"}),
    listed="peft",
    moved={"enable_lora": None, "merge_weights": None, "rank": "r"},
    open=(
        *("auto_mapping", "loftq_config", "rank_pattern", "alpha_pattern", "num_virtual_tokens"),
        *(
            "eva_config",
            "corda_config",
            "runtime_config",
            "token_dim",
            "num_transformer_submodules",
        ),
        *("num_attention_heads", "num_layers", "encoder_hidden_size", "prefix_projection"),
        *("prompt_tuning_init", "prompt_tuning_init_text", "tokenizer_name_or_path", "revision"),
        *("peft_version", "inference_mode", "task_type", "base_model_name_or_path", "peft_type"),
    ),
    strict=False,
)
OTHER_ADAPTERS = Kind(
    name="peft-other",
    tool="PEFT adapter_config.json",
    keys={
        "base_model_name_or_path": key("model"),
        "peft_type": (Key("adapter", lambda _value: "other"), key("adapter_type")),
    },
    marks=frozenset(),
    open=("",),
)
"""Of adapters that no plan knows: LoHa, IA3, AdaLoRA and more, each with keys of its own."""
OF_PLANS = ("LORA", "PROMPT_TUNING", "PREFIX_TUNING")
"""``peft_type`` of adapters that a plan knows."""
BITS_AND_BYTES = Kind(
    name="bitsandbytes",
    tool="BitsAndBytesConfig",
    keys={
        "load_in_4bit": Key("quantization", where("nf4")),
        "load_in_8bit": Key("quantization", where("int8")),
        "bnb_4bit_quant_type": Key("bits", word),
        "bnb_4bit_use_double_quant": Key("double_quantization", truth),
        "bnb_4bit_compute_dtype": Key("compute_dtype", word),
        "bnb_4bit_quant_storage": Key("storage_dtype", word),
    },
    marks=frozenset({"load_in_4bit", "load_in_8bit"}),
    open=("llm_int8_threshold", "llm_int8_skip_modules", "llm_int8_enable_fp32_cpu_offload"),
)
"""Found in Python scripts."""
