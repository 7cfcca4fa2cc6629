"""Names of people stay out of what is shown, unless they are asked for."""

import getpass
from pathlib import Path

from trainwright.messages import Message

SHADOW = "…"
"""Stands for a person's name in a path."""


def without_names(text: str) -> str:
    """Return a path, or a text with paths in it, in which the user's own name is left out."""
    names = {Path.home().name, _user()} - {"", "root"}
    parts = text.replace("\\", "/").split("/")
    return "/".join(SHADOW if part in names else part for part in parts)


def anonymous(message: Message) -> Message:
    """Return a message in whose texts the user's own name is left out."""
    values = {
        key: without_names(value) if isinstance(value, str) else value
        for key, value in message.values.items()
    }
    return Message.of(message.id, **values)


def from_home(path: Path) -> str:
    """Return a path below the user's folder as ``~/...``, as shells take it; others as they are."""
    try:
        return f"~/{path.relative_to(Path.home()).as_posix()}"
    except ValueError:
        return str(path)


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return ""
