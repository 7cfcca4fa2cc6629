"""Owned parts that the first choice leaves idle, each with the reason."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from trainwright.build.answer import Candidate
from trainwright.build.request import Owned
from trainwright.catalog import PsuRecord, find_part
from trainwright.machine.build import Build
from trainwright.machine.checks import checks
from trainwright.machine.power import power
from trainwright.messages import Message

_SINGLE = ("cpu", "board", "psu", "case", "cooler")
"""Kinds of which a computer has one: another one is tried in its place."""


def idle(first: Candidate | None, owned: Sequence[Owned]) -> Iterator[Message]:
    """Yield which owned parts the first choice does without, and why."""
    if first is None or first.build.board is None:
        return
    taken = {(part.kind, part.id) for part in first.parts}
    for one in owned:
        if (one.kind, one.id) in taken:
            continue
        record = find_part(one.kind, one.id)
        because = None
        if one.kind in _SINGLE:
            because = _forbids(replace(first.build, **{one.kind: record}))  # type: ignore[arg-type]
        id = "planner.note.idle" if because is not None else "planner.note.idle-slower"
        yield Message.of(id, part=record.name, because=because)


def _forbids(build: Build) -> Message | None:
    """Return why the computer does not work like this, or cannot be checked; None where it does."""
    need = power(build).recommended_psu_w
    if isinstance(build.psu, PsuRecord) and build.psu.watts < need:
        return Message.of("planner.note.idle-psu", watts=build.psu.watts, need=need)
    said = checks(build)
    grave = (one for verdict in ("error", "unknown") for one in said if one.verdict == verdict)
    return next((one.message for one in grave), None)
