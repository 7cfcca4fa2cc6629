"""The cache of keys and values by architecture: what each layer keeps of a request.

Everything follows from a model's ``config.json``; the field's names for the layers are kept.
Sources of the rules: the model definitions of transformers 5.23 (``models/*/configuration_*``,
``cache_utils.py``), of vLLM (``vllm/v1/kv_cache_interface.py``) and of llama.cpp
(``src/llama-hparams.cpp``); ``tests/accuracy/kv.csv`` compares with published figures.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["full", "window", "latent", "state", "hybrid", "shared", "none"]
"""``latent``: multi-head latent attention (DeepSeek-V2, arXiv 2405.04434); ``state``: linear
attention or a state-space layer; ``hybrid``: attention and state side by side; ``shared``:
reads the cache of another layer."""


@dataclass(frozen=True, slots=True)
class Layer:
    """What one layer keeps of one request, in elements; a layer may keep several."""

    heads: int = 0
    """KV heads; 0 without attention, 1 for a latent."""
    key: int = 0
    """Elements of a head's key for a token; of a latent: the compressed keys and values."""
    value: int = 0
    """Elements of a head's value; of a latent: the rotary part of the key."""
    window: int | None = None
    """Tokens that attention looks back on; None: all."""
    latent: bool = False
    channels: int = 0
    """Of a causal convolution whose last inputs are kept."""
    kernel: int = 0
    """Width of that convolution."""
    state: int = 0
    """Elements of recurrent state."""
    shared: bool = False

    @property
    def elements(self) -> int:
        """Elements that a token adds, as long as the window lasts."""
        return self.heads * (self.key + self.value)

    @property
    def kind(self) -> Kind:
        """What the field calls such a layer."""
        if self.shared:
            return "shared"
        if self.state or self.channels:
            return "hybrid" if self.heads else "state"
        if not self.heads:
            return "none"
        if self.latent:
            return "latent"
        return "full" if self.window is None else "window"


@dataclass(frozen=True, slots=True)
class CacheShape:
    """The layers of a model that generates, in order."""

    layers: tuple[Layer, ...]
    query_heads: int

    @property
    def elements(self) -> int:
        """Elements that a token adds to all layers, within every window."""
        return sum(layer.elements for layer in self.layers)

    @property
    def lasting_elements(self) -> int:
        """Elements that a token adds once every window is full."""
        return sum(layer.elements for layer in self.layers if layer.window is None)

    @property
    def windows(self) -> tuple[int, ...]:
        """The distinct windows, shortest first."""
        return tuple(sorted({layer.window for layer in self.layers if layer.window is not None}))

    @property
    def has_state(self) -> bool:
        """Whether a layer keeps a state of constant size."""
        return any(layer.state or layer.channels for layer in self.layers)

    @property
    def attention(self) -> str:
        """Name of the attention: mha, gqa, mqa or mla; empty without any."""
        attending = [layer for layer in self.layers if layer.heads]
        if not attending:
            return ""
        if any(layer.latent for layer in attending):
            return "mla"
        fewest = min(layer.heads for layer in attending)
        return "mqa" if fewest == 1 else "gqa" if fewest < self.query_heads else "mha"

    def counted(self) -> dict[Kind, int]:
        """Return how many layers there are of each kind, in order of appearance."""
        counts: dict[Kind, int] = {}
        for layer in self.layers:
            counts[layer.kind] = counts.get(layer.kind, 0) + 1
        return counts


def read(config: Mapping[str, Any]) -> CacheShape | None:
    """Return what the layers of a model keep, or None where it does not generate by itself.

    ``config`` is a ``config.json``; a text model within another is found. Also None where the
    configuration does not say how many layers and heads there are.
    """
    config = text_config(config)
    if not generates(config):
        return None
    count = number(config, "num_hidden_layers", "n_layer", "n_layers", "num_layers")
    heads = number(config, "num_attention_heads", "n_head", "n_heads")
    hidden = number(config, "hidden_size", "n_embd", "d_model")
    kinds = _kinds(config, count) if 0 < count <= MOST_LAYERS else ()
    if not kinds or not heads or not hidden or len(kinds) != count:
        return None
    unshared = count - number(config, "num_kv_shared_layers")
    layers = tuple(
        Layer(shared=True) if index >= unshared else _layer(config, kind, index, heads, hidden)
        for index, kind in enumerate(kinds)
    )
    return CacheShape(layers, heads)


def generates(config: Mapping[str, Any]) -> bool:
    """Return whether a model may generate with a cache: all but what is known not to."""
    names = text_config(config).get("architectures")
    architecture = str(names[0]) if isinstance(names, list) and names else ""
    return not config.get("is_encoder_decoder") and not architecture.endswith(_NO_DECODER)


MOST_LAYERS = 4096
"""A configuration that names more is none; assumed, the deepest published have 126."""

_NO_DECODER = (
    "MaskedLM",
    "ForPreTraining",
    "Classification",
    "ForQuestionAnswering",
    "ConditionalGeneration",
    "WithLMHeadModel",
    "UNet2DConditionModel",
)
"""Ends of the names of architectures that keep no cache, or one of another kind (T5)."""

_TEXT = ("text_config", "llm_config", "language_config")


def text_config(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the text model's part of a configuration that has several."""
    for key in _TEXT:
        if isinstance(config.get(key), dict) and "num_hidden_layers" in config[key]:
            return dict(config[key])
    return config


def _layer(config: Mapping[str, Any], kind: str, index: int, heads: int, hidden: int) -> Layer:
    match kind:
        case "full_attention" | "attention" | "compressed_attention":
            return _attention(config, heads, hidden, None)
        case "sliding_attention":
            return _attention(config, heads, hidden, number(config, "sliding_window") or None)
        case "chunked_attention":
            return _attention(config, heads, hidden, number(config, "attention_chunk_size"))
        case "linear_attention" | "mamba" | "mamba2" | "conv":
            return _state(config)
        case "hybrid":
            attention, state = _attention(config, heads, hidden, None), _state(config)
            return Layer(
                attention.heads,
                attention.key,
                attention.value,
                channels=state.channels,
                kernel=state.kernel,
                state=state.state,
            )
    return Layer()


def _attention(config: Mapping[str, Any], heads: int, hidden: int, window: int | None) -> Layer:
    if rank := number(config, "kv_lora_rank"):
        return Layer(1, rank, number(config, "qk_rope_head_dim"), window, latent=True)
    size = number(config, "head_dim") or number(config, "attention_head_dim") or hidden // heads
    return Layer(_kv_heads(config, heads), size, number(config, "v_head_dim") or size, window)


def _kv_heads(config: Mapping[str, Any], heads: int) -> int:
    """Return the KV heads; Falcon and GPT-BigCode say ``multi_query`` instead."""
    if config.get("multi_query") and not config.get("new_decoder_architecture"):
        return 1
    own = number(config, "num_key_value_heads", "num_kv_heads", "n_head_kv", "num_key_value_groups")
    return own or heads


def _state(config: Mapping[str, Any]) -> Layer:
    """Return what a layer without keys keeps: the last inputs of a convolution, and a state.

    Gated DeltaNet (Qwen3-Next), Mamba-2 (Falcon-H1, Granite 4, Nemotron-H), Mamba (Jamba),
    and short convolutions (LFM2).
    """
    if heads := number(config, "linear_num_value_heads"):
        key, value = (
            number(config, "linear_key_head_dim"),
            number(config, "linear_value_head_dim"),
        )
        channels = 2 * number(config, "linear_num_key_heads") * key + heads * value
        kernel = number(config, "linear_conv_kernel_dim")
        return Layer(channels=channels, kernel=kernel, state=heads * key * value)
    size = number(config, "mamba_d_state", "ssm_state_size", "state_size")
    kernel = number(config, "mamba_d_conv", "conv_kernel", "conv_kernel_size")
    hidden = number(config, "hidden_size")
    if mamba2 := number(config, "mamba_n_heads", "mamba_num_heads"):
        width = number(config, "mamba_d_head", "mamba_head_dim")
        inner = number(config, "mamba_d_ssm") or mamba2 * width
        inner = inner or number(config, "mamba_expand") * hidden
        groups = number(config, "mamba_n_groups", "n_groups") or 1
        return Layer(channels=inner + 2 * groups * size, kernel=kernel, state=inner * size)
    if size:
        inner = (number(config, "mamba_expand", "expand") or 2) * hidden
        return Layer(channels=inner, kernel=kernel, state=inner * size)
    return Layer(
        channels=number(config, "conv_dim") or hidden, kernel=number(config, "conv_L_cache")
    )


def _kinds(config: Mapping[str, Any], count: int) -> tuple[str, ...]:
    """Return the kind of each layer, in the words of transformers' ``layer_types``."""
    for key in ("layer_types", "layers_block_type"):
        if isinstance(config.get(key), list):
            return tuple(str(kind) for kind in config[key])
    if isinstance(pattern := config.get("hybrid_override_pattern"), str):
        return tuple(_NEMOTRON.get(letter, "mlp") for letter in pattern[: count + 1])
    model = str(config.get("model_type", "")).removesuffix("_text")
    if (period := _PERIODS.get(model)) is not None:
        key, usual, others = period
        every = number(config, key) or usual
        return tuple(others if (i + 1) % every else "full_attention" for i in range(count))
    if every := number(config, "attn_layer_period"):
        offset = number(config, "attn_layer_offset")
        return tuple("attention" if i % every == offset else "mamba" for i in range(count))
    if isinstance(attending := config.get("attn_layer_indices"), list):
        named = {each for each in attending if isinstance(each, int)}
        return tuple("attention" if i in named else "mamba" for i in range(count))
    if model == "falcon_h1":
        return ("hybrid",) * count
    if not number(config, "sliding_window") or config.get("use_sliding_window") is False:
        return ("full_attention",) * count
    if "use_sliding_window" in config:  # Qwen2 and 3: the first layers see everything
        first = number(config, "max_window_layers")
        return tuple("full_attention" if i < first else "sliding_attention" for i in range(count))
    return ("sliding_attention",) * count


_PERIODS = {
    "gemma2": ("", 2, "sliding_attention"),
    "gemma3": ("sliding_window_pattern", 6, "sliding_attention"),
    "gemma3n": ("", 5, "sliding_attention"),
    "gpt_oss": ("", 2, "sliding_attention"),
    "cohere2": ("sliding_window_pattern", 4, "sliding_attention"),
    "exaone4": ("sliding_window_pattern", 4, "sliding_attention"),
    "qwen3_next": ("full_attention_interval", 4, "linear_attention"),
    "qwen3_5": ("full_attention_interval", 4, "linear_attention"),
    "qwen3_5_moe": ("full_attention_interval", 4, "linear_attention"),
}
"""Model type -> (key that says every how many layers sees everything, default, the others)."""

_NEMOTRON = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}


def number(config: Mapping[str, Any], *keys: str) -> int:
    """Return the first of these keys that has a positive whole number; 0 without any."""
    for key in keys:
        value = config.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return 0
