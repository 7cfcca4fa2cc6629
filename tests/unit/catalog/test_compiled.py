"""The compiled copy: fresh, verified by hash, and never needed."""

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from trainwright.catalog.compiled import from_json, sources_hash, to_json
from trainwright.catalog.compiler import compile_folder
from trainwright.catalog.copies import compiled_folder
from trainwright.catalog.gpu_file import GpuFile
from trainwright.catalog.part_kinds import KINDS
from trainwright.catalog.yaml_file import read_yaml
from trainwright.data import hardware_db, resources

SHIPPED = hardware_db("gpu")
COPY = resources("catalog", "gpu.json")
REMEDY = "run scripts/compile_catalog.py"


@pytest.mark.parametrize("kind", ["gpu", *KINDS])
def test_the_shipped_files_have_no_problem_and_compile_to_the_copy(kind):
    compiled = compile_folder(hardware_db(kind), kind)
    assert compiled.problems == ()
    shipped = resources("catalog", f"{kind}.json").read_text(encoding="utf-8")
    assert shipped == to_json(compiled)


def test_the_shipped_schema_is_fresh_and_accepts_the_shipped_files():
    schema = json.loads(resources("schema", "gpu.schema.json").read_text(encoding="utf-8"))
    assert schema == GpuFile.model_json_schema(by_alias=True), REMEDY
    validator = jsonschema.Draft202012Validator(schema)
    for path in SHIPPED.glob("*.yaml"):
        data = read_yaml(path)
        assert not list(validator.iter_errors(json.loads(json.dumps(data, default=str)))), path.name


def test_an_editor_marks_what_we_refuse():
    schema = GpuFile.model_json_schema(by_alias=True)
    for gpu in ({"tdp_w": -1}, {"tdp_w": "much"}, {"tdpw": 3}):
        card = {"id": "a", "name": "A", "memory_gib": 1} | gpu
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({"schema": 1, "gpus": [card]}, schema)


def test_a_copy_of_other_sources_is_not_used(tmp_path):
    folder = tmp_path / "gpu"
    folder.mkdir()
    text = (SHIPPED / "nvidia-volta.yaml").read_text(encoding="utf-8")
    (folder / "a.yaml").write_text(text.replace("memory_gib: 32", "memory_gib: 33"))
    compiled = compiled_folder(folder, COPY)
    assert compiled.records["v100-32gb-sxm"]["memory_bytes"]["value"] == 33 << 30
    assert "rtx-4090" not in compiled.records


def test_edited_sources_are_compiled_once_and_then_kept(tmp_path, monkeypatch):
    folder = tmp_path / "gpu"
    folder.mkdir()
    (folder / "a.yaml").write_bytes((SHIPPED / "nvidia-volta.yaml").read_bytes())
    first = compiled_folder(folder)
    assert list((tmp_path / "cache").rglob("*.json"))
    monkeypatch.setattr("trainwright.catalog.compiler.compile_folder", None)
    assert compiled_folder(folder).records == first.records


def test_a_damaged_cache_is_compiled_anew(tmp_path):
    folder = tmp_path / "gpu"
    folder.mkdir()
    (folder / "a.yaml").write_bytes((SHIPPED / "nvidia-volta.yaml").read_bytes())
    first = compiled_folder(folder)
    for kept in (tmp_path / "cache").rglob("*.json"):
        kept.write_text('{"sources": ')
    assert compiled_folder(folder).records == first.records


def test_a_cache_that_cannot_be_written_costs_only_speed(tmp_path):
    (tmp_path / "cache").write_text("a file where the folder should be")
    folder = tmp_path / "gpu"
    folder.mkdir()
    (folder / "a.yaml").write_bytes((SHIPPED / "nvidia-volta.yaml").read_bytes())
    assert "v100-16gb-sxm" in compiled_folder(folder).records


def test_line_endings_do_not_change_the_hash(tmp_path):
    unix, windows = tmp_path / "unix", tmp_path / "windows"
    for folder, ending in ((unix, b"\n"), (windows, b"\r\n")):
        folder.mkdir()
        (folder / "a.yaml").write_bytes(b"schema: 1" + ending)
    assert sources_hash(unix) == sources_hash(windows)


def test_what_is_written_is_what_is_read(tmp_path):
    compiled = compile_folder(SHIPPED)
    path = tmp_path / "copy.json"
    path.write_text(to_json(compiled), encoding="utf-8")
    again = from_json(path, compiled.sources)
    assert again.records == compiled.records
    assert {key: list(ids) for key, ids in again.names.items()} == compiled.names
    assert from_json(path, "another hash") is None


def test_a_fresh_copy_needs_neither_yaml_nor_file_models():
    """They cost more than the whole look-up; see ``compiled_folder``."""
    code = (
        "import sys; from trainwright.catalog import find_gpu; find_gpu('4090');"
        "print([m for m in ('yaml', 'trainwright.catalog.gpu_file', 'torch') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"


def test_every_message_of_the_catalog_exists_in_both_languages():
    import re

    from trainwright import catalog

    used: set[str] = set()
    for path in Path(catalog.__file__).parent.glob("*.py"):
        used |= set(re.findall(r'"(catalog\.[a-z0-9-]+)"', path.read_text(encoding="utf-8")))
    assert len(used) > 30
    for language in ("en", "ko"):
        text = resources("i18n", language, "catalog.po").read_text(encoding="utf-8")
        written = set(re.findall(r'msgid "(catalog\.[a-z0-9-]+)"', text))
        assert written == used
