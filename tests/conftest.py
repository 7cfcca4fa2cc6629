"""Shared set-up: no test needs a display, a GPU, a network, or touches a person's own files."""

import gc
import os
import signal
import sys
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent / "nvml_stub"))
sys.path.insert(0, str(Path(__file__).parent / "hostile"))
sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))

import compile_allocator
import compile_catalog
import nvmlstub

# Properties are tried on a shared, busy computer: how long one try takes says nothing.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# What a shell starts in the background ignores Ctrl-C, and so would every program that we start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    with suppress(ValueError):  # not the main thread
        signal.signal(signal.SIGINT, signal.default_int_handler)

# Before anything loads Qt: pytest-qt aborts the interpreter where there is no display.
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")


def pytest_configure(config):
    """Compile what was edited once: each test, whose cache is its own, would do it again."""
    if not hasattr(config, "workerinput"):
        compile_catalog.refresh()
        compile_allocator.refresh()


def pytest_addoption(parser):
    parser.addoption("--part", default="1/1", help="K/N: every N-th test, from the K-th on")


def pytest_collection_modifyitems(config, items):
    part, parts = map(int, config.getoption("--part").split("/"))
    items[:] = items[part % parts :: parts]


def pytest_runtest_setup(item):
    """Turn collection on after tests of windows, whose remains this thread must collect first."""
    if not gc.isenabled() and "ui" not in item.path.parts:
        gc.collect()
        gc.enable()


HOMES = count()


@pytest.fixture(autouse=True)
def own_folders(tmp_path_factory, monkeypatch):
    """Give each test its own cache, settings and state folders, made by whoever writes there."""
    home = tmp_path_factory.getbasetemp() / f"home{next(HOMES)}"
    for name in ("CACHE", "CONFIG", "DATA", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(home / name.lower()))
    monkeypatch.setenv("LOCALAPPDATA", str(home / "local"))
    monkeypatch.delenv("TRAINWRIGHT_DEBUG", raising=False)


@pytest.fixture(scope="session")
def nvml_stub(tmp_path_factory):
    """A driver library without a GPU; ``nvml_stub.environment("two")`` is for a child process."""
    if nvmlstub.compiler() is None:
        pytest.skip("needs a C compiler, and a loader that LD_LIBRARY_PATH guides (Linux)")
    return nvmlstub.build(tmp_path_factory.mktemp("nvml"))
