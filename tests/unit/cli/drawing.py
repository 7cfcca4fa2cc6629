"""Random values of our file models, at the ends of what they allow."""

import json
import types
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt, MaxLen
from pydantic import BaseModel, ValidationError

SIZES = (1e-24, 1e-12, 1e-6, 0.001, 0.3, 1.0, 3.0, 40.0, 1e3, 1e6, 1e9, 1e12, 1e18, 1e24)
WORDS = (
    "aten::addmm", "aten::mm", "sgemm", "nccl:all_reduce", "cudaMemcpyAsync HtoD", "loader", "adam",
    "NVIDIA GeForce RTX 3090", "A100-SXM4-80GB", "1g.10gb", "RTX 4090", "8 cores", "half", "none",
    "fp32", "bf16", "cuda", "cpu", "sixteen times", "from 2 to 3", "x", "", "9" * 150, "0", "²",
)  # fmt: skip


def drawn(kind: Any, chance: Any, bounds: tuple = ()) -> Any:
    """Return plain data of a type: of a model a mapping, of a number one of odd size."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        told = [each for each in inner[1:] if isinstance(each, (Ge, Gt, Le, Lt, MaxLen))]
        told += [one for each in inner[1:] for one in getattr(each, "metadata", ())]
        return drawn(inner[0], chance, (*bounds, *told))
    if origin is Literal:
        return chance.choice(inner)
    if origin in (Union, types.UnionType):
        return drawn(chance.choice([each for each in inner if each is not type(None)]), chance)
    if origin is tuple:
        items = inner[:1] * chance.choice((1, 1, 2, 4)) if inner[-1] is ... else inner
        return [drawn(each, chance) for each in items]
    if origin is dict:
        return {drawn(inner[0], chance): drawn(inner[1], chance) for _ in range(2)}
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return model(kind, chance)
    return _plain(kind, chance, bounds)


def model(kind: type[BaseModel], chance: Any) -> dict[str, Any]:
    """Return data of a model: what it must have, and of the rest as much as chance wants."""
    share = chance.choice((0.2, 0.5, 0.9))
    return {
        field.alias or name: drawn(field.annotation, chance, tuple(field.metadata))
        for name, field in kind.model_fields.items()
        if field.is_required() or chance.random() < share
    }


def valid(kind: type[BaseModel], data: dict[str, Any]) -> dict[str, Any]:
    """Return the data without what its model refuses."""
    for _ in range(40):
        try:
            kind.model_validate_json(json.dumps(data), strict=True)
        except ValidationError as error:
            for one in error.errors():
                _drop(data, one["loc"], one["type"])
        else:
            break
    return data


def _drop(data: Any, place: tuple, why: str) -> None:
    """Take away what stands at a place; of a whole that does not fit together, one key of it."""
    holder, key = None, None
    for part in place:
        inner = data.get(part) if isinstance(data, dict) else None
        inner = data[part] if isinstance(data, list) and part in range(len(data)) else inner
        if inner is None:
            break
        holder, key, data = data, part, inner
    if isinstance(data, dict) and "." in why and data:
        data.popitem()
    elif holder is not None:
        holder.pop(key)


def _plain(kind: Any, chance: Any, bounds: tuple) -> Any:
    if kind is bool:
        return chance.random() < 0.5
    if kind is str:
        longest = next((each.max_length for each in bounds if isinstance(each, MaxLen)), 100)
        return chance.choice(WORDS)[:longest]
    if kind in (int, float):
        return _within(kind, chance.choice((0.0, *SIZES)), bounds)
    return None


def _within(kind: Any, value: float, bounds: tuple) -> float:
    """Return a number, or where that is not allowed the nearest end of what is."""
    if kind is int:
        value = min(int(value), (1 << 63) - 1)
    for each in bounds:
        match each:
            case Ge(least):
                value = max(value, least)
            case Gt(least):
                value = value if value > least else (least + (1 if kind is int else 1e-24))
            case Le(most):
                value = min(value, most)
            case Lt(most):
                value = min(value, most - 1 if kind is int else most * 0.999)
    return kind(value)
