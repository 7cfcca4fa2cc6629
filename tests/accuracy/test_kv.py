"""Bytes of keys and values against figures that others published, each with its source.

The column `dimensions` says where the model's layers and heads are from: `preset`, the
configuration that is shipped; `source`, read beside the figure or in the same project;
`memory`, written down without its configuration at hand, so that the row checks that the
figure and those dimensions agree.
"""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from trainwright.data import resources
from trainwright.estimate.serving import kv
from trainwright.estimate.serving.engines import ENGINES, served_bytes, token_bytes
from trainwright.estimate.serving.kv import CacheShape

HERE = Path(__file__).parent
UNITS = {"B": 1, "kB": 1000, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def rows() -> list[dict[str, str]]:
    with (HERE / "kv.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def shape_of(name: str) -> CacheShape:
    kind, _, preset = name.partition(":")
    path = resources("presets", preset, "config.json") if preset else HERE / "kv.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    shape = kv.read(config if preset else config[kind])
    assert shape is not None, name
    return shape


def estimated(row: dict[str, str]) -> float:
    shape, engine, dtype = shape_of(row["config"]), ENGINES[row["engine"]], row["dtype"]
    requests, tokens = int(row["requests"]), int(row["tokens"])
    match row["part"]:
        case "token":
            return token_bytes(shape, engine.forms[dtype])
        case "attention":  # without recurrent states and a cell's padding
            return tokens * requests * token_bytes(shape, engine.forms[dtype])
    assert row["part"] == "request"
    return served_bytes(shape, engine, dtype, requests, tokens)


def label(row: dict[str, str]) -> str:
    return f"{row['model']} {row['part']} {row['tokens']}"


@pytest.mark.parametrize("row", rows(), ids=label)
def test_figure_equals_the_published_one(row: dict[str, str]) -> None:
    decimals = len(row["published"].partition(".")[2])
    value = estimated(row) / UNITS[row["unit"]]
    assert f"{value:.{decimals}f}" == row["published"], row["source"]


def test_kinds_of_attention_are_told_apart() -> None:
    named: dict[str, str] = {row["config"]: row["kind"] for row in rows()}
    for config, kind in named.items():
        shape = shape_of(config)
        if kind == "window":
            assert shape.windows
        elif kind == "hybrid":
            assert shape.has_state
        else:
            assert shape.attention == kind
    assert {"mha", "gqa", "mqa", "mla", "window", "hybrid"} <= set(named.values())
    assert any(row["dtype"] in ("int8", "fp8") for row in rows())


def test_table_is_printed(capsys: Any) -> None:
    models = {row["model"].partition(" in ")[0] for row in rows()}
    assert len({row["config"] for row in rows() if row["dimensions"] != "memory"}) >= 10
    with capsys.disabled():
        print(f"\n\nKeys and values, {len(models)} models:")
        for row in rows():
            value = estimated(row) / UNITS[row["unit"]]
            print(
                f"  {row['model']:22} {row['kind']:7} {row['engine']:12} {row['dtype']:5}"
                f" {row['part']:9} {value:12.3f} {row['unit']:6} published {row['published']}"
                f"  {row['source']}"
            )
