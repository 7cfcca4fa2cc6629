"""What is left after a crash, and what is not."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trainwright.data import resources
from trainwright.plan import file, recovery
from trainwright.plan.recovery import Autosave, offered

EXAMPLE = resources("examples", "llama-8b-lora.plan.yaml")
PLAN = file.read(EXAMPLE)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRAINWRIGHT_STATE", str(tmp_path / "상태 폴더"))
    return tmp_path


CRASH = """
import os, sys
from pathlib import Path
from trainwright.plan import file, recovery
kept = recovery.Autosave()
assert kept.keep(file.read(sys.argv[1]), Path(sys.argv[2]))
os._exit(9)
"""


def test_a_crash_leaves_the_plan_and_where_it_came_from(tmp_path: Path) -> None:
    origin = tmp_path / "내 'plan' 1.plan.yaml"
    subprocess.run([sys.executable, "-c", CRASH, str(EXAMPLE), str(origin)], check=False)
    (found,) = offered()
    assert found.plan == PLAN
    assert found.origin == origin
    assert abs(found.kept_at - time.time()) < 60
    found.discard()
    assert offered() == ()
    assert list(recovery.folder().iterdir()) == []


def test_a_plan_that_is_open_in_another_window_is_not_offered() -> None:
    kept = Autosave()
    kept.keep(PLAN, None)
    assert offered() == ()
    kept.clear()


def test_saving_or_closing_leaves_nothing() -> None:
    kept = Autosave()
    kept.keep(PLAN, None)
    kept.keep(PLAN.model_copy(update={"name": "later"}), None)
    kept.clear()
    assert offered() == ()
    assert list(recovery.folder().iterdir()) == []


def test_a_copy_that_cannot_be_read_is_passed_over(state: Path) -> None:
    recovery.folder().mkdir(parents=True)
    broken = recovery.folder() / "x.plan.yaml"
    broken.write_bytes(b"\xff\xff")
    assert offered() == ()
    assert broken.exists()


def test_where_nothing_can_be_written_work_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("", encoding="utf-8")
    monkeypatch.setenv("TRAINWRIGHT_STATE", str(in_the_way))
    kept = Autosave()
    assert not kept.keep(PLAN, None)
    kept.clear()
    assert offered() == ()


def test_the_newest_comes_first(tmp_path: Path) -> None:
    for age, name in ((20, "old"), (10, "new")):
        path = recovery.folder() / f"{name}.plan.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.text_of(PLAN.model_copy(update={"name": name})), encoding="utf-8")
        os.utime(path, (time.time() - age, time.time() - age))
    assert [found.plan.name for found in offered()] == ["new", "old"]
    assert [found.origin for found in offered()] == [None, None]
