"""Two ways to run the command line: as a person does, and inside the test."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from trainwright.cli.run import run
from trainwright.data import resources

EXAMPLE = resources("examples", "llama-8b-lora.plan.yaml")


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def complaint(self):
        """The one line on standard error of a run that refused its input."""
        assert (self.code, self.out) == (2, "")
        assert self.err.endswith("\n")
        assert self.err.count("\n") == 1
        assert "Traceback" not in self.err
        return self.err.rstrip("\n")


@pytest.fixture
def trainwright(monkeypatch):
    """Run ``python -m trainwright`` in a process of its own."""
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.delenv("QT_QPA_PLATFORM", raising=False)

    def start(*arguments, stdin=b"", **options):
        command = [sys.executable, "-m", "trainwright", *map(str, arguments)]
        options = {"input": stdin, "capture_output": True, "timeout": 120} | options
        process = subprocess.run(command, check=False, **options)
        out, err = ((stream or b"").decode() for stream in (process.stdout, process.stderr))
        return Outcome(process.returncode, out, err)

    return start


@pytest.fixture
def inside(monkeypatch, capsys):
    """Run the command line in this process; ``opened`` collects what would open a window."""
    monkeypatch.setenv("LC_ALL", "C.UTF-8")

    def open_window(path):
        start.opened.append(path)
        return 0

    def start(*arguments):
        code = run([str(argument) for argument in arguments], open_window)
        printed = capsys.readouterr()
        return Outcome(code, printed.out, printed.err)

    start.opened = []
    return start


@pytest.fixture
def plan_file(tmp_path):
    """Write a plan: the example, changed by replacing text, or any text or bytes."""

    def write(content=None, *, name="some.plan.yaml", replace=()):
        path = Path(tmp_path) / name
        content = EXAMPLE.read_text(encoding="utf-8") if content is None else content
        for old, new in replace:
            assert old in content
            content = content.replace(old, new)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write
