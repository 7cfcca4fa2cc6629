"""A training command run under observation: timed from inside, watched from outside, left as it is.

The command's files are not touched. Its Python finds a ``sitecustomize`` in a temporary folder that
starts the recorder; the user's own ``sitecustomize`` is run as well.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from trainwright.diagnose import changing, commandline, record
from trainwright.diagnose.evidence import Evidence, Failure
from trainwright.diagnose.recorder import redact
from trainwright.diagnose.watching import Watch
from trainwright.messages import UserError

STOPPING = (signal.SIGINT, signal.SIGTERM)
"""Sent one after the other where the time is over, the run then gets to end itself."""
PATIENCE_S = 20.0
"""Time that a run has to end itself after being asked; assumed."""
TICK_S = 0.2
"""How often the command is looked at."""

START = """\
# Starts Trainwright's recorder in this process; written by `trainwright diagnose`, removed after.
import importlib, importlib.machinery, importlib.util, os, sys

_folder = os.path.dirname(os.path.abspath(__file__))
_others = [each for each in sys.path if os.path.abspath(each or ".") != _folder]
try:
    _module = importlib.import_module("_trainwright_recorder.callback")
    _recorder = _module.Recorder(os.path.join(_folder, "%d.record.json" % os.getpid()))
    _recorder.with_torch = importlib.import_module("_trainwright_trial").change
    _recorder.start()
except Exception:
    pass
sys.path[:] = _others
_spec = importlib.machinery.PathFinder.find_spec("sitecustomize", _others)
if _spec is not None and _spec.loader is not None:
    _spec.loader.exec_module(importlib.util.module_from_spec(_spec))
"""
"""What the command's Python runs first. Whatever fails in it, the run goes on."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A command that has ended."""

    evidence: Evidence
    exit_code: int
    """Negative for a signal, as ``subprocess`` says it."""
    stopped: bool
    """Whether it was ended because the time was over or somebody asked."""
    interrupted: bool = False
    """Whether somebody asked."""

    @property
    def went_well(self) -> bool:
        """Whether it ended by itself without a fault, or because the time was over."""
        return not self.interrupted and (self.stopped or self.exit_code == 0)


def run(
    command: Sequence[str], *, seconds: float | None = None, quiet: bool = False, trial: str = ""
) -> Outcome:
    """Run a command until it ends, or for some seconds, and return what was seen of it.

    ``quiet`` puts its standard output onto standard error. ``trial`` is what is changed in it.

    Raises:
        UserError: it cannot be started.
    """
    with tempfile.TemporaryDirectory(prefix="trainwright-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        _prepare(folder)
        process = _started(command, folder, quiet, trial)
        watch = Watch(process.pid)
        try:
            stopped, interrupted = _awaited(process, watch, seconds)
            live = watch.seen()
        finally:
            watch.stop()
            _ended(process)
        evidence = joined(live, _records(folder))
        failure = _failure(process.returncode, stopped)
        if failure is not None and evidence.failure is None:
            evidence = evidence.model_copy(update={"failure": failure})
        update = {"command": commandline.command(command)[:2000]}
        seen = evidence.model_copy(update=update)
        return Outcome(seen, process.returncode, stopped, interrupted)


def _prepare(folder: Path) -> None:
    recorder = Path(redact.__file__).parent
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(recorder, folder / "_trainwright_recorder", ignore=ignored)
    shutil.copy(Path(changing.__file__), folder / "_trainwright_trial.py")
    (folder / "sitecustomize.py").write_text(START, encoding="utf-8")


def _started(
    command: Sequence[str], folder: Path, quiet: bool, trial: str
) -> "subprocess.Popen[bytes]":
    paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), changing.VARIABLE: trial}
    output = sys.stderr.fileno() if quiet else None
    try:
        return subprocess.Popen(list(command), env=environment, stdout=output)
    except FileNotFoundError:
        raise UserError.of("diagnose.no-command", name=command[0]) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UserError.of("diagnose.cannot-start", name=command[0], reason=reason) from None


def _awaited(
    process: "subprocess.Popen[bytes]", watch: Watch, seconds: float | None
) -> tuple[bool, bool]:
    """Wait until the process has ended; return whether it was asked to, and whether by somebody."""
    asked = 0
    with _forwarding(process) as forwarded:
        due = seconds if seconds is not None else float("inf")
        while not _has_ended(process):
            if watch.seconds >= due and asked < len(STOPPING):
                with contextlib.suppress(OSError):
                    process.send_signal(STOPPING[asked])
                asked, due = asked + 1, watch.seconds + PATIENCE_S
            elif watch.seconds >= due:
                process.kill()
            time.sleep(TICK_S)
    return asked > 0 or bool(forwarded), bool(forwarded)


def _has_ended(process: "subprocess.Popen[bytes]") -> bool:
    """Whether the process has ended; where the system can tell, without taking it away.

    What it has spent is read once more afterwards, and is gone with the process.
    """
    if process.returncode is None and hasattr(os, "waitid"):
        options = os.WEXITED | os.WNOHANG | os.WNOWAIT
        with contextlib.suppress(ChildProcessError):
            return os.waitid(os.P_PID, process.pid, options) is not None
    return process.poll() is not None


@contextlib.contextmanager
def _forwarding(process: "subprocess.Popen[bytes]") -> Iterator[list[int]]:
    """Pass interrupts on to the run, which decides what to do, and go on until it has.

    A terminal sends Ctrl-C to both; elsewhere only we get it.
    """
    forwarded: list[int] = []

    def forward(number: int, _frame: FrameType | None) -> None:
        forwarded.append(number)
        at_terminal = number == signal.SIGINT and sys.stdin is not None and sys.stdin.isatty()
        if not at_terminal:
            with contextlib.suppress(OSError):
                process.send_signal(number)

    previous: dict[int, Any] = {}
    try:
        for each in STOPPING:
            previous[each] = signal.signal(each, forward)
    except ValueError:  # not the main thread
        pass
    try:
        yield forwarded
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _ended(process: "subprocess.Popen[bytes]") -> None:
    """End a run that is left behind by a fault of ours."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _failure(code: int, stopped: bool) -> Failure | None:
    if code < 0 and not stopped:
        return Failure(kind=f"signal {-code}")
    return None


def _records(folder: Path) -> list[Evidence]:
    """Return what the command's processes recorded; damaged files are passed over."""
    found = []
    for path in sorted(folder.glob("*.record.json")):
        with contextlib.suppress(UserError):
            found.append(record.read(path))
    return found


def joined(live: Evidence, records: Sequence[Evidence]) -> Evidence:
    """Return readings from outside with the record of the process that trained longest."""
    if not records:
        return live
    inner = max(records, key=lambda each: each.steps.steps if each.steps is not None else 0)
    parts = ("steps", "loading", "counters", "setup", "profile", "failure")
    update: dict[str, Any] = {part: getattr(inner, part) for part in parts}
    update["watched_seconds"] = inner.watched_seconds or live.watched_seconds
    if inner.host is not None and live.host is not None:
        update["host"] = live.host.model_copy(
            update={
                key: value for key in type(inner.host).model_fields
                if (value := getattr(inner.host, key)) not in (None, ())
            }
        )  # fmt: skip
    if inner.setup is not None and inner.setup.device == "cpu":
        update["gpus"] = ()
    return live.model_copy(update=update | {"made_by": "diagnose"})
