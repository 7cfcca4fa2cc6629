"""Low-rank adapters and 4-bit base weights, with the casts and copies that the libraries make.

The forward passes follow PEFT 0.21 (``peft/tuners/lora/layer.py`` and ``bnb.py``) and
bitsandbytes 0.50 (``nn/modules.py``, ``autograd/_functions.py``): what they allocate, in
their order. Adapters are fp32 (PEFT's ``autocast_adapter_dtype``). Weights that are not
quantised keep the dtype that they were loaded in: ``prepare_model_for_kbit_training`` would
cast them to fp32, but neither library does so by itself.
"""

from collections.abc import Collection, Sequence
from typing import Any

import experts
import torch
import torch.nn.functional as F  # noqa: N812
from refusal import Refusal
from torch import nn

BLOCK, NESTED_BLOCK = 64, 256
"""Weights that share a scale, and scales that share one (double quantisation): the defaults
of bitsandbytes and of the QLoRA paper, section 3."""

_library = torch.library.Library("trainwright", "DEF")
_library.define("dequantize_scales(Tensor scales, Tensor code, Tensor nested) -> Tensor")
_library.define(
    "dequantize_nf4(Tensor packed, Tensor scales, SymInt[] shape, ScalarType dtype) -> Tensor"
)


@torch.library.register_fake("trainwright::dequantize_scales", lib=_library)
def _scales(scales: torch.Tensor, code: torch.Tensor, nested: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(scales, dtype=torch.float32)


@torch.library.register_fake("trainwright::dequantize_nf4", lib=_library)
def _weights(
    packed: torch.Tensor, scales: torch.Tensor, shape: Sequence[int], dtype: torch.dtype
) -> torch.Tensor:
    return packed.new_empty(tuple(shape), dtype=dtype)


def add_lora(model: nn.Module, rank: int, targets: Sequence[str], head: nn.Module | None) -> int:
    """Freeze the model and put adapters on its linear layers; return how many.

    Args:
        model: changed in place.
        rank: of the adapters.
        targets: last parts of module names; empty means every linear layer but the head, and
            in a mixture of experts but those that PEFT takes for experts.
        head: the output head, never adapted unless it is named.

    Raises:
        Refusal: the targets name experts, whose adapters copy all of them at every use.
    """
    model.requires_grad_(False)
    mixed = experts.PROJECTIONS if any(True for _ in experts.layers(model)) else frozenset()
    if named := sorted(mixed.intersection(targets)):
        raise Refusal("worker.adapted-experts", targets=", ".join(named))
    found = [
        (name, module)
        for name, module in linears(model)
        if _adapted(name.rpartition(".")[2], module is head, targets, mixed)
    ]
    for name, module in found:
        adapted = AdaptedNf4 if isinstance(module, Nf4Linear) else Adapted
        _replace(model, name, adapted(module, rank))
    return len(found)


def _adapted(name: str, is_head: bool, targets: Sequence[str], without: Collection[str]) -> bool:
    return name in targets if targets else not is_head and name not in without


def quantize(model: nn.Module, dtype: torch.dtype, head: nn.Module | None) -> None:
    """Replace every linear layer by one with NF4 weights.

    But the head, and what the model says must stay in fp32 (T5's ``wo``), as transformers
    does (``quantizers/base.py``, ``get_modules_to_not_convert``).
    """
    kept = set(getattr(model, "_keep_in_fp32_modules", None) or ())
    for name, module in linears(model):
        if module is not head and kept.isdisjoint(name.split(".")):
            bias: Any = module.bias
            _replace(model, name, Nf4Linear(*features(module), bias, dtype))


def linears(model: nn.Module) -> list[tuple[str, nn.Module]]:
    """Return the layers that compute a matrix product with their weight."""
    kinds = ("Linear", "Conv1D", "Nf4Linear", "LoRACompatibleLinear")
    return [
        (name, module) for name, module in model.named_modules() if type(module).__name__ in kinds
    ]


def features(module: nn.Module) -> tuple[int, int]:
    """Return (inputs, outputs) of a linear layer; GPT-2's ``Conv1D`` stores them swapped."""
    if isinstance(module, Nf4Linear):
        return module.shape[1], module.shape[0]
    weight: Any = module.weight
    first, second = weight.shape
    return (first, second) if type(module).__name__ == "Conv1D" else (second, first)


def _replace(model: nn.Module, name: str, module: nn.Module) -> None:
    parent, _, child = name.rpartition(".")
    setattr(model.get_submodule(parent), child, module)


class Adapted(nn.Module):
    """A frozen layer with a low-rank adapter: PEFT's ``lora.Linear``, one active adapter."""

    def __init__(self, base: nn.Module, rank: int, scaling: float = 2.0) -> None:
        super().__init__()
        inputs, outputs = features(base)
        self.base_layer = base
        options: dict[str, Any] = {"bias": False, "dtype": torch.float32}
        self.lora_A = nn.Linear(inputs, rank, **options)
        self.lora_B = nn.Linear(rank, outputs, **options)
        self.dropout = nn.Identity()
        self.scaling = scaling
        nn.init.zeros_(self.lora_B.weight)

    @property
    def weight(self) -> Any:
        """The base layer's, as PEFT has it: T5 asks for its dtype."""
        return self.base_layer.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the base's result plus the adapter's."""
        result: torch.Tensor = self.base_layer(x)
        dtype = result.dtype
        x = x.to(self.lora_A.weight.dtype)
        result = result + self.lora_B(self.lora_A(self.dropout(x))) * self.scaling
        return result.to(dtype)


class AdaptedNf4(Adapted):
    """The same over a 4-bit layer: PEFT's ``lora.bnb.Linear4bit``, which clones the result."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the base's result plus the adapter's."""
        result = self.base_layer(x).clone()
        convert = not torch.is_autocast_enabled(x.device.type)
        if convert:
            x = x.to(self.lora_A.weight.dtype)
        output = self.lora_B(self.lora_A(self.dropout(x))) * self.scaling
        if convert:
            output = output.to(result.dtype)
        return result + output  # type: ignore[no-any-return]


class Nf4Linear(nn.Module):
    """A frozen linear layer with NF4 weights, double quantised: 4.127 bits a weight."""

    def __init__(
        self, inputs: int, outputs: int, bias: torch.Tensor | None, dtype: torch.dtype
    ) -> None:
        super().__init__()
        count = inputs * outputs
        scales = -(-count // BLOCK)
        self.shape = (outputs, inputs)
        self.compute_dtype = dtype
        self.weight = _frozen(((count + 1) // 2, 1), torch.uint8)
        self.scales = _frozen((scales,), torch.uint8)
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
        scales = ops.dequantize_scales(self.scales, self.code, self.nested)
        scales += self.offset
        return ops.dequantize_nf4(self.weight, scales, self.shape, dtype)  # type: ignore[no-any-return]


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


def _frozen(shape: tuple[int, ...], dtype: torch.dtype) -> nn.Parameter:
    return nn.Parameter(torch.empty(shape, dtype=dtype, device="meta"), requires_grad=False)
