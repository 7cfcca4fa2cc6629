"""The text of ``gpustat`` and of ``nvitop``."""

import re
from collections.abc import Iterator

from trainwright.diagnose.readers import texts
from trainwright.diagnose.readers.found import MIB, Found, GpuSample, sample_count
from trainwright.messages import Message

_GPUSTAT = re.compile(
    r"^\s*\[(?P<index>\d{1,2})\]\s+(?P<name>[^|\n]+?)\s*\|\s*(?P<temperature>\d+|\?\?)\s*'?°?C?,"
    r"(?:\s*\d+\s*%,(?=\s*\d+\s*%))?\s*(?P<load>\d+|\?\?)\s*%"
    r"(?:,\s*(?P<power>\d+|\?\?)\s*(?:/\s*(?P<limit>\d+|\?\?)\s*)?W)?\s*"
    r"\|\s*(?P<used>\d+|\?\?)\s*/\s*(?P<total>\d+|\?\?)\s*MB",
    re.MULTILINE,
)
_BAR = r"[│|║┃]"
_NVITOP_NAME = re.compile(
    rf"{_BAR}\s+(?P<index>\d{{1,2}})\s+(?P<name>\S[^│|║┃]*?)\s+(?:On|Off|N/A|WDDM|TCC)\s*{_BAR}"
    r"\s*[0-9A-Fa-f]{4,8}:"
)
_NVITOP_READINGS = re.compile(
    rf"{_BAR}\s*(?:\d+%|N/A|MAX)\s+(?P<temperature>\d+C|N/A)\s+(?P<state>P\d+|N/A)\s+"
    rf"(?P<power>\d+W|N/A)\s*/\s*(?P<limit>\d+W|N/A)\s*{_BAR}\s*"
    rf"(?P<used>[\d.]+[KMGT]iB|N/A)\s*/\s*(?P<total>[\d.]+[KMGT]iB|N/A)\s*{_BAR}\s*"
    r"(?P<load>\d+%|N/A|MAX)"
)
_NVITOP_COMPACT = re.compile(
    rf"{_BAR}\s*(?P<index>\d{{1,2}})\s+(?:\d+%|N/A|MAX)\s+(?P<temperature>\d+C|N/A)\s+"
    rf"(?P<state>P\d+|N/A)\s+(?P<power>\d+W?|N/A)\s*/\s*(?P<limit>\d+W|N/A)\s*{_BAR}\s*"
    rf"(?P<used>[\d.]+[KMGT]iB|N/A)\s*/\s*(?P<total>[\d.]+[KMGT]iB|N/A)\s*{_BAR}\s*"
    r"(?P<load>\d+%|N/A|MAX)"
)


def is_gpustat(text: str) -> bool:
    """Return whether there is a line of ``gpustat``."""
    return _GPUSTAT.search(text) is not None


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
        for each in _GPUSTAT.finditer(text)
    ))  # fmt: skip


def _mebibytes(word: str) -> float | None:
    """Return bytes; what gpustat calls MB is MiB."""
    value = texts.number(word)
    return value * MIB if value is not None else None


def is_nvitop(text: str) -> bool:
    """Return whether there is a line of readings of ``nvitop``."""
    return "nvitop" in text.lower() and (
        _NVITOP_READINGS.search(text) or _NVITOP_COMPACT.search(text)
    ) is not None  # fmt: skip


def read_nvitop(text: str) -> Found:
    """Return the GPUs of all panels of ``nvitop``, full or compact."""
    return _found(tuple(_nvitop(text)))


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
