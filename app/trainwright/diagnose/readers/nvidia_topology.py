"""``nvidia-smi topo -m``: what joins each pair of GPUs."""

import re

from trainwright.diagnose.readers.found import Found
from trainwright.messages import Message, UserError

_HEADING = re.compile(r"^[ \t]{1,80}GPU0[ \t][^\n]*CPU Affinity", re.MULTILINE)
_ROW = re.compile(r"^GPU\d{1,2}[ \t]+([^\n]*)$", re.MULTILINE)
_JOINED = ("PIX", "PXB", "PHB", "NODE", "SYS")
"""Ways over PCIe, by the legend under the matrix; ``NV#`` counts links of NVLink."""


def recognised(text: str) -> bool:
    """Return whether this is the matrix."""
    return _HEADING.search(text) is not None


def read(text: str) -> Found:
    """Return the slowest kind of link between two GPUs.

    Raises:
        UserError: no row names one.
    """
    rows = [each[1].split() for each in _ROW.finditer(text)]
    cells = [cell for row in rows for cell in row[: len(rows)]]
    by_pcie = any(cell in _JOINED for cell in cells)
    if not by_pcie and not any(re.fullmatch(r"NV\d{1,2}", cell) for cell in cells):
        raise UserError.of("diagnose.file.no-pairs")
    took = Message.of("diagnose.file.gpus", count=len(rows))
    facts = {"setup": {"link": "pcie" if by_pcie else "nvlink"}}
    return Found((took,), (Message.of("diagnose.file.no-step-times"),), facts)
