"""What is left after a crash, and what is not."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trainwright import locks
from trainwright.data import resources
from trainwright.messages import UserError
from trainwright.plan import file, recovery
from trainwright.plan.recovery import Autosave, Offered, Origin
from trainwright.plan.schema import Plan

EXAMPLE = resources("examples", "llama-8b-lora.plan.yaml")
PLAN = file.read(EXAMPLE)
TEXT = file.text_of(PLAN)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRAINWRIGHT_STATE", str(tmp_path / "상태 폴더"))
    return tmp_path


def offered() -> Offered[Plan]:
    return recovery.offered(file.SUFFIX, file.read)


def left(name: str, text: str = TEXT) -> Path:
    """Put a copy where a crashed program would have left it."""
    path = recovery.folder() / f"{name}.plan.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


CRASH = """
import os, sys
from pathlib import Path
from trainwright.plan import file, recovery
kept = recovery.Autosave(file.SUFFIX)
origin = recovery.Origin(Path(sys.argv[2]), "digest")
kept.keep(file.text_of(file.read(sys.argv[1])), origin)
os._exit(9)
"""


def test_a_crash_leaves_the_plan_and_where_it_came_from(tmp_path: Path) -> None:
    origin = tmp_path / "내 'plan' 1.plan.yaml"
    subprocess.run([sys.executable, "-c", CRASH, str(EXAMPLE), str(origin)], check=False)
    (found,) = offered().found
    assert found.document == PLAN
    assert found.origin == Origin(origin, "digest")
    assert abs(found.kept_at - time.time()) < 60
    found.discard()
    assert offered().found == ()
    assert list(recovery.folder().iterdir()) == []


def test_a_plan_that_is_open_in_another_window_is_not_offered() -> None:
    kept = Autosave(file.SUFFIX)
    kept.keep(TEXT, None)
    assert offered().found == ()
    kept.clear()


def test_two_windows_do_not_restore_the_same_copy() -> None:
    left("one")
    (found,) = offered().found
    first = Autosave.adopting(found)
    assert first is not None
    assert Autosave.adopting(found) is None
    first.keep(file.text_of(PLAN.model_copy(update={"name": "later"})), None)
    first.release()
    (again,) = offered().found
    assert (again.document.name, again.copy) == ("later", found.copy)


def test_saving_or_discarding_leaves_nothing() -> None:
    kept = Autosave(file.SUFFIX)
    kept.keep(TEXT, None)
    kept.keep(file.text_of(PLAN.model_copy(update={"name": "later"})), None)
    kept.clear()
    assert offered().found == ()
    assert list(recovery.folder().iterdir()) == []


@pytest.mark.parametrize(
    "content",
    [
        b"\xff\xff",
        b"",
        TEXT.encode()[:120],
        b"# origin: 5\n" + TEXT.encode(),
        b'# origin: {"a": 1\n' + TEXT.encode(),
        b"# origin: " + b"[" * 50_000 + b"\n" + TEXT.encode(),
    ],
    ids=["binary", "empty", "cut", "number", "object", "deep"],
)
def test_a_damaged_copy_is_set_aside_and_hides_no_other(content: bytes) -> None:
    broken, _ = left("broken"), left("whole")
    broken.write_bytes(content)
    found = offered()
    assert [one.copy.name for one in found.found] == ["whole.plan.yaml"]
    aside = broken.with_name(broken.name + ".damaged")
    assert aside.read_bytes() == content
    assert [str(aside) in str(UserError(note)) for note in found.notes] == [True]
    assert offered().notes == ()


def test_a_copy_of_a_later_version_is_left_alone() -> None:
    newer = left("newer", TEXT.replace("trainwright: 1", "trainwright: 2", 1))
    found = offered()
    assert (found.found, [note.id for note in found.notes]) == ((), ["plan.newer"])
    assert newer.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pipes in folders")
def test_what_is_not_a_file_of_a_plans_size_neither_hangs_nor_hides() -> None:
    whole = left("whole")
    os.mkfifo(whole.with_name("pipe.plan.yaml"))
    os.mkfifo(locks.path_of(whole))
    whole.with_name("folder.plan.yaml").mkdir()
    whole.with_name("device.plan.yaml").symlink_to("/dev/zero")
    with whole.with_name("huge.plan.yaml").open("wb") as huge:
        huge.truncate(1 << 40)
    start = time.monotonic()
    assert [one.copy for one in offered().found] == [whole]
    assert time.monotonic() - start < 5


def test_where_nothing_can_be_written_the_reason_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("", encoding="utf-8")
    monkeypatch.setenv("TRAINWRIGHT_STATE", str(in_the_way))
    kept = Autosave(file.SUFFIX)
    with pytest.raises(UserError, match="recovery"):
        kept.keep(TEXT, None)
    kept.clear()
    assert offered().found == ()


def test_a_copy_that_cannot_be_replaced_is_still_there(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Autosave(file.SUFFIX)
    kept.keep(TEXT, None)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(UserError, match="No space left"):
        kept.keep(file.text_of(PLAN.model_copy(update={"name": "later"})), None)
    kept.release()
    assert [one.document for one in offered().found] == [PLAN]


def test_what_killed_programs_left_half_made_goes_when_it_is_old() -> None:
    whole = left("whole")
    old = [whole.with_name(".x.saving"), whole.with_name("gone.plan.yaml.lock")]
    new = whole.with_name(".y.saving")
    for path in (*old, new):
        path.touch()
    for path in old:
        os.utime(path, (1, 1))
    offered()
    assert sorted(recovery.folder().iterdir()) == sorted([whole, new])


def test_the_newest_comes_first() -> None:
    for age, name in ((20, "old"), (10, "new")):
        path = left(name)
        os.utime(path, (time.time() - age, time.time() - age))
    found = offered().found
    assert [one.copy.name for one in found] == ["new.plan.yaml", "old.plan.yaml"]
    assert [one.origin for one in found] == [None, None]
