"""JSON with comments and commas after the last value, as DeepSpeed reads it."""

import json
import re
from typing import Any

# What is never closed is taken to its end: each of many such would else be looked for in vain.
_STRING = r'"(?:\\.|[^"\\\n])*+"?'
_COMMENT = re.compile(rf"({_STRING})|//[^\n]*|#[^\n]*|/\*(?:.*?\*/|.*)", re.DOTALL)
_COMMA = re.compile(rf"({_STRING})|,(?=\s*[}}\]])")


def bare(text: str) -> str:
    """Return plain JSON of the same length: each character stays where it is."""
    for pattern in (_COMMENT, _COMMA):
        text = pattern.sub(lambda found: found[1] or re.sub(r"[^\n]", " ", found[0]), text)
    return text


def twice(text: str) -> tuple[str, ...]:
    """Return the keys that stand twice in one object, of which the last one holds."""
    found: list[str] = []

    def pairs(given: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in given]
        found.extend(name for name in dict.fromkeys(names) if names.count(name) > 1)
        return dict(given)

    json.loads(bare(text), object_pairs_hook=pairs)
    return tuple(found)
