"""No sentence is left over, and none that a schema's check needs is missing."""

import ast
import re
from pathlib import Path

import pytest
from babel.messages.pofile import read_po

import trainwright
from trainwright.data import resources

PACKAGE = Path(trainwright.__file__).parent
AREAS = sorted(path.stem for path in resources("i18n", "en").glob("*.po"))


def ids(area: str) -> list[str]:
    with resources("i18n", "en", f"{area}.po").open("rb") as file:
        found = [message.id for message in read_po(file) if message.id]
    return [id[0] if isinstance(id, tuple) else id for id in found]


def texts_in_code() -> tuple[set[str], list[re.Pattern[str]]]:
    """Return the strings that code holds, and patterns of those that it puts together."""
    whole: set[str] = set()
    made: list[re.Pattern[str]] = []
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Constant(value=str(text)):
                    whole.add(text)
                case ast.JoinedStr(values=parts) if "." in _fixed(parts):
                    made.append(re.compile("".join(map(_pattern, parts))))
    return whole, made


def _fixed(parts: list[ast.expr]) -> str:
    return "".join(str(part.value) for part in parts if isinstance(part, ast.Constant))


def _pattern(part: ast.expr) -> str:
    return re.escape(str(part.value)) if isinstance(part, ast.Constant) else "[^ ]+"


WHOLE, MADE = texts_in_code()


@pytest.mark.parametrize("area", AREAS)
def test_every_sentence_is_used(area: str) -> None:
    left_over = [
        id
        for id in ids(area)
        if id not in WHOLE and not any(pattern.fullmatch(id) for pattern in MADE)
    ]
    assert left_over == []


def test_every_check_of_a_schema_has_its_sentence() -> None:
    known = {id for area in AREAS for id in ids(area)}
    named = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "PydanticCustomError":
                named.add(ast.literal_eval(node.args[0]))
    assert named
    assert named <= known
