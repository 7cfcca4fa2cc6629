"""The sentence that a value of a record cannot be true."""

from trainwright.catalog.part_records import PartRecord
from trainwright.messages import Message


def contradicted(part: PartRecord, key: str, stated: object, because: Message) -> Message:
    """Return that the value stated under a key of a part cannot be true, and why."""
    if isinstance(stated, float):
        stated = f"{stated:g}"
    return Message.of("catalog.contradicts", part=part.id, key=key, stated=stated, because=because)
