"""Reading of catalog YAML: plain data only, of a sane size, with the line of what is wrong."""

from pathlib import Path
from typing import Any

from trainwright import reading
from trainwright.catalog.compiled import MAX_BYTES
from trainwright.quoting import one_line
from trainwright.yamltext import Document, parse


def read_yaml(path: Path) -> Any:
    """Return the plain data in a YAML file.

    Raises:
        UserError: as ``read_document``.
    """
    return read_document(path).data


def read_document(path: Path, name: str = "") -> Document:
    """Return the plain data in a YAML file, with the line of each key.

    ``name`` is what messages call the file; its path where there is none.

    Raises:
        UserError: the file cannot be read, is too large, or is not YAML as we take it.
    """
    name = name or one_line(str(path), 300)
    return parse(reading.text(path, MAX_BYTES, name), name)
