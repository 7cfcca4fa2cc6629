"""The torch of an interpreter, asked in a process of its own."""

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from trainwright.probe import framework
from trainwright.probe.framework import Framework
from trainwright.probe.reading import Missing


def test_this_interpreters_torch_is_told() -> None:
    found = framework.read(sys.executable)
    assert isinstance(found, Framework)
    assert found.torch == metadata.version("torch")
    assert found.python == ".".join(map(str, sys.version_info[:3]))
    if found.cuda is None and found.rocm is None:
        assert found.gpus == ()


def test_an_interpreter_without_torch_says_so(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path)], check=True)
    found = framework.read(str(tmp_path / "bin" / "python"))
    assert isinstance(found, Missing)
    assert found.reason.id == "probe.no-torch"
    assert "torch" in found.reason.values["reason"]


def test_what_is_no_interpreter_is_a_reason(tmp_path: Path) -> None:
    assert isinstance(framework.read(str(tmp_path / "nothing")), Missing)


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell script as a program")
def test_an_interpreter_that_prints_rubbish_is_a_reason(tmp_path: Path) -> None:
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho '[1, 2'\necho '{\"half\":'\nexit 3\n", encoding="utf-8")
    program.chmod(0o755)
    assert isinstance(framework.read(str(program)), Missing)
