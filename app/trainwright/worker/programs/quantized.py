"""Frozen base weights in 4 and 8 bits, with the casts and copies that bitsandbytes makes.

The forward passes follow bitsandbytes 0.50 (``nn/modules.py``, ``autograd/_functions.py`` and
``backends``): what they allocate, in their order. Weights that are not quantised keep the
dtype that they were loaded in, unless ``prepare`` casts them.
"""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from linears import features, linears, put
from torch import nn
from torch.utils.flop_counter import register_flop_formula

BLOCK, NESTED_BLOCK = 64, 256
"""Weights that share a scale, and scales that share one (double quantisation): the defaults
of bitsandbytes and of the QLoRA paper, section 3."""

OUTLIERS = 7
"""Columns of activations that are multiplied in 16 bits because a value lies above the
threshold: at most 7 in models of up to 13 B parameters (Dettmers et al. 2022, arXiv
2208.07339, section 3.2). Data decides; assumed for every 8-bit layer."""

THRESHOLD = 6.0
"""``llm_int8_threshold`` of transformers' ``BitsAndBytesConfig``."""

_library = torch.library.Library("trainwright", "DEF")
_library.define("dequantize_scales(Tensor scales, Tensor code, Tensor nested) -> Tensor")
_library.define(
    "dequantize_nf4(Tensor packed, Tensor scales, SymInt[] shape, ScalarType dtype) -> Tensor"
)
_library.define("quantize_rows(Tensor x) -> (Tensor, Tensor)")
_library.define("outlier_columns(Tensor outliers, int most) -> Tensor")
_library.define(
    "dequantize_product(Tensor product, Tensor rows, Tensor columns, Tensor? bias) -> Tensor"
)


@torch.library.register_fake("trainwright::dequantize_scales", lib=_library)
def _scales(scales: torch.Tensor, code: torch.Tensor, nested: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(scales, dtype=torch.float32)


@torch.library.register_fake("trainwright::dequantize_nf4", lib=_library)
def _weights(
    packed: torch.Tensor, scales: torch.Tensor, shape: Sequence[int], dtype: torch.dtype
) -> torch.Tensor:
    return packed.new_empty(tuple(shape), dtype=dtype)


@torch.library.register_fake("trainwright::quantize_rows", lib=_library)
def _rows(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    scales = x.new_empty((x.shape[0],), dtype=torch.float32)
    return torch.empty_like(x, dtype=torch.int8), scales


@torch.library.register_fake("trainwright::outlier_columns", lib=_library)
def _columns(outliers: torch.Tensor, most: int) -> torch.Tensor:
    return outliers.new_empty((min(most, outliers.shape[1]),), dtype=torch.int64)


@torch.library.register_fake("trainwright::dequantize_product", lib=_library)
def _product(
    product: torch.Tensor, rows: torch.Tensor, columns: torch.Tensor, bias: torch.Tensor | None
) -> torch.Tensor:
    return torch.empty_like(product, dtype=torch.float16)


@register_flop_formula(torch.ops.aten._int_mm)  # type: ignore[untyped-decorator]
def _int8_flops(
    left: Sequence[int], right: Sequence[int], *args: Any, out_shape: Any = None, **kwargs: Any
) -> int:
    return 2 * left[0] * left[1] * right[1]


def quantize(
    model: nn.Module,
    kind: str,
    dtype: torch.dtype,
    head: nn.Module | None,
    *,
    nested: bool = True,
    unpacked: Sequence[str] = (),
) -> None:
    """Replace every linear layer by one with weights in ``nf4`` or ``int8``.

    The head stays, or in its place what a checkpoint names (``unpacked``), and what the model says
    must stay in fp32 (T5's ``wo``), as in transformers (``quantizers/base.py``,
    ``get_modules_to_not_convert``). ``nested`` says whether the scales of 4-bit weights are
    quantised too.
    """
    kept = set(getattr(model, "_keep_in_fp32_modules", None) or ())
    for name, module in linears(model):
        stays = _named(name, unpacked) if unpacked else module is head
        if not stays and kept.isdisjoint(name.split(".")):
            bias: Any = module.bias
            inputs, outputs = features(module)
            layer = (
                Int8Linear(inputs, outputs, bias)
                if kind == "int8"
                else Nf4Linear(inputs, outputs, bias, dtype, nested)
            )
            put(model, name, layer)


def _named(name: str, unpacked: Sequence[str]) -> bool:
    """Return whether a module is named, or lies in one that is (``should_convert_module``)."""
    return any(f"{name}.".startswith(f"{each}.") or name.endswith(each) for each in unpacked)


def prepare(model: nn.Module, dtype: torch.dtype, how: str) -> None:
    """Cast what is not quantised to fp32: PEFT 0.21, ``prepare_model_for_kbit_training``.

    With ``norms`` embeddings and head are left in ``dtype``, as TRL's trainer casts them back up to
    0.15 (``trainer/utils.py``, ``peft_module_casting_to_bf16``). Biases of 4-bit layers are left
    out: bitsandbytes casts them back at the first use (``Linear4bit.forward``).
    """
    layers = (module for module in model.modules() if isinstance(module, Nf4Linear))
    biases = {id(layer.bias) for layer in layers}
    for parameter in model.parameters():
        if parameter.dtype in (torch.float16, torch.bfloat16) and id(parameter) not in biases:
            parameter.data = parameter.data.float()
    for name, module in model.named_modules() if how == "norms" else ():
        if isinstance(getattr(module, "weight", None), torch.Tensor) and _at_an_end(name):
            module.to(dtype)


def _at_an_end(name: str) -> bool:
    return any(end in name for end in ("lm_head", "embed_tokens", "wte", "wpe"))


class Nf4Linear(nn.Module):
    """A frozen linear layer with NF4 weights: 4.127 bits a weight with nested scales, else 4.5."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        bias: torch.Tensor | None,
        dtype: torch.dtype,
        nested: bool = True,
    ) -> None:
        super().__init__()
        count = inputs * outputs
        scales = -(-count // BLOCK)
        self.shape = (outputs, inputs)
        self.compute_dtype = dtype
        self.weight = _frozen(((count + 1) // 2, 1), torch.uint8)
        self.is_nested = nested
        self.scales = _frozen((scales,), torch.uint8 if nested else torch.float32)
        if nested:
            self.nested = _frozen((-(-scales // NESTED_BLOCK),), torch.float32)
            self.code = _frozen((256,), torch.float32)
            self.offset = _frozen((), torch.float32)
        self.bias = None if bias is None else nn.Parameter(bias.detach(), requires_grad=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the product in the type of ``x``, computed in the compute type."""
        dtype = x.dtype
        x = x.to(self.compute_dtype)
        bias = None if self.bias is None else self.bias.to(self.compute_dtype)
        result: torch.Tensor = _Nf4Product.apply(x, bias, self)  # type: ignore[no-untyped-call]
        return result.to(dtype)

    def dequantized(self, dtype: torch.dtype) -> torch.Tensor:
        """Return the weight matrix in ``dtype``: made for each product, forward and backward."""
        ops = torch.ops.trainwright
        scales: torch.Tensor = self.scales
        if self.is_nested:
            scales = ops.dequantize_scales(self.scales, self.code, self.nested)
            scales += self.offset
        return ops.dequantize_nf4(self.weight, scales, self.shape, dtype)  # type: ignore[no-any-return]

    def whole(self) -> torch.Tensor:
        """Return the weight matrix in the type that it was loaded in."""
        return self.dequantized(self.compute_dtype)


class _Nf4Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, bias: Any, layer: Nf4Linear) -> torch.Tensor:
        ctx.layer = layer
        return F.linear(x, layer.dequantized(x.dtype), bias)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        grad = grads[0]
        if not ctx.needs_input_grad[0]:
            return None, None, None
        return torch.matmul(grad, ctx.layer.dequantized(grad.dtype)), None, None


class Int8Linear(nn.Module):
    """A frozen linear layer with int8 weights and an fp32 scale a row: ``Linear8bitLt``."""

    def __init__(self, inputs: int, outputs: int, bias: torch.Tensor | None) -> None:
        super().__init__()
        self.shape = (outputs, inputs)
        self.weight = _frozen((outputs, inputs), torch.int8)
        self.scales = _frozen((outputs,), torch.float32)
        self.bias = None if bias is None else nn.Parameter(bias.detach(), requires_grad=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the product in the type of ``x``, computed in 8 bits but for outliers."""
        bias = None if self.bias is None else self.bias.to(x.dtype)
        return _Int8Product.apply(x, bias, self)  # type: ignore[no-any-return,no-untyped-call]

    def dequantized(self, dtype: torch.dtype) -> torch.Tensor:
        """Return the weight matrix in ``dtype``, as backward makes it."""
        weight = self.weight.to(dtype, copy=True)
        return weight.mul_(self.scales.unsqueeze(1).mul(1.0 / 127.0))

    def whole(self) -> torch.Tensor:
        """Return the weight matrix in fp32 (``int8_vectorwise_dequant``)."""
        return self.weight * self.scales.view(-1, 1) * (1.0 / 127.0)


class _Int8Product(torch.autograd.Function):
    """``MatMul8bitLt``: it keeps its input on ``ctx`` and not by ``save_for_backward``.

    So the input lives as long as the graph does, whatever checkpointing is asked for.
    """

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, bias: Any, layer: Int8Linear) -> torch.Tensor:
        shape = x.shape
        x = x.reshape(-1, shape[-1])
        codes, scales, columns = _int8_codes(x.to(torch.float16))
        result, outliers = _mixed_product(x, codes, scales, columns, bias, layer)
        ctx.layer, ctx.shape, ctx.dtype = layer, shape, x.dtype
        if ctx.needs_input_grad[0]:
            ctx.tensors = (outliers, x, columns)
        return result.reshape(*shape[:-1], layer.shape[0])

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        if not ctx.needs_input_grad[0]:
            return None, None, None
        grad = grads[0].reshape(-1, grads[0].shape[-1]).contiguous()
        weight = ctx.layer.dequantized(ctx.dtype)
        return torch.matmul(grad.to(ctx.dtype), weight).view(ctx.shape), None, None


def _int8_codes(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the rows' codes and scales, and the columns with outliers (fp16 in)."""
    ops = torch.ops.trainwright
    codes, scales = ops.quantize_rows(x)
    outliers = x.abs() >= THRESHOLD
    columns = ops.outlier_columns(outliers, OUTLIERS)
    return codes, scales, columns


def _mixed_product(
    x: torch.Tensor,
    codes: torch.Tensor,
    scales: torch.Tensor,
    columns: torch.Tensor,
    bias: torch.Tensor | None,
    layer: Int8Linear,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the product, and the columns of the input that were multiplied in its type."""
    outliers = x[:, columns].contiguous()
    some = layer.weight[:, columns].contiguous()
    weights = (some * layer.scales.view(-1, 1) * (1.0 / 127.0)).to(x.dtype).t()
    result = _int8_product(codes, scales, bias, layer, x.dtype)
    return result.addmm(outliers, weights), outliers


def _int8_product(
    codes: torch.Tensor,
    scales: torch.Tensor,
    bias: torch.Tensor | None,
    layer: Int8Linear,
    dtype: torch.dtype,
) -> torch.Tensor:
    """Return the product of codes: int32, then fp16, then the wanted type."""
    product = torch._int_mm(codes, layer.weight.t())
    fused = bias if bias is not None and bias.dtype == torch.float16 else None
    result = torch.ops.trainwright.dequantize_product(product, scales, layer.scales, fused)
    if bias is not None and fused is None:
        result.add_(bias)
    return result.to(dtype)  # type: ignore[no-any-return]


def _frozen(shape: tuple[int, ...], dtype: torch.dtype) -> nn.Parameter:
    return nn.Parameter(torch.empty(shape, dtype=dtype, device="meta"), requires_grad=False)
