"""What was measured stays, and a broken file costs no more than its contents."""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from trainwright.explain import Unit
from trainwright.messages import UserError, render
from trainwright.probe import measurements
from trainwright.probe.measurements import Measurement

READ = Measurement(
    what="drive.read.seq1m-q8t1",
    value=3.5e9,
    unit=Unit.BYTES_PER_SECOND,
    on="Samsung SSD 990 PRO 2TB",
    date="2026-03-01T10:00:00+00:00",
    low=3.4e9,
    high=3.6e9,
    conditions={"filesystem": "ext4", "size": 1 << 30, "direct": True},
    versions={"fio": "3.36"},
    flags=("cached",),
)


def test_what_was_measured_is_there_in_the_next_run() -> None:
    measurements.keep([READ])
    assert measurements.load() == measurements.Kept((READ,))


def test_another_measurement_of_the_same_takes_its_place_and_others_stay() -> None:
    other = replace(READ, on="a hard disk", value=2e8)
    again = replace(READ, value=3e9, date="2026-04-01T10:00:00+00:00")
    measurements.keep([READ, other])
    found = measurements.keep([again])
    assert found.measurements == (other, again)
    assert found.latest("drive.read.seq1m-q8t1") == again
    assert found.latest("drive.read.seq1m-q8t1", "a hard disk") == other
    assert found.latest("gemm.bfloat16") is None
    assert found.below("drive") == (other, again)
    assert found.below("driv") == ()


def test_another_driver_is_another_measurement() -> None:
    gemm = replace(READ, what="gemm.bfloat16", versions={"driver": "570.1"})
    newer = replace(gemm, versions={"driver": "580.2"})
    assert measurements.keep([gemm, newer]).measurements == (gemm, newer)


def test_forgetting_leaves_other_benchmarks() -> None:
    gemm = replace(READ, what="gemm.bfloat16")
    measurements.keep([READ, gemm])
    measurements.forget("drive")
    assert measurements.load().measurements == (gemm,)
    measurements.forget()
    assert measurements.load().measurements == ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"format": 1}',
        '{"format": "1", "records": []}',
        '{"format": 1, "records": [{"what": "x"}]}',
        '{"format": 1, "records": [{"value": NaN}]}',
        "[" * 100_000,
        "\x00\xff",
    ],
)
def test_a_damaged_file_is_set_aside_with_one_line(text: str) -> None:
    file = measurements.path()
    file.parent.mkdir(parents=True)
    file.write_bytes(text.encode("latin-1"))
    found = measurements.load()
    assert found.measurements == ()
    assert found.note is not None
    assert "set aside" in render(found.note, "en")
    assert file.with_name("measurements.json.damaged").read_bytes() == text.encode("latin-1")
    assert measurements.load() == measurements.Kept()
    assert measurements.keep([READ]).measurements == (READ,)


def test_a_value_that_is_no_number_damages_the_file() -> None:
    measurements.keep([READ])
    file = measurements.path()
    file.write_text(file.read_text().replace("3500000000.0", "Infinity"))
    assert measurements.load().note is not None


def test_a_file_of_a_later_version_is_left_alone() -> None:
    file = measurements.path()
    file.parent.mkdir(parents=True)
    text = json.dumps({"format": 2, "records": {"new": "shape"}})
    file.write_text(text)
    found = measurements.load()
    assert found.note is not None
    assert found.note.id == "kept.later"
    with pytest.raises(UserError, match="later version"):
        measurements.keep([READ])
    assert file.read_text() == text


@pytest.mark.skipif(sys.platform == "win32", reason="folders have no such mode there")
def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    monkeypatch.setenv("XDG_DATA_HOME", str(blocked))
    with pytest.raises(UserError, match="cannot be kept"):
        measurements.keep([READ])


def test_nothing_is_left_where_the_write_fails(monkeypatch) -> None:
    measurements.keep([READ])
    before = sorted(measurements.folder().iterdir())

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match="No space left"):
        measurements.keep([replace(READ, on="another")])
    assert sorted(measurements.folder().iterdir()) == before
    assert measurements.load().measurements == (READ,)
