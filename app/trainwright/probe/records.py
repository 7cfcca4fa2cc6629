"""Hardware that the catalog does not know: records of a person's own, filled in as it was read.

Nothing is written by itself: a draft is shown, and written where the person says so.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from trainwright.catalog import GpuRecord, catalog, overlay_folder
from trainwright.catalog.gpu_file import GpuFile, IncompleteError, records
from trainwright.catalog.records import Segment
from trainwright.messages import Message, UserError
from trainwright.probe.disks import DriveReading
from trainwright.probe.host import Host
from trainwright.probe.nvml import GpuReading, Memory, Nvidia
from trainwright.probe.privacy import from_home
from trainwright.probe.reading import Missing
from trainwright.probe.snapshot import Snapshot, cpu_record, drive_name, drive_record, gpu_record
from trainwright.yamltext import dump

GIB = 1 << 30
READ = "read from this computer"
"""Source of what its driver or system told."""
CORES_PER_SM = {(7, 0): 64, (7, 2): 64, (7, 5): 64, (8, 0): 64, (8, 6): 128, (8, 7): 128,
                (8, 9): 128, (9, 0): 128, (10, 0): 128, (10, 3): 128, (12, 0): 128,
                (12, 1): 128}  # fmt: skip
"""FP32 cores of a multiprocessor (CUDA C++ Programming Guide, arithmetic instructions)."""
LANE_MB_S = {1: 250, 2: 500, 3: 985, 4: 1969, 5: 3938, 6: 7563}
"""MB/s of a PCI Express lane (base specifications): what no drive exceeds."""
REACHED = 0.85
"""Of the link that NVMe drives read with; assumed, as makers state 7 to 7.5 of 7.9 GB/s."""
SATA_MB_S = 550
"""Assumed: what the SATA drives of the catalog state, near the 6 Gbit/s of the cable."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A record to be added to a person's own."""

    name: str
    """Of the hardware."""
    path: Path
    """Where it belongs."""
    text: str
    """YAML."""


def drafts(snapshot: Snapshot) -> tuple[Draft, ...]:
    """Return a draft for each GPU, processor and drive that the catalog does not know.

    There is none for what told too little to be planned with.
    """
    found = {draft.path: draft for draft in _drafts(snapshot)}
    return tuple(found.values())


def _drafts(snapshot: Snapshot) -> Iterator[Draft]:
    if isinstance(snapshot.nvidia, Nvidia):
        for gpu in snapshot.nvidia.gpus:
            if (draft := _gpu(gpu)) is not None:
                yield draft
    if (draft := _cpu(snapshot.host)) is not None:
        yield draft
    if not isinstance(snapshot.drives, Missing):
        for drive in snapshot.drives:
            if (draft := _drive(drive)) is not None:
                yield draft


def write(draft: Draft) -> None:
    """Write a draft to its place, and over nothing.

    Raises:
        UserError: it cannot be written; says where and why.
    """
    try:
        draft.path.parent.mkdir(parents=True, exist_ok=True)
        with draft.path.open("x", encoding="utf-8") as file:
            file.write(draft.text)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise UserError.of("probe.not-written", path=str(draft.path), reason=reason) from error


def _draft(folder: str, key: str, entry: dict[str, Any]) -> Draft:
    path = overlay_folder().parent / folder / f"{entry['id']}.yaml"
    content: dict[str, Any] = {key: [entry]}
    if folder == "gpu":
        content = {"schema": 1} | content
    head = "# What this computer told of it; complete it from a data sheet where you have one.\n"
    return Draft(str(entry["name"]), path, head + dump(content, frozenset({key})))


def _gpu(reading: GpuReading) -> Draft | None:
    entry = _gpu_entry(reading)
    return None if entry is None else _draft("gpu", "gpus", entry)


def read_record(reading: GpuReading) -> GpuRecord | None:
    """Return the record that a draft would add, for a GPU that the catalog does not know.

    None where the catalog knows it, or where it told too little to be planned with.
    """
    entry = _gpu_entry(reading)
    if entry is None:
        return None
    try:
        return next(records(GpuFile.model_validate({"schema": 1, "gpus": [entry]})))
    except (ValidationError, IncompleteError):
        return None


def relative(reading: GpuReading) -> GpuRecord | None:
    """Return a catalogued GPU of the reading's architecture, of its line where there is one."""
    name, capability = reading.name, reading.compute_capability
    if isinstance(name, Missing) or isinstance(capability, Missing):
        return None
    return _relative(name, capability)


def _gpu_entry(reading: GpuReading) -> dict[str, Any] | None:
    """Return a GPU's entry: its bandwidth from bus and clock, its rates from its relatives."""
    name, memory, capability = reading.name, reading.memory, reading.compute_capability
    if isinstance(name, Missing) or not isinstance(memory, Memory):
        return None
    if isinstance(capability, Missing) or _known(name, memory):
        return None
    like = _relative(name, capability)
    bandwidth = _bandwidth(reading)
    if like is None or bandwidth is None:
        return None
    entry: dict[str, Any] = {
        "id": slug(name),
        "name": name.removeprefix("NVIDIA "),
        "aliases": [name],
        "vendor": "NVIDIA",
        "segment": like.segment,
        "architecture": like.architecture,
        "compute_capability": ".".join(map(str, capability)),
        "source": READ,
        "confidence": "medium",
        # Drivers tell a little less than is soldered on.
        "memory_gib": round(memory.total / GIB + 0.25),
        "nvml_total_mib": memory.total >> 20,
        "bandwidth_gb_s": bandwidth,
    }
    entry |= {key: value for key, value in _told(reading).items() if isinstance(value, int | float)}
    return entry | _speed(reading, capability, like)


def _known(name: str, memory: Memory) -> bool:
    try:
        gpu_record(name, memory)
    except UserError:
        return False
    return True


def _told(reading: GpuReading) -> dict[str, object]:
    return {
        "memory_bus_bits": reading.memory_bus_bits,
        "cores": reading.cores,
        "boost_mhz": reading.clocks.most_processor,
        "tdp_w": reading.power.default_w,
        "pcie_generation": reading.link.most_generation,
    }


def _bandwidth(reading: GpuReading) -> float | None:
    """Return GB/s: two transfers in a clock of the memory as drivers tell it, over the bus."""
    bus, clock = reading.memory_bus_bits, reading.clocks.most_memory
    if isinstance(bus, Missing) or isinstance(clock, Missing):
        return None
    return round(bus / 8 * clock * 2 / 1000, 1)


def _relative(name: str, capability: tuple[int, int]) -> GpuRecord | None:
    """Return a catalogued GPU of the same architecture, of the same line where there is one."""
    known = catalog()
    records = [known.record(id) for id in known.ids]
    alike = [each for each in records if each.compute_capability == capability and each.sm_count]
    lines = _lines(name.casefold())
    return min(alike, key=lambda each: lines.index(each.segment), default=None)


def _lines(name: str) -> tuple[Segment, ...]:
    """Return the lines of products, those first that a name is likely of."""
    if "laptop" in name:
        return ("laptop", "consumer", "workstation", "datacenter", "integrated")
    if "geforce" in name:
        return ("consumer", "workstation", "datacenter", "laptop", "integrated")
    return ("workstation", "datacenter", "consumer", "integrated", "laptop")


def _speed(reading: GpuReading, capability: tuple[int, int], like: GpuRecord) -> dict[str, Any]:
    """Return multiprocessors and the rates that as many of a relative's would have."""
    cores, clock = reading.cores, reading.clocks.most_processor
    each = CORES_PER_SM.get(capability)
    if isinstance(cores, Missing) or isinstance(clock, Missing) or each is None:
        return {}
    if like.sm_count is None or like.boost_hz is None or not like.flops:
        return {}
    sm = cores // each
    per_clock = like.sm_count.value * like.boost_hz.value
    rates = {key: fact.value / per_clock * sm * clock / 1e6 for key, fact in like.flops.items()}
    source = f"assumed: a multiprocessor does in a clock what one of {like.name} does"
    return {
        "sm": sm,
        "tflops": {key: round(rate, 1) for key, rate in rates.items()},
        "sources": {"tflops": {"source": source, "confidence": "low"}},
    }


def _cpu(around: Host) -> Draft | None:
    """Return a processor's record; its cores' kind is not told, so that their speed is a mean."""
    name, clock = around.cpu, around.most_mhz
    cores, threads = around.physical_cores, around.logical_cores
    if isinstance(name, Missing) or cpu_record(around) is not None or _vendor(name) is None:
        return None
    if isinstance(cores, Missing) or isinstance(threads, Missing) or isinstance(clock, Missing):
        return None
    entry = {
        "id": slug(name),
        "name": name,
        "vendor": _vendor(name),
        "architecture": "unknown",
        "cores": cores,
        "threads": threads,
        "boost_ghz": round(clock / 1000, 2),
        "source": READ,
        "confidence": "medium",
    }
    return _draft("cpu", "cpus", entry)


def _vendor(name: str) -> str | None:
    plain = name.casefold()
    return "AMD" if "amd" in plain else "Intel" if "intel" in plain else None


def _drive(drive: DriveReading) -> Draft | None:
    """Return a drive's record; its rate is what its link carries, until it is measured."""
    if isinstance(drive.model, Missing) or drive_record(drive) is not None:
        return None
    rate: float
    generation: int | Missing | None = None
    if drive.kind == "nvme" and drive.link is not None:
        generation, lanes = drive.link.most_generation, drive.link.most_width
        if isinstance(generation, Missing) or isinstance(lanes, Missing):
            return None
        rate = round(LANE_MB_S[generation] * lanes * REACHED)
        source = f"assumed: {REACHED:.0%} of its link, PCIe {generation}.0 x{lanes}"
    elif drive.kind == "sata":
        rate, source = SATA_MB_S, "assumed: as SATA drives state"
    else:
        return None
    entry = {
        "id": slug(drive_name(drive)),
        "name": drive.model,
        "interface": drive.kind,
        **({"pcie_generation": generation} if isinstance(generation, int) else {}),
        "read_mb_s": rate,
        "source": source,
        "confidence": "low",
    }
    return _draft("storage", "drives", entry)


def slug(name: str) -> str:
    """Return an id as the catalog's are: ``nvidia-prototype-7``."""
    plain = re.sub(r"\((?:r|tm)\)|®|™", " ", name.casefold())
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:60].rstrip("-") or "unnamed"


def offer(draft: Draft) -> Message:
    """Return the sentence that offers a draft."""
    return Message.of("probe.draft", name=draft.name, path=from_home(draft.path))
