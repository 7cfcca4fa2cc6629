"""One thing that works here, or does not, or cannot be told."""

from dataclasses import dataclass

from trainwright.messages import Message


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check of ``trainwright doctor`` found."""

    check: str
    """Stable name; ``cli.doctor.<check>`` is what people read."""
    works: bool | None
    """None: cannot check."""
    because: Message
    needed: bool = False
    """Whether the program is broken without it."""
