"""What a record holds, in words, for a person who is about to keep or send one."""

from trainwright.diagnose.evidence import Evidence
from trainwright.messages import Message

_PARTS = (
    "command", "gpus", "host", "steps", "throughput", "loading", "counters", "setup", "profile",
    "experiments", "trials", "failure", "source", "note",
)  # fmt: skip


def contents(evidence: Evidence) -> tuple[Message, ...]:
    """Return a line for each part that a record of the evidence has, and what none has."""
    held = (part for part in _PARTS if getattr(evidence, part) not in (None, "", ()))
    return *(Message.of(f"diagnose.holds.{part}") for part in held), Message.of(
        "diagnose.holds.not"
    )
