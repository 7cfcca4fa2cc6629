"""What a kind of file is: its keys, what they mean, and what its tool does by default."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from trainwright.data import resources


@dataclass(frozen=True, slots=True)
class Key:
    """What one key of a file says: the name of the fact, and how its value is read."""

    fact: str
    read: Callable[[Any], Any]
    """Returns None where the value says nothing; raises ValueError where it is none of the kind."""
    write: Callable[[Any], Any] | None = None
    """Fact's value -> the value in the file; None where we do not change the key."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of file, as data."""

    name: str
    tool: str
    """What people call it."""
    keys: Mapping[str, Key | tuple[Key, ...]]
    """Dotted key -> its meaning, or its meanings."""
    marks: frozenset[str]
    """Keys of which one at least must be there."""
    listed: str | None = None
    """Name in ``keys.json``: all keys that the tool declares. None: any key may be."""
    otherwise: Mapping[str, Any] = field(default_factory=dict)
    """Facts that hold where the file is silent, beside those of declared defaults."""
    moved: Mapping[str, str | None] = field(default_factory=dict)
    """Key of an earlier version -> what it is called now; None: it is gone."""
    warned: frozenset[str] = frozenset()
    """Keys of ``moved`` that the tool still takes, with a warning, and declares nowhere."""
    open: tuple[str, ...] = ()
    """Keys whose content is not the tool's: data sets, keyword arguments of others. ``""`` is the
    whole file."""
    strict: bool = True
    """Whether the tool refuses a key that it does not know; else it ignores it."""
    complete: bool = False
    """Whether ``keys`` and ``open`` name all that the tool takes, and it refuses others."""
    extended: bool = False
    """Whether scripts of its users declare keys of their own beside the tool's."""
    traced: bool = False
    """Whether the model is built from the whole file, so that each of its keys counts."""
    exclusive: tuple[tuple[str, str], ...] = ()
    """Pairs of keys that the tool refuses together."""
    gone_values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Key -> values that the tool no longer takes, with what to write in their place."""
    recipe: str | None = None
    """Of ``workload/recipes.py``: the loop that runs the step."""

    def meanings(self, name: str) -> tuple[Key, ...]:
        """Return what a dotted key means; nothing where it has no part in memory or time."""
        found = self.keys.get(name, ())
        return found if isinstance(found, tuple) else (found,)


@dataclass(frozen=True, slots=True)
class Declared:
    """What a tool's own sources declare."""

    keys: frozenset[str]
    defaults: Mapping[str, Any]
    read_from: Mapping[str, str]
    """Package -> version."""


@cache
def declared(name: str) -> Declared:
    """Return the keys that ``scripts/tool_keys.py`` found in a tool's sources."""
    text = resources("review", "keys.json").read_text(encoding="utf-8")
    one = json.loads(text)[name]
    return Declared(frozenset(one["keys"]), one["defaults"], one["read_from"])


# Reading of single values


def whole(value: Any) -> int | None:
    """Return a whole number of at least 1; None for the tools' ways to say "not set"."""
    if value is None or value is False or value in ("none", "None", "null"):
        return None
    number = float(value)
    if number != int(number):
        raise ValueError(value)
    return int(number) if number > 0 else None


def at_least_one(value: Any) -> int | None:
    """Return a whole number of at least 1, of what no tool runs without."""
    number = whole(value)
    if number is None and isinstance(value, (int, float)) and not isinstance(value, bool):
        raise ValueError(value)
    return number


def count(value: Any) -> int | None:
    """Return a whole number of at least 0."""
    if value is None:
        return None
    number = float(value)
    if number < 0 or number != int(number):
        raise ValueError(value)
    return int(number)


def real(value: Any) -> float | None:
    """Return a number; text of one too, as ``1e-4`` is to readers of YAML 1.1."""
    return None if value is None else float(value)


def positive(value: Any) -> float | None:
    """Return a number above 0; None where it is 0 or less."""
    number = real(value)
    return number if number is not None and number > 0 else None


def amount(value: Any) -> float | None:
    """Return a number of at least 0; text of one too."""
    number = real(value)
    if number is not None and number < 0:
        raise ValueError(value)
    return number


def truth(value: Any) -> bool | None:
    """Return a truth value as YAML 1.1, JSON and command lines write it."""
    if value is None or isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word in ("true", "yes", "on", "1"):
        return True
    if word in ("false", "no", "off", "0", ""):
        return False
    if word in ("auto", "none", "null"):
        return None
    raise ValueError(value)


def word(value: Any) -> str | None:
    """Return a text; None where there is none."""
    if value is None or value == "":
        return None
    if isinstance(value, (dict, list)):
        raise ValueError(value)
    return str(value)


def where(yes: Any, no: Any = None) -> Callable[[Any], Any]:
    """Return what reads a switch: ``yes`` where it is on, ``no`` where it is off."""
    return lambda value: {True: yes, False: no, None: None}[truth(value)]


def among(words: Mapping[str, Any]) -> Callable[[Any], Any]:
    """Return what reads one of some words, whatever their case; others are not understood."""

    def read(value: Any) -> Any:
        if value is None:
            return None
        key = str(value).strip().lower()
        if key not in words:
            raise ValueError(value)
        return words[key]

    return read


def back(words: Mapping[str, Any]) -> Callable[[Any], Any]:
    """Return what writes one of some words: the first that is read as the value."""
    return lambda value: next(key for key, meant in words.items() if meant == value)


def key(fact: str, read: Callable[[Any], Any] = word) -> Key:
    """Return a key that is written as it is read."""
    return Key(fact, read, lambda value: value)


ON = {"full": True, "none": False}.__getitem__
"""Writes checkpointing as a switch; no other word of it."""


def names(value: Any) -> tuple[str, ...] | None:
    """Return names of layers; None for "all linear ones", but ``all-linear``, PEFT's word."""
    if value is None or value in ("all", ""):
        return None
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return tuple(str(part) for part in value)
