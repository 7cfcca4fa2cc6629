"""P: lanes, slots and what goes over them."""

from collections.abc import Iterator
from typing import Any

from trainwright.machine.build import Check, Verdict
from trainwright.machine.facts import Facts
from trainwright.machine.finding import found, unknown
from trainwright.machine.peers import has_board_nvlink, has_peer_access
from trainwright.machine.placement import PlacedGpu
from trainwright.machine.wiring import gb_s
from trainwright.messages import Message

MAINSTREAM = ("AM4", "AM5", "LGA1200", "LGA1700", "LGA1851")
"""Sockets whose processors have 16 to 20 lanes for cards. Source: AMD and Intel, product pages."""
USB4_CHIPSETS = ("X870", "X870E")
"""On which USB4 is a must, and takes lanes of the processor. Source: AMD, chipset overview."""

PEER_SHARE = 56 / 63
"""Of the link: what copies from card to card reach on PCIe 5.0 x16. Source: measurements of
the voipmonitor/rtx6kpro wiki."""

NARROW = 4
"""Lanes in a slot as long as x16 that mislead: the X399 Designare EX's third slot halved the rate
of four RTX 3090 (11 to 24.7 tokens/s after moving the card)."""

LITTLE = 0.1
"""Share of a step that cards may wait for one another without a word; assumed."""
POLICY = (
    "policy: PCIe 3.0 x4 to 4.0 x8 by use; after reports of four cards at x8 (Dettmers, Full"
    " Hardware Guide), of a card in a PCIe 2.0 x4 slot, and of peer copies on PCIe 5.0"
)
G3X4, G3X8, G4X8 = gb_s(3, 4), gb_s(3, 8), gb_s(4, 8)


def lanes(facts: Facts) -> Iterator[Check]:
    """P1: what the cards could take, and what the processor has for them."""
    build = facts.build
    cpu = build.cpu
    if cpu is None or not build.gpus:
        return
    if cpu.slot_lanes is None:
        yield unknown("P1", cpu.name, "cpu.slot_lanes")
        return
    wanted = sum((gpu.record.pcie_lanes or 16) * gpu.count for gpu in build.gpus)
    shared = wanted > cpu.slot_lanes
    yield found(
        "P1",
        "note" if shared else "ok",
        "build.p1.note" if shared else "build.p1.ok",
        source=cpu.provenance("slot_lanes").source,
        cpu=cpu.name,
        lanes=cpu.slot_lanes,
        wanted=wanted,
    )


def usb4(facts: Facts) -> Iterator[Check]:
    """P2: on X870 and X870E, USB4 takes lanes of the processor."""
    board = facts.build.board
    if board is None or board.chipset not in USB4_CHIPSETS:
        return
    if not board.lanes_complete:
        yield unknown("P2", board.name, "board.conflicts")
        return
    taken = [one for one in board.conflicts if one.when == "usb4"]
    source = "AMD, AM5 chipset overview: USB4 on X870 and X870E takes 4 lanes of the processor"
    values: dict[str, Any] = {"board": board.name}
    if taken:
        values |= {"then": [one.then for one in taken], "lanes": taken[0].lanes}
        yield found("P2", "note", "build.p2.note", source=source, **values)
    else:
        yield found("P2", "ok", "build.p2.ok", source=source, **values)


def slots(facts: Facts) -> Iterator[Check]:
    """P3: every card has a slot; one as long as x16 may have few lanes."""
    board = facts.build.board
    if board is None:
        return
    for gpu in facts.placement.gpus:
        yield _slot(facts, board.name, gpu)


def _slot(facts: Facts, board: str, gpu: PlacedGpu) -> Check:
    source = facts.build.board.provenance("slots").source if facts.build.board else ""
    values: dict[str, Any] = {"gpu": gpu.record.name, "board": board}
    if gpu.record.form not in (None, "card"):
        remedy = Message.of("build.p3.remedy-card")
        return found("P3", "error", "build.p3.module", source="", remedy=remedy, **values)
    if gpu.slot is None:
        if not facts.placement.complete:
            return unknown("P3", board, "board.slots", source=source)
        remedy = Message.of("build.p3.remedy", cards=facts.build.gpu_count)
        return found("P3", "error", "build.p3.error", source=source, remedy=remedy, **values)
    values["slot"] = gpu.slot
    if gpu.lanes is None:
        return unknown("P3", board, "board.lanes", source=source)
    values |= {"lanes": gpu.lanes, "generation": gpu.generation}
    if gpu.lanes <= NARROW < (gpu.record.pcie_lanes or 16):
        because = gpu.because
        return found(
            "P3", "warning", "build.p3.narrow", source=source, because=because[:1], **values
        )
    return found("P3", "ok", "build.p3.ok", source=source, **values)


def _left_out(facts: Facts) -> bool:
    """Return whether a card has no slot for certain, which is P3's to say."""
    return facts.placement.complete and any(gpu.slot is None for gpu in facts.placement.gpus)


def bandwidth(facts: Facts) -> Iterator[Check]:
    """P4: what each card's slot carries."""
    board, slowest = facts.build.board, facts.placement.slowest
    if board is None or not facts.build.gpus or _left_out(facts):
        return
    if slowest is None or slowest.gb_s is None:
        yield unknown("P4", board.name, "board.lanes")
        return
    full = gb_s(slowest.record.pcie_generation or 4, slowest.record.pcie_lanes or 16)
    less = slowest.gb_s < 0.99 * full
    values: dict[str, Any] = {"gpu": slowest.record.name, "gb_s": slowest.gb_s, "full": full}
    if less:
        values["because"] = slowest.because
    yield found(
        "P4",
        "note" if less else "ok",
        "build.p4.note" if less else "build.p4.ok",
        source="PCI-SIG: 0.985, 1.97 and 3.94 GB/s a lane for PCIe 3.0, 4.0 and 5.0",
        **values,
    )


def peers(facts: Facts) -> Iterator[Check]:
    """P5: what copies from card to card reach over the slots."""
    slowest = facts.placement.slowest
    if facts.build.board is None or facts.build.gpu_count < 2 or _left_out(facts):
        return
    if any(has_board_nvlink(card) for card in facts.build.cards):
        return
    if slowest is None or slowest.gb_s is None:
        yield unknown("P5", facts.build.board.name, "board.lanes")
        return
    reached = PEER_SHARE * slowest.gb_s
    source = "voipmonitor/rtx6kpro wiki: 56 of 63 GB/s on PCIe 5.0 x16"
    yield found("P5", "note", "build.p5.note", source=source, reached=reached, gb_s=slowest.gb_s)


def use(facts: Facts) -> Iterator[Check]:
    """P6: whether the lanes are enough for what the machine is for."""
    board, slowest = facts.build.board, facts.placement.slowest
    if board is None or not facts.build.gpus or _left_out(facts):
        return
    if any(has_board_nvlink(card) for card in facts.build.cards):
        return
    several = facts.build.gpu_count > 1
    if slowest is None or slowest.gb_s is None or (several and not facts.placement.complete):
        yield unknown("P6", board.name, "board.lanes")
        return
    way = facts.use.way if several else "single"
    values: dict[str, Any] = {
        "gpu": slowest.record.name,
        "slot": slowest.slot,
        "generation": slowest.generation,
        "lanes": slowest.lanes,
        "gb_s": slowest.gb_s,
        "use": Message.of(f"build.way.{way}"),
    }
    verdict = lanes_verdict(way, slowest.gb_s, chipset=slowest.source == "chipset")
    if verdict in ("warning", "error") and _little(facts):
        waits = facts.use.waits
        yield found("P6", "note", "build.p6.little", source=POLICY, waits=waits, **values)
        return
    remedy = Message.of("build.p6.remedy") if verdict in ("warning", "error") else None
    yield found("P6", verdict, f"build.p6.{verdict}", source=POLICY, remedy=remedy, **values)


def _little(facts: Facts) -> bool:
    """Return whether the cards are known to wait for one another hardly at all."""
    return facts.use.waits is not None and facts.use.waits < LITTLE


def lanes_verdict(way: str, rate: float, *, chipset: bool = False) -> Verdict:
    """Return whether ``rate`` GB/s each way are enough for cards that work together so."""
    rate *= 1.01  # generation 3 x16 and 4 x8 are one threshold
    match way:
        case "sharded":
            return _graded(rate, error=G3X4 * 1.02, warning=G4X8, at_least=chipset)
        case "data-parallel":
            return "warning" if rate < G3X8 or chipset else "note" if rate < G4X8 else "ok"
        case "layer-split":
            return "warning" if rate < G3X4 else "ok"
        case _:
            return "note" if rate < G4X8 else "ok"


def _graded(rate: float, *, error: float, warning: float, at_least: bool) -> Verdict:
    if at_least or rate < error:
        return "error"
    return "warning" if rate < warning else "ok"


def mainstream(facts: Facts) -> Iterator[Check]:
    """P7: two cards on a mainstream board share x16 only where the board wires it."""
    board = facts.build.board
    if board is None or facts.build.gpu_count < 2 or board.socket not in MAINSTREAM:
        return
    if _left_out(facts):
        return
    placed = facts.placement.gpus
    if not facts.placement.complete or any(gpu.slot and gpu.lanes is None for gpu in placed):
        yield unknown("P7", board.name, "board.lanes")
        return
    behind = [gpu.slot for gpu in placed if gpu.slot and gpu.source == "chipset"]
    values: dict[str, Any] = {
        "board": board.name,
        "lanes": [gpu.lanes for gpu in placed if gpu.lanes is not None],
    }
    source = board.provenance("slot_modes").source
    if behind:
        little = _little(facts)
        yield found(
            "P7",
            "note" if little else "warning",
            "build.p7.warning",
            source=source,
            remedy=None if little else Message.of("build.p7.remedy"),
            slot=behind[0],
            **values,
        )
    else:
        yield found("P7", "ok", "build.p7.ok", source=source, **values)


def direct(facts: Facts) -> Iterator[Check]:
    """P8: GeForce cards from the 20 on do not read each other's memory over PCIe."""
    if facts.build.gpu_count < 2:
        return
    card = next((card for card in facts.build.cards if not has_peer_access(card)), None)
    source = "NVIDIA/nccl-tests issue 117; README of tinygrad/open-gpu-kernel-modules"
    if card is None:
        name = facts.build.cards[0].name
        yield found("P8", "ok", "build.p8.ok", source=source, gpu=name)
        return
    heavy = facts.use.way in ("sharded", "data-parallel")
    verdict: Verdict = "warning" if facts.use.way == "sharded" else "note"
    id = "build.p8.bridge" if card.nvlink_bytes_per_s else "build.p8.none"
    yield found("P8", verdict if heavy else "note", id, source=source, gpu=card.name)


def verify(facts: Facts) -> Iterator[Check]:
    """P9: how to see, once it runs, that the cards have their lanes."""
    slowest = facts.placement.slowest
    if slowest is None or slowest.lanes is None or slowest.record.vendor != "NVIDIA":
        return
    command = "nvidia-smi --query-gpu=pcie.link.gen.current,pcie.link.width.current --format=csv"
    yield found(
        "P9",
        "note",
        "build.p9.note",
        source="NVIDIA, nvidia-smi manual: idle links run at a lower generation",
        command=command,
        generation=slowest.generation,
        lanes=slowest.lanes,
    )


RULES = (lanes, usb4, slots, bandwidth, peers, use, mainstream, direct, verify)
