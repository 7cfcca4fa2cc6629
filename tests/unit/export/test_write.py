import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from trainwright import saving
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


KILLED = """
import os, signal, sys
from pathlib import Path
from trainwright.export import write
folder, count, text = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
replace, done = os.replace, 0
def killing(source, goal):
    global done
    replace(source, goal)
    done += Path(goal).parent == folder
    if done == count:
        os.kill(os.getpid(), signal.SIGKILL)
os.replace = killing
if count == 0:
    import shutil
    shutil.copymode = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
write({f"{number}.txt": text for number in range(3)}, folder, overwrite=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_a_killed_export_leaves_old_or_new_files_and_the_next_one_tidies_up(
    folder: Path, count: int
) -> None:
    write({f"{number}.txt": "old" for number in range(3)}, folder)
    lookalikes = [folder / ".export-abcd_123", folder / ".export-mine", folder / ".abcd_123.saving"]
    lookalikes[0].symlink_to(folder.parent)
    lookalikes[1].mkdir()
    lookalikes[2].symlink_to(folder / "0.txt")
    command = [sys.executable, "-c", KILLED, str(folder), str(count), "new"]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    left = {number: (folder / f"{number}.txt").read_text() for number in range(3)}
    assert left == {number: "new" if number < count else "old" for number in range(3)}
    assert len(list(folder.glob(".export-*"))) == 3
    busy = subprocess.Popen(
        [sys.executable, "-c", "import sys, time; from trainwright import saving;"
         "handle = saving._temporary(__import__('pathlib').Path(sys.argv[1]));"
         "print(handle[1], flush=True); time.sleep(60)", str(folder)],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert busy.stdout is not None
    with busy, busy.stdout as told:
        used = Path(told.readline().strip())
        write({f"{number}.txt": "next" for number in range(3)}, folder, overwrite=True)
        saving.replace(folder / "0.txt", b"next")
        assert used.exists()  # its writer is alive
        busy.kill()
    saving.replace(folder / "0.txt", b"next")
    names = {path.name for path in folder.iterdir()}
    assert names == {f"{number}.txt" for number in range(3)} | {one.name for one in lookalikes}
    assert {(folder / f"{number}.txt").read_text() for number in range(3)} == {"next"}


def test_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "taken"
    path.write_text("")
    with pytest.raises(UserError, match="taken is a file"):
        write(FILES, path)
    assert path.read_text() == ""
