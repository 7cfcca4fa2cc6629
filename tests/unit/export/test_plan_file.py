"""The exported plan.json is read strictly, before torch is imported."""

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from exporting import llama, put, settings, start

from trainwright.data import resources


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return put(tmp_path / "run", "plain", llama(tmp_path / "model"))


@pytest.fixture
def plan_file(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    for part in ("shared", "run"):
        monkeypatch.syspath_prepend(str(resources("export", part)))
    yield importlib.import_module("plan_file")
    for name in ("plan_file", "strict"):
        del sys.modules[name]


def change(folder: Path, keys: str, value: Any) -> Path:
    path = folder / "plan.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    *sections, last = keys.split(".")
    target = document
    for section in sections:
        target = target[section]
    target[last] = value
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_what_was_exported_is_accepted(folder: Path, plan_file: ModuleType) -> None:
    assert plan_file.read_plan(folder / "plan.json").batch.effective == 8


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("batch.micor", 2, "batch.micor: unknown key; did you mean micro?"),
        ("shedule", {}, "shedule: unknown key; did you mean schedule?"),
        ("batch.micro", 3, "micro 3 x accumulation 4 x gpus 1 = 12, but effective is 8"),
        ("batch.micro", "2", "batch.micro: '2' is not a whole number"),
        ("batch.micro", True, "batch.micro: True is not a whole number"),
        ("settings.precision", "bf61", "settings.precision: 'bf61' is not one of fp32"),
        ("settings.checkpointing", "every-1", "settings.checkpointing: 'every-1' is not"),
        ("schedule.learning_rate", float("nan"), "schedule.learning_rate: nan is not a number"),
        ("schedule.learning_rate", 0, "schedule.learning_rate: 0.0 is not above 0"),
        ("task", "lora", "lora: must be given for lora and qlora alone, but task is lora"),
        ("format", 2, "format 2, but this program reads 1"),
        ("run.output", None, "run.output: None is not text"),
        ("lora", [], "lora: not an object"),
    ],
)
def test_what_is_wrong_is_named(
    folder: Path, plan_file: ModuleType, key: str, value: Any, says: str
) -> None:
    path = change(folder, key, value)
    with pytest.raises(plan_file.InputError) as caught:
        plan_file.read_plan(path)
    assert says in str(caught.value)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("text", ["", "[]", "{", "null", "\x00\x01"])
def test_junk_is_refused(folder: Path, plan_file: ModuleType, text: str) -> None:
    path = folder / "plan.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(plan_file.InputError, match=r"plan\.json"):
        plan_file.read_plan(path)


def test_the_allocator_is_set_before_torch_is_imported(tmp_path: Path) -> None:
    plan = llama(tmp_path / "model")
    folder = put(tmp_path / "run", "plain", plan, settings(allocator="expandable"))
    text = (folder / "train.py").read_text(encoding="utf-8")
    assert text.index('"PYTORCH_ALLOC_CONF", "expandable') < text.index("\nimport torch\n")
    native = put(tmp_path / "native", "plain", plan)
    change(native, "settings.allocator", "expandable")
    done = start([sys.executable, "train.py", "--synthetic", "--cpu"], native)
    assert done.returncode == 2
    assert "PYTORCH_ALLOC_CONF=expandable_segments:True" in done.stderr.strip().splitlines()[-1]
