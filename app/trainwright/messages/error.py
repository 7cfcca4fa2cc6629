"""The error that carries a sentence for people."""

from typing import Any

from trainwright.messages.catalogue import render
from trainwright.messages.message import Message


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
        return render(self.message, "en")
