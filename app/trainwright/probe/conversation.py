"""A program of ours in a child process that says JSON objects, a line each.

What crashes, hangs or prints in the child does so there; its listener waits as long as it likes.
"""

import contextlib
import json
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import IO, Any

LINE_BYTES = 4 << 20
"""Longest line that is read; assumed, the readings of eight divided GPUs take 40 KB."""
ENDING_S = 1.0
"""Time that a killed child has to be gone. A call that hangs inside the kernel cannot be ended:
its process is left to the system."""


class Conversation:
    """The child from its start to its end; its standard error goes nowhere."""

    def __init__(self, arguments: Sequence[str]) -> None:
        apart: dict[str, Any] = {"start_new_session": True}  # Ctrl-C is meant for us alone
        if sys.platform == "win32":
            apart = {
                "creationflags": subprocess.CREATE_NO_WINDOW | subprocess.CREATE_NEW_PROCESS_GROUP
            }
        self._process = subprocess.Popen(
            [sys.executable, "-X", "utf8", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            **apart,
        )
        assert self._process.stdout is not None
        self._lines: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._listener = threading.Thread(
            target=_listen, args=(self._process.stdout, self._lines), daemon=True
        )
        self._listener.start()

    def line(self, timeout_s: float) -> dict[str, Any] | None:
        """Return the next line; None where the child has ended.

        Raises:
            queue.Empty: there was none within the time.
        """
        return self._lines.get(timeout=max(0.0, timeout_s))

    def say(self, word: str) -> None:
        """Write a line to the child; one that has ended does not hear it."""
        stdin = self._process.stdin
        assert stdin is not None
        with contextlib.suppress(OSError):
            stdin.write(f"{word}\n".encode("ascii"))
            stdin.flush()

    def close(self) -> None:
        """End the child, whatever it does."""
        process = self._process
        process.kill()
        deadline = time.monotonic() + ENDING_S
        with contextlib.suppress(OSError):
            if process.stdin is not None:
                process.stdin.close()
        try:
            process.wait(timeout=ENDING_S)
        except subprocess.TimeoutExpired:
            process.returncode = -9  # nobody waits for it any more
            return
        self._listener.join(timeout=max(0.0, deadline - time.monotonic()))
        if process.stdout is not None and not self._listener.is_alive():
            process.stdout.close()


def _listen(stream: IO[bytes], lines: "queue.SimpleQueue[dict[str, Any] | None]") -> None:
    """Pass lines on; anything but a JSON object is another library's talk."""
    while line := stream.readline(LINE_BYTES):
        with contextlib.suppress(ValueError, RecursionError):
            found = json.loads(line)
            if isinstance(found, dict):
                lines.put(found)
    lines.put(None)
