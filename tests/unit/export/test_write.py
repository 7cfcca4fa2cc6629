import os
import sys
from pathlib import Path

import pytest

from trainwright.export import write
from trainwright.messages import UserError

FILES = {"train.py": "x = 1\n", "model/config.json": "{}\n"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "내 학습 폴더" / "run 1"


def test_writes_every_file_and_leaves_no_trace_of_staging(folder: Path) -> None:
    paths = write(FILES, folder)
    assert [path.read_text(encoding="utf-8") for path in paths] == list(FILES.values())
    assert [path.name for path in folder.parent.iterdir()] == ["run 1"]


def test_same_files_again_are_no_conflict(folder: Path) -> None:
    write(FILES, folder)
    write(FILES, folder)


def test_refuses_to_overwrite_another_file_by_name(folder: Path) -> None:
    write(FILES, folder)
    (folder / "train.py").write_text("mine = True\n")
    with pytest.raises(UserError, match=r"train\.py"):
        write(FILES, folder)
    assert (folder / "train.py").read_text() == "mine = True\n"


def test_overwrites_when_asked_and_keeps_other_files(folder: Path) -> None:
    write(FILES, folder)
    (folder / "train.py").write_text("mine = True\n")
    (folder / "notes.txt").write_text("keep me")
    write(FILES, folder, overwrite=True)
    assert (folder / "train.py").read_text() == "x = 1\n"
    assert (folder / "notes.txt").read_text() == "keep me"


def test_failure_half_way_restores_what_was_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = {"train.py": "old\n", "model/config.json": "old\n"}
    write(old, folder)
    replace = os.replace

    def failing(source: Path, goal: Path) -> None:
        if Path(goal) == folder / "model/config.json" and "new" in Path(source).parts:
            raise PermissionError(13, "Permission denied")
        replace(source, goal)

    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises(UserError, match="Permission denied"):
        write(FILES, folder, overwrite=True)
    assert {name: (folder / name).read_text() for name in old} == old


def test_every_file_is_the_old_one_or_the_new_one_at_any_moment(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = {"train.py": "old\n", "model/config.json": "old\n"}
    write(old, folder)
    replace, seen = os.replace, []

    def watched(source: Path, goal: Path) -> None:
        replace(source, goal)
        seen.extend((folder / name).read_text() for name in old)

    monkeypatch.setattr(os, "replace", watched)
    write(FILES, folder, overwrite=True)
    assert set(seen) == {"old\n", *FILES.values()}
    assert [path.name for path in folder.parent.iterdir()] == ["run 1"]
    assert sorted(path.name for path in folder.iterdir()) == ["model", "train.py"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pipes in folders")
def test_what_is_not_a_file_is_never_replaced_and_a_link_stays(folder: Path) -> None:
    folder.mkdir(parents=True)
    pipe, real = folder / "train.py", folder / "real.json"
    os.mkfifo(pipe)
    with pytest.raises(UserError, match="not a regular file"):
        write(FILES, folder, overwrite=True)
    assert pipe.is_fifo()
    assert [path.name for path in folder.iterdir()] == ["train.py"]
    pipe.unlink()
    real.write_text("old")
    pipe.symlink_to(real)
    write(FILES, folder, overwrite=True)
    assert pipe.is_symlink()
    assert real.read_text() == "x = 1\n"


def test_a_link_to_outside_of_the_folder_is_refused(folder: Path) -> None:
    folder.mkdir(parents=True)
    outside = folder.parent / "victim"
    outside.write_text("theirs")
    (folder / "train.py").symlink_to(outside)
    with pytest.raises(UserError, match="outside of the folder"):
        write(FILES, folder, overwrite=True)
    assert outside.read_text() == "theirs"


def test_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "taken"
    path.write_text("")
    with pytest.raises(UserError, match="taken is a file"):
        write(FILES, path)
    assert path.read_text() == ""
