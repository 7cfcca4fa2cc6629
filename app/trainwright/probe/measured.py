"""Measurements as people and estimates read them: names, quantities, flags in words."""

from trainwright.explain import Interval, Kind, Quantity, Unit
from trainwright.messages import Message
from trainwright.probe.kept import Measurement

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
