"""Low-rank adapters, with the casts and copies that PEFT makes.

The forward passes follow PEFT 0.21 (``peft/tuners/lora/layer.py``, ``bnb.py``, ``dora.py``):
what they allocate, in their order. Adapters are fp32 (PEFT's ``autocast_adapter_dtype``) unless
another type is asked for, as TRL's trainer casts those of quantised models to bf16.
"""

import contextlib
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import experts
import torch
import torch.nn.functional as F  # noqa: N812
from linears import features, linears, put, swapped
from quantized import Int8Linear, Nf4Linear
from refusal import Refusal
from torch import nn

BY_WEIGHT = ("out_proj", "conv1d")
BY_WEIGHT_TYPES = ("falcon_h1", "mamba", "mamba2", "falcon_mamba", "nemotron_h")
"""Layers that the fused kernels of these model types read by their weight, past any adapter: PEFT
0.21 refuses to adapt them (``tuners_utils.py``, ``_check_lora_target_modules_mamba``)."""

ALL_LINEAR = ("all-linear",)
"""What PEFT takes for every linear layer but the head."""

SHARE_DROPPED = 0.1
"""Of a dropout that is on; any share takes the same memory and time."""


def add_lora(
    model: nn.Module,
    rank: int,
    targets: Sequence[str],
    head: nn.Module | None,
    *,
    dora: bool = False,
    dropout: bool = False,
    dtype: torch.dtype = torch.float32,
) -> int:
    """Freeze the model and put adapters on its linear layers; return how many.

    Args:
        model: changed in place.
        rank: of the adapters.
        targets: last parts of module names; empty means every linear layer but the head, and
            but those that PEFT takes for experts, or refuses to adapt; ``all-linear`` means what
            PEFT makes of it.
        head: the output head, never adapted unless it is named.
        dora: whether each output has a trained magnitude.
        dropout: whether the adapters' input is dropped out.
        dtype: of the adapters; magnitudes are fp32 always.

    Raises:
        Refusal: the targets name experts, whose adapters copy all of them at every use, or
            layers that PEFT refuses to adapt.
    """
    model.requires_grad_(False)
    if named := sorted(experts.converted(model).intersection(targets)):
        raise Refusal("worker.adapted-experts", targets=", ".join(named))
    spared = frozenset() if targets else _spared(model)
    if tuple(targets) == ALL_LINEAR:
        _check_routers(model)
        targets = ()
    found = [
        (name, module)
        for name, module in linears(model)
        if _adapted(name.rpartition(".")[2], module is head, targets, spared)
    ]
    _check_by_weight(model, [name.rpartition(".")[2] for name, _ in found])
    for name, module in found:
        bits = isinstance(module, (Nf4Linear, Int8Linear))
        adapted = AdaptedBits if bits else Adapted
        put(model, name, adapted(module, rank, dora=dora, dropout=dropout, dtype=dtype))
    return len(found)


def _adapted(name: str, is_head: bool, targets: Sequence[str], without: Collection[str]) -> bool:
    return name in targets if targets else not is_head and name not in without


def _spared(model: nn.Module) -> frozenset[str]:
    """Return names of layers that have no adapters where nobody names them."""
    return (experts.PROJECTIONS if experts.fused(model) else frozenset()) | _refused(model)


def _refused(model: nn.Module) -> frozenset[str]:
    """Return names of layers that PEFT refuses to adapt."""
    kind = getattr(getattr(model, "config", None), "model_type", None)
    return frozenset(BY_WEIGHT if kind in BY_WEIGHT_TYPES else ())


def _check_routers(model: nn.Module) -> None:
    """Check that PEFT's ``all-linear`` takes no router that is a linear layer by its class.

    Raises:
        Refusal: it does, and its adapter cannot add to what the router returns: two tensors.
    """
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear) and type(module).__name__.endswith("Router"):
            raise Refusal("worker.adapted-router", name=name)


def _check_by_weight(model: nn.Module, names: Collection[str]) -> None:
    """Check that PEFT adapts these layers.

    Raises:
        Refusal: it does not; names the layers of theirs that it would adapt.
    """
    if refused := sorted(_refused(model).intersection(names)):
        raise Refusal(
            "worker.adapted-by-weight",
            family=str(model.config.model_type),  # type: ignore[union-attr]
            refused=", ".join(refused),
            rest=", ".join(sorted(set(names).difference(refused))) or "-",
        )


class Adapted(nn.Module):
    """A frozen layer with a low-rank adapter: PEFT's ``lora.Linear``, one active adapter."""

    off = False
    """Whether the adapters of all layers are switched off."""

    def __init__(
        self,
        base: nn.Module,
        rank: int,
        scaling: float = 2.0,
        *,
        dora: bool = False,
        dropout: bool = False,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        inputs, outputs = features(base)
        self.base_layer = base
        options: dict[str, Any] = {"bias": False, "dtype": dtype}
        self.lora_A = nn.Linear(inputs, rank, **options)
        self.lora_B = nn.Linear(rank, outputs, **options)
        self.dropout = nn.Dropout(SHARE_DROPPED) if dropout else nn.Identity()
        self.scaling = scaling
        self.magnitude = Magnitude(outputs) if dora else None
        nn.init.zeros_(self.lora_B.weight)

    @property
    def weight(self) -> Any:
        """The base layer's, as PEFT has it: T5 asks for its dtype."""
        return self.base_layer.weight

    @property
    def bias(self) -> Any:
        """The base layer's, as PEFT has it: Mamba's mixers ask for it."""
        return self.base_layer.bias

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the base's result plus the adapter's."""
        result: torch.Tensor = self.base_layer(x)
        if self.off:
            return result
        dtype = result.dtype
        x = x.to(self.lora_A.weight.dtype)
        if self.magnitude is None:
            result = result + self.lora_B(self.lora_A(self.dropout(x))) * self.scaling
        else:
            result = self.magnitude(x, result, self)
        return result.to(dtype)


class AdaptedBits(Adapted):
    """The same over quantised weights: PEFT's ``lora.bnb``; in 4 bits it clones the result."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the base's result plus the adapter's."""
        result = self.base_layer(x)
        if self.off:
            return result  # type: ignore[no-any-return]
        if isinstance(self.base_layer, Nf4Linear):
            result = result.clone()
        dtype = result.dtype
        convert = not torch.is_autocast_enabled(x.device.type)
        if convert:
            x = x.to(self.lora_A.weight.dtype)
        if self.magnitude is not None:
            result = self.magnitude(x, result, self)
            return result.to(dtype) if convert else result
        output = self.lora_B(self.lora_A(self.dropout(x))) * self.scaling
        if convert:
            output = output.to(dtype)
        return result + output  # type: ignore[no-any-return]


@contextlib.contextmanager
def switched_off() -> Iterator[None]:
    """Let adapted layers return what their base layers do: PEFT's ``disable_adapter``."""
    Adapted.off = True
    try:
        yield
    finally:
        Adapted.off = False


class Magnitude(nn.Module):
    """The trained magnitude of each output: DoRA, Liu et al. 2024 (arXiv 2402.09353)."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(outputs, dtype=torch.float32))

    def forward(self, x: torch.Tensor, result: torch.Tensor, layer: Adapted) -> torch.Tensor:
        """Return the base's result plus the change that adapter and magnitude make."""
        base_result: torch.Tensor | None = result
        if isinstance(layer.dropout, nn.Dropout) and layer.training:
            x = layer.dropout(x)
            base_result = None
        return result + self._change(x, base_result, layer)

    def _change(
        self, x: torch.Tensor, base_result: torch.Tensor | None, layer: Adapted
    ) -> torch.Tensor:
        """Return what is added. The norm of the weights is made again at each call, detached."""
        base: Any = layer.base_layer
        update = _update(layer)
        update = update.to(x.dtype)
        weight = base.whole() if isinstance(layer, AdaptedBits) else base.weight
        weight = weight.to(x.dtype)
        norm = _norm(_upright(weight, base), update.detach(), layer.scaling)
        scale = (self.weight / norm.detach()).view(1, -1)
        output = layer.lora_B(layer.lora_A(x))
        if base_result is None:
            base_result = F.linear(x, _upright(weight, base))
        elif base.bias is not None:
            base_result = base_result - base.bias
        return (scale - 1) * base_result + scale * output * layer.scaling


def _update(layer: Adapted) -> torch.Tensor:
    """Return the product of the adapter's matrices, made by running it on the identity."""
    first = layer.lora_A.weight
    identity = torch.eye(first.shape[1], device=first.device, dtype=first.dtype)
    return layer.lora_B(layer.lora_A(identity)).T  # type: ignore[no-any-return]


def _norm(weight: torch.Tensor, update: torch.Tensor, scaling: float) -> torch.Tensor:
    weight = weight + scaling * update
    return torch.linalg.norm(weight, dim=1).to(weight.dtype)


def _upright(weight: torch.Tensor, base: nn.Module) -> torch.Tensor:
    """Return the matrix as (outputs, inputs)."""
    return weight.T if swapped(base) else weight
