"""A snapshot as JSON; a missing reading is ``{"missing": id, "because": sentence}``."""

from dataclasses import fields, is_dataclass
from typing import Any

from trainwright.catalog import GpuRecord
from trainwright.machine.machine import Machine
from trainwright.machine.resolve import Resolved
from trainwright.messages import Message, UserError, render
from trainwright.probe.nvml import Nvidia
from trainwright.probe.privacy import from_home
from trainwright.probe.reading import Missing
from trainwright.probe.records import drafts
from trainwright.probe.sample import NOT_READ
from trainwright.probe.snapshot import Snapshot, cpu_record, drive_record, gpu_record, resolved


def as_document(snapshot: Snapshot) -> dict[str, Any]:
    """Return a snapshot, what the catalog knows of it, and the machine that it is for a plan."""
    return {
        **written(snapshot),
        "catalog": _catalogued(snapshot),
        "machine": _machine(snapshot),
        "drafts": [
            {"name": draft.name, "path": from_home(draft.path), "yaml": draft.text}
            for draft in drafts(snapshot)
        ],
    }


def written(value: Any) -> Any:
    """Return a reading as JSON; what nobody asked for is left out."""
    match value:
        case Missing(reason=reason):
            return missing(reason)
        case tuple():
            return [written(item) for item in value]
        case _ if is_dataclass(value):
            pairs = ((field.name, getattr(value, field.name)) for field in fields(value))
            return {name: written(item) for name, item in pairs if item != NOT_READ}
    return value


def missing(reason: Message) -> dict[str, str]:
    """Return why a reading is not there."""
    return {"missing": reason.id, "because": render(reason, "en")}


def _catalogued(snapshot: Snapshot) -> dict[str, Any]:
    """Return ids; null for what the catalog does not know."""
    cpu = cpu_record(snapshot.host)
    drives = () if isinstance(snapshot.drives, Missing) else snapshot.drives
    records = [drive_record(drive) for drive in drives]
    return {
        "gpus": [record.id if record else None for record in _gpus(snapshot)],
        "cpu": cpu.id if cpu else None,
        "drives": [record.id if record else None for record in records],
    }


def _gpus(snapshot: Snapshot) -> list[GpuRecord | None]:
    found: list[GpuRecord | None] = []
    nvidia = snapshot.nvidia.gpus if isinstance(snapshot.nvidia, Nvidia) else ()
    amds = () if isinstance(snapshot.amd, Missing) else snapshot.amd
    told = [*((gpu.name, gpu.memory) for gpu in nvidia), *((gpu.name, gpu.memory) for gpu in amds)]
    for name, memory in told:
        try:
            found.append(gpu_record(name, memory) if isinstance(name, str) else None)
        except UserError:
            found.append(None)
    return found


def _machine(snapshot: Snapshot) -> dict[str, Any]:
    try:
        found: Resolved = resolved(snapshot)
    except UserError as error:
        return missing(error.message)
    machine: Machine = found.machine
    return {
        "gpus": [
            {
                "id": gpu.record.id,
                "count": gpu.count,
                "total_bytes": round(gpu.total.value),
                "held_bytes": round(gpu.held.value),
                "power_limit_w": gpu.power_limit_w,
                "pcie_generation": gpu.record.pcie_generation,
                "pcie_lanes": gpu.record.pcie_lanes,
            }
            for gpu in machine.gpus
        ],
        "cpu": machine.processor.id if machine.processor else machine.cpu,
        "cores": machine.cores,
        "memory_bytes": machine.memory_bytes,
        "drives": list(machine.drives),
        "notes": [render(note, "en") for note in found.notes],
    }
