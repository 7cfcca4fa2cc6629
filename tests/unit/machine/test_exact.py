"""The seating is the best there is, and rules hold for whatever the catalog has."""

import random
from itertools import pairwise, product
from typing import Any

import pytest
import real_parts as real

from trainwright.catalog import BoardRecord, list_parts
from trainwright.machine.build import Build, BuildGpu, Use
from trainwright.machine.checks import checks
from trainwright.machine.placement import place
from trainwright.messages import render

RATE = {3: 0.985, 4: 1.969, 5: 3.938}


def some_board(draw: random.Random) -> BoardRecord:
    """Return a board such as makers might wire: shared slots, sockets that take lanes."""
    slots: list[dict[str, Any]] = [
        real.slot("A", "cpu", 5, 16, 1),
        real.slot("B", "cpu", 5, 8, draw.choice([2, 3, 4])),
        real.slot("C", "chipset", draw.choice([3, 4]), 4, draw.choice([5, 6])),
        real.slot("D", "cpu", 4, draw.choice([4, 8]), 7),
    ]
    sockets = [
        real.m2(f"M{n}", draw.choice(["cpu", "chipset"]), draw.choice([3, 4, 5]),
                draw.choice([2, 4]))
        for n in range(3)
    ]  # fmt: skip
    conflicts = [
        {"when": when, "then": then, "lanes": draw.choice([0, 2, 4, 8])}
        for when, then in product(("M0", "M1", "D"), ("A", "B", "C", "M2"))
        if draw.random() < 0.25
    ]
    return real.board(
        "Some board", socket="AM5", slots=slots, m2=sockets, conflicts=conflicts,
        slot_modes=({"A": 16, "B": 0}, {"A": 8, "B": draw.choice([4, 8])}), sata_ports=4,
        uplink={"generation": 4, "lanes": 4}, lanes_complete=True,
    )  # fmt: skip


def best(board: BoardRecord, cards: int, width: int, drives: int) -> tuple[int, int, float]:
    """Return cards with a slot, drives with a socket, and the slowest card's GB/s, by trying all.

    Written apart from the solver: every mapping of every card and drive to a place or to none.
    """
    found = (-1, -1, 0.0)
    slots: list[Any] = [None, *board.slots]
    sockets: list[Any] = [None, *(board.m2 or ())]
    for where in product(slots, repeat=cards):
        used = [slot for slot in where if slot is not None]
        starts = sorted(slot.position for slot in used)
        if any(after - before < width for before, after in pairwise(starts)):
            continue
        for into in product(sockets, repeat=drives):
            taken = [socket for socket in into if socket is not None]
            if len({socket.id for socket in taken}) < len(taken):
                continue
            here = {place.id for place in (*used, *taken)}
            limits: dict[str, int] = {}
            for one in board.conflicts:
                if one.when in here:
                    limits[one.then] = min(one.lanes, limits.get(one.then, 99))
            if any(limits.get(id) == 0 for id in here):
                continue
            for mode in board.slot_modes:
                rates = []
                for slot in used:
                    lanes = min(mode.get(slot.id, slot.lanes), limits.get(slot.id, 99))
                    rate = lanes * RATE[min(slot.generation, 4)]
                    rates.append(min(rate, 4 * RATE[4]) if slot.source == "chipset" else rate)
                if all(rates):
                    found = max(found, (len(used), len(taken), min(rates, default=0.0)))
    return found


@pytest.mark.parametrize("seed", range(40))
def test_no_other_seating_is_better(seed: int) -> None:
    draw = random.Random(seed)
    board = some_board(draw)
    cards, width, drives = draw.choice([1, 2, 3]), draw.choice([1, 2, 3]), draw.choice([0, 1, 2, 3])
    card = real.RTX_4090.model_copy(update={"slot_width": real.fact(width)})
    placed = place(
        Build(gpus=(BuildGpu(card, cards),), board=board, drives=(real.SAMSUNG_990,) * drives)
    )
    reached = [gpu.gb_s or 0.0 for gpu in placed.gpus if gpu.slot is not None]
    seats = sum(drive.socket is not None for drive in placed.drives)
    assert (len(reached), seats, min(reached, default=0.0)) == pytest.approx(
        best(board, cards, width, drives)
    )


def test_a_thousand_drives_and_sixty_four_cards_are_no_burden() -> None:
    build = real.of(real.RTX_4090, 64, board=real.WRX90E_SAGE, drives=(real.SAMSUNG_990,) * 1000)
    placed = place(build)
    assert len(placed.gpus) == 64
    assert sum(drive.socket is not None for drive in placed.drives) == 2


@pytest.mark.parametrize("seed", range(60))
def test_rules_have_a_sentence_for_whatever_the_catalog_has(seed: int) -> None:
    """Any parts together: nothing breaks, and nothing is left unsaid in either language."""
    draw = random.Random(seed)
    gpus = [gpu for gpu in list_parts("gpu") if gpu.segment not in ("laptop", "integrated")]
    memory, drives = list_parts("memory"), list_parts("storage")
    build = Build(
        gpus=(BuildGpu(draw.choice(gpus), draw.choice([1, 1, 2, 4])),),
        cpu=draw.choice([None, *list_parts("cpu")]),
        board=draw.choice([None, *list_parts("board")]),
        memory=((draw.choice(memory), draw.choice([1, 2, 4])),),
        drives=tuple(draw.choice(drives) for _ in range(draw.choice([0, 1, 3]))),
        psu=draw.choice([None, *list_parts("psu")]),
        case=draw.choice([None, *list_parts("case")]),
        cooler=draw.choice([None, *list_parts("cooler")]),
        circuit=draw.choice([None, "us-120v-15a", "kr-220v-16a"]),
        risers=draw.random() < 0.1,
        bridge_slots=draw.choice([None, None, 3]),
    )
    way = draw.choice(["single", "data-parallel", "sharded", "layer-split", "inference"])
    use = Use(way, draw.random() < 0.3, draw.choice([None, 200.0]), mig_instances=None)  # type: ignore[arg-type]
    found = checks(build, use)
    assert "W6" in {check.rule for check in found}
    for check in found:
        assert (check.verdict == "unknown") == bool(check.missing), check.rule
        assert check.verdict not in ("error", "warning") or check.source or check.rule == "P3"
        for message in (check.message, check.title, *([check.remedy] if check.remedy else [])):
            for text in (render(message, "en"), render(message, "ko")):
                assert "build." not in text, text
                assert "None" not in text, text
