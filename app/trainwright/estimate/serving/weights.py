"""Bytes of served weights in the formats of engines: which matrices are quantised, and how.

The matrices follow from a decoder's ``config.json``; what is left of the parameter count are
norms and biases, which no format quantises. A count that does not add up gives no answer.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any, Literal

from trainwright.estimate.serving import kv

Role = Literal[
    "embedding", "positions", "head", "query", "key", "value", "qkv", "output", "gate", "up",
    "down", "router", "other",
]  # fmt: skip

UNEXPLAINED = 0.005
"""Largest share of the parameters that norms and biases may be; assumed, 0.3 % in GPT-2."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """One weight, as the field names it."""

    role: Role
    layer: int
    """-1 before and after the layers."""
    rows: int
    """Outputs."""
    columns: int
    """Inputs: what blocks and groups run along."""
    copies: int = 1
    """Experts; they are one tensor."""

    @property
    def elements(self) -> int:
        """Weights in it."""
        return self.rows * self.columns * self.copies


@dataclass(frozen=True, slots=True)
class Inventory:
    """All weights of a decoder."""

    matrices: tuple[Matrix, ...]
    vectors: int
    """Elements of norms and biases."""
    layers: int
    groups: int
    """Query heads for each KV head."""
    experts: int
    family: str
    tied: bool
    """Whether the head is the embedding."""
    chosen: int = 0
    """Experts that a token goes to; 0 without experts."""

    @property
    def elements(self) -> int:
        """Parameters."""
        return self.vectors + sum(matrix.elements for matrix in self.matrices)


@dataclass(frozen=True, slots=True)
class Scheme:
    """Bits of packed weights, and what a block of them shares."""

    bits: int
    block: tuple[int, int]
    """Rows and columns of a block; 0 for all of them."""
    shared_bits: int
    """Of a block's scale and zero."""

    def nbytes(self, matrix: Matrix) -> int:
        """Return the bytes of a matrix."""
        rows, columns = self.block[0] or matrix.rows, self.block[1] or matrix.columns
        blocks = -(-matrix.rows // rows) * -(-matrix.columns // columns) * matrix.copies
        return ceil(Fraction(self.bits * matrix.elements + self.shared_bits * blocks, 8))


@dataclass(frozen=True, slots=True)
class Packed:
    """Weights of one type within a quantised model."""

    type: str
    """``q4_K``, ``int4``; ``16-bit`` and ``f32`` for what is not quantised."""
    matrices: int
    elements: int
    nbytes: int

    @property
    def formula(self) -> str:
        """Weights times bits, as a derivation shows it."""
        return f"{self.type}: {self.elements:,} · {8 * self.nbytes / self.elements:.4g} bit"


@dataclass(frozen=True, slots=True)
class Weights:
    """A quantised model."""

    parts: tuple[Packed, ...]
    """Largest first."""
    elements: int
    source: str
    read_share: float = 1.0
    """Bytes of the matrices that every token is multiplied with, against 16 bits."""

    @property
    def nbytes(self) -> int:
        """Bytes of all weights."""
        return sum(part.nbytes for part in self.parts)

    @property
    def bits_each(self) -> float:
        """Bits a parameter, as ``llama-quantize`` prints them."""
        return 8 * self.nbytes / self.elements


# Matrices


def inventory(config: Mapping[str, Any], parameters: int) -> Inventory | None:
    """Return the weights of a decoder with so many parameters, or None where they do not add up."""
    shape = kv.read(config)
    config = kv.text_config(config)
    if shape is None or shape.has_state or any(layer.shared for layer in shape.layers):
        return None
    inside = [matrix for at in range(len(shape.layers)) for matrix in _layer(config, shape, at)]
    hidden, words = kv.number(config, "hidden_size", "n_embd"), kv.number(config, "vocab_size")
    outside = [Matrix("embedding", -1, words, hidden)]
    if positions := kv.number(config, "n_positions") if "n_embd" in config else 0:
        outside.append(Matrix("positions", -1, positions, hidden))
    for tied in (False, True):
        head = () if tied else (Matrix("head", -1, words, hidden),)
        matrices = (*outside, *inside, *head)
        vectors = parameters - sum(matrix.elements for matrix in matrices)
        if 0 <= vectors <= UNEXPLAINED * parameters:
            heads = min(layer.heads for layer in shape.layers)
            experts = _experts(config)
            family = str(config.get("model_type", ""))
            return Inventory(
                matrices,
                vectors,
                len(shape.layers),
                shape.query_heads // heads,
                experts,
                family,
                tied,
                kv.number(config, *_CHOSEN) if experts else 0,
            )
    return None


def _layer(config: Mapping[str, Any], shape: kv.CacheShape, at: int) -> list[Matrix]:
    return [*_attention(config, shape, at), *_mlp(config, at)]


def _attention(config: Mapping[str, Any], shape: kv.CacheShape, at: int) -> list[Matrix]:
    layer, heads = shape.layers[at], shape.query_heads
    hidden = kv.number(config, "hidden_size", "n_embd")
    if layer.latent:
        rope, plain = kv.number(config, "qk_rope_head_dim"), kv.number(config, "qk_nope_head_dim")
        value, rank = kv.number(config, "v_head_dim"), kv.number(config, "q_lora_rank")
        queries = heads * (rope + plain)
        own = (
            [Matrix("other", at, rank, hidden), Matrix("query", at, queries, rank)]
            if rank
            else [Matrix("query", at, queries, hidden)]
        )
        return [
            *own,
            Matrix("other", at, layer.elements, hidden),
            Matrix("value", at, heads * (plain + value), layer.key),
            Matrix("output", at, hidden, heads * value),
        ]
    keys, values = layer.heads * layer.key, layer.heads * layer.value
    output = Matrix("output", at, hidden, heads * layer.value)
    if config.get("model_type") in _FUSED:
        return [Matrix("qkv", at, heads * layer.key + keys + values, hidden), output]
    return [
        Matrix("query", at, heads * layer.key, hidden),
        Matrix("key", at, keys, hidden),
        Matrix("value", at, values, hidden),
        output,
    ]


_FUSED = {"gpt2", "gpt_neox", "falcon", "phi3", "gpt_bigcode", "bloom"}
"""Families whose queries, keys and values are one matrix."""
_PLAIN = {"gpt2", "gpt_neox", "falcon", "phi", "gpt_bigcode", "bloom", "starcoder2", "opt"}
"""Families whose MLP has no gate."""


_CHOSEN = ("num_experts_per_tok", "experts_per_token", "moe_topk")


def _experts(config: Mapping[str, Any]) -> int:
    return kv.number(config, "num_local_experts", "num_experts", "n_routed_experts")


def _mlp(config: Mapping[str, Any], at: int) -> list[Matrix]:
    hidden = kv.number(config, "hidden_size", "n_embd")
    width = kv.number(config, "intermediate_size", "n_inner", "ffn_hidden_size") or 4 * hidden
    experts = _experts(config)
    every, dense = kv.number(config, "decoder_sparse_step") or 1, config.get("mlp_only_layers")
    plain = isinstance(dense, list) and at in dense
    first = kv.number(config, "first_k_dense_replace")
    if not experts or at < first or plain or (at + 1) % every:
        return _gated(config, at, width, 1)
    own = kv.number(config, "moe_intermediate_size") or width
    found = [Matrix("router", at, experts, hidden), *_gated(config, at, own, experts)]
    shared = kv.number(config, "shared_expert_intermediate_size")
    shared = shared or kv.number(config, "n_shared_experts") * own
    return found + (_gated(config, at, shared, 1) if shared else [])


def _gated(config: Mapping[str, Any], at: int, width: int, copies: int) -> list[Matrix]:
    hidden = kv.number(config, "hidden_size", "n_embd")
    up = Matrix("up", at, width, hidden, copies)
    down = Matrix("down", at, hidden, width, copies)
    if config.get("model_type") in _PLAIN:
        return [up, down]
    return [Matrix("gate", at, width, hidden, copies), up, down]


# Formats

_BITS16 = "16-bit"
_OUTSIDE: tuple[Role, ...] = ("embedding", "positions", "head", "router")
"""What int8, int4 and fp8 checkpoints leave in 16 bits."""

SOURCES = {
    "int8": "LLM.int8, arXiv 2208.07339; bitsandbytes Int8Params: a fp32 scale a row",
    "int4": "AWQ, arXiv 2306.00978: fp16 scales and 4-bit zeros for 128 inputs (WQLinear_GEMM)",
    "nf4": "QLoRA, arXiv 2305.14314, section 3: scales of 64 in 8 bits, of 256 such in fp32",
    "fp8": "vLLM: compressed-tensors, W8A8 Fp8, per channel; a row's scale assumed fp32",
    "mxfp4": "OCP Microscaling Formats 1.0: an exponent of 8 bits for 32 weights; experts alone",
    "gguf": "ggml: ggml-common.h; llama.cpp: src/llama-quant.cpp, llama_tensor_get_type",
}

WHOLE = "config.json: the matrices"
"""Source of weights that are not quantised."""
CHECKPOINT = "config.json: quantization_config"
"""Source of what a checkpoint states itself."""

SCHEMES = {
    "int8": Scheme(8, (1, 0), 32),
    "fp8": Scheme(8, (1, 0), 32),
    "int4": Scheme(4, (1, 128), 16 + 4),
    "mxfp4": Scheme(4, (1, 32), 8),
}
"""Formats whose blocks are rectangles, as ``SOURCES`` states them."""

GGML = {
    "q2_K": (256, 84),
    "q3_K": (256, 110),
    "q4_0": (32, 18),
    "q4_1": (32, 20),
    "q4_K": (256, 144),
    "q5_0": (32, 22),
    "q5_1": (32, 24),
    "q5_K": (256, 176),
    "q6_K": (256, 210),
    "q8_0": (32, 34),
    "mxfp4": (32, 17),
}
"""Type -> (weights of a block, its bytes): the structs of ``ggml-common.h``."""

_BASE = {
    "q2_k": "q2_K",
    "q3_k_s": "q3_K",
    "q3_k_m": "q3_K",
    "q3_k_l": "q3_K",
    "q4_0": "q4_0",
    "q4_k_s": "q4_K",
    "q4_k_m": "q4_K",
    "q5_k_s": "q5_K",
    "q5_k_m": "q5_K",
    "q6_k": "q6_K",
    "q8_0": "q8_0",
    "mxfp4_moe": "mxfp4",
}
"""File type -> the type of most matrices."""

GGUF = tuple(_BASE)


def quantized(model: Inventory, format: str, scheme: Scheme | None = None) -> Weights:
    """Return the model in a format: int8, int4, nf4, fp8, mxfp4 or a GGUF file type.

    Args:
        model: its matrices.
        format: of those that are packed.
        scheme: of a checkpoint that states its own.

    Raises:
        KeyError: the format is not known.
    """
    gguf = format in _BASE

    def size(name: str, matrix: Matrix) -> int:
        return _bytes(name, matrix) if scheme is None or name != format else scheme.nbytes(matrix)

    read = [matrix for matrix in model.matrices if model.tied or matrix.role != "embedding"]
    counts: Counter[str] = Counter()
    elements: Counter[str] = Counter()
    nbytes: Counter[str] = Counter()
    for matrix in model.matrices:
        name = _type(model, format, matrix)
        counts[name] += 1
        elements[name] += matrix.elements
        nbytes[name] += size(name, matrix)
    name, width = ("f32", 4) if gguf else (_BITS16, 2)
    elements[name] += model.vectors
    nbytes[name] += model.vectors * width
    parts = [Packed(name, counts[name], elements[name], nbytes[name]) for name in nbytes]
    share = sum(size(_type(model, format, one), one) for one in read) / (
        2 * sum(one.elements for one in read)
    )
    ordered = tuple(sorted(parts, key=lambda part: -part.nbytes))
    source = SOURCES["gguf" if gguf else format] if scheme is None else CHECKPOINT
    return Weights(ordered, model.elements, source, share)


def whole(model: Inventory, width: int) -> Weights:
    """Return the model as it is, in ``width`` bytes a weight."""
    name, count = _BITS16 if width == 2 else "f32", len(model.matrices)
    packed = Packed(name, count, model.elements, width * model.elements)
    return Weights((packed,), model.elements, WHOLE, width / 2)


def matrix_bytes(model: Inventory, format: str, matrix: Matrix, width: int = 2) -> int:
    """Return the bytes of one matrix in a format; ``none`` keeps ``width`` bytes an element."""
    if format == "none":
        return width * matrix.elements
    return _bytes(_type(model, format, matrix), matrix)


def _type(model: Inventory, format: str, matrix: Matrix) -> str:
    if format in _BASE:
        return _ggml_type(model, format, matrix)
    left = matrix.role in _OUTSIDE or (format == "mxfp4" and matrix.copies == 1)
    return _BITS16 if left else format


def _bytes(type: str, matrix: Matrix) -> int:
    count = matrix.elements
    match type:
        case "16-bit":
            return 2 * count
        case "f32":
            return 4 * count
        case "int8" | "fp8" | "int4" | "mxfp4":
            return SCHEMES[type].nbytes(matrix)
        case "nf4":
            scales = -(-count // 64)
            return -(-count // 2) + scales + 4 * -(-scales // 256)
    block, size = GGML[type]
    return count // block * size


def _ggml_type(model: Inventory, file: str, matrix: Matrix) -> str:
    """Return the type that ``llama-quantize`` gives a matrix."""
    if matrix.role in ("router", "positions"):
        return "f32"
    if file == "mxfp4_moe":  # llama.cpp: src/llama-quant.cpp, experts alone
        return _BASE[file] if matrix.copies > 1 else "q8_0"
    wanted = _mixed(model, file, matrix)
    if matrix.columns % GGML[wanted][0] == 0:
        return wanted
    other = {"q2_K": "q4_0", "q3_K": "q4_0", "q4_K": "q5_0", "q5_K": "q5_1"}.get(wanted, "q8_0")
    return other if matrix.columns % GGML[other][0] == 0 else _BITS16


def _mixed(model: Inventory, file: str, matrix: Matrix) -> str:
    """Return the type by role and layer, before a block that does not fit is replaced."""
    base, falcon = _BASE[file], model.family == "falcon"
    if matrix.role == "head" or (model.tied and matrix.role == "embedding"):
        return "q8_0" if falcon or base == "q8_0" else "q6_K"
    match matrix.role:
        case "value" | "qkv":
            return _of_values(model, file, matrix.layer)
        case "key" if model.experts == 8:
            return "q8_0"
        case "output" if model.experts == 8 and not falcon:
            return "q5_K" if file in ("q2_k", "q3_k_s", "q3_k_m", "q4_k_s", "q4_k_m") else base
        case "output" if not falcon:
            return {"q2_k": "q3_K", "q3_k_m": "q4_K", "q3_k_l": "q5_K"}.get(file, base)
        case "down":
            return _of_down(model, file, matrix.layer)
    return base


def _more_bits(layer: int, layers: int) -> bool:
    """Return whether a layer is among the first or last eighth, or each third between."""
    eighth = layers // 8
    return layer < eighth or layer >= 7 * layers // 8 or (layer - eighth) % 3 == 2


def _of_values(model: Inventory, file: str, layer: int) -> str:
    found = _BASE[file]
    if file == "q2_k":
        found = "q4_K" if model.groups >= 4 else "q3_K"
    elif file == "q3_k_m":
        found = "q5_K" if layer < 2 else "q4_K"
    elif file == "q3_k_l" or (file == "q4_k_s" and layer < 4):
        found = "q5_K"
    elif file in ("q4_k_m", "q5_k_m") and _more_bits(layer, model.layers):
        found = "q6_K"
    if model.layers == 80 and found in ("q3_K", "q4_K"):
        found = "q5_K"  # LLM_TYPE_70B: eight heads share these weights
    return "q8_0" if model.experts == 8 else found


def _of_down(model: Inventory, file: str, layer: int) -> str:
    layers = model.layers
    if file == "q2_k":
        return "q3_K"
    if file == "q3_k_m":
        return "q5_K" if layer < layers // 16 else "q4_K"
    if file == "q3_k_l":
        return "q5_K"
    if file in ("q4_k_m", "q5_k_m") and _more_bits(layer, layers):
        return "q6_K"
    if file == "q4_k_s" and layer < layers // 8:
        return "q5_K"
    return _BASE[file]
