"""``nvidia-smi`` without options: the table, once or again and again (``-l``, ``watch``)."""

import re
from collections.abc import Iterator

from trainwright.diagnose.readers import texts
from trainwright.diagnose.readers.found import Found, GpuSample, sample_count
from trainwright.messages import Message

_FIRST = re.compile(
    r"\| (?P<index>\d{1,3}) (?P<name>\S[^|\n]{0,60}?) (?:On|Off|N/A|WDDM|TCC|MCDM) \|"
    r" ?[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:"
)
"""The first of a GPU's lines: index, name, persistence mode or driver model, bus."""
_SECOND = re.compile(
    r"\| ?(?P<fan>\d+%|N/A|ERR!?) (?P<temperature>\d+C|N/A) (?P<state>P\d{1,2}|N/A) "
    r"(?P<power>[\d.]+W|N/A|ERR!?) ?/ ?(?P<limit>[\d.]+W|N/A) ?\|"
    r" ?(?P<used>\d+ ?MiB|N/A) ?/ ?(?P<total>\d+ ?MiB|N/A) ?\| ?(?P<load>\d+%|N/A|ERR!?)"
)
"""The second: fan, temperature, performance state, power, memory, utilisation."""
_PROCESS = re.compile(
    r"\| (?P<index>\d{1,3}) (?:\S{1,20} \S{1,20} )?(?P<pid>\d+) (?P<type>C|G|C\+G|M\+C) "
    r"(?P<name>\S[^|\n]{0,60}?) (?P<memory>\d+MiB|N/A) ?\|"
)
_SLICE = re.compile(r"\| \d+ \d+ \d+ \d+ \| \d+MiB ?/ ?\d+MiB ?\|")
"""A row of the table of MIG devices."""


def recognised(text: str) -> bool:
    """Return whether this is the table."""
    return "GPU-Util" in text and _SECOND.search(texts.squeezed(text)) is not None


def read(text: str) -> Found:
    """Return the GPUs of all tables in a text."""
    text = texts.squeezed(text)
    samples = tuple(_samples(text))
    missed = [Message.of("diagnose.file.no-step-times")]
    if any(each.utilisation is None for each in samples):
        missed.append(Message.of("diagnose.file.no-utilisation"))
    if _SLICE.search(text):
        missed.append(Message.of("diagnose.file.slices"))
    took = [*sample_count(samples)]
    working = {each["pid"] for each in _PROCESS.finditer(text) if "C" in each["type"]}
    if working:
        took.append(Message.of("diagnose.file.gpu-processes", count=len(working)))
    return Found(tuple(took), tuple(missed), gpus=samples)


def _samples(text: str) -> Iterator[GpuSample]:
    first = None
    for line in text.splitlines():
        if (start := _FIRST.search(line)) is not None:
            first = start
        elif first is not None and (rest := _SECOND.search(line)) is not None:
            yield _sample(first, rest)
            first = None


def _sample(first: re.Match[str], rest: re.Match[str]) -> GpuSample:
    state = rest["state"].removeprefix("P")
    return GpuSample(
        index=int(first["index"]),
        name=first["name"] if not first["name"].endswith("...") else None,
        utilisation=texts.percent(rest["load"]),
        power_w=texts.number(rest["power"]),
        power_limit_w=texts.number(rest["limit"]),
        temperature_c=texts.number(rest["temperature"]),
        performance_state=int(state) if state.isdigit() and int(state) <= 15 else None,
        memory_used_bytes=texts.size(rest["used"]),
        memory_total_bytes=texts.size(rest["total"]),
    )
