"""The record's file, which is whole or not there."""

import errno
import os
import tempfile
from pathlib import Path


def replaced(path: Path, text: str) -> None:
    """Put the text in the file's place in one step; a link stays a link.

    The training loop's interpreter has none of our other modules, ``saving`` among them.

    Raises:
        OSError: it cannot be written, or is a folder, a device or a pipe.
    """
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    path = Path(os.path.realpath(path))
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".record")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)  # not synced: the drive is the training's
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
