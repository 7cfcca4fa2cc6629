"""What cores, products and links reach; polite where it cannot be measured, and said."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from trainwright.explain import Unit
from trainwright.messages import LANGUAGES, UserError, render
from trainwright.probe import (
    benchmark,
    benchmark_cpu,
    benchmark_gpu,
    benchmarks,
    measured,
    measurements,
    occupied,
)
from trainwright.probe.benchmark import Choices
from trainwright.worker import client

QUICK = Choices(seconds=0.2, force=True)
GIB = 1 << 30


# Decoding


def test_pictures_a_second_by_workers(monkeypatch) -> None:
    monkeypatch.setattr(benchmark_cpu, "counts", lambda: [1, 2])
    outcome = benchmarks.run("cpu", QUICK)
    found = {one.what: one for one in outcome.measurements}
    one, core = found["decode.pillow.1"], found["decode.pillow.core"]
    assert found["decode.pillow.2"].value > 0
    assert one.unit is Unit.SAMPLES_PER_SECOND
    each = one.conditions["picture_bytes"]
    assert 80_000 < each < 150_000  # ImageNet's mean file has 110 KB
    assert core.value == pytest.approx(one.value * each, rel=1e-3)
    assert measurements.load().latest("decode.pillow.core") == core


def test_workers_are_enough_where_more_bring_little() -> None:
    assert benchmark_cpu.saturation({1: 100, 2: 195, 4: 380, 8: 400, 12: 410}) == 4
    assert benchmark_cpu.saturation({1: 100, 2: 195}) == 2
    assert benchmark_cpu.saturation({1: 100}) == 1


# Products and copies on the processor


def test_products_on_the_processor_say_so() -> None:
    outcome = benchmarks.run("gpu", QUICK)
    found = {one.what: one for one in outcome.measurements}
    product = found["product.float32"]
    assert product.unit is Unit.FLOP_PER_SECOND
    assert 1e8 < product.value < 1e14
    assert found["copy.device"].value > 1e8
    assert all(one.flags[0] == "cpu" for one in outcome.measurements)
    assert any("this is the processor" in render(note, "en") for note in outcome.notes)


def test_without_a_gpu_there_is_no_link() -> None:
    with pytest.raises(UserError, match="no link to measure"):
        benchmarks.run("link", QUICK)
    assert measurements.load().measurements == ()


@pytest.mark.slow
def test_sums_over_processes() -> None:
    (found,) = benchmark_gpu.all_reduce(QUICK, 2, "gloo")
    assert found.what == "reduce.gloo"
    assert found.value > 1e6
    assert found.low is not None
    assert found.low <= found.value


@pytest.fixture
def bare(tmp_path) -> str:
    """A Python without any package."""
    script = tmp_path / "python"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    script.chmod(0o700)
    return str(script)


@pytest.mark.skipif(sys.platform == "win32", reason="a shell's script")
@pytest.mark.parametrize(
    ("name", "lacks"), [("cpu", "no Pillow"), ("gpu", "no torch"), ("link", "no torch")]
)
def test_a_python_that_lacks_the_library_is_told_so(bare, name, lacks) -> None:
    with pytest.raises(UserError, match=lacks):
        benchmarks.run(name, Choices(seconds=0.1, interpreter=bare, force=True))


# What a GPU's answer is worth


def answer(**link: float) -> dict[str, object]:
    def rate(value: float) -> dict[str, object]:
        return {"value": value, "low": 0.9 * value, "high": 1.1 * value, "bytes": 1 << 28}

    return {
        "device": {"type": "cuda", "name": "NVIDIA H100 80GB HBM3", "uuid": "1-2-3"},
        "versions": {"torch": "2.13.0"},
        "products": {"bfloat16": rate(700e12) | {"shape": "8192x4096x4096"}},
        "copy": {"device": rate(2.6e12)},
        "link": {name.replace("_", "."): rate(value) for name, value in link.items()},
        "skipped": {"products.float8": "not here"},
    }


def told(found, slowing=frozenset(), links=None):
    date = "2026-01-01T00:00:00+00:00"
    return benchmark_gpu.outcome(found, "CPU", "580.65", date, set(slowing), links or {})


def test_a_gpu_is_named_with_driver_and_torch() -> None:
    outcome = told(answer(h2d_pinned=50e9, h2d_pageable=20e9))
    product = outcome.measurements[0]
    assert (product.what, product.on) == ("product.bfloat16", "NVIDIA H100 80GB HBM3")
    assert product.versions == {"torch": "2.13.0", "driver": "580.65"}
    assert product.flags == ()
    assert measured.source(product) == (
        "2026-01-01, NVIDIA H100 80GB HBM3, torch 2.13.0, driver 580.65"
    )
    (note,) = outcome.notes
    assert "products.float8 (not here)" in render(note, "en")


def test_heat_slow_links_and_useless_pinning_are_flagged() -> None:
    slow = told(answer(h2d_pinned=12e9, h2d_pageable=11e9), {"heat"}, {"GPU-1-2-3": 63e9})
    assert slow.measurements[0].flags == ("throttled", "slow-link", "pinned-alike")
    assert slow.measurements[0].conditions["slowed_by"] == "heat"
    fine = told(answer(h2d_pinned=52e9, h2d_pageable=20e9), set(), {"GPU-1-2-3": 63e9})
    assert fine.measurements[0].flags == ()


@pytest.mark.parametrize("found", [{}, {"device": 1}, answer() | {"products": {"x": {}}}])
def test_an_answer_that_is_none_is_said(found) -> None:
    with pytest.raises(UserError, match="not a result"):
        told(found)
    with pytest.raises(UserError, match="not a result"):
        benchmark_cpu.outcome({"libraries": 1} | found, "CPU", "now")


# Children that misbehave


@pytest.fixture
def child(tmp_path, monkeypatch):
    """Return a function that puts one program in place of every benchmark's."""
    folder = tmp_path / "programs"
    folder.mkdir()
    launcher = (client.PROGRAMS / "launch.py").read_text(encoding="utf-8")
    (folder / "launch.py").write_text(launcher, encoding="utf-8")
    monkeypatch.setattr(client, "PROGRAMS", folder)

    def write(body: str) -> None:
        for name in ("bench_disk", "bench_decode", "bench_device", "bench_reduce"):
            (folder / f"{name}.py").write_text(f"import os, time\n{body}\n", encoding="utf-8")

    return write


@pytest.mark.parametrize("name", ["disk", "cpu", "gpu", "link"])
@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("print('{\"other\": 1}')", "not a result"),
        ("print('[]'); print('\\x00 rubbish')", "ended without|answer|not a result"),
        ('print(\'{"device": {"type": 3}, "libraries": [], "tests": []}\')', "not a result"),
        ("os.kill(os.getpid(), 9)", "ended|killed"),
        ("time.sleep(1000)", "nothing|silent|seconds|no sign"),
    ],
)
def test_a_child_that_misbehaves_is_one_line_and_nothing_is_kept(
    child, tmp_path, monkeypatch, name, body, said
) -> None:
    child(body)
    monkeypatch.setattr(benchmark, "SILENCE_S", 0.5 if "sleep" in body else 60.0)
    place = tmp_path / "place"
    place.mkdir()
    with pytest.raises(UserError, match=said):
        benchmarks.run(name, Choices(place, 64 << 20, seconds=0.05, force=True))
    assert measurements.load().measurements == ()
    assert list(place.iterdir()) == []


# Politeness


def test_on_battery_nothing_is_measured_unless_forced(monkeypatch) -> None:
    class Battery:
        power_plugged = False

    monkeypatch.setattr(psutil, "sensors_battery", lambda: Battery, raising=False)
    with pytest.raises(UserError, match="runs on its battery"):
        benchmarks.run("cpu", Choices(seconds=0.1))
    assert benchmarks.hindrance("cpu", Choices(force=True)) is None


BUSY = """
import json, time
from contextlib import closing
from trainwright.probe import nvml, occupied
read = nvml.read(identifiers=True, patience_s=0.5)
began = time.monotonic()
said = occupied.busy_gpu()
with closing(occupied.Watch(read)) as watch:
    watch.look()
print(json.dumps([str(said.values["programs"]) if said else "", sorted(watch.slowing),
                  len(watch.links), time.monotonic() - began]))
"""


def looked(environment) -> tuple[str, list[str], int, float]:
    told = subprocess.run(
        [sys.executable, "-c", BUSY], env=environment, capture_output=True, text=True, timeout=60
    )
    assert told.returncode == 0, told.stderr
    programs, slowed, links, seconds = json.loads(told.stdout)
    return programs, slowed, links, seconds


@pytest.mark.parametrize(
    ("scenario", "busy", "slowed", "links"),
    [
        ("plain", False, [], 1),
        ("foreign-process", True, [], 1),
        ("throttled", False, ["heat", "power-cap"], 1),
        ("lost", False, [], 1),
        ("wsl", False, [], 0),
        ("none", False, [], 0),
        ("not-loaded", False, [], 0),
        ("hidden-processes", False, [], 1),
        ("hang-init", False, [], 0),
        ("crash-init", False, [], 0),
    ],
)
def test_programs_and_clocks_of_gpus(nvml_stub, scenario, busy, slowed, links) -> None:
    programs, found, count, seconds = looked(nvml_stub.environment(scenario))
    assert ("31337" in programs) is busy
    assert (found, count) == (slowed, links)
    assert seconds < 3 * occupied.PATIENCE_S + 5


# Words


def test_every_measurement_has_a_name_in_both_languages(monkeypatch) -> None:
    monkeypatch.setattr(benchmark_cpu, "counts", lambda: [1, 2])
    link = answer(h2d_pinned=1e9, h2d_pageable=1e9, d2h_pinned=1e9, d2h_pageable=1e9)
    for one in told(link, {"heat"}).measurements:
        for language in LANGUAGES:
            name = render(measured.title(one), language)
            assert not name.startswith("bench."), name
            for mark in measured.flags(one):
                assert not render(mark, language).startswith("bench.")


# The command


def trainwright(*arguments: object, **options):
    command = [sys.executable, "-m", "trainwright", "probe", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


def test_the_command_says_what_it_takes_and_prints_json(tmp_path) -> None:
    options = ("--folder", tmp_path, "--size", 64, "--seconds", 0.1, "--method", "own")
    told = trainwright("--bench", "disk", *options, "--json")
    assert told.returncode == 0, told.stderr
    assert f"a file without a name in {tmp_path}" in told.stderr
    found = json.loads(told.stdout)["benchmarks"]["disk"]["measurements"]
    assert {"drive.read.seq1m-q8t1", "drive.read.rnd4k-q1t1"} <= {one["what"] for one in found}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--bench", "floppy"), "There is no benchmark floppy"),
        (("--bench", ","), "name what to measure"),
        (("--bench", "disk"), "Name a folder"),
        (("--bench", "disk", "--folder", "/nowhere/at/all"), "cannot be measured"),
        (("--bench", "cpu", "--seconds", "1e9"), "A test may take"),
    ],
)
def test_what_cannot_be_measured_is_one_line(arguments, said) -> None:
    told = trainwright(*arguments)
    assert told.returncode == 2
    assert said in told.stderr
    assert told.stderr.count("\n") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="signals of a terminal")
def test_ctrl_c_leaves_nothing(tmp_path) -> None:
    options = ["--folder", tmp_path, "--size", "64", "--seconds", "30", "--method", "own"]
    command = [sys.executable, "-m", "trainwright", "probe", "--bench", "disk", *options]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert child.stderr is not None
    assert "nothing remains" in child.stderr.readline().decode()
    deadline = time.monotonic() + 20
    while not _measuring(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert _measuring(tmp_path)
    child.send_signal(signal.SIGINT)
    assert child.wait(timeout=20) == 130
    child.stderr.close()
    assert not _measuring(tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert measurements.load().measurements == ()


def _measuring(folder: Path) -> bool:
    """Whether any process has a nameless file open in a folder."""
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if os.readlink(link).startswith(f"{folder}/"):
                return True
        except OSError:
            continue
    return False
