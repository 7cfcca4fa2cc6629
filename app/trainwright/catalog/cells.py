"""The values of any part, each with its source: what a browser and the command line show."""

from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import BaseModel

from trainwright.catalog.part_records import CoolerRecord, DriveRecord, PartRecord
from trainwright.catalog.records import Confidence, Fact, GpuRecord

Plain = str | float | bool | tuple[str | float, ...]
Part = GpuRecord | PartRecord

GPU_UNITS: dict[str, tuple[str, float]] = {
    "memory_bytes": ("memory_gib", 1 << 30),
    "nvml_total_bytes": ("nvml_total_mib", 1 << 20),
    "free_at_boot_bytes": ("free_at_boot_gib", 1 << 30),
    "l2_bytes": ("l2_mib", 1 << 20),
    "bandwidth_bytes_per_s": ("bandwidth_gb_s", 1e9),
    "memory_bits_per_s": ("memory_gbps", 1e9),
    "nvlink_bytes_per_s": ("nvlink_gb_s", 1e9),
    "boost_hz": ("boost_mhz", 1e6),
}
"""Keys and units of the YAML files, for what records keep in base units."""
_ABOUT = {
    "id",
    "name",
    "source",
    "confidence",
    "sources",
    "aliases",
    "shared_names",
    "notes",
    "capacities",
}
"""Fields that name a part or tell of it, and are not values."""
_ELSEWHERE = {"vendor", "launch", "msrp_usd"}
"""Fields that no rule asks for."""
_DISK = {"shingled", "workload_tb_per_year"}
_SOLID_STATE = {
    "pcie_generation",
    "pcie_lanes",
    "written_after_cache_mb_s",
    "random_read_kiops",
    "random_write_kiops",
    "endurance_tb",
    "dram",
    "nand",
    "power_loss_protection",
}


@dataclass(frozen=True, slots=True)
class Cell:
    """One value of a part."""

    field: str
    """As the YAML files call it: ``watts``, ``connectors.pcie_16``, ``tflops.bf16_fp32``."""
    value: Plain
    source: str | None = None
    """None: it says what the part is, rather than how it measures, or nobody said otherwise."""
    confidence: Confidence | None = None


def cells(part: Part) -> tuple[Cell, ...]:
    """Return the known values of a part in its fields' order; what is unknown has no cell."""
    if isinstance(part, GpuRecord):
        known = dict(_facts(part))
        return tuple(
            Cell(name, value, known[name].source, known[name].confidence)
            if name in known
            else Cell(name, value)
            for name, value in values(part)
        )
    return tuple(_sourced(part, name, value) for name, value in values(part))


def values(part: Part) -> Iterator[tuple[str, Plain]]:
    """Yield the known values of a part by field, without their sources."""
    for key, value in part:
        if key in _ABOUT or value is None:
            continue
        if isinstance(value, Fact):
            name, unit = GPU_UNITS.get(key, (key, 1))
            yield name, value.value / unit
        elif isinstance(part, GpuRecord) and key == "flops":
            for precision, fact in part.flops.items():
                yield f"tflops.{precision}", fact.value / 1e12
        elif isinstance(part, GpuRecord) and key == "compute_capability":
            yield key, ".".join(map(str, value))
        else:
            yield from _plain(key, value)


def counted(part: Part) -> Iterator[Confidence]:
    """Yield how sure each value with a source is."""
    for cell in cells(part):
        if cell.confidence:
            yield cell.confidence


def unknown(part: PartRecord) -> tuple[str, ...]:
    """Return the fields that apply to a part and that nobody filled in."""
    other = set(_ELSEWHERE)
    match part:
        case DriveRecord(interface="hdd"):
            other |= _SOLID_STATE
        case DriveRecord(interface="sata"):
            other |= _DISK | {"pcie_generation", "pcie_lanes"}
        case DriveRecord():
            other |= _DISK
        case CoolerRecord(type="air"):
            other.add("radiator_mm")
        case CoolerRecord():
            other.add("height_mm")
    if isinstance(part, DriveRecord) and part.form != "m.2":
        other.add("length_mm")
    return tuple(key for key, value in part if value is None and key not in other)


def _facts(record: GpuRecord) -> Iterator[tuple[str, Fact]]:
    for key, value in record:
        if isinstance(value, Fact):
            yield GPU_UNITS.get(key, (key, 1))[0], value
    for precision, fact in record.flops.items():
        yield f"tflops.{precision}", fact


def _sourced(record: PartRecord, name: str, value: Plain) -> Cell:
    if name == "vendor" or name.split(".")[0] not in record.model_fields_set:
        return Cell(name, value)
    given = record.provenance(name)
    return Cell(name, value, given.source, given.confidence)


def _plain(key: str, value: object) -> Iterator[tuple[str, Plain]]:
    """Yield a field's value, or those within it; None and what is empty yield nothing."""
    match value:
        case bool() | str() | int() | float() if value != "":
            yield key, value
        case BaseModel():
            for name, inner in value:
                yield from _plain(f"{key}.{name}", inner)
        case dict():
            for name, inner in value.items():
                yield from _plain(f"{key}.{name}", inner)
        case tuple() if value:
            yield (
                key,
                tuple(each if isinstance(each, int | float) else _one(each) for each in value),
            )


def _one(value: object) -> str:
    """Return one of several as a line: ``id PCIEX16_1, length x16, lanes 16``."""
    if isinstance(value, BaseModel):
        value = value.model_dump(exclude_defaults=True)
    if isinstance(value, dict):
        return ", ".join(f"{name} {inner}" for name, inner in value.items())
    return str(value)
