"""Samples in columns under a heading with ``#``: ``nvidia-smi dmon``, ``pmon``, ``dcgmi dmon``."""

import re
from collections.abc import Iterator

from trainwright.diagnose.readers import texts
from trainwright.diagnose.readers.found import MIB, Found, GpuSample, sample_count
from trainwright.messages import Message, UserError

_HEADING = re.compile(
    r"^#[ \t]{0,80}(?:Time[ ,]{1,80}|Date[ ,]{1,80}Time[ ,]{1,80})?(?:gpu|Entity)\b[^\n]*$",
    re.MULTILINE | re.IGNORECASE,
)
_MAX_SAMPLES = 1_000_000

_DMON: dict[str, tuple[str, float]] = {
    "pwr": ("power_w", 1), "gtemp": ("temperature_c", 1), "sm": ("utilisation", 0.01),
    "mem": ("memory_utilisation", 0.01), "pclk": ("sm_clock_mhz", 1),
    "fb": ("memory_used_bytes", MIB), "rxpci": ("received_bytes_s", 1e6),
    "txpci": ("sent_bytes_s", 1e6),
}  # fmt: skip
"""Columns of ``nvidia-smi dmon`` (its manual): a sample's field, and the factor to its unit."""
_DCGM: dict[str, tuple[str, float]] = {
    "GPUTL": ("utilisation", 0.01), "MCUTL": ("memory_utilisation", 0.01),
    "SMACT": ("sm_active", 1), "SMOCC": ("sm_occupancy", 1), "TENSO": ("tensor_active", 1),
    "DRAMA": ("dram_active", 1), "POWER": ("power_w", 1), "TMPTR": ("temperature_c", 1),
    "SMCLK": ("sm_clock_mhz", 1), "FBUSD": ("memory_used_bytes", MIB),
    "FBTTL": ("memory_total_bytes", MIB), "PCIRX": ("received_bytes_s", 1),
    "PCITX": ("sent_bytes_s", 1),
}  # fmt: skip
"""Short names of ``dcgmi dmon -l``; profiling fields are shares, others per cent."""


def recognised(text: str) -> bool:
    """Return whether a heading names columns of these tools."""
    return (found := _HEADING.search(text)) is not None and _kind(found[0]) is not None


def _kind(heading: str) -> str | None:
    words = heading.replace(",", " ").lstrip("# ").split()
    lower = {word.lower() for word in words}
    if words and words[0].lower() == "entity":
        return "dcgmi"
    if {"pid", "type"} <= lower:
        return "pmon"
    return "dmon" if lower & set(_DMON) else None


def read(text: str) -> Found:
    """Return the samples of all lines under a heading that is known.

    Raises:
        UserError: there is a heading and no reading.
    """
    if (found := _HEADING.search(text)) is not None and _kind(found[0]) == "pmon":
        return _processes(text)
    samples = tuple(_samples(text))
    if not samples:
        raise UserError.of("diagnose.file.no-rows")
    missed = [Message.of("diagnose.file.no-step-times")]
    if all(each.utilisation is None and each.sm_active is None for each in samples):
        missed.append(Message.of("diagnose.file.no-utilisation"))
    return Found(tuple(sample_count(samples)), tuple(missed), gpus=samples)


def _rows(text: str) -> Iterator[tuple[list[str], list[str]]]:
    """Yield each line's words with its heading's, which a tool repeats now and then."""
    names: list[str] = []
    for line in text.replace(",", " ").splitlines():
        if _HEADING.match(line):
            names = line.lstrip("# ").split()
        elif names and line.strip() and not line.lstrip().startswith("#"):
            words = line.split()
            if names[0].lower() == "entity" and words[:1] == ["GPU"]:
                words = words[1:]  # "GPU 0" under one heading
            yield names, words


def _samples(text: str) -> Iterator[GpuSample]:
    for count, (names, words) in enumerate(_rows(text)):
        if count >= _MAX_SAMPLES or len(words) != len(names):
            continue
        columns = _DCGM if names[0].lower() == "entity" else _DMON
        index = next((w for n, w in zip(names, words, strict=True)
                      if n.lower() in ("gpu", "entity")), "")  # fmt: skip
        if not index.isdigit() or int(index) >= 64:
            continue
        readings: dict[str, float] = {}
        for name, word in zip(names, words, strict=True):
            if name in columns and (value := texts.number(word)) is not None and value >= 0:
                field, factor = columns[name]
                readings[field] = value * factor
        yield GpuSample(index=int(index), **_believed(readings))  # type: ignore[arg-type]


_SHARES = (
    "utilisation",
    "memory_utilisation",
    "sm_active",
    "sm_occupancy",
    "tensor_active",
    "dram_active",
)


def _believed(readings: dict[str, float]) -> dict[str, float]:
    return {k: v for k, v in readings.items() if k not in _SHARES or v <= 1}


def _processes(text: str) -> Found:
    """Return what ``pmon`` says: which processes were on each GPU, and what their kernels took.

    A process's share of a GPU is not the GPU's: it is taken where one process was alone.
    """
    pids: dict[int, set[str]] = {}
    samples = []
    for names, words in _rows(text):
        cells = dict(zip((name.lower() for name in names), words, strict=False))
        if not cells.get("gpu", "").isdigit() or int(cells["gpu"]) >= 64:
            continue
        if cells.get("pid", "-").isdigit() and "C" in cells.get("type", ""):
            index = int(cells["gpu"])
            pids.setdefault(index, set()).add(cells["pid"])
            samples.append(GpuSample(index, utilisation=texts.percent(cells.get("sm", "-"))))
    if not pids:
        raise UserError.of("diagnose.file.no-rows")
    alone = tuple(each for each in samples if len(pids[each.index]) == 1)
    several = sum(len(each) for each in pids.values())
    took = (Message.of("diagnose.file.gpu-processes", count=several), *sample_count(alone))
    missed = [Message.of("diagnose.file.no-step-times")]
    if all(each.utilisation is None for each in samples):  # -s m: memory only
        missed.append(Message.of("diagnose.file.no-utilisation"))
    elif len(alone) < len(samples):
        missed.append(Message.of("diagnose.file.which-process"))
    return Found(took, tuple(missed), gpus=alone)
