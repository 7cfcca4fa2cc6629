"""The Python that traces: the one that runs this program, or one that the user trains with.

Chosen on the command line, by the variable ``TRAINWRIGHT_PYTHON``, or in the app's settings,
in this order.
"""

import os
import shutil
import sys
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from pathlib import Path

from trainwright.messages import Message, UserError
from trainwright.quoting import shell_word
from trainwright.worker import client

VARIABLE = "TRAINWRIGHT_PYTHON"
LEAST_PYTHON = (3, 10)
"""What torch 2.10 needs (its ``requires-python``), and the tracer's syntax with it."""
LEAST_TORCH, BELOW_TORCH = (2, 10), (2, 14)
"""As ``pyproject.toml`` has it: the tracer uses internals that were tested on these."""
PATIENCE_S = 30.0
"""Seconds that an interpreter has to say its versions; assumed, one takes a tenth of one."""
LIBRARIES = ("torch", "transformers", "timm", "diffusers")
"""Whose versions decide what a trace says; ``worker/programs/versions.py`` has the same."""

_preferred: str | None = None
_asked: str | None = None


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python that can trace."""

    path: str
    versions: tuple[tuple[str, str], ...]
    """(library, version) of those that it has."""

    @property
    def own(self) -> bool:
        """Whether it is the one that runs this program."""
        return self.path == sys.executable

    def version(self, library: str) -> str | None:
        """Return the version of a library, or None where it is not there."""
        return dict(self.versions).get(library)


def ask_for(path: str | None) -> None:
    """Take this interpreter before all others; None takes that back."""
    global _asked
    _asked = path or None


def prefer(path: str | None) -> None:
    """Take this interpreter where none is asked for; None is the one that runs this program."""
    global _preferred
    _preferred = path or None


def chosen() -> str:
    """Return the path or name of the interpreter that is to trace."""
    return _asked or os.environ.get(VARIABLE) or _preferred or sys.executable


def current() -> Interpreter:
    """Return the chosen interpreter, once it has shown that it can trace.

    Raises:
        UserError: it cannot: it is none, does not answer, or lacks a torch that fits.
    """
    if chosen() == sys.executable:
        return _own()
    return checked(chosen())


def tracing() -> Interpreter:
    """Return the chosen interpreter, once it is known to have torch.

    Raises:
        UserError: as ``current`` does, or this program was installed without torch; says the one
            line that adds it.
    """
    found = current()
    if found.own and found.version("torch") is None:
        if getattr(sys, "frozen", False):
            raise UserError.of("worker.packaged-no-torch")
        raise UserError.of("worker.own-no-torch", command=_line_that_adds_torch())
    return found


def _line_that_adds_torch() -> str:
    """Return what a shell takes, by what made the environment of this program."""
    torch = f'"torch>={".".join(map(str, LEAST_TORCH))},<{".".join(map(str, BELOW_TORCH))}"'
    packages = f"{torch} transformers safetensors"
    if (Path(sys.prefix) / "pipx_metadata.json").is_file():
        return f"pipx inject trainwright {packages}"
    if (Path(sys.prefix) / "uv-receipt.toml").is_file():
        return f"uv pip install --python {shell_word(sys.executable)} {packages}"
    return f"{shell_word(sys.executable)} -m pip install {packages}"


def torch_version() -> str:
    """Return the version of the torch that would trace, ``none`` where nothing can."""
    try:
        return current().version("torch") or "none"
    except UserError:
        return "none"


def checked(name: str) -> Interpreter:
    """Return an interpreter by path or command name, with its versions.

    Raises:
        UserError: it cannot trace; says why and what to do.
    """
    path = shutil.which(os.path.expanduser(name)) or os.path.expanduser(name)
    try:
        changed = Path(path).stat().st_mtime_ns
    except (OSError, ValueError):
        raise UserError.of("worker.cannot-start", interpreter=name) from None
    found = _looked_at(os.path.abspath(path), changed)
    if isinstance(found, Message):
        raise UserError(found)
    return found


@lru_cache(maxsize=1)
def _own() -> Interpreter:
    """Return this Python without starting it; packages may lack, which tracing then says."""
    found = []
    for name in LIBRARIES:
        try:
            found.append((name, metadata.version(name).partition("+")[0]))
        except metadata.PackageNotFoundError:
            continue
    return Interpreter(sys.executable, tuple(found))


@lru_cache(maxsize=8)
def _looked_at(path: str, _changed: int) -> Interpreter | Message:
    """Return what a start of the interpreter showed, or why it cannot trace; it is asked once."""
    try:
        answer = client.run("versions", {}, interpreter=path, timeout_s=PATIENCE_S)
    except UserError as error:
        if error.message.id == "worker.cannot-start":
            return error.message
        return Message.of("worker.not-python", interpreter=path)
    versions = answer.get("versions")
    if not isinstance(versions, dict) or not all(isinstance(v, str) for v in versions.values()):
        return Message.of("worker.not-python", interpreter=path)
    python, torch = versions.pop("python", "0"), versions.get("torch")
    if _numbers(python) < LEAST_PYTHON:
        least = ".".join(map(str, LEAST_PYTHON))
        return Message.of("worker.old-python", interpreter=path, version=python, least=least)
    if torch is None:
        return Message.of("worker.no-torch", interpreter=path)
    if not LEAST_TORCH <= _numbers(torch) < BELOW_TORCH:
        return Message.of(
            "worker.torch-version",
            interpreter=path,
            version=torch,
            least=".".join(map(str, LEAST_TORCH)),
            below=".".join(map(str, BELOW_TORCH)),
        )
    return Interpreter(path, tuple(sorted(versions.items())))


def _numbers(version: str) -> tuple[int, ...]:
    """Return major and minor; zeros where there are none."""
    parts = version.split(".")[:2]
    return tuple(int(part) if part.isdigit() else 0 for part in parts)
