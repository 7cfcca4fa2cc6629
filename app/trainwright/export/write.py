"""Writing of exported files: all of them or none, and nobody else's overwritten."""

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from trainwright import saving
from trainwright.messages import UserError

Files = Mapping[str, str]
"""Path below the export folder, with forward slashes -> text, written as UTF-8."""

_STAGE = re.compile(r"\.export-[a-z0-9_]{8}")
"""What ``tempfile`` makes of our beginning."""


def write(files: Files, folder: Path, *, overwrite: bool = False) -> tuple[Path, ...]:
    """Write the files into the folder and return their paths in order.

    All are staged and synced to the drive first, then renamed into place: a new folder in one
    step, files of a folder that is there one by one, each old or new at any moment. Where a
    rename fails, those done before are taken back. Other files in the folder stay as they are,
    and what exports that were killed left there goes.

    Raises:
        UserError: the folder is a file, cannot be written, holds something that is not a file
            under one of the names, or other text and ``overwrite`` is false.
    """
    try:
        if folder.exists() and not folder.is_dir():
            raise UserError.of("export.not-a-folder", path=str(folder))
        for name in files:
            saving.check_name(folder / name)
            _refuse_to_leave(folder, name)
        if not overwrite:
            _refuse_to_overwrite(files, folder)
        folder.parent.mkdir(parents=True, exist_ok=True)
        _replace_all(files, folder)
    except OSError as error:
        reason = saving.reason(error)
        raise UserError.of("export.cannot-write", path=str(folder), reason=reason) from error
    return tuple(folder / name for name in files)


def _refuse_to_leave(folder: Path, name: str) -> None:
    """Refuse a name that is a link to outside of the folder."""
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise UserError.of("export.leaves-folder", path=str(path), goal=str(path.resolve()))


def _refuse_to_overwrite(files: Files, folder: Path) -> None:
    taken = [
        name
        for name, text in files.items()
        if (folder / name).exists() and not _holds(folder / name, text)
    ]
    if taken:
        raise UserError.of(
            "export.would-overwrite", path=str(folder), first=taken[0], count=len(taken)
        )


def _holds(path: Path, text: str) -> bool:
    return path.is_file() and path.read_bytes() == text.encode()


def _replace_all(files: Files, folder: Path) -> None:
    with _staging(folder if folder.exists() else folder.parent) as stage:
        new = stage / "new"
        for name, text in files.items():
            path = new / PurePosixPath(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            saving.replace(path, text.encode())
        if folder.exists():
            _swap(files, new, folder, stage / "old")
        else:
            new.mkdir(exist_ok=True)
            os.replace(new, folder)


@contextmanager
def _staging(beside: Path) -> Iterator[Path]:
    """Make a folder for as long as it is needed; those of killed exports go."""
    for left in saving.left_behind(beside, _STAGE):
        shutil.rmtree(left, ignore_errors=True)
    while True:
        stage = Path(tempfile.mkdtemp(prefix=".export-", dir=beside))
        if sys.platform == "win32":  # folders cannot be opened
            handle = None
            break
        handle = os.open(stage, os.O_RDONLY)
        if saving.mark(handle):
            break
        os.close(handle)
    try:
        yield stage
    finally:
        shutil.rmtree(stage, ignore_errors=True)
        if handle is not None:
            os.close(handle)


def _swap(files: Files, new: Path, folder: Path, old: Path) -> None:
    """Put the new files in the place of the old ones.

    All that takes time comes first; what is left is one rename after the other.
    """
    goals = {name: (folder / name).resolve() for name in files}  # a link stays one
    kept = {name: old / name for name, goal in goals.items() if goal.exists()}
    for name, goal in goals.items():
        goal.parent.mkdir(parents=True, exist_ok=True)
        if name in kept:
            kept[name].parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(goal, kept[name])
            shutil.copymode(goal, new / name)
    done: list[str] = []
    try:
        for name, goal in goals.items():
            os.replace(new / name, goal)
            done.append(name)
    except OSError:
        for name in reversed(done):
            if name in kept:
                os.replace(kept[name], goals[name])
            else:
                goals[name].unlink(missing_ok=True)
        raise
