"""The log of readings as CSV: one whole line a sample, units in the header, a note for what is
missing.
"""

import errno
import os
import stat
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from trainwright.messages import UserError, render
from trainwright.probe.monitor.events import Event
from trainwright.probe.monitor.readings import Reading, Series, Unit, devices, readings_of
from trainwright.probe.reading import Missing
from trainwright.probe.sample import GpuSample, HostSample, Sample, SliceSample
from trainwright.quoting import csv_row, visible

_UNIT: dict[Unit, tuple[str, float]] = {
    "share": ("%", 100),
    "bytes": ("MiB", 1 / (1 << 20)),
    "bytes/s": ("MiB/s", 1 / (1 << 20)),
    "celsius": ("°C", 1),
    "watts": ("W", 1),
    "megahertz": ("MHz", 1),
}
"""What the header says, and what base units are multiplied by."""


class CsvLog:
    """A file that grows by one line a sample.

    The columns are those of the first sample's devices. A line goes out in one write at the end
    of the file; where the drive is full, what was written of it is taken back.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._columns: tuple[Series, ...] = ()
        self._reasons: dict[Series, str] = {}
        self._file = -1
        self.lines = 0

    def write(self, sample: Sample, events: Iterable[Event] = ()) -> None:
        """Append a sample; the first one opens the file.

        Raises:
            UserError: the file cannot be opened or written; says why.
        """
        readings = {
            Series(name, each.key): (each, device)
            for name, device in devices(sample)
            for each in readings_of(name)
        }
        try:
            if not self._columns:
                self._columns = tuple(readings)
                self._begin(_header(readings.items()))
            self._append(self._row(sample, readings, events))
        except OSError as error:
            self.close()
            raise _explained(self.path, error) from None
        self.lines += 1

    def open(self) -> None:
        """Open the file, so that one that cannot be written is refused before the first sample.

        Raises:
            UserError: it cannot be opened, or is not a file; says why.
        """
        if self._file >= 0:
            return
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
        flags |= getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
        try:
            self._file = os.open(self.path, flags, 0o644)
        except OSError as error:
            raise _explained(self.path, error) from None
        if not stat.S_ISREG(os.fstat(self._file).st_mode):
            self.close()
            raise UserError.of("monitor.csv.no-file", path=str(self.path))

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        self._columns = ()

    def _begin(self, header: str) -> None:
        self.open()
        size = os.fstat(self._file).st_size
        if size == 0:
            self._append(header)
        else:
            self._continue(header, size)

    def _continue(self, header: str, size: int) -> None:
        """Go on in a file of the same columns, after its last whole line."""
        with open(self.path, "rb") as file:
            first = file.readline()
            if first != header.encode():
                self.close()
                raise UserError.of("monitor.csv.other-columns", path=str(self.path))
            file.seek(max(0, size - (1 << 16)))
            tail = file.read()
        half = len(tail) - (tail.rfind(b"\n") + 1)
        if half:
            os.ftruncate(self._file, size - half)

    def _append(self, line: str) -> None:
        data = line.encode()
        before = os.fstat(self._file).st_size
        try:
            written = os.write(self._file, data)
            if written < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError:
            os.ftruncate(self._file, before)
            raise

    def _row(
        self,
        sample: Sample,
        readings: dict[Series, tuple[Reading, HostSample | GpuSample | SliceSample]],
        events: Iterable[Event],
    ) -> str:
        at = datetime.fromtimestamp(sample.wall_s, UTC).isoformat(timespec="milliseconds")
        cells = [at.replace("+00:00", "Z"), f"{sample.monotonic_s:.3f}"]
        notes = [render(event.message, "en") for event in events]
        for series in self._columns:
            found = readings.get(series)
            value = found[0].take(found[1]) if found is not None else None
            if isinstance(value, float | int) and found is not None:
                self._reasons.pop(series, None)
                cells.append(_number(value * _UNIT[found[0].unit][1]))
            else:
                cells.append("")
                notes += self._note(series, value)
        return _line([*cells, "; ".join(notes)])

    def _note(self, series: Series, value: Missing | float | None) -> list[str]:
        """Return the reason of an empty cell, where it is not the one told before."""
        reason = render(value.reason, "en") if isinstance(value, Missing) else "not present"
        if self._reasons.get(series) == reason:
            return []
        self._reasons[series] = reason
        return [f"{series.device}.{series.key}: {reason}"]


def _header(readings: Iterable[tuple[Series, tuple[Reading, object]]]) -> str:
    named = [
        f"{series.device}.{series.key} [{_UNIT[each.unit][0]}]" for series, (each, _) in readings
    ]
    return _line(["time [UTC]", "monotonic [s]", *named, "note"])


def _line(cells: Iterable[str]) -> str:
    return csv_row(map(visible, cells))


def _number(value: float) -> str:
    return f"{value:.3f}".rstrip("0").rstrip(".")


def _explained(path: Path, error: OSError) -> UserError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return UserError.of("monitor.csv.full", path=str(path))
    reason = error.strerror or type(error).__name__
    return UserError.of("monitor.csv.refused", path=str(path), reason=reason)
