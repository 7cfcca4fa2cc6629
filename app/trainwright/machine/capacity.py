"""What a GPU's memory offers, and what of it others hold, where nobody has measured it."""

from dataclasses import dataclass

from trainwright.catalog import GpuRecord
from trainwright.explain import Kind, Quantity, Unit, total
from trainwright.machine.machine import System
from trainwright.messages import Message

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Rule:
    """An assumed amount, and what it is assumed from."""

    value: float
    source: str


INLINE_ECC = Rule(
    1 / 16,
    "assumed: T4, A10, L4 and L40S report 15 360, 23 028, 23 034 and 46 068 MiB of a nominal"
    " 16, 24, 24 and 48 GiB; ECC on GDDR6 takes a sixteenth",
)
NEWER = Rule(
    0.005,
    "assumed: RTX 5090, RTX PRO 6000, H100, H200 and B200 report 0.4 to 0.5 % less than nominal",
)
OLDER = Rule(
    0.001, "assumed: RTX 3060, 3090, 4090, A6000 and 6000 Ada report 0 to 0.05 % less than nominal"
)
OTHER_MAKERS = Rule(0.01, "assumed: no published readings; 1 % for the firmware")
UNIFIED = Rule(
    0.25,
    "assumed: Metal's recommendedMaxWorkingSetSize is about three quarters of the memory",
)
DRIVER = Rule(
    0.015,
    "assumed: torch reports a capacity of 9.78, 23.64 and 31.36 GiB on RTX 3080, 4090 and 5090"
    " whose drivers report 10.00, 23.99 and 31.84 GiB",
)
DRIVER_AT_MOST = 600 * MIB
"""Assumed: torch reports 79.1 GiB on H100 80GB whose drivers report 79.65 GiB."""


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
        return UNIFIED if record.unified_memory else OTHER_MAKERS
    capability = record.compute_capability or (0, 0)
    if record.segment == "datacenter" and capability in ((7, 5), (8, 6), (8, 9)):
        return INLINE_ECC
    return NEWER if capability >= (9, 0) else OLDER


_HELD: dict[tuple[System, str], Rule] = {
    ("linux", "consumer"): Rule(250, "assumed: display server and a desktop; 0 when headless"),
    ("linux", "workstation"): Rule(250, "assumed: display server and a desktop; 0 when headless"),
    ("linux", "laptop"): Rule(50, "assumed: the integrated GPU drives the display"),
    ("windows", "consumer"): Rule(900, "assumed: desktop, browser and other programs"),
    ("windows", "workstation"): Rule(900, "assumed: desktop, browser and other programs"),
    ("windows", "laptop"): Rule(400, "assumed: the integrated GPU drives the display"),
}
"""MiB that the display and other programs hold on the first GPU, by system and segment."""


def held(record: GpuRecord, system: System, reserved_mib: float | None) -> Quantity:
    """Return the bytes that no training program gets: the driver's, the display's, others'.

    ``reserved_mib`` is what the user says that display and other programs hold; what the
    driver keeps for itself stands beside it.
    """
    total_bytes = nominal_total(record).value
    parts = [_others(record, system, reserved_mib)]
    if record.vendor == "NVIDIA":
        driver = min(total_bytes * DRIVER.value, DRIVER_AT_MOST)
        parts.append(_assumed("machine.held.driver", driver, DRIVER.source))
    return total(Message.of("machine.held"), parts, role="held")


def _others(record: GpuRecord, system: System, reserved_mib: float | None) -> Quantity:
    if reserved_mib is not None:
        return Quantity(
            Message.of("machine.held.others"), reserved_mib * MIB, Unit.BYTES, Kind.YOURS
        )
    rule = _HELD.get((system, record.segment), Rule(0, "assumed: no display on this GPU"))
    return _assumed("machine.held.others", rule.value * MIB, rule.source)


def _assumed(id: str, value: float, source: str) -> Quantity:
    return Quantity(Message.of(id), value, Unit.BYTES, Kind.ASSUMED, source=source)
