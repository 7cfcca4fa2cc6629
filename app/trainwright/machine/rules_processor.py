"""C: processor, socket, chipset, firmware."""

from collections.abc import Iterator
from typing import Any

from trainwright.machine.build import Check, Verdict
from trainwright.machine.facts import Facts
from trainwright.machine.finding import found, unknown
from trainwright.messages import Message

CORES_A_GPU, CORES = 4, 16
"""Source: Puget Systems, hardware recommendations for machine learning workstations."""

WIDE_CHANNELS = 8
"""Memory channels of Threadripper PRO and WRX90. Source: AMD, Threadripper 7000 platform brief."""


def socket(facts: Facts) -> Iterator[Check]:
    """C1: the processor fits into the board's socket."""
    cpu, board = facts.build.cpu, facts.build.board
    if cpu is None or board is None:
        return
    if cpu.socket is None:
        yield unknown("C1", cpu.name, "cpu.socket")
        return
    fits = cpu.socket.casefold() == board.socket.casefold()
    yield found(
        "C1",
        "ok" if fits else "error",
        "build.c1.ok" if fits else "build.c1.error",
        source=cpu.provenance("socket").source,
        remedy=None if fits else Message.of("build.c1.remedy", socket=cpu.socket),
        cpu=cpu.name,
        board=board.name,
        cpu_socket=cpu.socket,
        board_socket=board.socket,
    )


def chipset(facts: Facts) -> Iterator[Check]:
    """C2: the board's chipset works with the processor."""
    cpu, board = facts.build.cpu, facts.build.board
    if cpu is None or board is None or (cpu.socket and cpu.socket != board.socket):
        return
    if cpu.chipsets is None:
        yield unknown("C2", cpu.name, "cpu.chipsets")
        return
    if board.chipset is None:
        yield unknown("C2", board.name, "board.chipset")
        return
    fits = board.chipset.casefold() in (name.casefold() for name in cpu.chipsets)
    yield found(
        "C2",
        "ok" if fits else "error",
        "build.c2.ok" if fits else "build.c2.error",
        source=cpu.provenance("chipsets").source,
        remedy=None if fits else Message.of("build.c2.remedy", chipsets=cpu.chipsets),
        cpu=cpu.name,
        board=board.name,
        chipset=board.chipset,
    )


def firmware(facts: Facts) -> Iterator[Check]:
    """C3: a board older than the processor needs new firmware first."""
    cpu, board = facts.build.cpu, facts.build.board
    if cpu is None or board is None or (cpu.socket and cpu.socket != board.socket):
        return
    named = board.chipset is not None and board.chipset in cpu.needs_bios_update
    missing = [
        field
        for field, date in (("cpu.launch", cpu.launch), ("board.launch", board.launch))
        if date is None
    ]
    if missing and not named:
        yield unknown("C3", f"{cpu.name}, {board.name}", *missing)
        return
    newer = named or _later(cpu.launch or "", board.launch or "")
    alone = (
        board.bios_flashback or board.ipmi
    )  # by a button, or by the BMC, which needs standby power only
    verdict: Verdict = "ok" if not newer else "note" if alone else "warning"
    yield found(
        "C3",
        verdict,
        f"build.c3.{verdict}",
        source=cpu.provenance("launch").source,
        remedy=Message.of("build.c3.remedy") if verdict == "warning" else None,
        cpu=cpu.name,
        board=board.name,
    )


def _later(one: str, other: str) -> bool:
    """Return whether a date is later, to the precision that both have."""
    both = min(len(one), len(other))
    return one[:both] > other[:both]


def platform(facts: Facts) -> Iterator[Check]:
    """C4: sTR5 is two platforms; what fits may not give all channels and lanes."""
    cpu, board = facts.build.cpu, facts.build.board
    if cpu is None or board is None or "sTR5" not in (cpu.socket, board.socket):
        return
    if cpu.socket != board.socket:
        return
    if cpu.memory_channels is None:
        yield unknown("C4", cpu.name, "cpu.memory_channels")
        return
    if board.chipset is None:
        yield unknown("C4", board.name, "board.chipset")
        return
    pro, wide = cpu.memory_channels >= WIDE_CHANNELS, board.chipset.upper() == "WRX90"
    values: dict[str, Any] = {"cpu": cpu.name, "board": board.name, "channels": cpu.memory_channels}
    source = "AMD, Threadripper 7000 and PRO 7000 WX platform overview"
    if wide and not pro:
        remedy = Message.of("build.c4.remedy")
        yield found("C4", "error", "build.c4.error", source=source, remedy=remedy, **values)
    elif pro and not wide and board.memory_slots < WIDE_CHANNELS:
        slots = board.memory_slots
        remedy = Message.of("build.c4.remedy-wide")
        yield found(
            "C4", "warning", "build.c4.warning", source=source, remedy=remedy, slots=slots, **values
        )
    else:
        yield found("C4", "ok", "build.c4.ok", source=source, **values)


def cores(facts: Facts) -> Iterator[Check]:
    """C5: every GPU has cores that feed it."""
    cpu, gpus = facts.build.cpu, facts.build.gpu_count
    if cpu is None or not gpus:
        return
    need = CORES_A_GPU * gpus
    source = "Puget Systems, hardware recommendations for machine learning: 4 cores a GPU"
    values: dict[str, Any] = {"cpu": cpu.name, "cores": cpu.cores, "need": need, "gpus": gpus}
    if cpu.cores < need:
        remedy = Message.of("build.c5.remedy", need=need)
        yield found("C5", "warning", "build.c5.warning", source=source, remedy=remedy, **values)
    elif cpu.cores < CORES and gpus > 1:
        yield found("C5", "note", "build.c5.note", source=source, usual=CORES, **values)
    else:
        yield found("C5", "ok", "build.c5.ok", source=source, **values)


RULES = (socket, chipset, firmware, platform, cores)
