"""N and X: NVLink between cards, and instances of one card."""

import itertools
from collections.abc import Iterator
from typing import Any

from trainwright.catalog import GpuRecord
from trainwright.catalog.mig import mig_table
from trainwright.machine.build import Check, Verdict
from trainwright.machine.facts import Facts
from trainwright.machine.finding import found, unknown
from trainwright.machine.peers import has_board_nvlink
from trainwright.messages import Message

MIG_GUIDE = "NVIDIA, MIG user guide, supported GPUs"
NVLINK_GAIN = "bestllmfor: 2 to 6 % for tensor-parallel inference over NVLink bridges"


def bridges(facts: Facts) -> Iterator[Check]:
    """N1: whether the cards have NVLink at all."""
    if facts.build.gpu_count < 2:
        return
    card = facts.build.cards[0]
    if has_board_nvlink(card):
        return
    link = card.nvlink_bytes_per_s
    wanted = facts.build.bridge_slots is not None
    values: dict[str, Any] = {"gpu": card.name}
    if link is None and wanted:
        remedy = Message.of("build.n1.remedy")
        yield found("N1", "error", "build.n1.error", source=NVIDIA, remedy=remedy, **values)
    elif link is None:
        yield found("N1", "note", "build.n1.none", source=NVIDIA, **values)
    else:
        rate = link.value / 1e9
        verdict: Verdict = "ok" if wanted else "note"
        id = "build.n1.ok" if wanted else "build.n1.possible"
        yield found("N1", verdict, id, source=link.source, gb_s=rate, **values)


BRIDGES = "Puget Systems, NVLink on RTX 30: bridges of 3 and 4 slots; PNY: of 2 and 3 for A6000"
NVIDIA = "NVIDIA, product pages: no NVLink on GeForce 40 and 50, RTX Ada and RTX PRO Blackwell"


def spacing(facts: Facts) -> Iterator[Check]:
    """N2: a bridge spans as many slots as lie between its cards."""
    span, board = facts.build.bridge_slots, facts.build.board
    if span is None or facts.build.gpu_count < 2 or board is None:
        return
    made = facts.build.cards[0].nvlink_bridge_slots
    if made is not None and span not in made:
        remedy = Message.of("build.n2.remedy", distances=made)
        gpu = facts.build.cards[0].name
        yield found(
            "N2", "error", "build.n2.none", source=BRIDGES, remedy=remedy, span=span, gpu=gpu
        )
        return
    places = sorted(gpu.position for gpu in facts.placement.gpus if gpu.position is not None)
    if len(places) < 2:
        yield unknown("N2", board.name, "board.position")
        return
    distances = [after - before for before, after in itertools.pairwise(places)]
    fits = span in distances
    yield found(
        "N2",
        "ok" if fits else "error",
        "build.n2.ok" if fits else "build.n2.error",
        source=BRIDGES,
        remedy=None if fits else Message.of("build.n2.remedy", distances=distances),
        span=span,
        distances=distances,
    )


def gain(facts: Facts) -> Iterator[Check]:
    """N3: where a bridge helps."""
    build = facts.build
    if build.gpu_count < 2 or build.cards[0].nvlink_bytes_per_s is None:
        return
    if has_board_nvlink(build.cards[0]):
        return
    id = "build.n3.inference" if facts.use.way == "inference" else "build.n3.training"
    yield found("N3", "note", id, source=NVLINK_GAIN, gpu=build.cards[0].name)


def instances(facts: Facts) -> Iterator[Check]:
    """X1: whether a card can be split into so many instances."""
    wanted = facts.use.mig_instances
    if wanted is None:
        return
    for gpu in facts.build.gpus:
        most = most_instances(gpu.record)
        values: dict[str, Any] = {"gpu": gpu.record.name, "wanted": wanted, "most": most}
        if most == 0:
            remedy = Message.of("build.x1.remedy")
            yield found("X1", "error", "build.x1.none", source=MIG_GUIDE, remedy=remedy, **values)
        elif facts.use.system != "linux":
            yield found("X1", "error", "build.x1.system", source=MIG_GUIDE, **values)
        elif wanted > most:
            remedy = Message.of("build.x1.remedy-fewer", most=most)
            yield found("X1", "error", "build.x1.many", source=MIG_GUIDE, remedy=remedy, **values)
        else:
            yield found("X1", "ok", "build.x1.ok", source=MIG_GUIDE, **values)


def most_instances(card: GpuRecord) -> int:
    """Return how many MIG instances a card may be split into; 0 without MIG."""
    table = mig_table(card)
    return 0 if table is None else table.instances


RULES = (bridges, spacing, gain, instances)
