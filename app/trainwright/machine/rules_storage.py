"""S: drives, their sockets, and what they can take."""

from collections.abc import Iterator
from typing import Any

from trainwright.catalog import DriveRecord
from trainwright.machine.build import Check
from trainwright.machine.facts import Facts
from trainwright.machine.finding import found, unknown
from trainwright.machine.placement import PlacedDrive, form
from trainwright.messages import Message

REAL_SHARE = 0.94
"""Of a link: what NVMe drives reach. Source: 7.4 of 7.88 GB/s on PCIe 4.0 x4, makers' sheets."""
SOC = "SoC"
"""Chipset of boards that have none: everything hangs on the processor."""
SATA_GB_S = 0.56
"""Of one SATA port; makers' sheets."""
AFTER_CACHE_MB_S = 400
"""What drives without DRAM or with QLC fall below once the SLC cache is full. Source: reviews,
such as pgrid.app on Crucial's P310."""
YEARS = 3
"""That a drive should last; assumed."""
WARRANTY_YEARS = 5
"""Of usual drives, after which their rated endurance says nothing. Source: Samsung's, Western
Digital's and Crucial's warranties: five years or the terabytes written, whichever comes first."""


def sockets(facts: Facts) -> Iterator[Check]:
    """S1: every M.2 drive has a socket as fast as it is."""
    board = facts.build.board
    if board is None:
        return
    for drive in facts.placement.drives:
        if form(drive.record) == "m.2":
            yield _socket(facts, board.name, drive)


def _socket(facts: Facts, board: str, drive: PlacedDrive) -> Check:
    source = facts.build.board.provenance("m2").source if facts.build.board else ""
    values: dict[str, Any] = {"drive": drive.record.name, "board": board}
    if drive.socket is None:
        if not facts.placement.complete:
            return unknown("S1", board, "board.m2", source=source)
        remedy = Message.of("build.s1.remedy-socket")
        return found("S1", "error", "build.s1.none", source=source, remedy=remedy, **values)
    values["socket"] = drive.socket
    if drive.record.interface != "nvme":
        return found("S1", "ok", "build.s1.sata", source=source, **values)
    if drive.gb_s is None:
        return unknown("S1", board, "board.m2", source=source)
    own = drive.record.read_mb_s / 1000
    real = drive.gb_s * REAL_SHARE
    values |= {"own": own, "capped": min(own, real)}
    if own > real * 1.02:  # sheets round
        remedy = Message.of("build.s1.remedy")
        return found("S1", "warning", "build.s1.capped", source=source, remedy=remedy, **values)
    return found("S1", "ok", "build.s1.ok", source=source, **values)


def losses(facts: Facts) -> Iterator[Check]:
    """S2: what the drives take from cards, ports and other sockets."""
    board = facts.build.board
    if board is None or not facts.build.drives:
        return
    if not facts.placement.complete:
        yield unknown("S2", board.name, "board.conflicts")
        return
    source = board.provenance("conflicts").source
    narrowed = [
        why for gpu in facts.placement.gpus for why in gpu.because if why.id == "build.loss.m2"
    ]
    if narrowed:
        remedy = Message.of("build.s2.remedy")
        yield found(
            "S2", "warning", "build.s2.warning", source=source, remedy=remedy, because=narrowed
        )
    elif facts.placement.lost:
        yield found("S2", "note", "build.s2.note", source=source, because=facts.placement.lost)
    else:
        yield found("S2", "ok", "build.s2.ok", source=source, board=board.name)


def uplink(facts: Facts) -> Iterator[Check]:
    """S3: what hangs on the chipset shares its link."""
    board = facts.build.board
    if board is None:
        return
    placed = facts.placement
    behind = [drive for drive in placed.drives if drive.source == "chipset"]
    cards = [gpu for gpu in placed.gpus if gpu.source == "chipset"]
    sata = [drive for drive in placed.drives if drive.socket == "sata"]
    if board.chipset == SOC or not (behind or cards or sata):
        return
    if placed.uplink_gb_s is None:
        yield unknown("S3", board.name, "board.uplink")
        return
    demand = sum(min(one.record.read_mb_s / 1000, one.gb_s or 99.0) for one in behind)
    demand += sum(min(one.record.read_mb_s / 1000, SATA_GB_S) for one in sata)
    demand += sum(gpu.gb_s or 0.0 for gpu in cards)
    values: dict[str, Any] = {
        "board": board.name, "demand": demand, "uplink": placed.uplink_gb_s,
        "parts": len(behind) + len(cards) + len(sata),
    }  # fmt: skip
    source = board.provenance("uplink").source
    if demand > placed.uplink_gb_s:
        remedy = Message.of("build.s3.remedy")
        yield found("S3", "warning", "build.s3.warning", source=source, remedy=remedy, **values)
    else:
        yield found("S3", "ok", "build.s3.ok", source=source, **values)


def ports(facts: Facts) -> Iterator[Check]:
    """S4: ports and bays for the drives that are not on the board."""
    build = facts.build
    small = sum(form(drive) == "2.5" for drive in build.drives)
    large = sum(form(drive) == "3.5" for drive in build.drives)
    if not small + large:
        return
    board, case = build.board, build.case
    if board is not None:
        left = facts.placement.sata_left
        if left is None:
            yield unknown("S4", board.name, "board.sata_ports")
        else:
            fits = small + large <= left
            yield found(
                "S4",
                "ok" if fits else "error",
                "build.s4.ok" if fits else "build.s4.error",
                source=board.provenance("sata_ports").source,
                remedy=None if fits else Message.of("build.s4.remedy"),
                board=board.name,
                drives=small + large,
                ports=left,
            )
    if case is not None and large:
        if case.bays_35 is None:
            yield unknown("S4", case.name, "case.bays_35")
        else:
            fits = large <= case.bays_35
            yield found(
                "S4",
                "ok" if fits else "error",
                "build.s4.bays" if fits else "build.s4.no-bays",
                source=case.provenance("bays_35").source,
                remedy=None if fits else Message.of("build.s4.remedy-bays", drives=large),
                case=case.name,
                drives=large,
                bays=case.bays_35,
            )


def endurance(facts: Facts) -> Iterator[Check]:
    """S5: whether drives stay fast, and last."""
    for drive in dict.fromkeys(drive.id for drive in facts.build.drives):
        record = next(one for one in facts.build.drives if one.id == drive)
        if record.interface == "hdd":
            continue
        yield from _cache(record)
        yield from _years(record, facts.use.written_gb_a_day)


def _cache(drive: DriveRecord) -> Iterator[Check]:
    source = drive.provenance("written_after_cache_mb_s").source
    values: dict[str, Any] = {"drive": drive.name}
    if (after := drive.written_after_cache_mb_s) is not None:
        slow = after < AFTER_CACHE_MB_S
        id = "build.s5.slow" if slow else "build.s5.ok"
        yield found("S5", "warning" if slow else "ok", id, source=source, after=after, **values)
    elif drive.dram is False or drive.nand == "qlc":
        source = "reviews of drives without DRAM or with QLC, such as pgrid.app on the P310"
        values["after"] = AFTER_CACHE_MB_S
        yield found("S5", "warning", "build.s5.likely", source=source, **values)
    elif drive.dram is None and drive.nand is None:
        yield unknown("S5", drive.name, "drive.dram", "drive.nand")
    else:
        yield found("S5", "ok", "build.s5.cached", source=drive.provenance("dram").source, **values)


def _years(drive: DriveRecord, written_gb_a_day: float | None) -> Iterator[Check]:
    if not written_gb_a_day:
        return
    if drive.endurance_tb is None:
        yield unknown("S5", drive.name, "drive.endurance_tb")
        return
    years = drive.endurance_tb * 1000 / (written_gb_a_day * 365)
    short = years < YEARS
    id = "short" if short else "lasts" if years < WARRANTY_YEARS else "outlasts"
    yield found(
        "S5",
        "warning" if short else "ok",
        f"build.s5.{id}",
        source=drive.provenance("endurance_tb").source,
        remedy=Message.of("build.s5.remedy") if short else None,
        drive=drive.name,
        years=years,
        warranty=WARRANTY_YEARS,
        share=WARRANTY_YEARS / years,
        endurance_tb=drive.endurance_tb,
        written_gb_a_day=written_gb_a_day,
    )


def server_drives(facts: Facts) -> Iterator[Check]:
    """S6: U.2 and U.3 drives want connectors that few boards have."""
    board = facts.build.board
    number = sum(form(drive) in ("u.2", "u.3") for drive in facts.build.drives)
    if board is None or not number:
        return
    if board.slimsas is None:
        yield unknown("S6", board.name, "board.slimsas")
        return
    fits = number <= board.slimsas
    yield found(
        "S6",
        "ok" if fits else "error",
        "build.s6.ok" if fits else "build.s6.error",
        source=board.provenance("slimsas").source,
        remedy=None if fits else Message.of("build.s6.remedy"),
        board=board.name,
        drives=number,
        has=board.slimsas,
    )


RULES = (sockets, losses, uplink, ports, endurance, server_drives)
