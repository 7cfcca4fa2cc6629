"""Runs a program in a child process: JSON in, JSON lines out, and nothing left behind.

The child gets one JSON document on standard input. On standard output it writes a JSON
object a line: ``{"progress": 0..1, "message_id": id}`` any number of times, and at last
either its answer, or ``{"error": {"id": id, "values": {...}}}``.
"""

import contextlib
import json
import queue
import re
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import IO, Any

from trainwright.messages import UserError
from trainwright.worker.process import Child, Limits, UnlimitedError

PROGRAMS = Path(__file__).parent / "programs"

Progress = Callable[[float, str], None]

LINE_BYTES = 4 << 20
"""Longest line that is read; assumed, an answer is a path or a small table."""
OUTPUT_BYTES = 32 << 20
"""All that is read of a child's standard output; assumed."""
OUTPUT_LINES = 200_000
"""Lines of it, which wait in memory until they are looked at; assumed, one each 50 ms for hours."""
ERROR_BYTES = 8192
"""What is kept of the end of a child's standard error."""
PRINTED_BYTES = 32 << 20
"""All that a child may print on standard error; assumed."""
TICK_S = 0.05
"""How often cancelling and the deadline are looked at."""

_ID = re.compile(r"[a-z]+(\.[a-z0-9-]+)+")


def run(
    program: str,
    document: Mapping[str, Any],
    *,
    interpreter: str = sys.executable,
    timeout_s: float = 600.0,
    silence_s: float | None = None,
    memory_bytes: int | None = None,
    limits_required: bool = False,
    file_bytes: int | None = None,
    on_progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> dict[str, Any]:
    """Run ``programs/<program>.py`` and return its answer.

    Args:
        program: name of the program, without ending.
        document: what it reads; JSON values.
        interpreter: the Python that runs it.
        timeout_s: seconds until it is ended.
        silence_s: seconds without a word of it until it is ended; None for no limit.
        memory_bytes: address space that it may take; None for no limit.
        limits_required: whether it must not run where the system sets no limits, as for
            code of the user's.
        file_bytes: largest file that it may write; None for that of most programs.
        on_progress: called with (fraction, message id), in the calling thread.
        cancelled: asked many times a second; True ends the child.

    It runs in an empty folder of its own, which is removed.

    Raises:
        UserError: it said why it cannot, was cancelled, took too long or too much memory,
            was ended from outside, or did not answer.
    """
    limits = Limits(timeout_s * 64, memory_bytes, limits_required, file_bytes)
    command = [str(PROGRAMS / "launch.py"), str(PROGRAMS / f"{program}.py")]
    with (
        tempfile.TemporaryFile() as question,
        tempfile.TemporaryDirectory(prefix="trainwright-", ignore_cleanup_errors=True) as folder,
    ):
        question.write(json.dumps(document).encode())
        question.seek(0)
        try:
            child = Child(interpreter, command, question, limits, Path(folder))
        except UnlimitedError as error:
            raise UserError.of("worker.no-limits", limit=str(error)) from error
        except OSError as error:
            raise UserError.of("worker.cannot-start", interpreter=interpreter) from error
        patience = _Patience(timeout_s, silence_s)
        with child:
            return _Conversation(child, program, on_progress, cancelled, patience).answer()


class _Patience:
    """How long a child may take in all, and without a word."""

    def __init__(self, timeout_s: float, silence_s: float | None) -> None:
        self.timeout_s = timeout_s
        self.silence_s = silence_s
        self.deadline = time.monotonic() + timeout_s
        self.heard()

    def heard(self) -> None:
        """Note that the child said something."""
        self._last = time.monotonic()

    def check(self) -> None:
        """Raise when the child took too long.

        Raises:
            UserError: it did.
        """
        now = time.monotonic()
        if now > self.deadline:
            raise UserError.of("worker.timeout", seconds=self.timeout_s)
        if self.silence_s is not None and now - self._last > self.silence_s:
            raise UserError.of("worker.silent", seconds=self.silence_s)


class _Conversation:
    """Reads what a child says until it answers, ends, or must be ended."""

    def __init__(
        self,
        child: Child,
        program: str,
        on_progress: Progress | None,
        cancelled: Callable[[], bool] | None,
        patience: _Patience,
    ) -> None:
        self.child = child
        self.program = program
        self.on_progress = on_progress
        self.cancelled = cancelled
        self.patience = patience
        self.lines: queue.Queue[bytes | None] = queue.Queue()
        self.too_much = False
        self.complaint = b""

    def answer(self) -> dict[str, Any]:
        """Return the answer, or raise what went wrong."""
        readers = [
            threading.Thread(target=_reader, args=(read, stream), daemon=True)
            for read, stream in (
                (self._read_output, self.child.output),
                (self._read_errors, self.child.errors),
            )
        ]
        for reader in readers:
            reader.start()
        found: dict[str, Any] | None = None
        while (line := self._next_line()) is not None:
            self.patience.heard()
            found = self._heard(line) or found
        self._check()
        status = self.child.wait(self.patience.deadline)
        self.child.end()
        for reader in readers:
            reader.join(timeout=1)
        if found is None or status is None:
            raise self._silence(status)
        return found

    def _next_line(self) -> bytes | None:
        while True:
            self._check()
            try:
                return self.lines.get(timeout=TICK_S)
            except queue.Empty:
                if self.child.ended():
                    self.child.end()  # something that it left behind holds its output open

    def _check(self) -> None:
        if self.cancelled is not None and self.cancelled():
            raise UserError.of("worker.cancelled")
        self.patience.check()
        if self.too_much:
            raise UserError.of("worker.too-much-output", program=self.program)

    def _heard(self, line: bytes) -> dict[str, Any] | None:
        """Return the answer in a line; lines that are not a JSON object are passed over."""
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            return None
        if not isinstance(message, dict):
            return None
        if "error" in message:
            raise _error(message["error"], self.program)
        if "progress" not in message:
            return message
        fraction, message_id = message["progress"], message.get("message_id", "")
        if self.on_progress is not None and isinstance(fraction, int | float):
            self.on_progress(min(1.0, max(0.0, float(fraction))), str(message_id))
        return None

    def _silence(self, status: int | None) -> UserError:
        if status is None:
            return UserError.of("worker.timeout", seconds=self.patience.timeout_s)
        text = self.complaint.decode("utf-8", "replace")
        if "MemoryError" in text or "can't allocate memory" in text or "bad_alloc" in text:
            return UserError.of("worker.out-of-memory")
        if status < 0:
            return UserError.of("worker.killed", program=self.program, signal=-status)
        last = next((line for line in reversed(text.splitlines()) if line.strip()), "")
        return UserError.of("worker.no-answer", program=self.program, reason=last.strip()[:200])

    def _read_output(self, stream: IO[bytes]) -> None:
        total = 0
        for number, line in enumerate(iter(partial(stream.readline, LINE_BYTES), b""), 1):
            total += len(line)
            endless = len(line) == LINE_BYTES and not line.endswith(b"\n")
            if endless or total > OUTPUT_BYTES or number > OUTPUT_LINES:
                self.too_much = True
                break
            self.lines.put(line)
        self.lines.put(None)

    def _read_errors(self, stream: IO[bytes]) -> None:
        total = 0
        while part := stream.read1(65536):  # type: ignore[attr-defined]
            total += len(part)
            if total > PRINTED_BYTES:
                self.too_much = True
                break
            self.complaint = (self.complaint + part)[-ERROR_BYTES:]


def _reader(read: Callable[[IO[bytes]], None], stream: IO[bytes]) -> None:
    """Read a stream until it ends, or is closed because the child was ended."""
    with contextlib.suppress(ValueError):
        read(stream)


def _error(content: Any, program: str) -> UserError:
    """Return the error that a child reports; one that is malformed is not an answer."""
    if isinstance(content, dict) and isinstance(content.get("values", {}), dict):
        message_id, values = content.get("id"), content.get("values", {})
        plain = all(isinstance(value, str | int | float | None) for value in values.values())
        if isinstance(message_id, str) and _ID.fullmatch(message_id) and plain:
            return UserError.of(message_id, **values)
    return UserError.of("worker.no-answer", program=program, reason="")
