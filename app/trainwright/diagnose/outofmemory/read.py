"""From the text of a run to the out-of-memory error that ended it.

Reads the messages of torch's CUDA, ROCm, XPU, MPS and processor allocators from 1.0 to 2.13, of
JAX, CuPy, NCCL, cuBLAS, cuDNN and bitsandbytes, of serving engines, and what launchers, shells
and Kubernetes write of a process that the system ended.
"""

import re

from trainwright.diagnose.outofmemory import device, host, serving, snapshot
from trainwright.diagnose.outofmemory.account import Account, Explanation
from trainwright.diagnose.outofmemory.text import from_file, plain
from trainwright.messages import Message

ONE_ERROR = 4000
"""Characters in which the lines of one error stand, a worker's traceback among them; assumed."""


def explained_file(source: str) -> Explanation:
    """Return what the end of a log, standard input (``-``) or a memory snapshot of torch says.

    Raises:
        UserError: it cannot be read, or holds neither.
    """
    if source != "-" and snapshot.is_snapshot(source):
        return snapshot.read(source)
    return explain(from_file(source))


def explain(text: str) -> Explanation:
    """Return the last out-of-memory error in a text, explained.

    Raises:
        UserError: it tells a size that no computer has.
    """
    text = plain(text)
    found = []
    for side in ((*serving.FORMS, *device.FORMS), host.FORMS):
        places = [(_last_place(pattern, text), form) for pattern, form in side]
        seen = [(place, form) for place, form in places if place >= 0]
        if seen:
            last = max(place for place, _ in seen)
            # Of one error's lines the most telling counts, which is not always the last.
            found.append((last, next(each for each in seen if each[0] > last - ONE_ERROR)))
    if not found:
        return Explanation("none", Message.of("diagnose.oom.none"), Account())
    _, (place, form) = max(found, key=lambda each: each[0])
    near = text[max(0, place - 200) : place + 2000]
    setting = device.EXPANDABLE_ON.search(text)  # may stand far before, where the run began
    return form(f"{setting[0]} {near}" if setting else near)


def _last_place(pattern: re.Pattern[str], text: str) -> int:
    """Return where a pattern is found for the last time; -1: nowhere."""
    return max((each.start() for each in pattern.finditer(text)), default=-1)
