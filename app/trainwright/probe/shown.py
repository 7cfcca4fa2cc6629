"""A snapshot as people read it: cards of rows, the same on the screen and on the terminal."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from trainwright.messages import Message, UserError
from trainwright.probe.amd import AmdGpu
from trainwright.probe.apple import AppleGpu
from trainwright.probe.disks import DriveReading, Mounted
from trainwright.probe.framework import Framework
from trainwright.probe.host import Host, SharedMemory
from trainwright.probe.nvml import (
    Between,
    Clocks,
    Ecc,
    GpuReading,
    Instance,
    Memory,
    Mig,
    Nvidia,
    NvLink,
)
from trainwright.probe.pci import Link
from trainwright.probe.reading import Missing
from trainwright.probe.sample import NOT_READ, GpuProcess
from trainwright.probe.snapshot import Snapshot, cpu_record, drive_record, gpu_record

Part = Literal["computer", "processor", "memory", "driver", "gpu", "drive", "torch"]
Value = Message | str | Missing


@dataclass(frozen=True, slots=True)
class Row:
    """A reading: what it is, and its value or why there is none."""

    label: Message
    value: Value


@dataclass(frozen=True, slots=True)
class Card:
    """A device or a part of the computer."""

    part: Part
    title: Message | str
    rows: tuple[Row, ...]
    reason: Missing | None = None
    """Why the whole part is absent."""
    named: bool = False
    """Whether the title is a device's own name; else a word of ours."""


def cards(snapshot: Snapshot) -> tuple[Card, ...]:
    """Return the cards: GPUs first, since they are what a plan is about."""
    found = (
        *_gpus(snapshot),
        _processor(snapshot.host),
        _memory_card(snapshot.host),
        *_drives(snapshot.drives),
        _torch(snapshot.framework),
        _computer(snapshot.host),
    )
    return tuple(replace(card, rows=tuple(_read(card.rows))) for card in found if card is not None)


def _read(rows: tuple[Row, ...]) -> Iterator[Row]:
    """Yield the rows that somebody asked for."""
    return (row for row in rows if row.value != NOT_READ)


def _row(name: str, value: Any, id: str = "") -> Row:
    """Return a row; ``id`` is the sentence that the value stands in."""
    label = Message.of(f"probe.row.{name}")
    if isinstance(value, Missing | Message):
        return Row(label, value)
    return Row(label, Message.of(id, value=value) if id else str(value))


def _say(id: str, /, **values: object) -> Message | Missing:
    """Return a sentence, or why the first of its values is not there."""
    for value in values.values():
        if isinstance(value, Missing):
            return value
    return Message.of(id, **values)


# GPUs


def _gpus(snapshot: Snapshot) -> Iterator[Card]:
    nvidia, amds, apple = snapshot.nvidia, snapshot.amd, snapshot.apple
    if isinstance(nvidia, Nvidia):
        several = len(nvidia.gpus) > 1
        yield from (_nvidia(gpu, snapshot.host, numbered=several) for gpu in nvidia.gpus)
    if not isinstance(amds, Missing):
        yield from (_amd(gpu, snapshot.host, numbered=len(amds) > 1) for gpu in amds)
    if isinstance(apple, AppleGpu):
        yield _apple(apple)
    makers = {"nvidia": nvidia, "amd": amds, "apple": apple}
    if isinstance(nvidia, Nvidia):
        if nvidia.gpus:
            yield _driver(nvidia)
            return
        makers["nvidia"] = Missing(Message.of("probe.empty"))
    if all(isinstance(found, Missing) for found in makers.values()):
        rows = tuple(_row(f"maker.{name}", found) for name, found in makers.items())
        yield Card(
            "gpu", Message.of("probe.card.no-gpu"), rows, Missing(Message.of("probe.no-gpus"))
        )


def _driver(nvidia: Nvidia) -> Card:
    rows = (
        _row("driver", nvidia.driver),
        _row("cuda", nvidia.cuda, "probe.value.cuda"),
        *map(_between, nvidia.between),
    )
    return Card("driver", Message.of("probe.card.driver"), rows)


def _between(path: Between) -> Row:
    label = Message.of("probe.row.between", first=path.first, second=path.second)
    level = Message.of(f"probe.level.{path.level}")
    if isinstance(path.peer, Missing):
        return Row(label, level)
    reach = Message.of("probe.peer.yes" if path.peer else "probe.peer.no")
    return Row(label, Message.of("probe.value.between", level=level, peer=reach))


def _title(index: int, name: str | Missing, numbered: bool) -> Message | str:
    """Return what a GPU is called; by number too beside others, which may have its name."""
    if isinstance(name, Missing):
        return Message.of("probe.card.gpu", index=index)
    return Message.of("probe.card.gpu-named", index=index, name=name) if numbered else name


def _nvidia(gpu: GpuReading, host: Host, *, numbered: bool) -> Card:
    title = _title(gpu.index, gpu.name, numbered)
    reason = gpu.name if isinstance(gpu.name, Missing) else None
    if reason is not None and gpu.memory == reason:  # nothing of it can be read
        return Card("gpu", title, (), reason)
    mig = gpu.mig
    rows = (
        _row("memory", _memory(gpu.memory, gpu.name, host)),
        _row("catalog", _catalogued(gpu.name, gpu.memory)),
        _row("capability", gpu.compute_capability if isinstance(gpu.compute_capability, Missing)
             else ".".join(map(str, gpu.compute_capability))),
        *_link_rows(gpu.link),
        *_power_rows(gpu),
        *_clock_rows(gpu.clocks),
        _row("ecc", _ecc(gpu.ecc)),
        _row("mig", _mig(mig)),
        *((_row("mig-profiles", _profiles(mig)),) if isinstance(mig, Mig) else ()),
        *(map(_instance, mig.instances) if isinstance(mig, Mig) else ()),
        _row("nvlink", _nvlink(gpu.nvlink)),
        _row("processes", _processes(gpu.processes)),
        *(_process_rows(gpu.processes)),
        _row("bus", gpu.bus),
        _row("uuid", gpu.uuid),
        _row("serial", gpu.serial),
    )  # fmt: skip
    return Card("gpu", title, rows, reason, named=isinstance(gpu.name, str))


def _memory(memory: Memory | Missing, name: str | Missing, host: Host) -> Message | Missing:
    """Return a GPU's memory; a driver that answers 0 does not tell it."""
    if isinstance(memory, Missing) or not memory.total:
        untold = Missing(Message.of("probe.not-supported"))
        return _unified(name, host) or (memory if isinstance(memory, Missing) else untold)
    values = {"total": memory.total, "used": memory.used, "reserved": memory.reserved}
    return Message.of("probe.value.vram" if memory.reserved else "probe.value.vram-used", **values)


def _unified(name: str | Missing, host: Host) -> Message | Missing | None:
    """Return the computer's memory where the GPU shares it; None where it has its own."""
    if isinstance(name, Missing):
        return None
    try:
        record = gpu_record(name, Missing(Message.of("probe.not-supported")))
    except UserError:
        return None
    if not record.unified_memory:
        return None
    return _say("probe.value.unified", value=host.installed_bytes)


def _catalogued(name: str | Missing, memory: Memory | Missing) -> Value:
    if isinstance(name, Missing):
        return name
    try:
        return gpu_record(name, memory).id
    except UserError:
        return Missing(Message.of("probe.not-catalogued"))


def _link_rows(link: Link) -> tuple[Row, Row]:
    now = _say("probe.value.link", generation=link.generation, count=link.width)
    most = _say("probe.value.link", generation=link.most_generation, count=link.most_width)
    return _row("link", now), _row("most-link", most)


def _power_rows(gpu: GpuReading) -> tuple[Row, ...]:
    power = gpu.power
    limit = _row("power", gpu.power_limit_w, "probe.value.watts")
    span = _say(
        "probe.value.power-range",
        default=power.default_w, least=power.least_w, most=power.most_w,
    )  # fmt: skip
    return (
        (limit,) if isinstance(gpu.power_limit_w, Missing) else (limit, _row("power-range", span))
    )


def _clock_rows(clocks: Clocks) -> tuple[Row, Row]:
    processor = _say("probe.value.clock", now=clocks.processor, most=clocks.most_processor)
    memory = _say("probe.value.clock", now=clocks.memory, most=clocks.most_memory)
    return _row("clock", processor), _row("memory-clock", memory)


def _ecc(ecc: Ecc | Missing) -> Message | Missing:
    if isinstance(ecc, Missing):
        return ecc
    if ecc.on != ecc.pending:
        return Message.of("probe.value.pending-on" if ecc.pending else "probe.value.pending-off")
    if not ecc.on:
        return Message.of("probe.value.off")
    counted = _say("probe.value.ecc", corrected=ecc.corrected, uncorrected=ecc.uncorrected)
    return Message.of("probe.value.on") if isinstance(counted, Missing) else counted


def _mig(mig: Mig | Missing) -> Message | Missing:
    if isinstance(mig, Missing):
        return mig
    if mig.on != mig.pending:
        return Message.of("probe.value.pending-on" if mig.pending else "probe.value.pending-off")
    if not mig.on:
        return Message.of("probe.value.off")
    return Message.of("probe.value.instances", count=len(mig.instances))


def _profiles(mig: Mig) -> Message | Missing:
    """Return what the GPU can be divided into, and whether places were told."""
    found = mig.profiles
    if isinstance(found, Missing):
        return found
    if not found:
        return Message.of("probe.value.no-profiles")
    names = ", ".join(each.name or str(each.id) for each in found)
    places = (each.places for each in found)
    hidden = next((each.reason for each in places if isinstance(each, Missing)), None)
    if hidden is None:
        return Message.of("probe.value.profiles", names=names)
    return Message.of("probe.value.profiles-unplaced", names=names, reason=hidden)


def _instance(part: Instance) -> Row:
    name = part.name if isinstance(part.name, str) else ""
    label = Message.of("probe.row.instance", name=name.rpartition("MIG ")[2] or "?")
    if isinstance(part.memory, Missing):
        return Row(label, part.memory)
    return Row(label, _say("probe.value.instance", processors=part.processors,
                           total=part.memory.total, used=part.memory.used))  # fmt: skip


def _nvlink(link: NvLink | Missing) -> Message | Missing:
    if isinstance(link, Missing):
        return link
    if not link.active:
        return Message.of("probe.value.nvlink-down", links=link.links)
    return _say("probe.value.nvlink", active=link.active, links=link.links, version=link.version)


def _processes(found: tuple[GpuProcess, ...] | Missing) -> Message | Missing:
    return (
        found
        if isinstance(found, Missing)
        else Message.of("probe.value.processes", count=len(found))
    )


def _process_rows(found: tuple[GpuProcess, ...] | Missing) -> Iterator[Row]:
    for process in () if isinstance(found, Missing) else found:
        name = process.name if isinstance(process.name, str) else "?"
        label = Message.of("probe.row.process", name=name, pid=process.pid)
        yield Row(label, _say("probe.value.held", value=process.memory_bytes))


def _amd(gpu: AmdGpu, host: Host, *, numbered: bool) -> Card:
    title = _title(gpu.index, gpu.name, numbered)
    rows = (
        *(() if isinstance(gpu.name, str) else (_row("name", gpu.name),)),
        _row("memory", _memory(gpu.memory, gpu.name, host)),
        _row("catalog", _catalogued(gpu.name, gpu.memory)),
        _row("shared", gpu.shared_bytes, "probe.value.bytes"),
        _row("busy", gpu.busy, "probe.value.share"),
        *_link_rows(gpu.link),
        _row("power", gpu.power_limit_w, "probe.value.watts"),
        _row("partition", gpu.partition),
        _row("bus", gpu.bus),
        _row("serial", gpu.serial),
    )
    return Card("gpu", title, rows, named=isinstance(gpu.name, str))


def _apple(gpu: AppleGpu) -> Card:
    rows = (
        _row("memory", gpu.memory_bytes, "probe.value.unified"),
        _row("catalog", _catalogued(gpu.name, Missing(Message.of("probe.not-supported")))),
    )
    return Card("gpu", gpu.name, rows, named=True)


# The computer around them


def _processor(host: Host) -> Card:
    named = isinstance(host.cpu, str)
    title = host.cpu if isinstance(host.cpu, str) else Message.of("probe.card.processor")
    record = cpu_record(host)
    allowed, logical = host.allowed_cores, host.logical_cores
    rows = (
        *(() if named else (_row("name", host.cpu),)),
        _row("usable-cores", _say("probe.value.cores", count=host.cores)),
        _row("cores", _say("probe.value.all-cores", physical=host.physical_cores, logical=logical)),
        *(() if allowed == logical else
          (_row("affinity", _say("probe.value.cores", count=allowed)),)),
        *(() if host.quota_cores is None else
          (_row("quota", host.quota_cores, "probe.value.quota"),)),
        _row("most-clock", _ghz(host.most_mhz)),
        *_numa(host),
        _row("catalog", record.id if record else Missing(Message.of("probe.not-catalogued"))),
    )  # fmt: skip
    return Card("processor", title, rows, named=named)


def _ghz(mhz: float | Missing) -> Message | Missing:
    return mhz if isinstance(mhz, Missing) else Message.of("probe.value.ghz", value=mhz / 1000)


def _numa(host: Host) -> Iterator[Row]:
    if isinstance(host.numa, Missing):
        yield _row("numa", host.numa)
        return
    if len(host.numa) == 1:
        yield _row("numa", Message.of("probe.value.one-node"))
        return
    for node in host.numa:
        label = Message.of("probe.row.numa-node", index=node.index)
        yield Row(label, _say("probe.value.node", cores=node.cores, memory=node.memory_bytes))


def _memory_card(host: Host) -> Card:
    limited = host.memory_bytes != host.installed_bytes
    shared = host.shared_memory
    swap = "probe.value.bytes" if host.swap_bytes else "probe.value.none"
    rows = (
        _row("usable-memory", host.memory_bytes, "probe.value.bytes"),
        *((_row("installed", host.installed_bytes, "probe.value.bytes"),) if limited else ()),
        *((_row("limit", host.limit_bytes, "probe.value.bytes"),) if limited else ()),
        _row("swap", host.swap_bytes, swap),
        _row("shared-memory", Message.of("probe.value.free-of", free=shared.free_bytes,
                                         total=shared.total_bytes)
             if isinstance(shared, SharedMemory) else shared),
    )  # fmt: skip
    return Card("memory", Message.of("probe.card.memory"), rows)


def _drives(found: tuple[DriveReading, ...] | Missing) -> Iterator[Card]:
    if isinstance(found, Missing):
        if found != NOT_READ:
            yield Card("drive", Message.of("probe.card.no-drive"), (), found)
        return
    for drive in found:
        yield _drive(drive)


def _drive(drive: DriveReading) -> Card:
    record = drive_record(drive)
    kind = drive.kind if isinstance(drive.kind, Missing) else Message.of(f"probe.kind.{drive.kind}")
    named = isinstance(drive.model, str)
    title = drive.model if isinstance(drive.model, str) else drive.name
    rows = (
        *(() if named else (_row("model", drive.model),)),
        _row("kind", kind),
        _row("size", _decimal(drive.size_bytes)),
        *(_link_rows(drive.link) if drive.link is not None else ()),
        *map(_mounted, drive.mounted),
        *(() if drive.mounted else (_row("mounted", Message.of("probe.value.not-mounted")),)),
        _row("catalog", record.id if record else Missing(Message.of("probe.not-catalogued"))),
        _row("serial", drive.serial),
    )
    return Card("drive", title, rows, named=True)


def _decimal(size: int | Missing) -> Message | Missing:
    """Return a size as makers print it, in decimal units."""
    if isinstance(size, Missing):
        return size
    if size < 1e12:
        return Message.of("probe.value.gigabytes", value=round(size / 1e9))
    return Message.of("probe.value.terabytes", value=size / 1e12)


def _mounted(each: Mounted) -> Row:
    label = Message.of("probe.row.at", path=each.path)
    if isinstance(each.free_bytes, Missing):
        return Row(label, each.free_bytes)
    id = "probe.value.mounted-read-only" if each.read_only else "probe.value.mounted"
    return Row(label, Message.of(id, free=each.free_bytes, filesystem=each.filesystem))


def _torch(found: Framework | Missing) -> Card | None:
    title = Message.of("probe.card.torch")
    if isinstance(found, Missing):
        return None if found == NOT_READ else Card("torch", title, (), found)
    if found.gpus:
        uses: Value = ", ".join(found.gpus)
    elif found.mps:
        uses = Message.of("probe.value.mps")
    elif found.cuda is None and found.rocm is None:
        uses = Missing(Message.of("probe.torch-cpu"))
    else:
        uses = Missing(Message.of("probe.torch-none", reason=found.reason or "?"))
    rows = (
        _row("torch", found.torch),
        _row("python", found.python),
        _row("torch-gpus", uses),
        *((_row("torch-cuda", found.cuda),) if found.cuda else ()),
        *((_row("torch-rocm", found.rocm),) if found.rocm else ()),
        *((_row("torch-nccl", found.nccl),) if found.nccl else ()),
    )
    return Card("torch", title, rows)


def _computer(host: Host) -> Card:
    rows = (
        _row("system", host.description),
        *((_row("around", Message.of(f"probe.around.{host.around}")),) if host.around else ()),
        _row("host-name", host.name),
    )
    return Card("computer", Message.of("probe.card.computer"), rows)
