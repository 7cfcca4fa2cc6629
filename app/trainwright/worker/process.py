"""A child process with all that it starts: begun with limits, ended as a whole."""

import contextlib
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

TOKEN = "TRAINWRIGHT_CHILD"
"""Variable that marks a child and what it starts, so that all of it can be found."""
FILE_BYTES = 512 << 20
"""Largest file that a child may write; assumed, results are a few MB."""
PROCESSES = 4096
"""Processes and threads of this user that a child may add to; assumed."""
GRACE_S = 3.0
"""Time that the launcher has to end what its program left, before it is ended itself; assumed."""
_INHERITED = (
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LD_LIBRARY_PATH",
    "SYSTEMROOT", "WINDIR", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "USERPROFILE", "PATHEXT",
    "COMSPEC", "NUMBER_OF_PROCESSORS", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CUDA_HOME",
    "CUDA_PATH", "NVIDIA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "VIRTUAL_ENV",
    "TRAINWRIGHT_DEBUG",
)  # fmt: skip


SUSPENDED = 0x4
"""CREATE_SUSPENDED of ``winbase.h``: no code of the child runs before it is held."""


class UnlimitedError(Exception):
    """The system does not hold a child to its limits."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a child may take; enforced by the system where it can."""

    cpu_s: float
    memory_bytes: int | None
    """Address space."""
    required: bool = False
    """Whether a program must not run where the system cannot hold it to all of them."""
    file_bytes: int | None = None
    """Largest file that may be written; None: ``FILE_BYTES``."""

    def environment(self) -> dict[str, str]:
        """Return the variables by which ``launch.py`` sets the limits before anything runs."""
        limits = {"CPU": int(self.cpu_s) + 1, "FSIZE": self.file_bytes or FILE_BYTES}
        limits |= {"NPROC": PROCESSES, "CORE": 0}
        if self.memory_bytes is not None:
            limits["AS"] = self.memory_bytes
        found = {f"TRAINWRIGHT_LIMIT_{name}": str(value) for name, value in limits.items()}
        return found | {"TRAINWRIGHT_LIMITS_REQUIRED": "1"} if self.required else found


def environment(limits: Limits, token: str, folder: Path) -> dict[str, str]:
    """Return a child's variables: no network, nothing of the user's Python settings."""
    kept = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return kept | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(folder)) | limits.environment() | {
        TOKEN: token,
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "HF_DATASETS_OFFLINE": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "DO_NOT_TRACK": "1",
        "PYTHONNOUSERSITE": "1",
        "PYTHONUTF8": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }  # fmt: skip


class Child:
    """A running child; leaving the context ends it and everything that it started.

    Linux: the launcher guards the program (``launch.py``). macOS: a session of its own.
    Windows: a job object, which also holds the limits; the child runs once it is in it.

    Raises:
        OSError: it cannot be started.
        UnlimitedError: Windows does not hold it to its limits.
    """

    def __init__(
        self,
        interpreter: str,
        command: Sequence[str],
        question: IO[bytes],
        limits: Limits,
        folder: Path,
    ) -> None:
        self._token = uuid.uuid4().hex
        flags: dict[str, Any] = {"start_new_session": True}
        if sys.platform == "win32":
            flags = {"creationflags": subprocess.CREATE_NO_WINDOW | SUSPENDED}
        self._process = subprocess.Popen(
            [interpreter, "-s", "-X", "utf8", *command],
            stdin=question,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(limits, self._token, folder),
            cwd=folder,
            **flags,
        )
        self._over = False
        self._job = None
        if sys.platform == "win32":
            self._job = self._held(limits.memory_bytes)
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self.output: IO[bytes] = self._process.stdout
        self.errors: IO[bytes] = self._process.stderr

    def _held(self, memory_bytes: int | None) -> Any:
        """Put the child, which stands still, into a job and let it run."""
        from trainwright.worker.job import Job

        try:
            return Job(self._process.pid, memory_bytes)
        except OSError as error:
            self._process.kill()
            self._process.wait()
            raise UnlimitedError(str(error)) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()
        self.output.close()
        self.errors.close()

    def wait(self, deadline: float) -> int | None:
        """Return the exit status, negative for a signal, or None at the deadline."""
        try:
            return self._process.wait(timeout=max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            return None

    def ended(self) -> bool:
        """Whether the child itself has ended; what it started may still run."""
        return self._process.poll() is not None

    def end(self) -> None:
        """End the child and all that it started, at once."""
        if self._over:  # its number may belong to another process by now
            return
        self._over = True
        if self._job is not None:
            self._job.close()
        elif sys.platform != "win32":
            if sys.platform == "linux":
                self._ask_launcher()
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            _kill_marked(self._token)
        self._process.kill()
        self._process.wait()

    def _ask_launcher(self) -> None:
        """Let the launcher end what descends from it; one that is halted or gone cannot."""
        self._process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=GRACE_S)


def _kill_marked(token: str) -> None:
    """End what is left when the launcher itself was ended, found by its mark; Linux only.

    Elsewhere the variables of other processes cannot be read without tools, and what
    leaves the session stays: none of our programs does.
    """
    if sys.platform != "linux":
        return
    mark = f"{TOKEN}={token}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (folder / "environ").read_bytes():
                os.kill(int(folder.name), signal.SIGKILL)
