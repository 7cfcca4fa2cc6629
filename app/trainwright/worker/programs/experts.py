"""Mixtures of experts: what a model holds of them, and how many tokens each of them gets.

transformers (5.x) keeps the weights of a layer's experts in parameters of three dimensions,
in a module whose class name ends in ``Experts``. By default it multiplies them by grouped
products, whose rows sum to tokens times experts a token however the router chooses
(``integrations/moe.py``). Its ``eager`` implementation runs expert by expert: there the
sizes depend on the routing, which is therefore assumed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from refusal import Refusal
from torch import nn

PROJECTIONS = frozenset({"gate", "gate_proj", "up_proj", "down_proj", "w1", "w2", "w3"})
"""Names of layers that PEFT (0.21, ``utils/transformers_weight_conversion.py``) takes for the
experts, and their router, of a mixture."""

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
        "experts_implementation": getattr(config, "_experts_implementation", None) or "eager",
        "expert_parameters": held,
        "active_parameters": whole - held + held * each // experts,
    }


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
        tokens, each = given[0].shape[0], given[1].shape[-1]
        answers.routed = Routed(module.num_experts, tokens, each, routing == "worst")

    def end(module: Any, args: Any, result: Any) -> None:
        answers.routed = None

    for layer in layers(model):
        layer.register_forward_pre_hook(begin, with_kwargs=True)
        layer.register_forward_hook(end)


def _first(config: Any, names: tuple[str, ...]) -> int | None:
    values = (getattr(config, name, None) for name in names)
    return next((value for value in values if isinstance(value, int)), None)
