"""The text of ``gpustat`` and of ``nvitop``."""

import re
from collections.abc import Iterator

from trainwright.diagnose.readers import texts
from trainwright.diagnose.readers.found import Found, GpuSample, of_gpus, sampled
from trainwright.diagnose.readers.nvidia_smi import panels

_GPUSTAT = re.compile(
    r"^ ?\[(?P<index>\d{1,2})\] (?P<name>[^|\n]{1,60}?) ?\|"
    r" ?(?P<temperature_c>\d+|\?\?) ?'?°?C?,"
    r"(?: ?\d+ ?%,(?= ?\d+ ?%))? ?(?P<utilisation>\d+|\?\?) ?%"
    r"(?:, ?(?P<power_w>\d+|\?\?) ?(?:/ ?(?P<power_limit_w>\d+|\?\?) ?)?W)? ?"
    r"\| ?(?P<memory_used_bytes>\d+|\?\?) ?/ ?(?P<memory_total_bytes>\d+|\?\?) ?MB",
    re.MULTILINE,
)
"""A GPU's line, by the fields of a sample; what gpustat calls MB is MiB."""
_BAR = r"[│|║┃]"
_TEMPERATURE = r"(?:\d+%|N/A|MAX) (?P<temperature_c>\d+C|N/A) (?P<performance_state>P\d+|N/A) "
_MEMORY = (
    rf" ?/ ?(?P<power_limit_w>\d+W|N/A) ?{_BAR} ?(?P<memory_used_bytes>[\d.]+[KMGT]iB|N/A)"
    rf" ?/ ?(?P<memory_total_bytes>[\d.]+[KMGT]iB|N/A) ?{_BAR} ?(?P<utilisation>\d+%|N/A|MAX)"
)
_NVITOP_NAME = re.compile(
    rf"{_BAR} (?P<index>\d{{1,2}}) (?P<name>\S[^│|║┃]{{0,60}}?) (?:On|Off|N/A|WDDM|TCC) ?{_BAR}"
    r" ?[0-9A-Fa-f]{4,8}:"
)
_NVITOP = re.compile(rf"{_BAR} ?{_TEMPERATURE}(?P<power_w>\d+W|N/A){_MEMORY}")
_COMPACT = re.compile(
    rf"{_BAR} ?(?P<index>\d{{1,2}}) {_TEMPERATURE}(?P<power_w>\d+W?|N/A){_MEMORY}"
)
_FULL_LOAD = re.compile(r"\bMAX\b")


def is_gpustat(text: str) -> bool:
    """Return whether there is a line of ``gpustat``."""
    return _GPUSTAT.search(texts.squeezed(text)) is not None


def read_gpustat(text: str) -> Found:
    """Return the GPUs of all lines of ``gpustat``."""
    lines = _GPUSTAT.finditer(texts.squeezed(text))
    return of_gpus(sampled(each["index"], each.groupdict()) for each in lines)


def is_nvitop(text: str) -> bool:
    """Return whether there is a line of readings of ``nvitop``."""
    text = texts.squeezed(text)
    readings = _NVITOP.search(text) or _COMPACT.search(text)
    return "nvitop" in text.lower() and readings is not None


def read_nvitop(text: str) -> Found:
    """Return the GPUs of all panels of ``nvitop``, full or compact."""
    return of_gpus(_nvitop(_FULL_LOAD.sub("100%", texts.squeezed(text))))


def _nvitop(text: str) -> Iterator[GpuSample]:
    yield from panels(text, _NVITOP_NAME, _NVITOP)
    for each in _COMPACT.finditer(text):
        yield sampled(each["index"], each.groupdict())
