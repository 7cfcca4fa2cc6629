"""What `make` does first on a machine that lacks something."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="make is for Linux and macOS")


def program(folder, name, text):
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)


@pytest.fixture
def old_machine(tmp_path):
    """A PATH on which Python is 3.9, in folders with a space and Hangul."""
    folder = tmp_path / "옛 기계"
    folder.mkdir()
    for name in ("dirname", "id", "bash"):
        (folder / name).symlink_to(f"/usr/bin/{name}")
    program(folder, "python3", 'test "$1" = --version && echo Python 3.9.2')
    return folder


def test_an_old_python_is_refused_in_one_line(old_machine, tmp_path):
    run = subprocess.run(
        ["/bin/bash", SCRIPTS / "environment.sh", tmp_path / "venv", "."],
        env={"PATH": str(old_machine)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stdout, run.stderr.count("\n")) == (1, "", 1)
    assert "3.11" in run.stderr
    assert "3.9.2" in run.stderr
    assert not (tmp_path / "venv").exists()


def test_missing_system_packages_are_named_in_one_line_to_paste(monkeypatch, capsys):
    sys.path.insert(0, str(SCRIPTS))
    try:
        import system_packages
    finally:
        sys.path.remove(str(SCRIPTS))
    monkeypatch.setattr(sys, "argv", ["system_packages.py", "--for", "window"])
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(system_packages, "has_korean_font", lambda: False)
    monkeypatch.setattr(
        system_packages.qt_libraries, "missing", lambda _environment: ("libEGL.so.1",)
    )
    assert system_packages.main() == 1
    printed = capsys.readouterr()
    assert printed.err.count("\n") == 1
    assert "sudo apt-get install -y libegl1 fonts-noto-cjk" in printed.err


@pytest.mark.slow
def test_coverage_says_what_is_answered_and_why_the_rest_is_not():
    pytest.importorskip("transformers")
    command = [sys.executable, SCRIPTS / "coverage.py", "transformers", "--sample", "0", "--only"]
    done, refused = (
        subprocess.run([*command, name], capture_output=True, text=True, check=False)
        for name in ("SqueezeBertForMaskedLM", "VitPoseForPoseEstimation")
    )
    assert done.returncode == 0, done.stdout
    assert "with exact parameters: 1 of 1 that run (100%)" in done.stdout
    assert refused.returncode == 0, refused.stdout
    assert "refused, worker.class-wants: 1" in refused.stdout
