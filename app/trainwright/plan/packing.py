"""How a checkpoint is packed, as ``quantization_config`` of its ``config.json`` says.

The fields are those of transformers 5.24 (``utils/quantization_config.py``), of GPTQModel, AutoAWQ
and compressed-tensors.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainwright.estimate.serving.weights import Scheme
from trainwright.workload.settings import Quantization


@dataclass(frozen=True, slots=True)
class Packing:
    """How a checkpoint holds its weights."""

    method: str
    """``quant_method``."""
    format: Quantization
    """What ``settings.quantization`` calls it."""
    scheme: Scheme | None = None
    """Bits and scales of an engine's weights; None for bitsandbytes, whose weights are traced."""
    nested: bool | None = None
    """Whether the scales of 4-bit weights are quantised too."""
    kept: tuple[str, ...] = ()
    """Names of modules that are not packed, where the checkpoint lists them."""

    @property
    def by_bitsandbytes(self) -> bool:
        """Whether transformers run and train it as QLoRA does."""
        return self.scheme is None


class UnknownPackingError(ValueError):
    """A ``quantization_config`` that is not planned; the text is the part that is not known."""


def fields_of(config: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the ``quantization_config`` of a model or of its text part; None without one."""
    for each in (config, config.get("text_config")):
        found = each.get("quantization_config") if isinstance(each, Mapping) else None
        if isinstance(found, Mapping) and found:
            return found
    return None


def packing(config: Mapping[str, Any]) -> Packing | None:
    """Return how a checkpoint is packed; None where it is not.

    Raises:
        UnknownPackingError: it is packed in a way that is not planned.
    """
    fields = fields_of(config)
    if fields is None:
        return None
    if fields.get("load_in_4bit") is True or fields.get("load_in_8bit") is True:
        return _bitsandbytes(fields)
    method = fields.get("quant_method")
    readers = {"gptq": _groups, "awq": _groups, "fp8": _fp8, "mxfp4": _mxfp4}
    readers["compressed-tensors"] = _compressed
    if not isinstance(method, str) or method not in readers:
        raise UnknownPackingError(_shown("quant_method", method))
    return readers[method](method, fields)


def _bitsandbytes(fields: Mapping[str, Any]) -> Packing:
    kept = _names(fields, "llm_int8_skip_modules")
    if odd := next((name for name in kept if not re.fullmatch(r"[\w.-]+", name)), None):
        raise UnknownPackingError(_shown("llm_int8_skip_modules", odd))
    if fields.get("load_in_4bit") is not True:
        if fields.get("llm_int8_has_fp16_weight"):
            raise UnknownPackingError(_shown("llm_int8_has_fp16_weight", True))
        return Packing("bitsandbytes", "int8", kept=kept)
    nested = fields.get("bnb_4bit_use_double_quant", False) is True
    match fields.get("bnb_4bit_quant_type", "fp4"):
        case "nf4":
            return Packing("bitsandbytes", "nf4", nested=nested, kept=kept)
        case "fp4":
            return Packing("bitsandbytes", "fp4", nested=nested, kept=kept)
        case other:
            raise UnknownPackingError(_shown("bnb_4bit_quant_type", other))


def _groups(method: str, fields: Mapping[str, Any]) -> Packing:
    """Return GPTQ's or AWQ's: fp16 scales and packed zeros for each group of inputs."""
    for key in ("dynamic", "modules_in_block_to_quantize", "lm_head"):
        if fields.get(key):
            raise UnknownPackingError(_shown(key, fields[key]))
    _check_whole(_names(fields, "modules_to_not_convert"), _BLOCKS)
    bits = fields.get("bits", fields.get("w_bit"))
    group = fields.get("group_size", fields.get("q_group_size", 128))
    columns = 0 if group == -1 else _count("group_size", group)
    match bits:
        case 4:
            return Packing(method, "int4", Scheme(4, (1, columns), 16 + 4))
        case 8:
            return Packing(method, "int8", Scheme(8, (1, columns), 16 + 8))
    raise UnknownPackingError(_shown("bits", bits))


def _fp8(method: str, fields: Mapping[str, Any]) -> Packing:
    """Return DeepSeek's fp8: an fp32 scale for each block of weights, or one for a matrix."""
    left = _names(fields, "modules_to_not_convert") or _names(fields, "ignored_layers")
    _check_whole(left, _BLOCKS)
    block = fields.get("weight_block_size")
    if block is None:
        return Packing(method, "fp8", Scheme(8, (0, 0), 32))
    if not isinstance(block, list) or len(block) != 2:
        raise UnknownPackingError(_shown("weight_block_size", block))
    rows, columns = (_count("weight_block_size", each) for each in block)
    return Packing(method, "fp8", Scheme(8, (rows, columns), 32))


def _mxfp4(method: str, fields: Mapping[str, Any]) -> Packing:
    """Return gpt-oss's: experts alone, with 8 bits of exponent for 32 weights (OCP MX 1.0)."""
    _check_whole(_names(fields, "modules_to_not_convert"), frozenset({"mlp", "experts"}))
    return Packing(method, "mxfp4", Scheme(4, (1, 32), 8))


def _compressed(method: str, fields: Mapping[str, Any]) -> Packing:
    """Return that of compressed-tensors, where all linear layers but the head have one scheme."""
    groups = fields.get("config_groups")
    each = list(groups.values()) if isinstance(groups, Mapping) else []
    if len(each) != 1 or not isinstance(each[0], Mapping) or each[0].get("targets") != ["Linear"]:
        raise UnknownPackingError("config_groups")
    _check_whole(_names(fields, "ignore"), _BLOCKS)
    weights = each[0].get("weights")
    weights = weights if isinstance(weights, Mapping) else {}
    kind, bits, strategy = (weights.get(key) for key in ("type", "num_bits", "strategy"))
    zero = 0 if weights.get("symmetric", True) else bits
    match kind, bits, strategy:
        case "float", 8, "tensor":
            return Packing(method, "fp8", Scheme(8, (0, 0), 32))
        case "float", 8, "channel":
            return Packing(method, "fp8", Scheme(8, (1, 0), 32))
        case "float", 8, "block":
            return _fp8(method, {"weight_block_size": weights.get("block_structure")})
        case "int", 8, "channel":
            return Packing(method, "int8", Scheme(8, (1, 0), 16 + (zero or 0)))
        case "int", 4, "channel":
            return Packing(method, "int4", Scheme(4, (1, 0), 16 + (zero or 0)))
        case "int", 4, "group":
            columns = _count("group_size", weights.get("group_size"))
            return Packing(method, "int4", Scheme(4, (1, columns), 16 + (zero or 0)))
    raise UnknownPackingError(f"weights: {kind} {bits} {strategy}"[:80])


_BLOCKS = frozenset({
    "mlp", "self_attn", "attn", "attention", "experts", "q_proj", "k_proj", "v_proj", "o_proj",
    "qkv_proj", "gate_proj", "up_proj", "down_proj", "gate_up_proj", "w1", "w2", "w3",
})  # fmt: skip
"""Last parts of the names of what every packing of a decoder is taken to hold."""


def _check_whole(left: tuple[str, ...], packed: frozenset[str]) -> None:
    """Check that only norms, heads, routers and parts for images are left in 16 bits.

    Raises:
        UnknownPackingError: layers are left out, whose bytes the other layers' scheme does not say.
    """
    for name in left:
        parts = [part for part in re.split(r"[^\w-]+", name) if part]
        last = parts[-1] if parts else ""
        if "vis" not in name and (last in packed or last.isdigit()):
            raise UnknownPackingError(f"{name[:60]} left out")


def _names(fields: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """Return a list of names; what is missing is none."""
    value = fields.get(key) or []
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise UnknownPackingError(_shown(key, value))
    return tuple(value)


def _count(key: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 1 << 20:
        raise UnknownPackingError(_shown(key, value))
    return value


def _shown(key: str, value: Any) -> str:
    return f"{key}: {value}"[:80]
