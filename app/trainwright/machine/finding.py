"""How rules say what they found."""

from typing import Any

from trainwright.machine.build import Check, Verdict
from trainwright.messages import Message


def found(
    rule: str,
    verdict: Verdict,
    id: str,
    *,
    source: str,
    remedy: Message | None = None,
    **values: Any,
) -> Check:
    """Return a check whose sentence and values are the same."""
    return Check(rule, verdict, Message.of(id, **values), values, source, remedy)


def unknown(rule: str, part: str, *fields: str, source: str = "") -> Check:
    """Return that a rule cannot be checked: of ``part``, nobody says ``fields``."""
    named = [Message.of(f"build.field.{field.replace('_', '-')}") for field in fields]
    message = Message.of("build.unknown", part=part, fields=named)
    return Check(rule, "unknown", message, {"part": part}, source, None, fields)
