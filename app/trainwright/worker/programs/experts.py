"""Mixtures of experts: what a model holds of them, and how many tokens each of them gets.

transformers (5.x) keeps the weights of a layer's experts in parameters of three dimensions,
in a module whose class name ends in ``Experts``. By default it multiplies them by grouped
products, whose rows sum to tokens times experts a token however the router chooses
(``integrations/moe.py``). Its ``eager`` implementation runs expert by expert: there the
sizes depend on the routing, which is therefore assumed. So did transformers 4, where each
expert was linear layers of its own, which bitsandbytes quantises and PEFT adapts.
"""

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from linears import put
from refusal import Refusal
from torch import nn

PROJECTIONS = frozenset({"gate", "gate_proj", "up_proj", "down_proj", "w1", "w2", "w3"})
"""Names of layers that PEFT (0.21, ``utils/transformers_weight_conversion.py``) takes for the
experts, and their router, of a mixture."""

_CONVERTED = {
    "mixtral": frozenset({"gate", "w1", "w2", "w3"}),
    "qwen2_moe": frozenset({"gate", "gate_proj", "up_proj", "down_proj"}),
}
"""Family of checkpoints -> names that PEFT turns into the parameters of all experts of a layer, in
that module's ``_MOE_TARGET_MODULE_MAPPING``."""

_COUNTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
_PER_TOKEN = ("num_experts_per_tok", "num_experts_per_token", "moe_k", "moe_topk")


@dataclass(frozen=True)
class Routed:
    """The tokens of one call of an experts layer, as the routing is assumed."""

    experts: int
    tokens: int
    each: int
    """Experts a token."""
    worst: bool
    """Whether all tokens choose the same experts."""

    @property
    def busy(self) -> int:
        """Experts that get tokens."""
        return self.each if self.worst else min(self.experts, self.tokens * self.each)

    @property
    def rows(self) -> int:
        """Tokens that a busy expert gets."""
        return -(-self.tokens * self.each // self.busy)


def layers(model: nn.Module) -> Iterator[nn.Module]:
    """Yield the modules that hold experts."""
    for module in model.modules():
        if type(module).__name__.endswith("Experts") and hasattr(module, "num_experts"):
            yield module


class Expert(nn.Module):
    """One expert of a layer: three linear layers."""

    def __init__(self, names: tuple[str, ...], inputs: int, width: int, act: Any) -> None:
        super().__init__()
        self.names, self.act = names, act
        gate, up, down = names
        setattr(self, gate, nn.Linear(inputs, width, bias=False))
        setattr(self, up, nn.Linear(inputs, width, bias=False))
        setattr(self, down, nn.Linear(width, inputs, bias=False))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return what the expert makes of its tokens."""
        gate, up, down = (getattr(self, name) for name in self.names)
        return down(self.act(gate(x)) * up(x))  # type: ignore[no-any-return]


class SeparateExperts(nn.Module):
    """A layer whose experts are modules: ``MixtralSparseMoeBlock.forward`` of transformers 4.

    Three steps of a small Mixtral of transformers 4.45.2 on the CPU peaked 0.2 % higher.
    """

    def __init__(self, whole: Any) -> None:
        super().__init__()
        self.num_experts = self.busy = whole.num_experts
        _, inputs, width = whole.down_proj.shape
        names = _OWN_NAMES.get(type(whole).__name__, _NAMES)
        parts = (Expert(names, inputs, width, whole.act_fn) for _ in range(self.num_experts))
        self.parts = nn.ModuleList(parts)

    def forward(
        self, hidden: torch.Tensor, chosen: torch.Tensor, weights: torch.Tensor
    ) -> torch.Tensor:
        """Return the sum of what the chosen experts make of each token."""
        weights = weights.to(hidden.dtype)
        result = torch.zeros_like(hidden)
        mask = F.one_hot(chosen, self.num_experts).permute(2, 1, 0)
        for number, expert in enumerate(self.parts[: self.busy]):
            place, token = torch.where(mask[number])
            current = hidden[None, token].reshape(-1, hidden.shape[-1])
            current = expert(current) * weights[token, place, None]
            result.index_add_(0, token, current.to(hidden.dtype))
        return result


_NAMES = ("gate_proj", "up_proj", "down_proj")
_OWN_NAMES = {"MixtralExperts": ("w1", "w3", "w2"), "PhimoeExperts": ("w1", "w3", "w2")}
"""Class in transformers 5 -> names of gate, up and down in transformers 4."""


def separate(model: nn.Module) -> None:
    """Make each expert layers of its own, where transformers 4 had it so.

    gpt-oss and Llama 4 had theirs in one parameter then too; their weights lie the other way.
    """
    for name, layer in list(model.named_modules()):
        down: Any = getattr(layer, "down_proj", None)
        both: Any = getattr(layer, "gate_up_proj", None)
        if not isinstance(down, nn.Parameter) or down.dim() != 3:
            continue
        count, inputs, width = down.shape
        if both.shape == (count, 2 * width, inputs) and len(list(layer.parameters())) == 2:
            put(model, name, SeparateExperts(layer))


def fused(model: nn.Module) -> bool:
    """Return whether the experts of a layer are one parameter."""
    return any(not isinstance(layer, SeparateExperts) for layer in layers(model))


def converted(model: nn.Module) -> frozenset[str]:
    """Return the targets of adapters that PEFT takes for all experts of a layer, or their router.

    ``all-linear`` is among them: PEFT adds these names to it.
    """
    kind = getattr(getattr(model, "config", None), "model_type", None)
    if kind is None or any(isinstance(each, SeparateExperts) for each in model.modules()):
        return frozenset()
    from transformers.conversion_mapping import _MODEL_TO_CONVERSION_PATTERN

    family = "mixtral" if kind == "mixtral" else _MODEL_TO_CONVERSION_PATTERN.get(kind)
    names = _CONVERTED.get(family, frozenset())
    return names | {"all-linear"} if names else names


def facts(model: nn.Module, config: Any) -> dict[str, Any]:
    """Return the experts of a model; nothing where it has none.

    ``active_parameters`` are those that work on a token: all but the experts that the router
    leaves out, with the embeddings.
    """
    held = sum(weight.numel() for layer in layers(model) for weight in layer.parameters())
    experts, each = _first(config, _COUNTS), _first(config, _PER_TOKEN)
    if not held or not experts or not each:
        return {}
    whole = sum(weight.numel() for weight in model.parameters())
    return {
        "experts": experts,
        "experts_per_token": each,
        "experts_implementation": _implementation(model, config),
        "expert_parameters": held,
        "active_parameters": whole - held + held * each // experts,
    }


def _implementation(model: nn.Module, config: Any) -> str:
    """Return how experts run; ``every`` where all of them get every token, as Llama 4's do."""
    if any(len(inspect.signature(layer.forward).parameters) == 1 for layer in layers(model)):
        return "every"
    return getattr(config, "_experts_implementation", None) or "eager"


def bytes_held(model: nn.Module) -> dict[str, Any]:
    """Return the bytes of all experts, and of each kind of their weights."""
    weights = [weight.nbytes for layer in layers(model) for weight in layer.parameters()]
    return {"expert_bytes": sum(weights), "expert_sizes": sorted(set(weights))} if weights else {}


def check(config: Any, file: str) -> None:
    """Check what libraries do not: the router can choose as many experts as it must.

    Raises:
        Refusal: names the numbers that do not go together.
    """
    experts, each = _first(config, _COUNTS), _first(config, _PER_TOKEN)
    if experts is None or each is None:
        return
    if not (1 <= each <= experts or experts == each == 0):
        raise Refusal("worker.experts-per-token", file=file, experts=experts, each=each)
    groups, chosen = getattr(config, "n_group", None), getattr(config, "topk_group", None)
    if experts and isinstance(groups, int) and isinstance(chosen, int):
        fits = groups > 0 and experts % groups == 0 and 1 <= chosen <= groups
        if not fits or each > experts // groups * chosen:
            values = {"experts": experts, "groups": groups, "chosen": chosen, "each": each}
            raise Refusal("worker.expert-groups", file=file, **values)


def watch(model: nn.Module, answers: Any, routing: str) -> None:
    """Tell the answers, while a layer of experts runs, how its tokens are routed."""

    def begin(module: Any, args: Any, kwargs: Any) -> None:
        given = [*args, *kwargs.values()]
        if len(given) < 2:  # Llama 4 runs every expert on every token, whatever the router says
            return
        tokens, each = given[0].shape[0], given[1].shape[-1]
        answers.routed = Routed(module.num_experts, tokens, each, routing == "worst")
        if isinstance(module, SeparateExperts):
            module.busy = answers.routed.busy

    def end(module: Any, args: Any, result: Any) -> None:
        answers.routed = None

    for layer in layers(model):
        layer.register_forward_pre_hook(begin, with_kwargs=True)
        layer.register_forward_hook(end)


def _first(config: Any, names: tuple[str, ...]) -> int | None:
    values = (getattr(config, name, None) for name in names)
    return next((value for value in values if isinstance(value, int)), None)
