"""Apple's chips, whose GPU shares the memory with the processor."""

import subprocess
import sys
from dataclasses import dataclass

from trainwright.messages import Message
from trainwright.probe.reading import Missing

PATIENCE_S = 5.0
"""Seconds that ``sysctl`` may take; assumed, it takes milliseconds."""


@dataclass(frozen=True, slots=True)
class AppleGpu:
    """The GPU of the chip."""

    name: str
    """Of the chip: ``Apple M2 Max``."""
    memory_bytes: int | Missing
    """Shared with the processor."""


def read() -> AppleGpu | Missing:
    """Return the chip's GPU, or why there is none."""
    if sys.platform != "darwin":
        return Missing(Message.of("probe.no-apple"))
    name = chip()
    if isinstance(name, Missing):
        return name
    if not name.startswith("Apple "):  # a Mac with an Intel processor
        return Missing(Message.of("probe.no-apple"))
    memory = _sysctl("hw.memsize")
    return AppleGpu(name, int(memory) if isinstance(memory, str) and memory.isdigit() else
                    Missing(Message.of("probe.not-told", what="RAM")))  # fmt: skip


def chip() -> str | Missing:
    """Return the processor's name."""
    return _sysctl("machdep.cpu.brand_string")


def _sysctl(name: str) -> str | Missing:
    try:
        done = subprocess.run(
            ["/usr/sbin/sysctl", "-n", name],
            capture_output=True, text=True, timeout=PATIENCE_S, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        return Missing(Message.of("probe.other", reason=type(error).__name__))
    return done.stdout.strip() or Missing(Message.of("probe.not-told", what=name))
