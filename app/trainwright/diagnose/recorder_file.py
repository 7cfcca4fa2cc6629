"""The record's file, which is whole or not there."""

import os
import tempfile
from pathlib import Path


def replaced(path: Path, text: str) -> None:
    """Put the text in the file's place in one step."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".record")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
