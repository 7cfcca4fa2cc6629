"""Ollama's Modelfile: instructions, one a line, with texts over several lines."""

import re
from typing import Any

from trainwright.messages import UserError
from trainwright.yamltext import Document, Place, scalar

_INSTRUCTION = re.compile(r"\s{0,80}([A-Za-z]{1,40})\s{1,80}(.*)")
_WORDS = ("FROM", "PARAMETER", "TEMPLATE", "SYSTEM", "ADAPTER", "LICENSE", "MESSAGE", "REQUIRES")


def looks_like(text: str) -> bool:
    """Return whether the first instruction is ``FROM``."""
    lines = (line.strip() for line in text.splitlines())
    first = next((line for line in lines if line and not line.startswith("#")), "")
    words = first.split()
    return len(words) == 2 and words[0].lower() == "from"


def parsed(text: str, name: str) -> Document:
    """Return the instructions as data: ``FROM``, and the parameters below ``PARAMETER``.

    Raises:
        UserError: a line is not an instruction.
    """
    data: dict[str, Any] = {}
    lines: dict[Place, int] = {}
    quoted = False
    for number, line in enumerate(text.splitlines(), 1):
        inside, quoted = quoted, quoted ^ (line.count('"""') % 2 == 1)
        if inside or not line.strip() or line.lstrip().startswith("#"):
            continue
        found = _INSTRUCTION.fullmatch(line)
        if found is None or found[1].upper() not in _WORDS:
            raise UserError.of(
                "review.not-parsed",
                file=f"{name}:{number}",
                format="Modelfile",
                problem=line.strip()[:60],
            )
        word, rest = found[1].upper(), found[2].strip()
        if word == "PARAMETER":
            key, _, value = rest.partition(" ")
            data.setdefault(word, {})[key] = _value(value.strip())
            lines[(word, key)] = number
        else:
            data[word] = rest
            lines[(word,)] = number
    return Document(data, lines)


def _value(text: str) -> Any:
    try:
        return scalar(text)
    except ValueError:
        return text
