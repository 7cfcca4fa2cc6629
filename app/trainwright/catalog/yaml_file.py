"""Reading of catalog YAML: plain data only, of a sane size, with the line of what is wrong."""

from pathlib import Path
from typing import Any

from trainwright.catalog.compiled import MAX_BYTES
from trainwright.messages import UserError
from trainwright.yamltext import Document, parse


def read_yaml(path: Path) -> Any:
    """Return the plain data in a YAML file.

    Raises:
        UserError: as ``read_document``.
    """
    return read_document(path).data


def read_document(path: Path, name: str = "") -> Document:
    """Return the plain data in a YAML file, with the line of each key.

    ``name`` is what messages call the file; its own name where there is none.

    Raises:
        UserError: the file cannot be read, is too large, or is not YAML as we take it.
    """
    name = name or path.name
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise UserError.of("catalog.file-too-large", file=name, size=size, limit=MAX_BYTES)
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise UserError.of("catalog.file-unreadable", file=name, reason=reason) from error
    except UnicodeDecodeError as error:
        raise UserError.of("catalog.file-not-utf8", file=name) from error
    return parse(text, name)
