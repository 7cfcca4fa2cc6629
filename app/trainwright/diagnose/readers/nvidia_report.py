"""``nvidia-smi -q``: the report, one section a GPU."""

import re
from collections.abc import Iterator

from trainwright.diagnose.readers.found import FIELDS, Found, GpuSample, of_gpus, sampled

_GPU = re.compile(
    r"^GPU [0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d[ \t]{0,80}$", re.MULTILINE
)
_MARK = re.compile(
    r"<(?P<end>/?)(?P<name>\w{1,80})(?: id=\"(?P<id>[0-9A-Fa-f:.]{10,20})\")?>"
    r"(?:(?P<value>[^<>\n]{0,300})</(?P=name)>)?"
)
REASONS = {
    "sw_power_cap": "power-cap",
    "hw_slowdown": "hardware-slowdown",
    "sw_thermal_slowdown": "thermal",
    "hw_thermal_slowdown": "hardware-thermal",
    "hw_power_brake_slowdown": "power-brake",
}
"""nvidia-smi's names of the clock event reasons, in the words of a record."""
_REASON = tuple(
    f"clocks {word} reasons/{within}"
    for word in ("event", "throttle")
    for within in ("", "hw slowdown/", f"clocks {word} reason ")
)
"""What stands before a reason: in the report, below another one, in the XML."""


def read(text: str) -> Found | None:
    """Return the GPUs of all reports in a text, or in its XML."""
    if "<nvidia_smi_log>" in text:
        text = _unmarked(text)
    elif not ((_GPU.search(text) and "Product Name" in text) or "==NVSMI LOG==" in text):
        return None
    starts = [each.start() for each in _GPU.finditer(text)]
    sections = [text[a:b] for a, b in zip(starts, [*starts[1:], len(text)], strict=True)]
    indices: dict[str, int] = {}
    return of_gpus(
        _sample(indices.setdefault(section.split("\n", 1)[0].strip(), len(indices)), section)
        for section in sections[:1000]
    )


def _unmarked(text: str) -> str:
    """Return the XML of ``-q -x`` as lines of the report, whose places are named almost alike."""
    lines, depth = [], 0
    for mark in _MARK.finditer(text):
        name = mark["name"].replace("_", " ")
        if mark["id"]:
            lines.append(f"GPU {mark['id']}")
            depth = 0
        elif mark["value"] is not None:
            lines.append(f"{'  ' * depth} {name} : {mark['value']}")
        elif mark["end"]:
            depth -= 1
        else:
            lines.append(f"{'  ' * depth} {name}")
            depth += 1
    return "\n".join(lines)


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
        if (word := first(*(f"{each}{name.replace('_', ' ')}" for each in _REASON)))
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
