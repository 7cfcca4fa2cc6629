"""Record files: what comes in is checked, what goes out comes back."""

import contextlib
import json
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwright.diagnose import record
from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.trials import Changed
from trainwright.messages import LANGUAGES, UserError, render

FULL = {
    "trainwright_record": 1,
    "made_by": "hand",
    "gpus": [
        {
            "name": "NVIDIA A100",
            "utilisation": {"mean": 0.34, "low": 0.0, "high": 0.97},
            "throttled": {"power-cap": 0.2},
        }
    ],
    "host": {"usable_cores": 1.5, "foreign_top": ["ffmpeg"]},
    "steps": {"steps": 50, "seconds": 0.31, "data_wait": 0.2},
    "counters": {"steps": 50, "empty_cache": 0},
    "setup": {"batch": 8, "dims": [768, 50257], "precision": "fp32"},
    "profile": {"kernels_a_step": 812, "top": [{"name": "aten::mm", "share": 0.4}]},
    "unavailable": {"gpus.sm_active": "probe.not-supported"},
}


def test_what_is_written_comes_back(tmp_path: Path) -> None:
    path = tmp_path / f"run{record.SUFFIX}"
    path.write_text(json.dumps(FULL), encoding="utf-8")
    evidence = record.read(path)
    record.write(evidence, path)
    assert record.read(path) == evidence
    assert json.loads(path.read_text(encoding="utf-8")) == FULL


def test_absent_is_not_zero() -> None:
    evidence = record.parsed(json.dumps(FULL), "run")
    assert evidence.counters is not None
    assert evidence.counters.empty_cache == 0
    assert evidence.counters.alloc_retries is None
    assert "alloc_retries" not in record.text_of(evidence)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not JSON"),
        ('{"trainwright_record": 1', "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "trainwright_record"),
        ("{}", "trainwright_record"),
        ('{"trainwright_record": 2, "stesp": 1}', "update"),
        ('{"trainwright_record": true}', "trainwright_record"),
        ('{"trainwright_record": "1"}', "trainwright_record"),
        ('{"trainwright_record": 1, "stesp": {}}', "steps"),
        ('{"trainwright_record": 1, "gpus": [{"utilization": {"mean": 0.1}}]}', "utilisation"),
        ('{"trainwright_record": 1, "steps": {"steps": 3, "seconds": -1}}', "steps.seconds"),
        ('{"trainwright_record": 1, "steps": {"steps": 3, "seconds": NaN}}', "steps.seconds"),
        ('{"trainwright_record": 1, "steps": {"steps": "3", "seconds": 1}}', "steps.steps"),
        ('{"trainwright_record": 1, "watched_seconds": 1e999}', "watched_seconds"),
        ('{"trainwright_record": 1, "profile": {"idle": 34}}', "profile.idle"),
        ('{"trainwright_record": 1, "gpus": 0}', "gpus"),
        ('{"trainwright_record": 1, "gpus": [{"utilisation": {"mean": 35}}]}', "35 % is 0.35"),
        ('{"trainwright_record": 1, "host": {"utilisation": {"mean": 0.5, "high": 90}}}', "host"),
        (
            '{"trainwright_record": 1, "steps": {"steps": 9, "seconds": 1, "data_wait": 5}}',
            "data_wait is longer than the step itself",
        ),
        ('{"trainwright_record": 1, "note": "' + "x" * 3000 + '"}', "note"),
        ('{"trainwright_record": 1, "watched_seconds": ' + "9" * 9000 + "}", "run"),
    ],
)
def test_a_damaged_record_is_refused_in_one_line(text: str, says: str) -> None:
    with pytest.raises(UserError) as refused:
        record.parsed(text, "run")
    for language in LANGUAGES:
        assert "\n" not in render(refused.value.message, language)
    assert str(refused.value).startswith("run")
    assert says in str(refused.value)


def test_files_that_are_none_are_refused(tmp_path: Path) -> None:
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00")
    large = tmp_path / "large"
    large.write_bytes(b" " * (record.MAX_BYTES + 1))
    for path, says in (
        (tmp_path / "absent", "no such file"),
        (tmp_path, "folder"),
        (binary, "UTF-8"),
        (large, "larger"),
        (Path("nul\0l"), "no such file"),
    ):
        with pytest.raises(UserError, match=says):
            record.read(path)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.floats()
    | st.integers()
    | st.sampled_from(["", "x", "\0\udc80"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*Evidence.model_fields, "mean", "steps"]), inner)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from([*Evidence.model_fields]), JSON))
def test_no_document_breaks_the_reader(data: dict[str, object]) -> None:
    with contextlib.suppress(UserError):
        record.parsed(json.dumps(data | {"trainwright_record": 1}), "run")


def test_the_documentation_names_every_part_and_its_example_is_a_record() -> None:
    text = (Path(__file__).parents[3] / "docs" / "diagnosis.md").read_text(encoding="utf-8")
    for part in Evidence.model_fields.keys() - {"trainwright_record", "made_by", "source", "note"}:
        if part not in ("command", "watched_seconds", "readings"):
            assert f"| `{part}` |" in text, part
    for changed in get_args(Changed):
        assert f"`{changed}`" in text, changed
    example = text.partition("```json\n")[2].partition("```")[0]
    assert record.parsed(example, "docs").trials[0].factor == 8
