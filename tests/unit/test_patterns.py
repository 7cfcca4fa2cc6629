"""Every regular expression takes time in proportion to its text, on the worst text for it."""

import ast
import dataclasses
import importlib
import re
import time
from functools import cache
from pathlib import Path

import pytest

import trainwright

PACKAGE = Path(trainwright.__file__).parent
PROGRAMS = "worker/programs/"
CALLS = {"compile", "match", "search", "fullmatch", "sub", "subn", "findall", "finditer", "split"}
MEGABYTE = 1 << 20
SIFTED = 1 << 10
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


USES = re.compile(rf"(\w+)\.({'|'.join(sorted(CALLS))})\b")
"""A name, and how it is asked: ``_DATE.fullmatch``."""


@cache
def _everywhere():
    """Return how the whole package asks the patterns of each name."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        for name, how in USES.findall(path.read_text(encoding="utf-8")):
            found.setdefault(name, set()).add(how)
    return found


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


SOURCES = [
    path.relative_to(PACKAGE).as_posix()
    for path in sorted(PACKAGE.rglob("*.py"))
    if any(name == "re" for name, _ in USES.findall(path.read_text(encoding="utf-8")))
]


def _tree(source):
    return ast.parse((PACKAGE / source).read_text(encoding="utf-8"))


def _patterns(source):
    """Return the patterns of a module with how they are asked; in tables, by the loops' names."""
    found = {}
    for how, pattern, _ in _calls(_tree(source)):
        if isinstance(pattern, ast.Constant) and how != "compile":
            found.setdefault(re.compile(pattern.value), set()).add(how)
    if source.startswith(PROGRAMS) or source == "__main__.py":
        return found
    module = "trainwright." + source.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    own = USES.findall((PACKAGE / source).read_text(encoding="utf-8"))
    in_loops = {how for name, how in own if name in ("pattern", "words", "each")}
    for name, value in vars(importlib.import_module(module)).items():
        for pattern in _held(value):
            how = _everywhere().get(name, set()) if value is pattern else in_loops
            found.setdefault(pattern, set()).update(how or {"search"})
    return found


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


ESCAPED = "diagnose/recorder/redact.py"
"""Its patterns are of this computer's own words, escaped. ``test_redact`` times them."""


def test_no_pattern_is_built_where_it_cannot_be_seen():
    """What is not a constant stands compiled at a module's top, where the next test finds it."""
    hidden = []
    for source in SOURCES:
        tree = _tree(source)
        top = [node for node in tree.body if not isinstance(node, (ast.FunctionDef, ast.ClassDef))]
        seen = {id(each) for node in top for each in ast.walk(node)}
        for how, pattern, line in _calls(tree):
            found = isinstance(pattern, ast.Constant) or (how == "compile" and id(pattern) in seen)
            if not found and not source.startswith(PROGRAMS):
                hidden.append(f"{source}:{line}")
    assert {place.rpartition(":")[0] for place in hidden} == {ESCAPED}, hidden


@pytest.mark.parametrize("source", SOURCES)
def test_a_megabyte_of_a_patterns_worst_text_takes_at_most_a_second(source):
    slow = [
        pattern.pattern for pattern, asked in _patterns(source).items() if _slow(pattern, asked)
    ]
    assert slow == []


def _slow(pattern, asked):
    texts = list(_worst(pattern, SIFTED))
    worst = sorted(range(len(texts)), key=lambda each: -_seconds(pattern, asked, texts[each]))[:1]

    def slowest(length):
        longer = _worst(pattern, length, only=worst)
        return max((_seconds(pattern, asked, text) for text in longer), default=0.0)

    # Step by step: what is more than quadratic would not end on a long text.
    if any(slowest(SIFTED << more) > CPU_SECONDS for more in range(1, 5)):
        return True
    part, whole = slowest(MEGABYTE // 32), slowest(MEGABYTE // 8)
    squared = 64 * whole
    in_proportion = whole <= 6 * part and 12 * whole <= CPU_SECONDS
    if squared <= CPU_SECONDS or in_proportion:
        return False
    # Three times, for a busy computer may be slow once.
    return all(slowest(MEGABYTE) > CPU_SECONDS for _ in range(3))
