"""What a GPU's memory offers, and what of it others hold, where nobody has measured it."""

from dataclasses import dataclass

from trainwright.catalog import Capacity, GpuRecord
from trainwright.explain import Interval, Kind, Quantity, Unit, total
from trainwright.machine.machine import System
from trainwright.messages import Message

GIB = 1 << 30
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Rule:
    """An assumed amount, and what it is assumed from."""

    value: float
    source: str


INLINE_ECC = Rule(
    1 / 16,
    "assumed: T4, A10, L4 and L40S report 15 360, 23 028, 23 034 and 46 068 MiB of a nominal"
    " 16, 24, 24 and 48 GiB; ECC on GDDR5 and GDDR6 takes a sixteenth",
)
NEWER = Rule(
    0.005,
    "assumed: RTX 5090, RTX PRO 6000, H100, H200 and B200 report 0.4 to 0.5 % less than nominal",
)
OLDER = Rule(
    0.001, "assumed: RTX 3060, 3090, 4090, A6000 and 6000 Ada report 0 to 0.05 % less than nominal"
)
OTHER_MAKERS = Rule(
    0.01, "assumed: 1 % for the firmware; RX 6800 XT, RX 7900 XT and MI210 keep 0.1 %"
)
KEPT_BYTES = 340 * MIB
KEPT_SHARE = 0.0028
"""What the driver keeps of what it reports, least squares over the newest readings of 56 cards from
compute capability 7.5 on: 378 MiB of 12, 450 MiB of 24, 640 MiB of 48, 480 MiB of 80 and 730 MiB of
179 GiB."""
KEPT_BEFORE_TURING = 0.009
"""The same of Pascal and Volta, 0.6 to 1.3 % on 9 cards."""
KEPT_RANGE = (0.5, 1.5)
"""Of what the rule says, where 97 % of 153 readings lie; drivers before 570 keep less."""
DRIVERS_DIFFER = 200 * MIB
"""Between readings of one card: up to 196 MiB on a T4, 213 MiB on an A100 80GB."""
KEPT_SOURCE = "rule: least squares over readings in hardware_db/gpu"


def capacity(record: GpuRecord, system: System) -> Quantity:
    """Return the bytes that CUDA offers a process: torch's ``total_memory``.

    Read off such a card on that system, or else by rule; memory that CPU and GPU share is
    ``shared``'s. Windows manages the memory itself:
    there CUDA reports all that the driver does. (Public readings; ``hardware_db/SOURCES.md``.)
    """
    reported = nominal_total(record)
    if read := readings(record, system):
        return _observed(read, system, reported)
    if record.vendor != "NVIDIA" or system == "windows" or record.unified_memory:
        return reported
    return less_kept(reported, kept_by_rule(record, reported.value))


def readings(record: GpuRecord, system: System) -> list[Capacity]:
    """Return the readings that hold for cards as they come, oldest first."""
    alike = [one for one in record.capacities if one.system == system and one.ecc is None]
    return sorted(alike, key=lambda one: (one.seen, -one.bytes))


def _observed(read: list[Capacity], system: System, reported: Quantity) -> Quantity:
    """Return the newest reading, between the least and most that such cards may show."""
    newest = read[-1]
    sizes = [one.bytes for one in read]
    spread = DRIVERS_DIFFER if newest.seen and system == "linux" else 0
    low = min(*sizes, newest.bytes - spread)
    high = max(newest.bytes, min(max(*sizes, newest.bytes + spread), reported.value))
    seen = Message.of("machine.capacity-read", count=len(read), low=low, high=high)
    return Quantity(
        Message.of("machine.total"),
        newest.bytes,
        Unit.BYTES,
        Kind.QUOTED,
        source=f"{newest.source}, {newest.seen}" if newest.seen else newest.source,
        interval=Interval(low, high),
        note=seen if newest.seen else None,
        role="total",
    )


def kept_by_rule(record: GpuRecord, reported: float) -> Quantity:
    """Return what the driver keeps of the memory that it reports, by rule."""
    old = (record.compute_capability or (8, 0)) < (7, 5)
    kept = reported * KEPT_BEFORE_TURING if old else KEPT_BYTES + reported * KEPT_SHARE
    return Quantity(
        Message.of("machine.held.driver"),
        kept,
        Unit.BYTES,
        Kind.ASSUMED,
        source=KEPT_SOURCE,
        interval=Interval(*(kept * end for end in KEPT_RANGE)),
    )


def less_kept(reported: Quantity, kept: Quantity) -> Quantity:
    """Return what the driver reports less what it keeps: what CUDA offers."""
    note, spread = None, kept.interval
    if spread is not None:
        spread = Interval(reported.value - spread.high, reported.value - spread.low)
        note = Message.of("machine.capacity-by-rule", low=spread.low, high=spread.high)
    return Quantity(
        Message.of("machine.total"),
        reported.value - kept.value,
        Unit.BYTES,
        kept.kind,
        formula="driver's total − kept",
        parts=(reported.named(Message.of("machine.reported")), kept),
        interval=spread,
        note=note,
        role="total",
    )


def nominal_total(record: GpuRecord) -> Quantity:
    """Return the bytes that the driver reports as total: published, or less an assumed reserve."""
    if (fact := record.nvml_total_bytes) is not None:
        return Quantity(
            Message.of("machine.total"),
            fact.value,
            Unit.BYTES,
            Kind.QUOTED,
            source=fact.source,
            role="total",
        )
    fact, rule = record.memory_bytes, _reserve(record)
    nominal = Quantity(
        Message.of("machine.nominal"), fact.value, Unit.BYTES, Kind.QUOTED, source=fact.source
    )
    reserve = Quantity(
        Message.of("machine.reserve"),
        fact.value * rule.value,
        Unit.BYTES,
        Kind.ASSUMED,
        source=rule.source,
    )
    return Quantity(
        Message.of("machine.total"),
        nominal.value - reserve.value,
        Unit.BYTES,
        Kind.ASSUMED,
        formula="nominal − reserve",
        parts=(nominal, reserve),
        role="total",
    )


def _reserve(record: GpuRecord) -> Rule:
    if record.vendor != "NVIDIA":
        return OTHER_MAKERS
    capability = record.compute_capability or (0, 0)
    if record.segment == "datacenter" and capability in ((6, 1), (7, 5), (8, 6), (8, 9)):
        return INLINE_ECC
    return NEWER if capability >= (9, 0) else OLDER


_HELD: dict[tuple[System, str], Rule] = {
    ("linux", "consumer"): Rule(250, "assumed: display server and a desktop; 0 when headless"),
    ("linux", "workstation"): Rule(250, "assumed: display server and a desktop; 0 when headless"),
    ("linux", "laptop"): Rule(50, "assumed: the integrated GPU drives the display"),
    ("windows", "consumer"): Rule(900, "assumed: desktop, browser and other programs"),
    ("windows", "workstation"): Rule(900, "assumed: desktop, browser and other programs"),
    ("linux", "integrated"): Rule(250, "assumed: display server and a desktop; 0 when headless"),
    ("windows", "integrated"): Rule(900, "assumed: desktop, browser and other programs"),
    ("macos", "integrated"): Rule(0, "assumed: macOS lives in what its limit keeps from the GPU"),
    ("windows", "laptop"): Rule(400, "assumed: the integrated GPU drives the display"),
}
"""MiB that the display and other programs hold on the first GPU, by system and segment."""


def held(record: GpuRecord, system: System, reserved_mib: float | None) -> Quantity:
    """Return the bytes that no training program gets, of those that CUDA offers.

    ``reserved_mib`` is what the user says that display and other programs hold. On Windows,
    where CUDA reports it all, what the driver keeps stands beside it.
    """
    parts = [_others(record, system, reserved_mib)]
    if record.vendor == "NVIDIA" and system == "windows":
        parts.append(kept_by_rule(record, nominal_total(record).value))
    return total(Message.of("machine.held"), parts, role="held")


def _others(record: GpuRecord, system: System, reserved_mib: float | None) -> Quantity:
    name = Message.of("machine.held.others")
    if reserved_mib is not None:
        return Quantity(name, reserved_mib * MIB, Unit.BYTES, Kind.YOURS)
    rule = _HELD.get((system, record.segment), Rule(0, "assumed: no display on this GPU"))
    return Quantity(name, rule.value * MIB, Unit.BYTES, Kind.ASSUMED, source=rule.source)
