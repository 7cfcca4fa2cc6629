"""The formula of the cache against what transformers' own cache holds after real tokens."""

import inspect
from typing import Any

import pytest

from trainwright.estimate.serving import kv
from trainwright.estimate.serving.engines import ENGINES, page_tokens, served_bytes, token_bytes

SMALL: dict[str, Any] = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 256,
}
MODELS: dict[str, dict[str, Any]] = {
    "llama": {"architectures": ["LlamaForCausalLM"]},
    "mistral": {"architectures": ["MistralForCausalLM"], "sliding_window": 16},
    "gemma3_text": {
        "architectures": ["Gemma3ForCausalLM"],
        "sliding_window": 16,
        "sliding_window_pattern": 2,
    },
    "gpt_oss": {
        "architectures": ["GptOssForCausalLM"],
        "sliding_window": 16,
        "num_local_experts": 2,
        "num_experts_per_tok": 1,
    },
    "qwen2": {
        "architectures": ["Qwen2ForCausalLM"],
        "use_sliding_window": True,
        "sliding_window": 16,
        "max_window_layers": 3,
    },
    "deepseek_v2": {
        "architectures": ["DeepseekV2ForCausalLM"],
        "num_key_value_heads": 4,
        "kv_lora_rank": 12,
        "q_lora_rank": 16,
        "qk_nope_head_dim": 8,
        "qk_rope_head_dim": 4,
        "head_dim": 4,
        "v_head_dim": 8,
        "n_routed_experts": 2,
        "num_experts_per_tok": 1,
        "moe_intermediate_size": 16,
        "n_shared_experts": 1,
        "n_group": 1,
        "topk_group": 1,
        "first_k_dense_replace": 1,
    },
    "gpt_bigcode": {
        "architectures": ["GPTBigCodeForCausalLM"],
        "multi_query": True,
        "n_embd": 32,
        "n_head": 4,
        "n_layer": 4,
        "n_positions": 256,
    },
    "falcon": {
        "architectures": ["FalconForCausalLM"],
        "multi_query": True,
        "num_kv_heads": 4,
        "head_dim": None,
    },
    "jamba": {
        "architectures": ["JambaForCausalLM"],
        "attn_layer_period": 2,
        "attn_layer_offset": 1,
        "num_experts": 1,
        "mamba_d_state": 8,
        "mamba_d_conv": 4,
        "mamba_expand": 2,
        "mamba_dt_rank": 4,
        "use_mamba_kernels": False,
    },
    "qwen3_next": {
        "architectures": ["Qwen3NextForCausalLM"],
        "full_attention_interval": 2,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 4,
        "linear_key_head_dim": 8,
        "linear_value_head_dim": 8,
        "linear_conv_kernel_dim": 4,
        "num_experts": 2,
        "num_experts_per_tok": 1,
        "moe_intermediate_size": 16,
        "shared_expert_intermediate_size": 16,
    },
}
STATES = {"jamba", "qwen3_next"}

slow = pytest.mark.slow  # each builds a model and generates with it


def config(name: str) -> dict[str, Any]:
    fields = SMALL | {"model_type": name} | MODELS[name]
    return {key: value for key, value in fields.items() if value is not None}


def held(name: str, requests: int, prompt: int, new: int) -> int:
    """Return the bytes that the library's cache holds in fp32 after a prompt and some tokens."""
    import torch
    import transformers

    fields = config(name)
    own = transformers.models.auto.configuration_auto.CONFIG_MAPPING[name].from_dict(fields)
    model = transformers.AutoModelForCausalLM.from_config(own, dtype=torch.float32).eval()
    cache = transformers.DynamicCache(config=own)
    known = inspect.signature(model.forward).parameters
    named = "cache" if "cache" in known else "past_key_values"  # renamed in transformers 5.24
    with torch.no_grad():
        for length in (prompt, *[1] * new):
            model(torch.zeros((requests, length), dtype=torch.int64), **{named: cache})
    storages: dict[int, int] = {}
    for layer in cache.layers:
        tensors = [getattr(layer, "keys", None), getattr(layer, "values", None)]
        for states in ("conv_states", "recurrent_states"):
            tensors += getattr(layer, states, {}).values()
        for tensor in tensors:
            if tensor is not None:
                storage = tensor.untyped_storage()
                storages[storage.data_ptr()] = storage.nbytes()
    return sum(storages.values())


QUICK = ("gemma3_text", "deepseek_v2")
"""Whole and sliding layers with grouped heads, and latent attention: every kind of layer."""


@pytest.mark.parametrize(
    ("name", "tokens"),
    [
        pytest.param(name, tokens, marks=() if name in QUICK and sum(tokens) > 16 else slow)
        for name in MODELS
        if name not in STATES
        for tokens in ((5, 3), (12, 10))
    ],
)
def test_attention_holds_what_transformers_holds(name: str, tokens: tuple[int, int]) -> None:
    shape = kv.read(config(name))
    assert shape is not None
    assert served_bytes(shape, ENGINES["transformers"], "fp32", 2, sum(tokens)) == held(
        name, 2, *tokens
    )


@slow
@pytest.mark.parametrize("name", sorted(STATES))
def test_state_does_not_grow(name: str) -> None:
    shape = kv.read(config(name))
    assert shape is not None
    assert shape.has_state
    short, long = held(name, 1, 8, 1), held(name, 1, 8, 9)
    assert long - short == 8 * token_bytes(shape, ENGINES["transformers"].forms["fp32"])


def test_encoders_keep_nothing() -> None:
    assert kv.read(SMALL | {"architectures": ["BertForMaskedLM"]}) is None
    assert kv.read(SMALL | {"is_encoder_decoder": True}) is None
    assert kv.read({}) is None


@pytest.mark.parametrize(
    "broken",
    [
        {"architectures": True},
        {"architectures": [None]},
        {"layer_types": [1, None]},
        {"num_hidden_layers": 10**9},
        {"num_attention_heads": "four"},
        {"sliding_window": -1, "text_config": 3},
        {"hybrid_override_pattern": "M" * 10**6},
    ],
)
def test_nothing_in_a_configuration_is_believed(broken: dict[str, Any]) -> None:
    found = kv.read(config("llama") | broken)
    assert found is None or len(found.layers) == 4


def test_layers_that_share_a_cache_add_nothing() -> None:
    alone = kv.read(config("llama"))
    sharing = kv.read(config("llama") | {"num_kv_shared_layers": 1})
    assert alone is not None
    assert sharing is not None
    assert sharing.counted() == {"full": 3, "shared": 1}
    assert sharing.elements == alone.elements * 3 // 4


def test_pages_round_up() -> None:
    shape = kv.read(config("llama"))
    assert shape is not None
    engine = ENGINES["vllm"]
    assert page_tokens(shape, engine, "bf16") == 16
    of_17 = served_bytes(shape, engine, "bf16", 1, 17)
    assert of_17 == served_bytes(shape, engine, "bf16", 1, 32)
    assert served_bytes(shape, engine, "bf16", 3, 17) == 3 * of_17


def test_int8_of_vllm_keeps_a_scale_for_each_head_and_token() -> None:
    shape = kv.read(config("llama"))
    assert shape is not None
    # vllm/v1/kv_cache_interface.py: 2 * block * heads * (size + 4) for each layer.
    assert served_bytes(shape, ENGINES["vllm"], "int8", 1, 16) == 4 * 2 * 16 * 2 * (8 + 4)
