"""The text of ``gpustat`` and of ``nvitop``."""

import re
from collections.abc import Iterator

from trainwright.diagnose.readers import texts
from trainwright.diagnose.readers.found import MIB, Found, GpuSample, sample_count
from trainwright.messages import Message

_GPUSTAT = re.compile(
    r"^ ?\[(?P<index>\d{1,2})\] (?P<name>[^|\n]{1,60}?) ?\| ?(?P<temperature>\d+|\?\?) ?'?°?C?,"
    r"(?: ?\d+ ?%,(?= ?\d+ ?%))? ?(?P<load>\d+|\?\?) ?%"
    r"(?:, ?(?P<power>\d+|\?\?) ?(?:/ ?(?P<limit>\d+|\?\?) ?)?W)? ?"
    r"\| ?(?P<used>\d+|\?\?) ?/ ?(?P<total>\d+|\?\?) ?MB",
    re.MULTILINE,
)
_BAR = r"[│|║┃]"
_NVITOP_NAME = re.compile(
    rf"{_BAR} (?P<index>\d{{1,2}}) (?P<name>\S[^│|║┃]{{0,60}}?) (?:On|Off|N/A|WDDM|TCC) ?{_BAR}"
    r" ?[0-9A-Fa-f]{4,8}:"
)
_NVITOP_READINGS = re.compile(
    rf"{_BAR} ?(?:\d+%|N/A|MAX) (?P<temperature>\d+C|N/A) (?P<state>P\d+|N/A) "
    rf"(?P<power>\d+W|N/A) ?/ ?(?P<limit>\d+W|N/A) ?{_BAR} ?"
    rf"(?P<used>[\d.]+[KMGT]iB|N/A) ?/ ?(?P<total>[\d.]+[KMGT]iB|N/A) ?{_BAR} ?"
    r"(?P<load>\d+%|N/A|MAX)"
)
_NVITOP_COMPACT = re.compile(
    rf"{_BAR} ?(?P<index>\d{{1,2}}) (?:\d+%|N/A|MAX) (?P<temperature>\d+C|N/A) "
    rf"(?P<state>P\d+|N/A) (?P<power>\d+W?|N/A) ?/ ?(?P<limit>\d+W|N/A) ?{_BAR} ?"
    rf"(?P<used>[\d.]+[KMGT]iB|N/A) ?/ ?(?P<total>[\d.]+[KMGT]iB|N/A) ?{_BAR} ?"
    r"(?P<load>\d+%|N/A|MAX)"
)


def is_gpustat(text: str) -> bool:
    """Return whether there is a line of ``gpustat``."""
    return _GPUSTAT.search(texts.squeezed(text)) is not None


def read_gpustat(text: str) -> Found:
    """Return the GPUs of all lines of ``gpustat``."""
    return _found(tuple(
        GpuSample(
            index=int(each["index"]),
            name=each["name"][:200],
            temperature_c=texts.number(each["temperature"]),
            utilisation=texts.percent(each["load"]),
            power_w=texts.number(each["power"] or ""),
            power_limit_w=texts.number(each["limit"] or ""),
            memory_used_bytes=_mebibytes(each["used"]),
            memory_total_bytes=_mebibytes(each["total"]),
        )
        for each in _GPUSTAT.finditer(texts.squeezed(text))
    ))  # fmt: skip


def _mebibytes(word: str) -> float | None:
    """Return bytes; what gpustat calls MB is MiB."""
    value = texts.number(word)
    return value * MIB if value is not None else None


def is_nvitop(text: str) -> bool:
    """Return whether there is a line of readings of ``nvitop``."""
    text = texts.squeezed(text)
    return "nvitop" in text.lower() and (
        _NVITOP_READINGS.search(text) or _NVITOP_COMPACT.search(text)
    ) is not None  # fmt: skip


def read_nvitop(text: str) -> Found:
    """Return the GPUs of all panels of ``nvitop``, full or compact."""
    return _found(tuple(_nvitop(texts.squeezed(text))))


def _nvitop(text: str) -> Iterator[GpuSample]:
    named = None
    for line in text.splitlines():
        if (found := _NVITOP_NAME.search(line)) is not None:
            named = found
        elif (found := _NVITOP_COMPACT.search(line)) is not None:
            yield _panel(found, int(found["index"]), None)
        elif named is not None and (found := _NVITOP_READINGS.search(line)) is not None:
            name = named["name"] if not named["name"].endswith("..") else None
            yield _panel(found, int(named["index"]), name)
            named = None


def _panel(found: re.Match[str], index: int, name: str | None) -> GpuSample:
    state = found["state"].removeprefix("P")
    return GpuSample(
        index=index,
        name=name,
        temperature_c=texts.number(found["temperature"]),
        performance_state=int(state) if state.isdigit() and int(state) <= 15 else None,
        power_w=texts.number(found["power"]),
        power_limit_w=texts.number(found["limit"]),
        memory_used_bytes=texts.size(found["used"]),
        memory_total_bytes=texts.size(found["total"]),
        utilisation=1.0 if found["load"] == "MAX" else texts.percent(found["load"]),
    )


def _found(samples: tuple[GpuSample, ...]) -> Found:
    return Found(
        tuple(sample_count(samples)), (Message.of("diagnose.file.no-step-times"),), gpus=samples
    )
