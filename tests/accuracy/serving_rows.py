"""Published times of serving, and what the app's own estimate says of each."""

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from zlib import crc32

from trainwright.catalog import find_gpu
from trainwright.data import resources
from trainwright.estimate import kv, weights
from trainwright.estimate.engines import ENGINES
from trainwright.estimate.serving_pass import (
    Load,
    ServingCalibration,
    ServingModel,
    decode_load,
    prefill_s,
    serving_model,
)
from trainwright.profile.presets import presets

HERE = Path(__file__).parent
PARAMETERS = {"llama-2-7b": 6_738_415_616, "llama-2-13b": 13_015_864_320}
"""As Llama 2's model cards count them."""


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

    @property
    def held_out(self) -> bool:
        """The rule of ``rows/serving.md``."""
        return crc32(self.gpu.encode()) % 3 == 0

    @property
    def publisher(self) -> str:
        return self.source.partition(",")[0].partition(" ")[0].removeprefix("github.com/")


@cache
def rows() -> tuple[Row, ...]:
    numbers = {"requests": int, "prompt": int, "new": int, "seconds": float}
    with (HERE / "rows" / "serving.csv").open(encoding="utf-8", newline="") as file:
        return tuple(
            Row(**{name: numbers.get(name, str)(line[name]) for name in Row.__annotations__})
            for line in csv.DictReader(file)
        )


@cache
def architecture(name: str) -> tuple[weights.Inventory, kv.CacheShape]:
    if name in PARAMETERS:
        path, parameters = HERE / "models" / f"{name}.json", PARAMETERS[name]
    else:
        path = resources("presets", name, "config.json")
        parameters = presets()[name].parameters
    config = json.loads(path.read_text(encoding="utf-8"))
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
    return serving_model(inventory, shape, engine, record, format=row.weights, dtype=dtype)


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
    return (row for row in rows() if not row.excluded and row.engine != "transformers")
