"""The value that stands for a sentence, and the error that carries one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True, slots=True)
class Message:
    """A sentence by its catalogue id, with the values that its placeholders take.

    Ids are dotted, area first: ``plan.unknown-key``. Values are numbers in base
    units (bytes, seconds), text, or further messages.
    """

    id: str
    values: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, id: str, /, **values: Any) -> "Message":
        """Return a message with the given values."""
        return cls(id, MappingProxyType(values))

    def __hash__(self) -> int:
        return hash((self.id, tuple(sorted(self.values))))


class UserError(Exception):
    """Input or a situation that a person can put right; always one clear sentence."""

    def __init__(self, message: Message) -> None:
        super().__init__(message.id)
        self.message = message

    @classmethod
    def of(cls, id: str, /, **values: Any) -> "UserError":
        """Return an error whose sentence is ``id`` with the given values."""
        return cls(Message.of(id, **values))

    def __str__(self) -> str:
        from trainwright.messages.catalogue import render

        return render(self.message, "en")
