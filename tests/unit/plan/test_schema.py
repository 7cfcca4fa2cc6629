"""The JSON Schema that editors use says what the program does."""

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml

from trainwright.data import resources

SCHEMA = json.loads(resources("schema", "plan.schema.json").read_text(encoding="utf-8"))
EXAMPLES = sorted(resources("examples").glob("*.plan.yaml"))
SCRIPT = Path(__file__).parents[3] / "scripts" / "plan_schema.py"


def test_the_shipped_schema_is_fresh(tmp_path: Path) -> None:
    code = f"import runpy, sys; sys.stdout.write(runpy.run_path({str(SCRIPT)!r})['text']())"
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert json.loads(made.stdout) == SCHEMA, "run scripts/plan_schema.py"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_is_valid(path: Path) -> None:
    jsonschema.validate(yaml.safe_load(path.read_text(encoding="utf-8")), SCHEMA)


def test_a_typing_error_is_seen_in_the_editor() -> None:
    plan = yaml.safe_load(EXAMPLES[0].read_text(encoding="utf-8"))
    plan["settings"]["micro_bach"] = 2
    with pytest.raises(jsonschema.ValidationError, match="micro_bach"):
        jsonschema.validate(plan, SCHEMA)


def test_every_setting_is_explained() -> None:
    settings = SCHEMA["$defs"]["Settings"]["properties"]
    explained = {name for name, field in settings.items() if field.get("description")}
    assert set(settings) - explained <= {"loader"}
