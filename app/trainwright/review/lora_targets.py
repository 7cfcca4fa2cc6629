"""The layers that PEFT adapts where nobody names any."""

_QV = ("q_proj", "v_proj")
_FUSED = ("query_key_value",)
_BERT = ("query", "value")
DEFAULTS = {
    **dict.fromkeys(("t5", "mt5"), ("q", "v")),
    **dict.fromkeys(("bart", "opt", "gptj", "gpt_neo", "llama", "llama4", "mistral"), _QV),
    **dict.fromkeys(("mixtral", "stablelm", "gemma", "gemma2", "gemma3_text"), _QV),
    **dict.fromkeys(("qwen2", "qwen3"), _QV),
    **dict.fromkeys(("bert", "roberta", "xlm-roberta", "electra", "layoutlm"), _BERT),
    **dict.fromkeys(("bloom", "gpt_neox", "chatglm", "falcon"), _FUSED),
    **dict.fromkeys(("RefinedWebModel", "RefinedWeb"), _FUSED),
    **dict.fromkeys(("gpt2", "gpt_bigcode"), ("c_attn",)),
    "blip-2": ("q", "v", "q_proj", "v_proj"),
    "deberta-v2": ("query_proj", "value_proj"),
    "deberta": ("in_proj",),
    "mpt": ("Wqkv",),
    "btlm": ("c_proj", "c_attn"),
    "codegen": ("qkv_proj",),
    "phi": ("q_proj", "v_proj", "fc1", "fc2"),
    "nemotron_h": ("q_proj", "k_proj", "v_proj", "o_proj"),
    "rwkv": ("key", "value", "receptance", "output"),
    "rwkv7": ("r_proj", "k_proj", "v_proj", "o_proj", "key", "value"),
}
"""``model_type`` -> names of layers. peft 0.21.2, utils/constants.py,
TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING; gemma4's is a pattern, and left out."""
