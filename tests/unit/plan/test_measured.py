"""Figures of this computer take the place of those of others like it, and say so."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace

import pytest

from trainwright.data import resources
from trainwright.estimate.time.clock import Clock
from trainwright.estimate.time.efficiency import load
from trainwright.estimate.time.kernels import NUMBER
from trainwright.estimate.time.measured import corrected
from trainwright.estimate.time.operator_clock import Situation
from trainwright.estimate.time.roofline import Rates, rates
from trainwright.explain import Kind, Quantity, Unit
from trainwright.machine.machine import Machine
from trainwright.machine.measured import MeasuredGpu, Product
from trainwright.messages import Message, render
from trainwright.plan import file
from trainwright.plan.edit import with_keys
from trainwright.plan.evaluate import Facts, evaluate, resolve
from trainwright.plan.report import Report
from trainwright.probe import measured, measurements
from trainwright.probe.measurements import Kept, Measurement

PLAN = file.read(resources("examples", "resnet50-rtx3060.plan.yaml"))
DATE = "2026-03-01T10:00:00+00:00"
GPU, CPU = "NVIDIA GeForce RTX 3060", "AMD Ryzen 5 5600X 6-Core Processor"
DRIVE = "Samsung SSD 990 PRO 2TB"


def one(what: str, value: float, unit: Unit, on: str, *flags: str, **conditions) -> Measurement:
    versions = {"torch": "2.13.0"} if on == GPU else {}
    return Measurement(what, value, unit, on, DATE, None, None, conditions, versions, flags)


def drive(factor: float = 1.0, *flags: str, on: str = DRIVE) -> list[Measurement]:
    rate, requests = Unit.BYTES_PER_SECOND, Unit.REQUESTS_PER_SECOND
    return [
        one("drive.read.seq1m-q8t1", 7e9 * factor, rate, on, *flags, attachment="nvme"),
        one("drive.read.rnd4k-q32t16", 1e6 * factor, requests, on, *flags, attachment="nvme"),
        one("drive.read.rnd4k-q1t1", 2e4 * factor, requests, on, *flags, attachment="nvme"),
    ]


def core(value: float) -> list[Measurement]:
    return [one("decode.pillow.core", value, Unit.BYTES_PER_SECOND, CPU)]


def product(value: float, dtype: str = "bfloat16", *flags: str) -> list[Measurement]:
    shape = {"shape": "8192x4096x4096"}
    return [one(f"product.{dtype}", value, Unit.FLOP_PER_SECOND, GPU, *flags, **shape)]


def link(pinned: float) -> list[Measurement]:
    return [one("link.h2d.pinned", pinned, Unit.BYTES_PER_SECOND, GPU)]


@pytest.fixture(scope="module")
def facts() -> Facts:
    found = resolve(PLAN)
    assert isinstance(found, Facts)
    return replace(found, machine=replace(found.machine, cpu=CPU))


@pytest.fixture
def report(facts) -> Callable[..., Report]:
    """Return the report of the plan on a machine on which something was measured."""

    def made(*groups: list[Measurement]) -> Report:
        found = Kept(tuple(each for group in groups for each in group))
        machine = measured.on(facts.machine, found)
        return evaluate(PLAN, replace(facts, machine=machine))

    return made


def walked(report: Report) -> list[Quantity]:
    roots = [report.time.step_seconds]
    if report.time.pipeline is not None:
        roots += [rate for _, rate in report.time.pipeline.stages if rate is not None]
    return [each for root in roots for _, each in root.walk()]


def stage(report: Report, name: str) -> float:
    assert report.time.pipeline is not None
    rate = dict(report.time.pipeline.stages)[name]
    assert rate is not None
    return rate.value


def seen(report: Report) -> list[Quantity]:
    return [each for each in walked(report) if each.kind is Kind.MEASURED]


def test_without_measurements_nothing_changes(report, facts) -> None:
    assert report().time == evaluate(PLAN, facts).time
    assert seen(report()) == []


def test_a_faster_drive_loads_faster_and_says_when_it_was_measured(report) -> None:
    before, after = report(), report(drive())
    assert stage(after, "load") > 5 * stage(before, "load")
    shown = seen(after)
    assert {each.value for each in shown} == {7e9, 1e6, 2e4}
    assert all(each.source.startswith("2026-03-01, Samsung SSD 990 PRO") for each in shown)
    note = next(note for note in after.notes if note.id == "time.note.measured")
    assert "SEQ1M Q8T1 read" in render(note, "en")
    assert "2026-03-01" in render(note, "ko")


def test_half_the_drive_loads_half_as_fast(report) -> None:
    whole, half = report(drive()), report(drive(0.5))
    assert stage(half, "load") == pytest.approx(stage(whole, "load") / 2, rel=0.25)


@pytest.mark.parametrize("flag", ["cached", "tmpfs"])
def test_what_came_from_memory_says_nothing_of_a_drive(report, flag) -> None:
    assert report(drive(1.0, flag)).time == report().time


def test_the_drive_measured_last_is_the_one(report) -> None:
    older = [replace(each, date="2025-01-01T00:00:00+00:00") for each in drive(0.1, on="old")]
    assert report(older, drive()).time == report(drive()).time


def test_a_core_decodes_as_fast_as_it_did(report) -> None:
    slow, fast = report(core(20e6)), report(core(100e6))
    assert stage(slow, "decode") < stage(report(), "decode") < stage(fast, "decode")
    assert [each.value for each in seen(slow)] == [20e6]
    other = [replace(each, on="another processor") for each in core(20e6)]
    assert report(other).time == report().time


def test_a_measured_link_copies_at_its_rate(report) -> None:
    rate = 10e9
    found = report(link(rate))
    assert found.time.pipeline is not None
    assert found.time.pipeline.feeding.link_bytes_per_s == pytest.approx(rate)
    assert rate in {each.value for each in seen(found)}


def test_a_product_takes_as_long_as_it_took(facts) -> None:
    """The correction is right where the corrected estimate gives back the measured rate."""
    efficiency, record = load(), facts.machine.gpu.record
    stated = rates(record, efficiency, tf32=False)
    for value in (20e12, 50e12, 90e12):
        quantity = Quantity(Message.of("x"), value, Unit.FLOP_PER_SECOND, Kind.MEASURED)
        known = MeasuredGpu((Product("bfloat16", (8192, 4096, 4096), quantity),))
        once = corrected(stated, known, efficiency)
        assert corrected(once, known, efficiency).flops["bfloat16"] == pytest.approx(
            once.flops["bfloat16"], rel=1e-3
        )
        assert once.flops["float32"] == stated.flops["float32"]
    copy = Quantity(Message.of("x"), 300e9, Unit.BYTES_PER_SECOND, Kind.MEASURED)
    moved: Rates = corrected(stated, MeasuredGpu(copy=copy), efficiency)
    share = float(efficiency.curves(channels_last=False).memory[NUMBER["copy"]])
    assert moved.bandwidth * share == pytest.approx(300e9)


def test_a_gpu_that_multiplies_more_slowly_trains_more_slowly(report) -> None:
    usual = report().time.step_seconds.value
    slow = report(product(15e12))
    assert slow.time.step_seconds.value > 1.2 * usual
    assert 15e12 in {each.value for each in seen(slow)}
    assert report(product(15e12, "float16")).time.step_seconds.value == pytest.approx(usual)
    assert report(product(15e12, "bfloat16", "cpu")).time == report().time


def test_the_processors_products_are_not_the_gpus(report) -> None:
    mine = [replace(each, on=CPU) for each in product(1e9)]
    others = [replace(each, on="NVIDIA GeForce RTX 4090") for each in product(160e12)]
    assert report(mine).time == report(others).time == report().time


def test_advice_knows_what_was_measured(facts) -> None:
    machine: Machine = measured.on(facts.machine, Kept(tuple(product(15e12))))
    situations = [Situation(gpu, 1, PLAN.workload, 0) for gpu in (facts.machine.gpu, machine.gpu)]
    usual, slow = (
        Clock(situation).rates("bf16-mixed").flops["bfloat16"] for situation in situations
    )
    assert slow < usual


def test_this_computer_uses_what_was_kept(nvml_stub, tmp_path) -> None:
    """From the kept file to the report, on a computer whose driver says RTX 4090."""
    gpu = "NVIDIA GeForce RTX 4090"
    measurements.keep([replace(each, on=gpu) for each in product(60e12)] + drive())
    local = with_keys(PLAN, {"machine": {"local": True}})
    path = tmp_path / "here.plan.yaml"
    path.write_text(file.text_of(local))
    command = [sys.executable, "-m", "trainwright", "estimate", str(path), "--json"]
    told = subprocess.run(
        command, env=nvml_stub.environment("plain"), capture_output=True, text=True, timeout=120
    )
    assert told.returncode in (0, 1), told.stderr
    notes = json.loads(told.stdout)["notes"]
    (note,) = [text for text in notes if text.startswith("Measured on this computer")]
    assert "BF16 product of matrices" in note
    assert "SEQ1M Q8T1 read" in note
    measurements.path().write_text("rubbish")
    told = subprocess.run(
        command, env=nvml_stub.environment("plain"), capture_output=True, text=True, timeout=120
    )
    notes = json.loads(told.stdout)["notes"]
    assert any("set aside" in text for text in notes)
