"""A line on a terminal that says how far long work is."""

import sys
import time

from trainwright.cli.terminal import Terminal
from trainwright.quoting import one_line

_WIDTH = 24
_REPAINT_S = 0.1


class ProgressLine:
    """Repaints one line of standard error; writes nothing where that is not a terminal.

    A file or pipe stays free of it, so that standard error holds a complaint or nothing.
    """

    def __init__(self, terminal: Terminal, title: str, *, after: float = 0.0) -> None:
        """Prepare the line; it appears ``after`` so many seconds, if the work still goes on."""
        self._terminal = terminal
        self._title = title
        self._shown = sys.stderr is not None and sys.stderr.isatty()
        self._next = time.monotonic() + after

    def __enter__(self) -> "ProgressLine":
        return self

    def __exit__(self, *_exception: object) -> None:
        self._paint("")

    def update(self, fraction: float, phase: str) -> None:
        """Show the share done, 0 to 1, and what is being done."""
        if not self._shown or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _REPAINT_S
        filled = round(_WIDTH * min(max(fraction, 0.0), 1.0))
        bar = "━" * filled + "╌" * (_WIDTH - filled)
        self._paint(one_line(f"{self._title}  {bar} {fraction:4.0%}  {phase}", None))

    def _paint(self, text: str) -> None:
        if self._shown:
            sys.stderr.write(f"\r\x1b[2K{text}")
            sys.stderr.flush()
