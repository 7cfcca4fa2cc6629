"""Published times of serving, and what the app's own estimate says of each."""

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

from trainwright.catalog import find_gpu
from trainwright.data import resources
from trainwright.estimate.parallel.communication import link_between
from trainwright.estimate.serving import kv, weights
from trainwright.estimate.serving.engines import ENGINES
from trainwright.estimate.serving.served_split import tensor_split
from trainwright.estimate.serving.serving_pass import (
    Load,
    ServingCalibration,
    ServingModel,
    decode_load,
    prefill_s,
    serving_model,
)
from trainwright.profile.presets import presets

HERE = Path(__file__).parent
PARAMETERS = {
    **{"llama-2-7b": 6_738_415_616, "llama-2-13b": 13_015_864_320, "llama-2-70b": 68_976_648_192},
    "qwen-2.5-72b": 72_706_203_648,
}
"""As their model cards count them."""
_LIKE: dict[str, tuple[str, dict[str, int]]] = {
    "llama-2-70b": ("llama-3.1-70b", {"vocab_size": 32000}),
    "qwen-2.5-72b": (
        "qwen-2.5-32b",
        {
            **{"hidden_size": 8192, "intermediate_size": 29568, "num_hidden_layers": 80},
            **{"num_attention_heads": 64, "num_key_value_heads": 8, "vocab_size": 152064},
        },
    ),
}
"""Configurations that differ from a preset's in sizes alone, as their own config.json says."""


@dataclass(frozen=True)
class Row:
    source: str
    gpu: str
    config: str
    engine: str
    precision: str
    weights: str
    kind: str
    requests: int
    prompt: int
    new: int
    seconds: float
    excluded: str
    gpus: int = 1

    @property
    def held_out(self) -> bool:
        """The rule of ``rows/serving.md``."""
        return crc32(self.gpu.encode()) % 3 == 0

    @property
    def publisher(self) -> str:
        return self.source.partition(",")[0].partition(" ")[0].removeprefix("github.com/")


@cache
def rows() -> tuple[Row, ...]:
    numbers = {"requests": int, "prompt": int, "new": int, "seconds": float, "gpus": int}
    with (HERE / "rows" / "serving.csv").open(encoding="utf-8", newline="") as file:
        return tuple(
            Row(**{name: numbers.get(name, str)(line[name]) for name in Row.__annotations__})
            for line in csv.DictReader(file)
        )


@cache
def architecture(name: str) -> tuple[weights.Inventory, kv.CacheShape]:
    if name in _LIKE:
        preset, sizes = _LIKE[name]
        path, parameters = resources("presets", preset, "config.json"), PARAMETERS[name]
        return _read(json.loads(path.read_text(encoding="utf-8")) | sizes, parameters, name)
    if name in PARAMETERS:
        path, parameters = HERE / "models" / f"{name}.json", PARAMETERS[name]
    else:
        path = resources("presets", name, "config.json")
        parameters = presets()[name].parameters
    return _read(json.loads(path.read_text(encoding="utf-8")), parameters, name)


def _read(
    config: dict[str, Any], parameters: int, name: str
) -> tuple[weights.Inventory, kv.CacheShape]:
    model, shape = weights.inventory(config, parameters), kv.read(config)
    assert model is not None, name
    assert shape is not None, name
    return model, shape


@cache
def vendor(gpu: str) -> str:
    return find_gpu(gpu).record.vendor


@cache
def model_of(row: Row) -> ServingModel:
    inventory, shape = architecture(row.config)
    engine, record = ENGINES[row.engine], find_gpu(row.gpu).record
    dtype = "fp8" if row.engine == "tensorrt-llm" and row.weights == "fp8" else row.precision
    split, parts = None, (row.gpus, inventory, shape, row.weights)
    if row.gpus > 1:
        split = tensor_split(*parts, None, width=2, link=link_between(record, 8))
    return serving_model(
        *(inventory, shape, engine, record), format=row.weights, dtype=dtype, split=split
    )


def predicted(row: Row, known: ServingCalibration | None = None) -> float:
    """Return the seconds of what the row measured; ``known``: constants that a fit tries."""
    model, engine = model_of(row), ENGINES[row.engine]
    if known is not None:
        family = known.families[known.engines[row.engine]]
        maker = known.makers[vendor(row.gpu)] if model.maker else None
        model = replace(model, constants=family, maker=maker)
    decode = (row.new - 1) * model.run(decode_load(row.requests, row.prompt, row.new)).seconds
    match row.kind:
        case "prefill" | "first":
            return prefill_s(model, engine, row.requests, row.prompt)
        case "tokens":
            return model.run(Load(row.requests, 1, row.prompt / 2)).seconds
        case "decode":
            return decode * row.new / (row.new - 1)
        case "round":
            return prefill_s(model, engine, row.requests, row.prompt) + decode
    assert row.kind == "layers"
    return model.layer(row.requests)


def compared() -> Iterator[Row]:
    """Rows that an engine's passes answer; transformers' are compared through its trace."""
    return (row for row in _answered() if row.gpus == 1)


def split() -> Iterator[Row]:
    """Rows of tensor parallelism: no constant of one GPU is fitted on them."""
    return (row for row in _answered() if row.gpus > 1)


def _answered() -> Iterator[Row]:
    return (row for row in rows() if not row.excluded and row.engine != "transformers")
