"""``nvidia-smi -q``: the report, one section a GPU."""

import re
from collections.abc import Iterator

from trainwright.diagnose.readers import texts
from trainwright.diagnose.readers.found import Found, GpuSample, sample_count
from trainwright.diagnose.readers.nvidia_query import REASONS
from trainwright.messages import Message

_GPU = re.compile(
    r"^GPU [0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d[ \t]{0,80}$", re.MULTILINE
)


def recognised(text: str) -> bool:
    """Return whether this is the report."""
    return (_GPU.search(text) is not None and "Product Name" in text) or "==NVSMI LOG==" in text


def read(text: str) -> Found:
    """Return the GPUs of all reports in a text."""
    starts = [each.start() for each in _GPU.finditer(text)]
    sections = [text[a:b] for a, b in zip(starts, [*starts[1:], len(text)], strict=True)]
    indices: dict[str, int] = {}
    samples = tuple(
        _sample(indices.setdefault(section.split("\n", 1)[0].strip(), len(indices)), section)
        for section in sections[:1000]
    )
    missed = (Message.of("diagnose.file.no-step-times"),)
    return Found(tuple(sample_count(samples)), missed, gpus=samples)


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
            yield "/".join([*(name for _, name in path), key.strip()]).lower(), value
        else:
            path.append((indent, key))


def _sample(index: int, section: str) -> GpuSample:
    values: dict[str, str] = {}
    for key, value in _values(section):
        values.setdefault(key, value.strip())

    def first(*keys: str) -> str:
        return next((values[key] for key in keys if values.get(key, "N/A") != "N/A"), "")

    reasons = {
        name: word
        for name in REASONS
        for heading in ("clocks event reasons", "clocks throttle reasons")
        if (word := values.get(f"{heading}/{name.replace('_', ' ')}")
            or values.get(f"{heading}/hw slowdown/{name.replace('_', ' ')}"))
    }  # fmt: skip
    state = first("performance state").removeprefix("P")
    power = ("gpu power readings/", "power readings/")
    link = "pci/gpu link info/"
    return GpuSample(
        index=index,
        name=first("product name")[:200] or None,
        utilisation=texts.percent(first("utilization/gpu")),
        memory_utilisation=texts.percent(first("utilization/memory")),
        memory_used_bytes=texts.size(first("fb memory usage/used")),
        memory_total_bytes=texts.size(first("fb memory usage/total")),
        power_w=texts.number(first(*(
            head + key for head in power
            for key in ("average power draw", "power draw", "instantaneous power draw")))),
        power_limit_w=texts.number(first(*(
            head + key for head in power for key in ("current power limit", "power limit")))),
        power_limit_default_w=texts.number(first(*(f"{h}default power limit" for h in power))),
        temperature_c=texts.number(first("temperature/gpu current temp")),
        sm_clock_mhz=texts.number(first("clocks/sm")),
        sm_clock_max_mhz=texts.number(first("max clocks/sm")),
        performance_state=int(state) if state.isdigit() and int(state) <= 15 else None,
        link_generation=_link(first(f"{link}pcie generation/current")),
        link_generation_max=_link(first(f"{link}pcie generation/max")),
        link_width=_link(first(f"{link}link width/current")),
        link_width_max=_link(first(f"{link}link width/max")),
        throttled=frozenset(REASONS[name] for name, word in reasons.items() if word == "Active")
        if reasons else None,
    )  # fmt: skip


def _link(word: str) -> int | None:
    value = texts.number(word)
    return int(value) if value is not None and 1 <= value <= 32 else None
