"""The Python that traces may be the user's own; one that cannot is refused in a line."""

import os
import re
import sys
import tomllib
from pathlib import Path

import pytest

from trainwright.messages import LANGUAGES, UserError, render
from trainwright.plan.evaluate import resolve
from trainwright.plan.schema import Plan
from trainwright.profile import interpreter, store
from trainwright.worker import client

ROOT = Path(__file__).parents[3]
posix = pytest.mark.skipif(sys.platform == "win32", reason="writes shell scripts")


@pytest.fixture(autouse=True)
def nobody_chose(monkeypatch):
    monkeypatch.delenv(interpreter.VARIABLE, raising=False)
    yield
    interpreter.ask_for(None)
    interpreter.prefer(None)


@pytest.fixture
def executable(tmp_path):
    """Return a function that writes an executable with a shell script in it."""

    def write(script: str) -> str:
        path = tmp_path / "python"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return str(path)

    return write


def says(versions: str) -> str:
    return f"""echo '{{"versions": {versions}}}'"""


def refusal(path: str) -> str:
    with pytest.raises(UserError) as caught:
        interpreter.checked(path)
    message = caught.value.message
    for language in LANGUAGES:
        assert len(render(message, language).splitlines()) == 1
        assert path in render(message, language)
    return message.id


def test_torch_that_is_traced_with_is_the_one_that_the_package_asks_for():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (torch,) = (
        each for each in project["optional-dependencies"]["torch"] if each.startswith("torch")
    )
    numbers = [tuple(map(int, each.split("."))) for each in re.findall(r"\d+\.\d+", torch)]
    assert numbers == [interpreter.LEAST_TORCH, interpreter.BELOW_TORCH]


def test_this_python_by_its_path_has_the_versions_that_it_has_without_being_started():
    assert interpreter.checked(sys.executable).versions == tuple(
        sorted(interpreter.current().versions)
    )


@posix
@pytest.mark.parametrize(
    ("script", "id"),
    [
        ("exit 0", "not-python"),
        ("exec yes", "not-python"),
        ("exec cat /dev/zero", "not-python"),
        ("kill -9 $$", "not-python"),
        ("echo '[1, 2]'", "not-python"),
        ("echo '{}'", "not-python"),
        (says('{"python": 3}'), "not-python"),
        (says('{"python": "2.7.18", "torch": "1.0"}'), "old-python"),
        (says('{"python": "3.12.1"}'), "no-torch"),
        (says('{"python": "3.12.1", "torch": "2.9.1"}'), "torch-version"),
        (says('{"python": "3.12.1", "torch": "2.14.0"}'), "torch-version"),
        (says('{"python": "3.12.1", "torch": "nightly"}'), "torch-version"),
    ],
)
def test_what_cannot_trace(executable, script, id):
    assert refusal(executable(script)) == f"worker.{id}"


@posix
def test_one_that_talks_for_ever_is_ended_before_its_lines_fill_the_memory(executable):
    with pytest.raises(UserError) as refused:
        client.run("versions", {}, interpreter=executable("exec yes"), timeout_s=60)
    assert refused.value.message.id == "worker.too-much-output"


@posix
def test_one_that_never_answers(executable, monkeypatch):
    monkeypatch.setattr(interpreter, "PATIENCE_S", 1.0)
    assert refusal(executable("exec sleep 999")) == "worker.not-python"


@posix
def test_what_is_no_program(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "text").write_text("hello")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "text", "folder", "gone"):
        assert refusal(str(tmp_path / name)) == "worker.cannot-start"


@posix
def test_versions_are_part_of_the_key(executable, monkeypatch):
    asked = Plan.model_validate(
        {
            "model": {"timm": "resnet18"},
            "workload": {"task": "full", "effective_batch": 8},
            "machine": {"gpus": [{"id": "rtx-4090"}]},
        }
    )
    spec = resolve(asked).spec
    own = store.cache_path(spec)
    path = executable(says('{"python": "3.12.1", "torch": "2.11.0", "timm": "1.0.20"}'))
    monkeypatch.setenv(interpreter.VARIABLE, path)
    other = store.cache_path(spec)
    assert interpreter.torch_version() == "2.11.0"
    assert other != own
    interpreter.ask_for(sys.executable)  # the command line is stronger than the variable
    assert store.cache_path(spec) == own


@posix
def test_what_ships_answers_though_the_chosen_one_cannot_trace(executable, monkeypatch):
    monkeypatch.setenv(interpreter.VARIABLE, executable("exit 1"))
    shipped = Plan.model_validate(
        {
            "model": {"preset": "resnet18"},
            "workload": {"task": "full", "effective_batch": 8},
            "machine": {"gpus": [{"id": "rtx-4090"}]},
        }
    )
    assert resolve(shipped).profile.model["parameters"] == 11_689_512
    with pytest.raises(UserError):
        resolve(shipped.model_copy(update={"model": type(shipped.model)(timm="resnet18")}))


@pytest.mark.slow
@posix
def test_chosen_interpreter_traces_and_is_named(tmp_path, monkeypatch):
    """A Python with this one's libraries stands in for the user's."""
    pytest.importorskip("timm")
    path = tmp_path / "python"
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    path.chmod(0o755)
    interpreter.prefer(str(path))
    asked = Plan.model_validate(
        {
            "model": {"timm": "resnet18"},
            "workload": {"task": "full", "effective_batch": 2, "inputs": {"image_size": 64}},
            "machine": {"gpus": [{"id": "rtx-4090"}]},
        }
    )
    pending = resolve(asked)
    profile = store.trace(pending.spec, at=pending.point)
    assert profile.versions["interpreter"] == str(path)
    (note,) = (n for n in pending.answered(profile).notes if n.id == "plan.note.interpreter")
    assert str(path) in render(note, "ko")


@pytest.mark.parametrize(
    ("mark", "adds"),
    [("", "-m pip install"), ("pipx_metadata.json", "pipx inject"), ("uv-receipt.toml", "uv pip")],
)
def test_without_torch_it_names_the_line_that_adds_it_as_it_was_installed(
    monkeypatch, tmp_path, mark, adds
):
    monkeypatch.setattr(interpreter, "_own", lambda: interpreter.Interpreter(sys.executable, ()))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    if mark:
        (tmp_path / mark).write_text("")
    with pytest.raises(UserError) as caught:
        interpreter.tracing()
    said = render(caught.value.message, "en")
    assert adds in said
    assert '"torch>=2.10,<2.14"' in said
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    with pytest.raises(UserError) as caught:
        interpreter.tracing()
    assert caught.value.message.id == "worker.packaged-no-torch"
