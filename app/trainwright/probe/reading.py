"""A reading, or the reason why there is none; a missing one is never 0."""

from dataclasses import dataclass

from trainwright.messages import Message


@dataclass(frozen=True, slots=True)
class Missing:
    """Stands where a reading would, and says why it does not."""

    reason: Message
