"""``nvidia-smi -q``: the report, one section a GPU."""

import re
from collections.abc import Iterator

from trainwright.diagnose.readers.found import FIELDS, Found, GpuSample, of_gpus, sampled

_GPU = re.compile(
    r"^GPU [0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d[ \t]{0,80}$", re.MULTILINE
)
REASONS = {
    "sw_power_cap": "power-cap",
    "hw_slowdown": "hardware-slowdown",
    "sw_thermal_slowdown": "thermal",
    "hw_thermal_slowdown": "hardware-thermal",
    "hw_power_brake_slowdown": "power-brake",
}
"""nvidia-smi's names of the clock event reasons, in the words of a record."""
_REASON = ("clocks event reasons", "clocks throttle reasons",
           "clocks event reasons/hw slowdown", "clocks throttle reasons/hw slowdown")  # fmt: skip


def recognised(text: str) -> bool:
    """Return whether this is the report."""
    return (_GPU.search(text) is not None and "Product Name" in text) or "==NVSMI LOG==" in text


def read(text: str) -> Found:
    """Return the GPUs of all reports in a text."""
    starts = [each.start() for each in _GPU.finditer(text)]
    sections = [text[a:b] for a, b in zip(starts, [*starts[1:], len(text)], strict=True)]
    indices: dict[str, int] = {}
    return of_gpus(
        _sample(indices.setdefault(section.split("\n", 1)[0].strip(), len(indices)), section)
        for section in sections[:1000]
    )


def _sample(index: int, section: str) -> GpuSample:
    values: dict[str, str] = {}
    for path, value in _values(section):
        if value != "N/A":
            values.setdefault(path, value)

    def first(*paths: str) -> str | None:
        return next((values[path] for path in paths if path in values), None)

    reasons = {
        reason: word
        for name, reason in REASONS.items()
        if (word := first(*(f"{each}/{name.replace('_', ' ')}" for each in _REASON)))
    }
    active = frozenset(reason for reason, word in reasons.items() if word == "Active")
    words = {name: first(*field.report) for name, field in FIELDS.items()}
    return sampled(index, words, active if reasons else None)  # fmt: skip


def _values(section: str) -> Iterator[tuple[str, str]]:
    """Yield each value under its path: ``utilization/gpu``."""
    path: list[tuple[int, str]] = []
    for line in section.splitlines()[1:]:
        key, mark, value = line.strip().partition(" : ")
        if not key:
            continue
        indent = len(line) - len(line.lstrip())
        path = [each for each in path if each[0] < indent]
        if mark:
            yield "/".join([*(name for _, name in path), key.strip()]).lower(), value.strip()
        else:
            path.append((indent, key))
