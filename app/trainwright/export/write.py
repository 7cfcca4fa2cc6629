"""Writing of exported files: all of them or none, and nobody else's overwritten."""

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from trainwright import saving
from trainwright.messages import UserError

Files = Mapping[str, str]
"""Path below the export folder, with forward slashes -> text, written as UTF-8."""


def write(files: Files, folder: Path, *, overwrite: bool = False) -> tuple[Path, ...]:
    """Write the files into the folder and return their paths in order.

    All are staged and synced to the drive first, then renamed into place: a new folder in one
    step, files of a folder that is there one by one, each old or new at any moment. Where a
    rename fails, those done before are taken back. Other files in the folder stay as they are.

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
    beside = folder if folder.exists() else folder.parent
    stage = Path(tempfile.mkdtemp(prefix=".export-", dir=beside))
    try:
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
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def _swap(files: Files, new: Path, folder: Path, old: Path) -> None:
    undo: list[tuple[Path, Path | None]] = []
    try:
        for name in files:
            goal = folder / name
            goal.parent.mkdir(parents=True, exist_ok=True)
            kept: Path | None = None
            if goal.exists():
                goal = goal.resolve()  # a link stays one
                kept = old / name
                kept.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(goal, kept)
                shutil.copymode(goal, new / name)
            os.replace(new / name, goal)
            undo.append((goal, kept))
    except OSError:
        for goal, kept in reversed(undo):
            if kept is None:
                goal.unlink(missing_ok=True)
            else:
                os.replace(kept, goal)
        raise
