"""Measurements as people and estimates read them: names, quantities, flags in words."""

from dataclasses import replace
from typing import Literal

from trainwright.catalog.query import find_gpu
from trainwright.explain import Interval, Kind, Quantity, Unit
from trainwright.machine.machine import Gpu, Machine
from trainwright.machine.measured import MeasuredDrive, MeasuredGpu, MeasuredHost, Product
from trainwright.messages import Message, UserError
from trainwright.probe.measurements import Kept, Measurement

LIBRARIES = {
    "pillow": "Pillow",
    "torchvision": "torchvision",
    "opencv": "OpenCV",
    "simplejpeg": "simplejpeg",
}
DTYPES = {
    "bfloat16": "BF16",
    "float16": "FP16",
    "tf32": "TF32",
    "float32": "FP32",
    "float8": "FP8",
}


def title(one: Measurement) -> Message:
    """Return what was measured, as a person reads it."""
    match one.what.split("."):
        case ["drive", "read", "files"]:
            return Message.of(
                "bench.title.files", kib=int(one.conditions.get("file_bytes", 0)) >> 10
            )
        case ["drive", "read", streams] if streams.startswith("streams-"):
            readers = int(streams.rpartition("-")[2])
            return Message.of("bench.title.streams", count=readers, readers=readers)
        case ["drive", kind, test]:
            return Message.of(f"bench.title.drive-{kind}", test=test.replace("-", " ").upper())
        case ["decode", library, "core"]:
            return Message.of("bench.title.core", library=LIBRARIES.get(library, library))
        case ["decode", library, "saturation"]:
            return Message.of("bench.title.saturation", library=LIBRARIES.get(library, library))
        case ["decode", library, workers]:
            name = LIBRARIES.get(library, library)
            return Message.of("bench.title.decode", library=name, count=int(workers))
        case ["product", dtype]:
            return Message.of("bench.title.product", dtype=DTYPES.get(dtype, dtype))
        case ["copy", _]:
            return Message.of("bench.title.copy")
        case ["link", direction, memory]:
            return Message.of(f"bench.title.{direction}-{memory}")
        case ["reduce", backend]:
            world = one.conditions.get("world", 0)
            return Message.of("bench.title.reduce", backend=backend.upper(), count=world)
    return Message.of("bench.title.other", what=one.what)


def source(one: Measurement) -> str:
    """Return where a value comes from, for Explain: when, on what, with which versions."""
    versions = ", ".join(f"{name} {version}" for name, version in one.versions.items())
    return ", ".join(filter(None, (one.date[:10], one.on, versions)))


def quantity(one: Measurement) -> Quantity:
    """Return the value as a quantity that says when it was measured."""
    span = None
    if one.low is not None and one.high is not None and one.unit is not Unit.COUNT:
        span = Interval(one.low, one.high, 1.0)
    return Quantity(
        title(one), one.value, one.unit, Kind.MEASURED, source=source(one), interval=span
    )


def flags(one: Measurement) -> tuple[Message, ...]:
    """Return its flags in words."""
    return tuple(Message.of(f"bench.mark.{flag}") for flag in one.flags)


def counts(one: Measurement) -> bool:
    """Return whether plans use it: memory's speed is not a drive's, and a processor's no GPU's."""
    return not (NO_DRIVE | {"cpu"}) & set(one.flags)


def on(machine: Machine, kept: Kept) -> Machine:
    """Return the machine with what was measured on it."""
    gpus = tuple(replace(gpu, measured=_gpu(gpu, kept)) for gpu in machine.gpus)
    return replace(machine, gpus=gpus, measured=_host(machine, kept))


def _gpu(gpu: Gpu, kept: Kept) -> MeasuredGpu | None:
    """Return what was measured on a GPU; its own driver calls it as torch does."""
    mine = [
        one
        for prefix in ("product", "copy", "link")
        for one in kept.below(prefix)
        if "cpu" not in one.flags and _names(one.on, gpu)
    ]
    if not mine:
        return None
    latest = {one.what: one for one in sorted(mine, key=lambda one: one.date)}

    def found(what: str) -> Quantity | None:
        return quantity(latest[what]) if what in latest else None

    return MeasuredGpu(
        products=tuple(filter(None, map(_product, latest.values()))),
        copy=found("copy.device"),
        pinned=found("link.h2d.pinned"),
        pageable=found("link.h2d.pageable"),
    )


def _names(name: str, gpu: Gpu) -> bool:
    try:
        return find_gpu(name, memory_bytes=int(gpu.total.value)).record.id == gpu.record.id
    except UserError:
        return False


def _product(one: Measurement) -> Product | None:
    area, _, dtype = one.what.partition(".")
    if area != "product":
        return None
    sides = [
        int(part) for part in str(one.conditions.get("shape", "")).split("x") if part.isdigit()
    ]
    if len(sides) != 3:
        return None
    return Product(dtype, (sides[0], sides[1], sides[2]), quantity(one))


NO_DRIVE = frozenset({"cached", "tmpfs"})
"""Flags of figures that say nothing of a drive."""


def _host(machine: Machine, kept: Kept) -> MeasuredHost | None:
    cores = {
        one.what.split(".")[1]: quantity(one)
        for one in sorted(kept.below("decode"), key=lambda one: one.date)
        if one.what.endswith(".core") and one.on == machine.cpu
    }
    core = cores.pop("pillow", None)
    drive = _drive(kept)
    if core is None and drive is None:
        return None
    return MeasuredHost(core, tuple(cores.items()) if core is not None else (), drive)


def _drive(kept: Kept) -> MeasuredDrive | None:
    """Return the drive that was measured last: a person measures where the data are."""
    reads = [one for one in kept.below("drive.read") if not NO_DRIVE & set(one.flags)]
    last = max(reads, key=lambda one: one.date, default=None)
    if last is None:
        return None
    found = {one.what: one for one in reads if one.on == last.on and one.date == last.date}
    deep = next((one for what, one in found.items() if "rnd4k-q32" in what), None)
    whole, alone = found.get("drive.read.seq1m-q8t1"), found.get("drive.read.rnd4k-q1t1")
    if deep is None or whole is None or alone is None:
        return None
    kinds: dict[object, Literal["nvme", "sata", "hdd"]] = {
        kind: kind for kind in ("nvme", "sata", "hdd")
    }
    attached = kinds.get(last.conditions.get("attachment"))
    return MeasuredDrive(last.on, quantity(whole), quantity(deep), quantity(alone), attached)
