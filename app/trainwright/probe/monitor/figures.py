"""Live readings as people read them; names and units are messages, digits are the same in both."""

from trainwright.messages import Message
from trainwright.messages.units import gib, number
from trainwright.probe.monitor.readings import Series, Unit, reading
from trainwright.probe.reading import Missing

MISSING = "–"


def device_name(device: str) -> str | Message:
    """Return what a device is called: Computer, GPU 0, GPU 0 slice 2."""
    if device == "host":
        return Message.of("monitor.device.host")
    if device == "gpu":
        return Message.of("monitor.device.any-gpu")
    gpu, _, part = device.partition(".slice")
    number = int(gpu.removeprefix("gpu"))
    if part:
        return Message.of("monitor.device.slice", gpu=number, slice=int(part))
    return f"GPU {number}"


def reading_name(key: str) -> Message:
    """Return what a reading is called."""
    return Message.of(f"monitor.reading.{key}")


def figure(series: Series, value: float | Missing) -> str:
    """Return a value with its unit; a dash where there is none."""
    if isinstance(value, Missing) or value != value:
        return MISSING
    return formed(value, reading(series).unit)


def formed(value: float, unit: Unit) -> str:
    """Return a value in a readable unit."""
    match unit:
        case "share":
            return f"{value * 100:.0f} %"
        case "bytes":
            return gib(value)
        case "bytes/s":
            return rate(value)
        case "celsius":
            return f"{value:.0f} °C"
        case "watts":
            return f"{value:.0f} W"
        case "megahertz":
            return f"{number(round(value))} MHz"


SCALE: dict[Unit, tuple[float, str]] = {
    "share": (0.01, "%"),
    "bytes": (1 << 30, "GiB"),
    "bytes/s": (1 << 20, "MiB/s"),
    "celsius": (1, "°C"),
    "watts": (1, "W"),
    "megahertz": (1, "MHz"),
}
"""What people type bounds in: the size of one in base units, and its name."""


def pair(value: float | Missing, whole: float | Missing, unit: Unit = "bytes") -> str:
    """Return ``3.1 / 24.0 GiB``: a value beside what there is of it."""
    if isinstance(value, Missing):
        return MISSING
    if isinstance(whole, Missing):
        return formed(value, unit)
    first, last = formed(value, unit), formed(whole, unit)
    digits, _, name = first.rpartition(" ")
    if last.endswith("GiB") and name == "MiB":
        return f"{first} / {last}"
    return f"{digits} / {last}"


def rate(value: float) -> str:
    """Return bytes a second as KiB/s, MiB/s or GiB/s."""
    for size, name in ((1 << 30, "GiB/s"), (1 << 20, "MiB/s")):
        if value >= size:
            return (
                f"{value / size:.1f} {name}" if value < 100 * size else f"{value / size:.0f} {name}"
            )
    return f"{value / 1024:.0f} KiB/s"
