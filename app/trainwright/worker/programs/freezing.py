"""Which weights a training leaves as they are, by the names that a person gives them.

The tracer and the exported programs share it. Standard library only.
"""

import difflib
import re
from collections.abc import Iterable, Sequence


class UnknownNameError(LookupError):
    """A name that stands for no weight, with the nearest ones that do."""

    def __init__(self, name: str, near: Sequence[str]) -> None:
        super().__init__(f"{name}: no part of the model has this name; near: {', '.join(near)}")
        self.name, self.near = name, tuple(near)


def frozen(paths: Iterable[str], names: Sequence[str]) -> set[str]:
    """Return the parameters that the names stand for.

    A name is a module's or parameter's path, or any successive parts of it, as in
    ``embed_tokens``, ``model.norm`` or ``encoder.layers.0``; a part may be a range of numbers,
    as in ``layers.0-11``.

    Raises:
        UnknownNameError: one stands for nothing.
    """
    known = list(paths)
    found: set[str] = set()
    for name in names:
        mine = {path for path in known if _holds(path.split("."), name.split("."))}
        if not mine:
            raise UnknownNameError(name, nearest(name, known))
        found |= mine
    return found


def nearest(name: str, paths: Iterable[str]) -> list[str]:
    """Return the names, at most three, that are spelt most like this one."""
    parts = [path.split(".") for path in paths]
    single = {part for path in parts for part in path if not part.isdigit()}
    pairs = {".".join(path[at : at + 2]) for path in parts for at in range(len(path) - 1)}
    known = sorted(single | pairs) if "." in name else sorted(single)
    outermost = list(dict.fromkeys(path[0] for path in parts))
    return difflib.get_close_matches(name, known, n=3, cutoff=0.5) or outermost[:3]


def _holds(path: Sequence[str], name: Sequence[str]) -> bool:
    """Return whether the parts of the name follow one another somewhere in the path."""
    width = len(name)
    return any(
        all(map(_same, path[start : start + width], name)) for start in range(len(path) - width + 1)
    )


def _same(part: str, wanted: str) -> bool:
    span = re.fullmatch(r"(\d+)-(\d+)", wanted)
    if span is None:
        return part == wanted
    return part.isdigit() and int(span[1]) <= int(part) <= int(span[2])
