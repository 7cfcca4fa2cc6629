"""Samples in columns under a heading with ``#``: ``nvidia-smi dmon``, ``pmon``, ``dcgmi dmon``."""

import re
from collections.abc import Iterator, Mapping
from itertools import chain
from statistics import fmean

from trainwright.diagnose.readers.found import (
    MOST_GPUS,
    Found,
    GpuSample,
    called,
    of_gpus,
    sampled,
)
from trainwright.diagnose.texts import number
from trainwright.messages import Message, UserError

_HEADING = re.compile(
    r"^#[ \t]{0,80}(?:Time[ ,]{1,80}|Date[ ,]{1,80}Time[ ,]{1,80})?(?:gpu|Entity)\b[^\n]*$",
    re.MULTILINE | re.IGNORECASE,
)
_MAX_SAMPLES = 1_000_000
_FIELDS = called("columns")
"""Both tools leave units to their headings."""
_MEGA = ("rxpci", "txpci")
"""Columns in MB/s."""
_VIOLATIONS = {"pviol": ("power-cap", 50), "tviol": ("thermal", 1)}
"""Columns of ``dmon -s v`` by the reason that held the clock down, and from which value it counts:
power as per cent of the time, of which half is assumed to matter, heat as yes or no."""


def _kind(heading: str) -> str | None:
    words = heading.replace(",", " ").lower().lstrip("# ").split()
    if {"pid", "type"} <= set(words):
        return "pmon"
    return "dmon" if words[0] == "entity" or set(words) & set(_FIELDS) else None


def read(text: str) -> Found | None:
    """Return the samples of all lines under a heading that is known."""
    kind = _kind(found[0]) if (found := _HEADING.search(text)) is not None else None
    if kind is None:
        return None
    if kind == "pmon":
        return _processes(text)
    samples = tuple(_samples(text))
    if not samples:
        raise UserError.of("diagnose.file.no-rows")
    told = any({"utilisation", "sm_active"} & set(each.readings) for each in samples)
    return of_gpus(samples, missed=() if told else ["no-utilisation"])


def _rows(text: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield each line's GPU, and its words by its heading, which a tool repeats now and then."""
    names: list[str] = []
    for count, line in enumerate(text.replace(",", " ").splitlines()):
        if _HEADING.match(line):
            names = line.lstrip("# ").split()
        elif names and line.strip() and not line.lstrip().startswith("#"):
            words = line.split()
            if names[0].lower() == "entity" and words[:1] == ["GPU"]:
                words = words[1:]  # "GPU 0" under one heading
            cells = dict(zip(names, words, strict=False))
            index = next((word for name, word in cells.items()
                          if name.lower() in ("gpu", "entity")), "")  # fmt: skip
            whole = len(words) == len(names) or "pid" in cells  # a command may have spaces
            if whole and index.isdigit() and int(index) < MOST_GPUS and count < _MAX_SAMPLES:
                yield int(index), cells


def _samples(text: str) -> Iterator[GpuSample]:
    for index, cells in _rows(text):
        words = {_FIELDS[name]: f"{word}e6" if name in _MEGA else word
                 for name, word in cells.items() if name in _FIELDS}  # fmt: skip
        yield sampled(index, words, _throttled(cells))


def _throttled(cells: Mapping[str, str]) -> frozenset[str] | None:
    """Return the reasons that held the clock down; None where the columns are not shown."""
    shown = {reason: (value, least) for name, (reason, least) in _VIOLATIONS.items()
             if (value := number(cells.get(name, ""))) is not None}  # fmt: skip
    held = (reason for reason, (value, least) in shown.items() if value >= least)
    return frozenset(held) if shown else None


def _processes(text: str) -> Found:
    """Return what ``pmon`` says: which processes were on each GPU, and what their kernels took.

    A process's share of a GPU is not the GPU's: it is taken where one process was alone. Of
    several, whichever trains, the others take at least what all take less the busiest.
    """
    took: dict[int, dict[str, list[GpuSample]]] = {}
    for index, cells in _rows(text):
        if (pid := cells.get("pid", "-")).isdigit() and "C" in cells.get("type", ""):
            sample = sampled(index, {"utilisation": cells.get("sm")})
            took.setdefault(index, {}).setdefault(pid, []).append(sample)
    if not took:
        raise UserError.of("diagnose.file.no-rows")
    alone = [each for pids in took.values() if len(pids) == 1 for each in chain(*pids.values())]
    every = [each for pids in took.values() for each in chain(*pids.values())]
    missed = []
    if not any(each.readings for each in every):  # -s m: memory only
        missed.append("no-utilisation")
    elif len(alone) < len(every):
        missed.append("which-process")
    count = Message.of("diagnose.file.gpu-processes", count=sum(map(len, took.values())))
    found = of_gpus(alone, missed=missed)
    shared = [_several(index, [*pids.values()]) for index, pids in took.items() if len(pids) > 1]
    return Found((count, *found.took), found.missed, gpus=(*found.gpus, *filter(None, shared)))


def _several(index: int, processes: list[list[GpuSample]]) -> GpuSample | None:
    """Return what those of a GPU's processes take that are not of the run, at least."""
    used = [[each.readings["utilisation"] for each in samples if each.readings]
            for samples in processes]  # fmt: skip
    means = sorted(fmean(each) for each in used if each)
    if len(means) < 2:
        return None
    others = {"foreign_utilisation": min(1.0, sum(means[:-1])), "foreign_processes": len(means) - 1}
    return GpuSample(index, others)
