"""``trainwright monitor``: live readings as a table, as lines, as JSON, and into a CSV file."""

import queue
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import click

from trainwright.cli import options
from trainwright.cli.answer import Exit
from trainwright.cli.parsing import Command, option
from trainwright.cli.terminal import Terminal, standard_output
from trainwright.messages import UserError, render
from trainwright.quoting import json_text

if TYPE_CHECKING:
    from trainwright.probe.monitor.monitor import Heard, Monitor

_POLL_S = 0.2
"""Between looks for a new sample: on Windows a wait without an end cannot be interrupted."""


class View(Protocol):
    """Where samples are shown."""

    def show(self, heard: "Heard") -> None:
        """Show a sample."""

    def finish(self, monitor: "Monitor", seconds: float) -> None:
        """Sum up what was seen."""


@click.command(cls=Command, help="cli.monitor.summary")
@option("--seconds", type=float, metavar="N", help="cli.monitor.seconds")
@option("--hz", type=float, default=1.0, metavar="N", help="cli.monitor.hz")
@option("--csv", "path", metavar="FILE", help="cli.monitor.csv")
@options.common
@click.pass_obj
def command(terminal: Terminal, seconds: float | None, hz: float, path: str | None) -> int:
    """Show samples until the time is over or somebody presses Ctrl-C."""
    from trainwright.probe.monitor.monitor import Monitor
    from trainwright.probe.monitor.sampler import FASTEST_HZ, SLOWEST_HZ, Reader, Sampler

    if not SLOWEST_HZ <= hz <= FASTEST_HZ:
        raise UserError.of("monitor.bad-hz", value=hz)
    if seconds is not None and not seconds > 0:
        raise UserError.of("monitor.bad-seconds", value=seconds)
    monitor = Monitor()
    if path is not None:
        _log(monitor, Path(path))
    heard: queue.SimpleQueue[Heard] = queue.SimpleQueue()
    view = _view(terminal)
    sampler = Sampler(Reader, lambda sample: heard.put(monitor.hear(sample)), hz)
    sampler.start()
    start: float | None = None  # with the first sample: before it the readers start
    try:
        with suppress(KeyboardInterrupt):
            while seconds is None or start is None or time.monotonic() - start < seconds:
                with suppress(queue.Empty):
                    _tell(view, heard.get(timeout=_POLL_S))
                    start = start or time.monotonic()
    finally:
        sampler.stop()
        monitor.log_to(None)
    view.finish(monitor, time.monotonic() - start if start is not None else 0.0)
    return Exit.DONE


def _log(monitor: "Monitor", path: Path) -> None:
    """Log from the first sample on; a file that cannot be written is refused before it."""
    from trainwright.probe.monitor.log import CsvLog

    log = CsvLog(path)
    log.open()
    log.close()
    monitor.log_to(path)


def _tell(view: View, heard: "Heard") -> None:
    """Show a sample; a log that ended is said once, as the error that ends the command."""
    ended = [event for event in heard.events if event.kind == "log-ended"]
    view.show(replace(heard, events=tuple(event for event in heard.events if event not in ended)))
    if ended:
        raise UserError(ended[0].message)


def _view(terminal: Terminal) -> View:
    stream = standard_output()
    if terminal.json:
        return _JsonLines()
    from trainwright.cli.monitorview import Lines, Table
    from trainwright.cli.screen import Screen

    screen = Screen(stream, terminal.language)
    return Table(screen) if stream.isatty() else Lines(screen)


class _JsonLines:
    """One object a line: the sample, and what happened with it."""

    def show(self, heard: "Heard") -> None:
        """Print a sample."""
        from trainwright.probe.samplejson import as_document

        events = [
            {"kind": event.kind, "gpu": event.gpu, "message": render(event.message, "en")}
            for event in heard.events
        ]
        document = as_document(heard.sample, because=True) | {"events": events}
        stream = standard_output()
        stream.write(json_text(document) + "\n")
        stream.flush()

    def finish(self, monitor: "Monitor", seconds: float) -> None:
        """Print nothing: every line stands for itself."""
