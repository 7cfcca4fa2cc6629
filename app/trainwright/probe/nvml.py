"""NVIDIA GPUs as their driver sees them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from trainwright.messages import Message
from trainwright.probe.driver import PATIENCE_S, SYSTEM, Told, absent, ask, because
from trainwright.probe.pci import NO_LINK, Link
from trainwright.probe.reading import Missing
from trainwright.probe.sample import NOT_READ, GpuProcess

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes of a GPU's memory: total is what driver, programs and free memory share."""

    total: int
    reserved: int
    """Kept by the driver and firmware; 0 where the driver counts it among ``used``."""
    used: int


@dataclass(frozen=True, slots=True)
class PowerLimits:
    """Watts; the limit in force is ``GpuReading.power_limit_w``."""

    default_w: float | Missing = NOT_READ
    least_w: float | Missing = NOT_READ
    most_w: float | Missing = NOT_READ


@dataclass(frozen=True, slots=True)
class Clocks:
    """MHz, now and at most."""

    processor: int | Missing = NOT_READ
    memory: int | Missing = NOT_READ
    most_processor: int | Missing = NOT_READ
    most_memory: int | Missing = NOT_READ


@dataclass(frozen=True, slots=True)
class Ecc:
    """Error correction of the memory, and the errors since the GPU was made."""

    on: bool
    pending: bool
    """Whether it is on after the next reset."""
    corrected: int | Missing = NOT_READ
    uncorrected: int | Missing = NOT_READ


@dataclass(frozen=True, slots=True)
class Instance:
    """A part of a divided GPU (MIG)."""

    name: str | Missing
    memory: Memory | Missing = NOT_READ
    processors: int | Missing = NOT_READ
    """Streaming multiprocessors."""
    slices: int | Missing = NOT_READ
    gpu_instance: int | Missing = NOT_READ
    """Several compute instances may share one."""


@dataclass(frozen=True, slots=True)
class MigProfile:
    """A kind of instance that the driver offers."""

    index: int
    """nvml.h's NVML_GPU_INSTANCE_PROFILE_*."""
    id: int
    name: str | None
    """``1g.10gb+me``; None: drivers before 525 do not tell it."""
    slices: int
    count: int
    """Instances of it that an empty GPU holds."""
    processors: int
    copy: int
    nvdec: int
    nvenc: int
    jpeg: int
    ofa: int
    memory: int
    """Bytes."""
    places: tuple[tuple[int, int], ...] | Missing
    """(first unit, units); told to administrators only."""


@dataclass(frozen=True, slots=True)
class Placed:
    """Where an instance lies."""

    id: int
    profile: int
    """Id of its profile."""
    start: int
    size: int


@dataclass(frozen=True, slots=True)
class Mig:
    """Whether a GPU is divided, and into what."""

    on: bool
    pending: bool
    """Whether it is on after the next reset."""
    instances: tuple[Instance, ...] = ()
    profiles: tuple[MigProfile, ...] | Missing = NOT_READ
    """What it can be divided into; some drivers tell none while it is not divided."""
    placed: tuple[Placed, ...] | Missing = NOT_READ
    """Told to administrators only."""


@dataclass(frozen=True, slots=True)
class NvLink:
    """Bridges or switches between GPUs."""

    links: int
    active: int
    version: int | Missing = NOT_READ
    """Generation: 3 is that of Ampere, 4 of Hopper."""
    peers: tuple[str, ...] = ()
    """PCI addresses at the other ends."""


@dataclass(frozen=True, slots=True)
class GpuReading:
    """One GPU."""

    index: int
    name: str | Missing
    memory: Memory | Missing
    compute_capability: tuple[int, int] | Missing
    power_limit_w: float | Missing
    bus: str | Missing = NOT_READ
    """PCI address as the system writes it: ``0000:01:00.0``."""
    link: Link = NO_LINK
    power: PowerLimits = PowerLimits()
    clocks: Clocks = Clocks()
    cores: int | Missing = NOT_READ
    """CUDA cores."""
    memory_bus_bits: int | Missing = NOT_READ
    ecc: Ecc | Missing = NOT_READ
    mig: Mig | Missing = NOT_READ
    processes: tuple[GpuProcess, ...] | Missing = NOT_READ
    nvlink: NvLink | Missing = NOT_READ
    uuid: str | Missing = NOT_READ
    serial: str | Missing = NOT_READ


@dataclass(frozen=True, slots=True)
class Between:
    """What lies between two GPUs."""

    first: int
    second: int
    level: str
    """internal | single-switch | several-switches | host-bridge | node | system, from near to far:
    NVML's common ancestors."""
    peer: bool | Missing = NOT_READ
    """Whether each writes into the other's memory without the host."""


@dataclass(frozen=True, slots=True)
class Nvidia:
    """The driver and its GPUs."""

    driver: str | Missing
    gpus: tuple[GpuReading, ...]
    cuda: str | Missing = NOT_READ
    """The newest CUDA that the driver runs: ``13.0``."""
    between: tuple[Between, ...] = ()


def read(
    *, identifiers: bool = False, patience_s: float = PATIENCE_S, anew: bool = True
) -> Nvidia | Missing:
    """Return what NVML says, or why there is nothing to ask.

    Args:
        identifiers: whether serial numbers and UUIDs are read too.
        patience_s: seconds that one call of the driver may take.
        anew: whether GPUs are asked again whose driver did not answer before.
    """
    told = ask(identifiers=identifiers, patience_s=patience_s, anew=anew)
    if (SYSTEM, "count") not in told.readings:
        return absent(told, (SYSTEM, "start"))
    count = int(told.readings[SYSTEM, "count"])
    return Nvidia(
        driver=_of(told, SYSTEM, "driver", str),
        cuda=_of(told, SYSTEM, "cuda", lambda version: f"{version // 1000}.{version % 1000 // 10}"),
        gpus=tuple(_gpu(told, index) for index in range(count)),
        between=tuple(_paths(told, count)),
    )


def _gpu(told: Told, index: int) -> GpuReading:
    if (index, "handle") in told.errors:  # then nothing else was asked
        reason = absent(told, (index, "handle"))
        return GpuReading(index, reason, reason, reason, reason)

    def of(name: str, form: Callable[[Any], T]) -> T | Missing:
        return _of(told, index, name, form)

    return GpuReading(
        index=index,
        name=of("name", str),
        memory=of("memory", _memory),
        compute_capability=of("capability", lambda pair: (int(pair[0]), int(pair[1]))),
        power_limit_w=of("power", _watts),
        bus=of("bus", pci_address),
        link=Link(
            of("generation", int), of("width", int), of("most_generation", int),
            of("most_width", int),
        ),
        power=PowerLimits(
            of("power_default", _watts),
            of("power_range", lambda both: _watts(both["least"])),
            of("power_range", lambda both: _watts(both["most"])),
        ),
        clocks=Clocks(
            of("clock", int), of("memory_clock", int), of("most_clock", int),
            of("most_memory_clock", int),
        ),
        cores=of("cores", int),
        memory_bus_bits=of("bus_width", int),
        ecc=of("ecc", _ecc),
        mig=_mig(told, index),
        processes=of("processes", lambda each: tuple(map(_process, each))),
        nvlink=of("nvlink", _nvlink),
        uuid=of("uuid", str),
        serial=of("serial", str),
    )  # fmt: skip


def _of(told: Told, gpu: int, name: str, form: Callable[[Any], T]) -> T | Missing:
    where = (gpu, name)
    return form(told.readings[where]) if where in told.readings else absent(told, where)


def _inner(answer: dict[str, Any] | None, form: Callable[[Any], T]) -> T | Missing:
    """Return an answer within an answer."""
    if answer is None:
        return NOT_READ
    return form(answer["value"]) if "value" in answer else Missing(because(answer["error"]))


def _watts(milliwatts: int) -> float:
    return milliwatts / 1000


def _memory(found: dict[str, int]) -> Memory:
    return Memory(found["total"], found["reserved"], found["used"])


def _ecc(found: dict[str, Any]) -> Ecc:
    counts = (_inner(found[name], int) for name in ("corrected", "uncorrected"))
    return Ecc(found["on"], found["pending"], *counts)


def _mig(told: Told, index: int) -> Mig | Missing:
    found = told.readings.get((index, "mig"))
    if found is None:
        return absent(told, (index, "mig"))
    return Mig(
        on=found["on"],
        pending=found["pending"],
        instances=tuple(map(_instance, found["instances"])),
        profiles=_of(told, index, "mig_profiles", lambda each: tuple(map(_profile, each))),
        placed=_of(told, index, "mig_placed", lambda each: tuple(Placed(**one) for one in each)),
    )


def _profile(found: dict[str, Any]) -> MigProfile:
    places = _inner(found["places"], lambda each: tuple((start, size) for start, size in each))
    return MigProfile(**found | {"places": places})


def _instance(found: dict[str, Any]) -> Instance:
    size = found.get("attributes")
    return Instance(
        name=_inner(found["name"], str),
        memory=_inner(found.get("memory"), _memory),
        processors=_inner(size, lambda each: int(each["processors"])),
        slices=_inner(size, lambda each: int(each["slices"])),
        gpu_instance=_inner(found.get("id"), int),
    )


def _process(found: dict[str, Any]) -> GpuProcess:
    held = found["memory"]
    return GpuProcess(
        pid=found["pid"],
        name=_inner(found["name"], str),
        memory_bytes=Missing(Message.of("probe.not-supported")) if held is None else held,
        kind=found["kind"],
    )


NVLINK_GENERATION = {1: 1, 2: 2, 3: 2, 4: 3, 5: 3, 6: 4, 7: 5, 8: 6}
"""Generation by nvml.h's NVML_NVLINK_VERSION_*: 1.0, 2.0, 2.2, 3.0, 3.1, 4.0, 5.0, 6.0."""


def _nvlink(found: dict[str, Any]) -> NvLink:
    peers = [_inner(peer, pci_address) for peer in found["peers"]]
    return NvLink(
        links=found["links"],
        active=found["active"],
        version=_inner(found["version"], lambda number: NVLINK_GENERATION.get(number, number)),
        peers=tuple(sorted({peer for peer in peers if isinstance(peer, str)})),
    )


LEVELS = {
    0: "internal", 10: "single-switch", 20: "several-switches",
    30: "host-bridge", 40: "node", 50: "system",
}  # fmt: skip
"""By nvml.h's NVML_TOPOLOGY_*."""


def _paths(told: Told, count: int) -> list[Between]:
    pairs = [(one, other) for one in range(count) for other in range(one + 1, count)]
    found = ((pair, told.readings.get((pair[0], f"path.{pair[1]}"))) for pair in pairs)
    return [
        Between(*pair, LEVELS.get(path["level"], "system"), _inner(path["peer"], _reached))
        for pair, path in found
        if path is not None
    ]


def _reached(status: int) -> bool:
    """Return whether NVML's peer-to-peer status is the one that says so (0)."""
    return not status


def pci_address(text: str) -> str:
    """Return a PCI address as sysfs writes it: a domain of four digits, small letters."""
    domain, _, rest = text.partition(":")
    return f"{domain[-4:]}:{rest}".lower()
