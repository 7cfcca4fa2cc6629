"""Jupyter notebooks as Python: the code of their cells, without the lines that are not Python."""

import json
import re
from collections.abc import Iterator
from typing import Any

_MAGIC = re.compile(r"(?m)^([^\S\n]*+)[%!].*$")
"""A line for IPython or for the shell."""


def plain(code: str) -> str:
    """Return the code with each line that only IPython runs replaced by ``pass``."""
    if code.lstrip().startswith("%%"):  # a cell in another language
        return "\n" * code.count("\n")
    return _MAGIC.sub(r"\1pass", code)


def code(text: str) -> tuple[str, tuple[int, ...]] | None:
    """Return the code of all cells, and for each line of it the line of the file.

    None where the text is not that of a notebook.
    """
    try:
        data = json.loads(text)
        cells = [_lines(cell) for cell in data["cells"] if cell["cell_type"] == "code"]
    except (ValueError, RecursionError, TypeError, KeyError):
        return None
    lines = [line for cell in cells for line in plain("".join(cell)).split("\n")]
    written = [line for cell in cells for line in "".join(cell).split("\n")]
    return "\n".join(lines), tuple(_places(text, written))


def _lines(cell: Any) -> list[str]:
    source = cell["source"]
    return source.splitlines(keepends=True) if isinstance(source, str) else [*map(str, source)]


def _places(text: str, lines: list[str]) -> Iterator[int]:
    """Yield where each line of code stands in the file; that of the one before where it is lost."""
    at, number = 0, 1
    for line in lines:
        quoted = json.dumps(line, ensure_ascii=False)[1:-1]
        found = text.find(quoted, at) if line.strip() else -1
        if found >= 0:
            number += text.count("\n", at, found)
            at = found
        yield number
