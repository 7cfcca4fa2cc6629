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


@pytest.fixture(scope="module")
def code() -> list[ast.AST]:
    """Return the texts and the calls that code holds."""
    return [
        node
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant | ast.JoinedStr | ast.Call)
    ]


def _fixed(parts: list[ast.expr]) -> str:
    return "".join(str(part.value) for part in parts if isinstance(part, ast.Constant))


def _pattern(part: ast.expr) -> str:
    return re.escape(str(part.value)) if isinstance(part, ast.Constant) else "[^ ]+"


def test_every_sentence_is_used(code: list[ast.AST]) -> None:
    texts = {node.value for node in code if isinstance(node, ast.Constant)}
    made = [
        re.compile("".join(map(_pattern, node.values)))
        for node in code
        if isinstance(node, ast.JoinedStr) and "." in _fixed(node.values)
    ]
    left_over = [
        (area, id)
        for area in AREAS
        for id in ids(area)
        if id not in texts and not any(pattern.fullmatch(id) for pattern in made)
    ]
    assert left_over == []


def test_every_check_of_a_schema_has_its_sentence(code: list[ast.AST]) -> None:
    known = {id for area in AREAS for id in ids(area)}
    named = {
        ast.literal_eval(node.args[0])
        for node in code
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "PydanticCustomError"
    }
    assert named
    assert named <= known
