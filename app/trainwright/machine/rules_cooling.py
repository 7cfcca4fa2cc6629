"""T: heat, and cards that cannot cool themselves."""

from collections.abc import Iterator
from typing import Any

from trainwright.machine.build import Check
from trainwright.machine.facts import Facts
from trainwright.machine.finding import found, unknown
from trainwright.messages import Message

BTU_PER_WATT_HOUR = 3.412
CASE_W, ROOM_W = 800.0, 1500.0
"""Policy: what a closed case gets rid of without much noise, and a room without cooling."""
CLOSE = ("mid-tower", "small", "cube")
THROTTLES_C = (70, 85)
"""Source: temperatures at which NVIDIA's cards begin to slow down, by model."""
HOT_FROM_W = 250.0
"""Assumed: smaller cards seldom throttle."""


def heat(facts: Facts) -> Iterator[Check]:
    """T1: all of it ends up in the case and in the room."""
    if not facts.build.gpus:
        return
    if facts.power.missing:
        cpu = facts.build.cpu.name if facts.build.cpu else ""
        part = facts.build.gpus[0].record.name if "gpu.tdp_w" in facts.power.missing else cpu
        yield unknown("T1", part, *facts.power.missing)
        return
    case = facts.build.case
    inside = facts.power.sustained.value
    watts = facts.power.wall_w or inside
    values: dict[str, Any] = {"watts": watts, "btu": watts * BTU_PER_WATT_HOUR}
    source = "policy: 800 W in a case, 1,500 W in a room; 1 W is 3.412 BTU/h"
    if watts > ROOM_W:
        remedy = Message.of("build.t1.remedy-room")
        yield found("T1", "warning", "build.t1.room", source=source, remedy=remedy, **values)
    elif inside > CASE_W and case is not None and case.kind is None and not facts.build.risers:
        yield unknown("T1", case.name, "case.kind", source=source)
    elif inside > CASE_W and case is not None and case.kind in CLOSE and not facts.build.risers:
        remedy = Message.of("build.t1.remedy-case")
        values["case"] = case.name
        yield found("T1", "warning", "build.t1.case", source=source, remedy=remedy, **values)
    else:
        yield found("T1", "ok", "build.t1.ok", source=source, **values)


def passive(facts: Facts) -> Iterator[Check]:
    """T2: cards without fans want a server's air flow."""
    for gpu in facts.build.gpus:
        card = gpu.record
        if card.form not in (None, "card"):
            continue
        if card.cooling == "passive":
            source = "NVIDIA, product briefs of passive cards: the server's fans cool them"
            remedy = Message.of("build.t2.remedy")
            yield found(
                "T2", "warning", "build.t2.warning", source=source, remedy=remedy, gpu=card.name
            )
        elif card.cooling is None and card.segment == "datacenter":
            yield unknown("T2", card.name, "gpu.cooling")


def throttling(facts: Facts) -> Iterator[Check]:
    """T3: what to watch once it runs."""
    hot = [gpu.record.name for gpu in facts.build.gpus if (gpu.watts or 0.0) >= HOT_FROM_W]
    if hot:
        source = "Hugging Face, performance documentation: 70 to 85 °C"
        low, high = THROTTLES_C
        yield found("T3", "note", "build.t3.note", source=source, gpu=hot[0], low=low, high=high)


RULES = (heat, passive, throttling)
