"""Every regular expression takes time in proportion to its text, on the worst text for it."""

import ast
import dataclasses
import importlib
import pkgutil
import re
import time
from pathlib import Path

import pytest

import trainwright

PACKAGE = Path(trainwright.__file__).parent
PROGRAMS = PACKAGE / "worker" / "programs"
CALLS = {"compile", "match", "search", "fullmatch", "sub", "subn", "findall", "finditer", "split"}
MEGABYTE = 1 << 20
SIFTED = 1 << 11
"""Characters of the texts among which a pattern's worst is found."""
CPU_SECONDS = 1.0
"""That a pattern may take for a megabyte of its worst text."""


def _held(value, depth=0):
    """Yield the compiled patterns in a module's global, also those in tables."""
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, (tuple, list, set, frozenset, dict)) and depth < 4:
        for each in value.values() if isinstance(value, dict) else value:
            yield from _held(each, depth + 1)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type) and depth < 3:
        for field in dataclasses.fields(value):
            yield from _held(getattr(value, field.name), depth)


def _modules():
    for found in pkgutil.walk_packages([str(PACKAGE)], "trainwright."):
        if not found.name.startswith(("trainwright.worker.programs", "trainwright.__main__")):
            yield importlib.import_module(found.name)


def _calls(tree):
    """Yield the calls of functions of ``re`` in a module: name, first argument, line."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "re"
            and node.func.attr in CALLS
        ):
            yield node.func.attr, node.args[0], node.lineno


def _sources():
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path, ast.parse(path.read_text(encoding="utf-8"))


def _constants():
    """Yield the patterns that are written where they are used, and how they are."""
    for _, tree in _sources():
        for how, pattern, _ in _calls(tree):
            if isinstance(pattern, ast.Constant) and how != "compile":
                yield re.compile(pattern.value), how


def _asked(tree):
    """Return how a module asks the patterns of each name: ``_DATE.fullmatch``."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found.setdefault(node.value.id, set()).add(node.attr)
    return found


def _patterns():
    """Return every pattern with how it is asked; those in tables by the names of the loops."""
    found = {}
    for pattern, how in _constants():
        found.setdefault((pattern.pattern, pattern.flags), (pattern, set()))[1].add(how)
    asked = {path: _asked(tree) for path, tree in _sources()}
    everywhere: dict[str, set[str]] = {}
    for one in asked.values():
        for name, hows in one.items():
            everywhere.setdefault(name, set()).update(hows)
    for module in _modules():
        own = asked[Path(module.__file__)]
        in_loops = {how for name in ("pattern", "words", "each") for how in own.get(name, ())}
        for name, value in vars(module).items():
            for pattern in _held(value):
                how = everywhere.get(name, set()) if value is pattern else in_loops
                _, known = found.setdefault((pattern.pattern, pattern.flags), (pattern, set()))
                known |= how & CALLS or {"search"}
    return list(found.values())


# The worst texts


PARSER = re._parser
REPEATS = {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"}


def _one(items):
    """Return a character of a set."""
    for kind, value in items:
        match str(kind):
            case "LITERAL":
                return chr(value)
            case "RANGE":
                return chr(value[0])
            case "CATEGORY":
                return {"DIGIT": "1", "SPACE": " ", "WORD": "a"}.get(
                    str(value).removeprefix("CATEGORY_"), "-"
                )
    return "~"


def _least(parsed):
    """Return a short text that a parsed pattern matches, or nearly."""
    return "".join(map(_least_of, parsed))


def _least_of(node):
    kind, value = str(node[0]), node[1]
    match kind:
        case "LITERAL":
            return chr(value)
        case "NOT_LITERAL" | "ANY":
            return "~"
        case "IN":
            return _one(value)
        case "BRANCH":
            return _least(value[1][0])
        case "SUBPATTERN":
            return _least(value[3])
        case "ATOMIC_GROUP":
            return _least(value)
        case _ if kind in REPEATS:
            return _least(value[2]) * max(1, value[0])
    return ""


def _partial(parsed, before=""):
    """Yield the texts that a pattern has matched on the way, and what it may repeat behind each."""
    for node in parsed:
        kind, value = str(node[0]), node[1]
        match kind:
            case "BRANCH":
                for branch in value[1]:
                    yield from _partial(branch, before)
            case "SUBPATTERN":
                yield from _partial(value[3], before)
            case "ATOMIC_GROUP":
                yield from _partial(value, before)
            case _ if kind in REPEATS:
                yield from _partial(value[2], before)
                yield before, _least(value[2])
        before += _least_of(node)
        yield before, ""


def _worst(pattern, length, only=None):
    """Yield texts that make a pattern try long, and fail late; ``only`` picks some of them."""
    texts = {}
    for before, repeated in _partial(PARSER.parse(pattern.pattern, pattern.flags)):
        texts |= {("", before + between, ""): None for between in ("", " ", "\n") if before}
        if repeated:
            ends = ("", "\0", before)
            texts |= {(before, repeated, end): None for end in ends}
            texts |= {("", before + repeated * 40, ""): None, ("", repeated, " ~" + repeated): None}
    for number, (start, unit, end) in enumerate(texts):
        if only is None or number in only:
            text = start + unit * (length // len(unit)) + end
            yield text.encode() if isinstance(pattern.pattern, bytes) else text


def _seconds(pattern, asked, text):
    began = time.process_time()
    if "fullmatch" in asked:
        pattern.fullmatch(text)
    if "match" in asked:
        pattern.match(text)
    if asked - {"fullmatch", "match"}:
        for _ in pattern.finditer(text):
            pass
    return time.process_time() - began


def _shown(value):
    return ascii(value.pattern)[:60] if isinstance(value, re.Pattern) else ""


ESCAPED = "diagnose/recorder/redact.py"
"""Its patterns are of this computer's own words, escaped. ``test_redact`` times them."""


def test_no_pattern_is_built_where_it_cannot_be_seen():
    """What is not a constant stands compiled at a module's top, where the next test finds it."""
    hidden = []
    for path, tree in _sources():
        top = [node for node in tree.body if not isinstance(node, (ast.FunctionDef, ast.ClassDef))]
        seen = {id(each) for node in top for each in ast.walk(node)}
        for how, pattern, line in _calls(tree):
            found = isinstance(pattern, ast.Constant) or (how == "compile" and id(pattern) in seen)
            if not found and PROGRAMS not in path.parents:
                hidden.append(f"{path.relative_to(PACKAGE)}:{line}")
    assert {place.rpartition(":")[0] for place in hidden} == {ESCAPED}, hidden


@pytest.mark.parametrize(("pattern", "asked"), _patterns(), ids=_shown)
def test_a_megabyte_of_a_patterns_worst_text_takes_at_most_a_second(pattern, asked):
    texts = list(_worst(pattern, SIFTED))
    worst = sorted(range(len(texts)), key=lambda each: -_seconds(pattern, asked, texts[each]))[:1]

    def slowest(length):
        longer = _worst(pattern, length, only=worst)
        return max((_seconds(pattern, asked, text) for text in longer), default=0.0)

    part, whole = slowest(MEGABYTE // 32), slowest(MEGABYTE // 8)
    squared = 64 * whole
    in_proportion = whole <= 6 * part and 12 * whole <= CPU_SECONDS
    assert squared <= CPU_SECONDS or in_proportion or slowest(MEGABYTE) <= CPU_SECONDS
