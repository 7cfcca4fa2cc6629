"""What people name as a file is read up to a limit; what is not one is refused in a line."""

import io
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from trainwright import ranges, reading
from trainwright.messages import LANGUAGES, UserError, render


def refusal(source, limit=10, **options):
    with pytest.raises(UserError) as caught:
        reading.content(source, limit, **options)
    for language in LANGUAGES:
        assert len(render(caught.value.message, language).splitlines()) == 1
    return str(caught.value)


def test_a_file_is_read_up_to_its_limit(tmp_path):
    file = tmp_path / "some"
    file.write_bytes(b"x" * 10)
    assert reading.content(file, 10) == b"x" * 10
    assert "larger than" in refusal(file, 9)


def test_what_is_not_there_or_not_a_file_says_so(tmp_path):
    assert "no such file" in refusal(tmp_path / "absent")
    assert "no such file" in refusal("nul\0l")
    assert "cannot be read" in refusal(tmp_path / ("x" * 5000))
    assert "is a folder" in refusal(tmp_path)
    assert refusal(tmp_path, file="model.hf: there").startswith("model.hf: there: ")


@pytest.mark.skipif(sys.platform == "win32", reason="Unix has these")
@pytest.mark.timeout(20)
@pytest.mark.parametrize("or_stdin", [False, True])
def test_pipes_and_devices_are_not_opened(tmp_path, or_stdin):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero", "/dev/null", "/dev/tty"):
        assert "a pipe or a device" in refusal(path, or_stdin=or_stdin)


@pytest.mark.skipif(sys.platform == "win32", reason="Unix has these")
@pytest.mark.timeout(20)
def test_what_would_be_waited_for_without_end_is_no_file(tmp_path, monkeypatch):
    """As /proc/kmsg, which calls itself a regular file."""
    monkeypatch.setattr(reading, "_check", lambda _mode: None)
    os.mkfifo(tmp_path / "log")
    writer = os.open(tmp_path / "log", os.O_RDWR)
    assert "a pipe or a device" in refusal(tmp_path / "log")
    os.close(writer)


def test_standard_input_is_read_up_to_the_limit(monkeypatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"x" * 10)))
    assert reading.content("-", 10, or_stdin=True) == b"x" * 10
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=open("/dev/zero", "rb")))  # noqa: SIM115
    assert "stdin: larger than" in refusal("-", or_stdin=True)
    sys.stdin.buffer.close()
    monkeypatch.setattr(sys, "stdin", None)
    assert "closed" in refusal("-", or_stdin=True)


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="shells hand over /dev/fd/N")
def test_what_a_shell_hands_over_counts_as_standard_input():
    code = "import sys; from trainwright.reading import *; print(text(sys.argv[1], 9, or_stdin=1))"
    command = ["bash", "-c", '"$0" -c "$1" <(echo ok)', sys.executable, code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("ok", "")


@pytest.mark.parametrize("odd", [5e-324, 1e25, float("inf"), float("nan"), 1 << 63, -(10**400)])
def test_numbers_that_nothing_has_are_found_where_they_stand(odd):
    place, value = ranges.first_odd({"a": [0, 1.5, True, {"b": odd}]})
    assert place == ("a", 3, "b")
    assert value is odd
    assert ranges.first_odd({"a": [0, -1e24, 1e-24, (1 << 63) - 1, None, "1e999"]}) is None
