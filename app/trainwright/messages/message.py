"""The value that stands for a sentence."""

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
