"""G: whether everything fits into the case."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from trainwright.catalog import BoardRecord, CaseRecord, GpuRecord
from trainwright.machine.build import Build, Check, Verdict
from trainwright.machine.facts import Facts
from trainwright.machine.finding import found, unknown
from trainwright.machine.placement import place, slot_width
from trainwright.messages import Message

RADIATOR_MM = 27 + 25
"""Of a front radiator with its fans; assumed: the thinnest common radiators and usual fans."""
MARGIN_MM = 10
"""Below which cables and frames get in the way; assumed."""
BEND_MM = 35
"""Of a 16-pin plug's cable before it may bend. Source: CableMod's guidance for 12VHPWR."""
LOW_MM, LOW_W = 70.0, 150.0
"""Height of an air cooler for a desktop up to which none carries more heat, rated or not. Assumed:
of those that makers rate, none up to 93 mm is rated above 105 W."""
GAP = 1
"""Free openings that an open-air card wants above the next card."""
LAMBDA = "Lambda Labs, deep learning hardware 2020: no more than two RTX 3090 side by side"


def length(facts: Facts) -> Iterator[Check]:
    """G1: each card's length, and the room that the case has for it."""
    build = facts.build
    case = build.case
    if case is None or build.risers:
        return
    for card in dict.fromkeys(gpu.record.id for gpu in build.gpus):
        record = next(gpu.record for gpu in build.gpus if gpu.record.id == card)
        if record.form in (None, "card"):
            yield _length(build, case, record)


def _length(build: Build, case: CaseRecord, card: GpuRecord) -> Check:
    sizes = [f.value for f in (card.length_mm, card.shortest_mm, card.longest_mm) if f is not None]
    if not sizes:
        return unknown("G1", card.name, "gpu.length_mm")
    if case.gpu_length_mm is None:
        return unknown("G1", case.name, "case.gpu_length_mm")
    room = case.gpu_length_mm
    values: dict[str, Any] = {"gpu": card.name, "case": case.name, "room_mm": room}
    source = case.provenance("gpu_length_mm").source
    shortest, longest = min(sizes), max(sizes)
    own = card.length_mm.value if card.length_mm is not None else longest
    values |= {"length_mm": own, "shortest_mm": shortest, "longest_mm": longest}
    if shortest > room:
        remedy = Message.of("build.g1.remedy", length_mm=shortest)
        return found("G1", "error", "build.g1.error", source=source, remedy=remedy, **values)
    if longest > room or own > room:
        remedy = Message.of("build.g1.remedy-card", room_mm=room)
        return found("G1", "warning", "build.g1.some", source=source, remedy=remedy, **values)
    if _front_radiator(build, case) and longest > room - RADIATOR_MM:
        remedy = Message.of("build.g1.remedy-radiator")
        values["left_mm"] = room - RADIATOR_MM
        return found("G1", "warning", "build.g1.radiator", source=source, remedy=remedy, **values)
    if longest > room - MARGIN_MM:
        values["margin_mm"] = room - longest
        return found("G1", "warning", "build.g1.close", source=source, **values)
    return found("G1", "ok", "build.g1.ok", source=source, **values)


def _front_radiator(build: Build, case: CaseRecord) -> bool:
    liquid = build.cooler is not None and build.cooler.type == "liquid"
    return liquid and not case.gpu_length_includes_radiator


def openings(facts: Facts) -> Iterator[Check]:
    """G2: the cards do not overlap, and the last ends within the case."""
    build = facts.build
    board, case = build.board, build.case
    if case is None or build.risers or not build.gpus:
        return
    if case.slots is None:
        yield unknown("G2", case.name, "case.slots")
        return
    sizes = {card.name: slot_width(card) for card in build.cards}
    widths = [width for width in sizes.values() if width is not None]
    if len(widths) < len(sizes):
        name = next(name for name, width in sizes.items() if width is None)
        yield unknown("G2", name, "gpu.slot_width")
        return
    source = "ATX specification 2.2: openings every 20.32 mm; " + case.provenance("slots").source
    covered = sum(gpu.openings or 0 for gpu in facts.placement.gpus)
    values: dict[str, Any] = {
        "case": case.name, "openings": case.slots, "covered": covered, "width": max(widths),
    }  # fmt: skip
    if covered > case.slots:
        remedy = Message.of("build.g2.remedy", openings=covered)
        yield found("G2", "error", "build.g2.many", source=source, remedy=remedy, **values)
        return
    if board is None:
        yield found("G2", "ok", "build.g2.ok", source=source, **values)
        return
    seats = [gpu for gpu in facts.placement.gpus if gpu.slot is not None]
    if not facts.placement.complete or any(gpu.position is None for gpu in seats):
        yield unknown("G2", board.name, "board.position")
        return
    values["board"] = board.name
    if len(seats) < build.gpu_count:
        yield from _left_out(build, board, source, values)
    elif not _seat_all(build, _widest(build)):
        remedy = Message.of("build.g2.remedy-width", width=max(widths))
        yield found("G2", "warning", "build.g2.some", source=source, remedy=remedy, **values)
    else:
        yield found("G2", "ok", "build.g2.ok", source=source, **values)


def _left_out(
    build: Build, board: BoardRecord, source: str, values: dict[str, Any]
) -> Iterator[Check]:
    """Yield whether the case or other cards are in the way; that slots are too few is P3's."""
    roomy = place(replace(build, case=None))
    if all(gpu.slot is not None for gpu in roomy.gpus):
        need = max((gpu.position or 0) + (gpu.openings or 1) - 1 for gpu in roomy.gpus)
        remedy = Message.of("build.g2.remedy", openings=need)
        yield found("G2", "error", "build.g2.low", source=source, remedy=remedy, **values)
    elif sum(slot.length == "x16" for slot in board.slots) >= build.gpu_count:
        remedy = Message.of("build.g2.remedy-thin")
        yield found("G2", "error", "build.g2.overlap", source=source, remedy=remedy, **values)


def _widest(build: Build) -> Build:
    """Return the build with the thickest cards that anyone makes."""
    gpus = tuple(
        replace(
            gpu,
            record=gpu.record.model_copy(
                update={"slot_width": gpu.record.widest_slots or gpu.record.slot_width}
            ),
        )
        for gpu in build.gpus
    )
    return replace(build, gpus=gpus)


def _seat_all(build: Build, other: Build) -> bool:
    if all(gpu.record.widest_slots is None for gpu in build.gpus):
        return True
    return all(gpu.slot is not None for gpu in place(other).gpus)


def air(facts: Facts) -> Iterator[Check]:
    """G3: cards with open coolers breathe what the next one lets through."""
    build = facts.build
    if build.gpu_count < 2 or build.board is None or build.risers:
        return
    cards = build.cards
    if any(card.cooling is None for card in cards):
        name = next(card.name for card in cards if card.cooling is None)
        yield unknown("G3", name, "gpu.cooling")
        return
    placed = [gpu for gpu in facts.placement.gpus if gpu.slot is not None]
    if any(gpu.position is None for gpu in placed) or not facts.placement.complete:
        yield unknown("G3", build.board.name, "board.position")
        return
    if any(gpu.openings is None for gpu in placed):
        yield unknown("G3", cards[0].name, "gpu.slot_width")
        return
    spans = sorted(placed, key=lambda gpu: gpu.position or 0)
    tight = [
        (upper, lower)
        for upper, lower in itertools.pairwise(spans)
        if upper.record.cooling == "open-air"
        and (lower.position or 0) - (upper.position or 0) - (upper.openings or 0) < GAP
    ]
    if not tight:
        yield found("G3", "ok", "build.g3.ok", source=LAMBDA, board=build.board.name)
        return
    upper, lower = tight[0]
    values = {"gpu": upper.record.name, "upper": upper.slot, "lower": lower.slot}
    verdict: Verdict = "error" if build.gpu_count > 2 else "warning"
    remedy = Message.of("build.g3.remedy")
    yield found("G3", verdict, "build.g3.tight", source=LAMBDA, remedy=remedy, **values)


def bend(facts: Facts) -> Iterator[Check]:
    """G4: the 16-pin plug's cable has room before the side panel."""
    build = facts.build
    case = build.case
    if case is None or build.risers:
        return
    for gpu in build.gpus:
        card = gpu.record
        if card.plugs is None or not card.plugs.get("pcie_16"):
            continue
        if card.height_mm is None:
            yield unknown("G4", card.name, "gpu.height_mm")
            continue
        # Where nobody measured it, the room beside a card is about what the maker gives to air
        # coolers: both end at the side panel, and both begin near the board.
        room = case.side_clearance_mm or case.cooler_height_mm
        if room is None:
            yield unknown("G4", case.name, "case.side_clearance_mm", "case.cooler_height_mm")
            continue
        need = card.height_mm.value + BEND_MM
        verdict: Verdict = "ok" if need <= room else "warning"
        values = {"gpu": card.name, "case": case.name, "need_mm": need, "room_mm": room}
        source = "CableMod, guidance for 12VHPWR: 35 mm straight; room as for air coolers, assumed"
        remedy = Message.of("build.g4.remedy", need_mm=need) if verdict == "warning" else None
        yield found("G4", verdict, f"build.g4.{verdict}", source=source, remedy=remedy, **values)


def spread(facts: Facts) -> Iterator[Check]:
    """G5: cards with one chip differ in size; the very card decides."""
    for gpu in facts.build.gpus:
        short, long = gpu.record.shortest_mm, gpu.record.longest_mm
        if short is None or long is None or short.value == long.value:
            continue
        yield found(
            "G5",
            "note",
            "build.g5.note",
            source=long.source,
            gpu=gpu.record.name,
            shortest_mm=short.value,
            longest_mm=long.value,
        )


def form(facts: Facts) -> Iterator[Check]:
    """G6: the case takes the board, and the power supply."""
    build = facts.build
    case, board, psu = build.case, build.board, build.psu
    if case is None:
        return
    if board is not None:
        if case.boards is None:
            yield unknown("G6", case.name, "case.boards")
        else:
            fits = board.form_factor in case.boards
            verdict: Verdict = "warning" if case.kind == "open-frame" else "error"
            yield found(
                "G6",
                "ok" if fits else verdict,  # a frame takes other boards on a tray of their own
                "build.g6.ok" if fits else "build.g6.error",
                source=case.provenance("boards").source,
                remedy=None if fits else Message.of("build.g6.remedy", form=board.form_factor),
                board=board.name,
                case=case.name,
                form=board.form_factor,
                boards=case.boards,
            )
    if psu is None:
        return
    values: dict[str, Any] = {"psu": psu.name, "case": case.name, "form": psu.form.upper()}
    if psu.form not in case.psu_forms and psu.form not in ("sfx", "sfx-l"):
        remedy = Message.of("build.g6.remedy-psu", forms=[f.upper() for f in case.psu_forms])
        source = case.provenance("psu_forms").source
        yield found("G6", "error", "build.g6.psu-form", source=source, remedy=remedy, **values)
    elif psu.length_mm is None:
        yield unknown("G6", psu.name, "psu.length_mm")
    elif case.psu_length_mm is None:
        yield unknown("G6", case.name, "case.psu_length_mm")
    else:
        fits = psu.length_mm <= case.psu_length_mm
        values |= {"length_mm": psu.length_mm, "room_mm": case.psu_length_mm}
        yield found(
            "G6",
            "ok" if fits else "error",
            "build.g6.psu-ok" if fits else "build.g6.psu-long",
            source=case.provenance("psu_length_mm").source,
            remedy=None if fits else Message.of("build.g6.remedy-length", **values),
            **values,
        )


def cooler(facts: Facts) -> Iterator[Check]:
    """G7: the cooler has the socket's mount, fits the case, and carries the processor's heat."""
    build = facts.build
    if build.cooler is None:
        return
    yield from _mount(build)
    yield from _room(build)
    yield from _heat(build)


def _mount(build: Build) -> Iterator[Check]:
    cooler = build.cooler
    socket = build.board.socket if build.board else build.cpu.socket if build.cpu else None
    if cooler is None or socket is None:
        return
    if cooler.sockets is None:
        yield unknown("G7", cooler.name, "cooler.sockets")
        return
    fits = _holes(socket) in map(_holes, cooler.sockets)
    yield found(
        "G7",
        "ok" if fits else "error",
        "build.g7.mount" if fits else "build.g7.no-mount",
        source=cooler.provenance("sockets").source,
        remedy=None if fits else Message.of("build.g7.remedy-mount", socket=socket),
        cooler=cooler.name,
        socket=socket,
    )


def _plain(socket: str) -> str:
    """Return the name of a socket as all write it: ``LGA 1700`` is ``LGA1700``."""
    return socket.replace(" ", "").replace("-", "").casefold()


_ALIKE = {
    **dict.fromkeys(("lga1150", "lga1151", "lga1155", "lga1156"), "lga1200"),
    "lga1851": "lga1700",
    **dict.fromkeys(("tr4", "strx4", "swrx8"), "sp3"),
    "str5": "sp6",
}
"""Sockets whose holes are those of another one. Source: Intel's mechanical specifications (75 and
78 mm from hole to hole); AMD's of SP3 and SP6, whose bolts Threadripper shares."""


def _holes(socket: str) -> str:
    """Return the socket that stands for all with the same holes."""
    return _ALIKE.get(_plain(socket), _plain(socket))


def _room(build: Build) -> Iterator[Check]:
    cooler, case = build.cooler, build.case
    if cooler is None or case is None:
        return
    values: dict[str, Any] = {"cooler": cooler.name, "case": case.name}
    if cooler.type == "air":
        if cooler.height_mm is None:
            yield unknown("G7", cooler.name, "cooler.height_mm")
        elif case.cooler_height_mm is None:
            yield unknown("G7", case.name, "case.cooler_height_mm")
        else:
            fits = cooler.height_mm <= case.cooler_height_mm
            values |= {"height_mm": cooler.height_mm, "room_mm": case.cooler_height_mm}
            yield found(
                "G7",
                "ok" if fits else "error",
                "build.g7.height" if fits else "build.g7.high",
                source=case.provenance("cooler_height_mm").source,
                remedy=None if fits else Message.of("build.g7.remedy-height", **values),
                **values,
            )
    elif cooler.radiator_mm is None:
        yield unknown("G7", cooler.name, "cooler.radiator_mm")
    elif case.radiators_mm is None:
        yield unknown("G7", case.name, "case.radiators_mm")
    else:
        fits = cooler.radiator_mm in case.radiators_mm
        values |= {"radiator_mm": cooler.radiator_mm, "radiators_mm": case.radiators_mm}
        yield found(
            "G7",
            "ok" if fits else "error",
            "build.g7.radiator" if fits else "build.g7.no-radiator",
            source=case.provenance("radiators_mm").source,
            remedy=None if fits else Message.of("build.g7.remedy-radiator", **values),
            **values,
        )


def _heat(build: Build) -> Iterator[Check]:
    cooler, cpu = build.cooler, build.cpu
    if cooler is None or cpu is None:
        return
    low = cooler.type == "air" and cooler.height_mm is not None and cooler.height_mm <= LOW_MM
    if cooler.rated_w is None and low and (cpu.max_power_w or 0.0) > LOW_W:
        yield found(
            "G7",
            "warning",
            "build.g7.low",
            source="policy: 150 W for coolers of up to 70 mm; makers rate those of 93 mm 105 W",
            remedy=Message.of("build.g7.remedy-heat", watts=cpu.max_power_w),
            cooler=cooler.name,
            height_mm=cooler.height_mm,
            cpu=cpu.name,
            watts=cpu.max_power_w,
        )
    elif cooler.rated_w is None:
        yield unknown("G7", cooler.name, "cooler.rated_w")
    elif cpu.max_power_w is None:
        yield unknown("G7", cpu.name, "cpu.max_power_w")
    else:
        fits = cpu.max_power_w <= cooler.rated_w
        values = {
            "cooler": cooler.name, "cpu": cpu.name,
            "rated_w": cooler.rated_w, "watts": cpu.max_power_w,
        }  # fmt: skip
        yield found(
            "G7",
            "ok" if fits else "warning",
            "build.g7.heat" if fits else "build.g7.hot",
            source=cooler.provenance("rated_w").source,
            remedy=None if fits else Message.of("build.g7.remedy-heat", watts=cpu.max_power_w),
            **values,
        )


def risers(facts: Facts) -> Iterator[Check]:
    """G8: riser cables must be rated for the link's generation."""
    build = facts.build
    if not build.risers or not build.gpus:
        return
    fastest = max(gpu.generation or gpu.record.pcie_generation or 4 for gpu in facts.placement.gpus)
    verdict: Verdict = "warning" if fastest >= 4 else "note"
    source = "open-frame builds of Nathan Odle (mov-axbx): PCIe 4.0 links wanted rated risers"
    remedy = Message.of("build.g8.remedy", generation=fastest)
    yield found("G8", verdict, "build.g8.note", source=source, remedy=remedy, generation=fastest)


RULES = (length, openings, air, bend, spread, form, cooler, risers)
