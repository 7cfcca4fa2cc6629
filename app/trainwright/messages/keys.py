"""What people call the keys of a plan file: the window shows labels where files have keys."""

import re
from functools import lru_cache
from typing import Any

from trainwright.messages.catalogue import Language, known, render
from trainwright.messages.message import Message

_SECTIONS = ("settings.", "workload.inputs.", "workload.", "machine.", "limits.")
_KEY = re.compile(r"\b(?:settings|workload|machine|limits)(?:\.[a-z_]+)+")


def short(key: str) -> str:
    """Return a key without the section that the form shows it in."""
    section = next((each for each in _SECTIONS if key.startswith(each)), "")
    return key.removeprefix(section)


def key_name(key: str) -> Message | None:
    """Return what the form calls a key; None for one that no place of the window shows."""
    ids = (f"ui.key.{key}", f"ui.key.{short(key)}", f"ui.key.loader.{key}")
    return next((Message.of(id) for id in ids if known(id)), None)


def value_name(key: str, value: Any) -> Any:
    """Return what the form calls a value of a key, or the value itself."""
    match value:
        case bool():
            return Message.of("ui.on" if value else "ui.off")
        case str():
            kind = short(key).removeprefix("optimizer_")  # both kinds of offloading share words
            word, _, spacing = value.partition("-")
            if kind == "checkpointing" and word == "every":
                return Message.of("ui.checkpointing.every", spacing=int(spacing))
            id = f"ui.{kind}.{value}"
            return Message.of(id) if known(id) else value
    return value


def said(message: Message, language: Language) -> str:
    """Return a sentence that calls settings and their values as the form of a plan does."""
    if not message.values:
        return _plain(message.id, language)
    return spelled_out(render(_worded(message), language), language)


@lru_cache(maxsize=2048)
def _plain(id: str, language: Language) -> str:
    """Return a sentence without values: a screen has hundreds of them."""
    return spelled_out(render(Message.of(id), language), language)


def _worded(message: Message) -> Message:
    """Return a message that calls its setting, and values of it, as the form does."""
    values = {name: _inner(value) for name, value in message.values.items()}
    key = values.get("setting")
    if isinstance(key, str):
        values = {name: value_name(key, value) for name, value in values.items()}
        values["setting"] = key_name(key) or key
    return Message.of(message.id, **values)


def _inner(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_inner(each) for each in value]
    return _worded(value) if isinstance(value, Message) else value


@lru_cache(maxsize=512)
def _label(key: str, language: Language) -> str:
    name = key_name(key)
    return f"“{render(name, language)}”" if name is not None else key


def spelled_out(sentence: str, language: Language) -> str:
    """Return a sentence with labels in place of keys: “Micro-batch” for settings.micro_batch."""
    return _KEY.sub(lambda found: _label(found[0], language), sentence)
