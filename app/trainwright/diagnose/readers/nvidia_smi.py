"""``nvidia-smi`` as people read it: the table, once or again and again, and ``-L``, ``topo -m``."""

import re
from collections.abc import Iterator
from dataclasses import replace

from trainwright.diagnose import texts
from trainwright.diagnose.readers.found import A_RUN, Found, GpuSample, of_gpus, sampled
from trainwright.messages import Message, UserError

_FIRST = re.compile(
    r"\| (?P<index>\d{1,3}) (?P<name>\S[^|\n]{0,60}?) (?:On|Off|N/A|WDDM|TCC|MCDM) \|"
    r" ?[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:"
)
"""The first of a GPU's lines: index, name, persistence mode or driver model, bus."""
_SECOND = re.compile(
    r"\| ?(?:\d+%|N/A|ERR!?) (?P<temperature_c>\d+C|N/A) (?P<performance_state>P\d{1,2}|N/A) "
    r"(?P<power_w>[\d.]+W|N/A|ERR!?) ?/ ?(?P<power_limit_w>[\d.]+W|N/A) ?\|"
    r" ?(?P<memory_used_bytes>\d+ ?MiB|N/A) ?/ ?(?P<memory_total_bytes>\d+ ?MiB|N/A) ?\|"
    r" ?(?P<utilisation>\d+%|N/A|ERR!?)"
)
"""The second, by the fields of a sample; the fan stands before them."""
_PROCESS = re.compile(
    r"\| (?P<index>\d{1,3}) (?:\S{1,20} \S{1,20} )?(?P<pid>\d+) (?P<type>C|G|C\+G|M\+C) "
    r"(?P<name>\S[^|\n]{0,60}?) (?P<memory>\d+MiB|N/A) ?\|"
)
_COMPUTES = ("C", "M+C")
"""Of a compute context; Windows calls each program that draws C+G."""
_SLICE = re.compile(r"\| \d+ \d+ \d+ \d+ \| \d+MiB ?/ ?\d+MiB ?\|")
"""A row of the table of MIG devices."""


def read(text: str) -> Found | None:
    """Return the GPUs of all tables in a text."""
    text = texts.squeezed(text)
    if _SECOND.search(text) is None or not ("GPU-Util" in text or _FIRST.search(text)):
        return None
    samples = tuple(panels(text, _FIRST, _SECOND))
    missed = []
    if any("utilisation" not in each.readings for each in samples):
        missed.append("no-utilisation")
    if _SLICE.search(text):
        missed.append("slices")
    working = {each["pid"] for each in _PROCESS.finditer(text) if each["type"] in _COMPUTES}
    took = [Message.of("diagnose.file.gpu-processes", count=len(working))] if working else []
    found = of_gpus(samples, *took, missed=missed)
    return replace(found, gpus=(*found.gpus, *_shared(text)))


def _shared(text: str) -> Iterator[GpuSample]:
    """Yield what those processes hold of a GPU that are not of the run, at least.

    Whichever trains, the others hold what all hold less the largest. Ranks of one run open contexts
    on its first GPU, which are small.
    """
    held: dict[int, dict[str, float]] = {}
    for each in _PROCESS.finditer(text):
        size = texts.size(each["memory"])
        if each["type"] in _COMPUTES and size is not None and size >= A_RUN:
            held.setdefault(int(each["index"]), {})[each["pid"]] = size
    for index, processes in held.items():
        others = sorted(processes.values())[:-1]
        if others:
            taken = {"foreign_memory_bytes": sum(others), "foreign_processes": len(others)}
            yield GpuSample(index, taken)


def panels(text: str, first: re.Pattern[str], second: re.Pattern[str]) -> Iterator[GpuSample]:
    """Yield the GPUs whose name stands in one line, and their readings in a later one."""
    named = None
    for line in text.splitlines():
        if (found := first.search(line)) is not None:
            named = found
        elif named is not None and (found := second.search(line)) is not None:
            whole = {} if named["name"].endswith("..") else {"name": named["name"]}
            yield sampled(named["index"], found.groupdict() | whole)
            named = None


_LISTED = re.compile(r"^GPU (\d{1,3}): (\S[^\n]{0,200}?) \(UUID: GPU-", re.MULTILINE)


def read_list(text: str) -> Found | None:
    """Return the names of the GPUs, which are all that the list of ``-L`` has."""
    samples = [sampled(each[1], {"name": each[2]}) for each in _LISTED.finditer(text)]
    if not samples:
        return None
    slices = ["slices"] if re.search(r"^ +MIG \S+ +Device", text, re.MULTILINE) else []
    return of_gpus(samples, missed=["no-utilisation", *slices])


_MATRIX = re.compile(r"^[ \t]{1,80}GPU0[ \t][^\n]*CPU Affinity", re.MULTILINE)
_ROW = re.compile(r"^GPU\d{1,2}[ \t]+([^\n]*)$", re.MULTILINE)
_PCIE = ("PIX", "PXB", "PHB", "NODE", "SYS")
"""Ways over PCIe, by the legend under the matrix; ``NV#`` counts links of NVLink."""


def read_matrix(text: str) -> Found | None:
    """Return the slowest kind of link between two GPUs in the matrix of ``topo -m``."""
    if _MATRIX.search(text) is None:
        return None
    rows = [each[1].split() for each in _ROW.finditer(text)]
    cells = [cell for row in rows for cell in row[: len(rows)]]
    by_pcie = any(cell in _PCIE for cell in cells)
    if not by_pcie and not any(re.fullmatch(r"NV\d{1,2}", cell) for cell in cells):
        raise UserError.of("diagnose.file.no-pairs")
    took = Message.of("diagnose.file.gpus", count=len(rows))
    facts = {"setup": {"link": "pcie" if by_pcie else "nvlink"}}
    return Found((took,), (Message.of("diagnose.file.no-step-times"),), facts)
