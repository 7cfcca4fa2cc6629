"""Which layers tensor parallelism splits, and along which side: the model's own plan.

Models of transformers have one (``base_model_tp_plan``, ``_tp_plan``): pairs of linear layers, the
first split by its outputs, the second by its inputs, so that only the second's result is added up.
Plain torch and the standard library only.
"""

import re
from collections.abc import Iterator
from typing import Any

from torch import nn

STYLES = {
    "colwise": "outputs",
    "rowwise": "inputs",
    "colwise_gather_output": "gathered",
    "colwise_rep": "gathered",
    "replicated_with_grad_allreduce": "heads",
}
"""Style of a plan -> how a layer is split: by its outputs, by its inputs, by outputs that all GPUs
gather, or not at all, though it works on a part of the heads. Others are not planned."""
HEADS = ("num_attention_heads", "num_key_value_heads")


class SplitError(ValueError):
    """The model cannot be split so; ``why`` names the reason, ``values`` what it is about."""

    def __init__(self, why: str, **values: Any) -> None:
        super().__init__(f"{why}: {values}")
        self.why, self.values = why, values


def splits(model: nn.Module, degree: int) -> dict[str, str]:
    """Return how each layer of the plan is split over ``degree`` GPUs; the rest is on each whole.

    The table of tokens is split by its columns, and all GPUs gather its result: split by its rows,
    as transformers does it, each would make the whole gradient. A table that is the head too
    stays whole.

    Raises:
        SplitError: the model has no plan, a part of it is not known, or nothing divides so.
    """
    config: Any = getattr(model, "config", None)
    plan = dict(_plan(model, config))
    if not plan:
        raise SplitError("plan", model=type(model).__name__)
    for name in HEADS:
        heads = getattr(config, name, None) or degree
        if heads % degree:
            raise SplitError("heads", name=name, heads=heads, degree=degree)
    found = {}
    for name, module in model.named_modules():
        if [*module.parameters(recurse=False)] and [*module.children()]:
            raise SplitError("outside", name=name or type(model).__name__)
        for pattern, style in plan.items():
            if re.fullmatch(pattern, name):
                found[name] = _how(name, module, style, degree)
    if (tokens := _tokens(model)) is not None and tokens[1].embedding_dim % degree == 0:
        found[tokens[0]] = "gathered"
    several = _shared(model)
    return {name: how for name, how in found.items() if name not in several}


def side(how: str, module: nn.Module) -> int:
    """Return the dimension along which a layer's weight is split."""
    return 1 if how == "inputs" or isinstance(module, nn.Embedding) else 0


def _plan(model: Any, config: Any) -> Iterator[tuple[str, str]]:
    """Yield a pattern of names and a style for each entry of the plan."""
    base = getattr(model, "base_model_prefix", "")
    prefix = f"{base}." if base and hasattr(model, base) else ""
    for name, style in (getattr(config, "base_model_tp_plan", None) or {}).items():
        yield _pattern(prefix + name), style
    for name, style in (getattr(type(model), "_tp_plan", None) or {}).items():
        yield _pattern(name), style


def _pattern(name: str) -> str:
    return re.escape(name).replace(r"\*", r"\d+")


def _how(name: str, module: nn.Module, style: str, degree: int) -> str:
    how = STYLES.get(style)
    if how is None or (how != "heads" and not isinstance(module, nn.Linear)):
        raise SplitError("style", name=name, style=style)
    if isinstance(module, nn.Linear):
        size = module.in_features if how == "inputs" else module.out_features
        if size % degree:
            raise SplitError("size", name=name, size=size, degree=degree)
    return how


def _tokens(model: Any) -> tuple[str, nn.Embedding] | None:
    """Return the table of tokens and its name."""
    find = getattr(model, "get_input_embeddings", None)
    table = find() if find is not None else None
    names = [name for name, module in model.named_modules() if module is table]
    return (names[0], table) if isinstance(table, nn.Embedding) else None


def _shared(model: nn.Module) -> set[str]:
    """Return the names of modules that share a weight with another."""
    names: dict[int, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(parameter), []).append(name.rpartition(".")[0])
    return {name for each in names.values() if len(each) > 1 for name in each}
