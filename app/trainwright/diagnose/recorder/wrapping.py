"""Calls of a library wrapped while recording, and put back after."""

import functools
from typing import Any

from .notes import Notes


def put(recorder: Notes, holder: Any, name: str, value: Any) -> None:
    """Put a value in the place of ``holder.name`` until recording ends."""
    own = name in vars(holder)
    previous = vars(holder).get(name)
    setattr(holder, name, value)
    recorder.undo.append(lambda: setattr(holder, name, previous) if own else delattr(holder, name))


def put_before(recorder: Notes, holder: Any, name: str, note: Any) -> None:
    """Have ``note`` called with the same arguments before each call of ``holder.name``."""
    original = getattr(holder, name, None)
    if original is None:
        return

    @functools.wraps(original)
    def call(*arguments: Any, **named: Any) -> Any:
        note(*arguments, **named)
        return original(*arguments, **named)

    put(recorder, holder, name, call)
