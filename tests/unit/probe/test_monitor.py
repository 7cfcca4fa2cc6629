"""The monitor over simulated samples: history, events, alerts, the log, and the pace."""

import csv
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from nvmlstub import NvmlStub

from trainwright.messages import Message, UserError, render
from trainwright.probe.monitor import sampler as sampling
from trainwright.probe.monitor import session as sessions
from trainwright.probe.monitor.alerts import Alert, as_text, from_text
from trainwright.probe.monitor.events import CALM_S, Witness
from trainwright.probe.monitor.gpus import Gpus
from trainwright.probe.monitor.gpus_program import _reading
from trainwright.probe.monitor.history import SPANS_S, History
from trainwright.probe.monitor.log import CsvLog
from trainwright.probe.monitor.monitor import EVENTS, Monitor
from trainwright.probe.monitor.readings import Series
from trainwright.probe.monitor.sampler import Sampler
from trainwright.probe.monitor.session import AGAIN_S, CRASHED, HANGS, STARTING, GpuSession
from trainwright.probe.reading import Missing
from trainwright.probe.sample import GpuProcess, GpuSample, HostSample, Sample
from trainwright.probe.samplejson import gpus_of

Play = Callable[..., GpuSession]

GIB = 1 << 30
LOST = Missing(Message.of("probe.gpu-lost"))
NO_DRIVER = Missing(Message.of("probe.no-driver"))
CPU = Series("host", "cpu")
BUSY = Series("gpu0", "utilisation")

GPU = GpuSample(0, "RTX", 0.5, 4 * GIB, 24 * GIB, 60.0, 200.0, 450.0, throttle=frozenset())


def at(seconds: float, *gpus: GpuSample, cpu: float | Missing = 0.25, slept: float = 0) -> Sample:
    return Sample(seconds, 1.8e9 + seconds, HostSample(cpu=cpu), gpus or (GPU,), slept)


# History


def kept(values: Iterator[tuple[float, float]]) -> History:
    history = History()
    for seconds, value in values:
        history.add(seconds, {CPU: value})
    return history


@pytest.mark.parametrize("span", SPANS_S)
def test_every_span_keeps_the_extremes_and_the_mean(span: int) -> None:
    """One reading of 0.9 in a day of 0.5 is still there in the last day's chart."""
    pace = max(1, span // 7200)
    spike = span - 5 * pace
    history = kept((s, 0.9 if s == spike else 0.5) for s in range(0, span, pace))
    summary = history.summary(CPU, span, span - 1)
    assert summary is not None
    assert summary.low == pytest.approx(0.5)
    assert summary.high == pytest.approx(0.9)
    assert summary.mean == pytest.approx(0.5 + 0.4 * pace / span, rel=1e-4)
    course = history.course(CPU, span, span - 1)
    assert course is not None
    oldest_first = np.diff(course.ages_s)
    assert (oldest_first < 0).all()
    age = course.ages_s[int(np.nanargmax(course.high))]
    assert age == pytest.approx(span - 1 - spike, abs=span / 600)


def test_the_last_minute_is_kept_at_full_rate() -> None:
    history = kept(((s + 0.5) / 10, s % 7) for s in range(600))
    course = history.course(CPU, 60, 59.95)
    assert course is not None
    assert list(course.mean) == [s % 7 for s in range(600)]


def test_what_is_older_than_a_span_is_gone() -> None:
    history = kept([(0.0, 1.0), (61.5, 0.1)])  # type: ignore[arg-type]
    summary = history.summary(CPU, 60, 61.5)
    assert summary is not None
    assert summary.high == pytest.approx(0.1)


def test_sleep_is_a_gap_and_not_zero() -> None:
    history = kept([(0.0, 0.5), (20.0, 0.5)])  # type: ignore[arg-type]
    course = history.course(CPU, 60, 20.0)
    assert course is not None
    assert np.isnan(course.mean).sum() == 598
    assert np.nanmin(course.low) == 0.5


def test_what_is_missing_leaves_no_bin() -> None:
    monitor = Monitor()
    monitor.hear(at(1, replace(GPU, utilisation=LOST)))
    assert monitor.summary(BUSY, 60, 1) is None
    assert monitor.course(Series("gpu7", "power_w"), 60, 1) is None
    monitor.hear(at(2))
    monitor.hear(at(3, replace(GPU, utilisation=LOST)))
    summary = monitor.summary(BUSY, 60, 3)
    assert summary is not None
    assert np.isnan(summary.now)
    assert summary.mean == 0.5


def test_memory_is_fixed_however_many_devices_come_and_go() -> None:
    history = History()
    for number in range(2000):
        history.add(number, {Series(f"gpu{number}", "power_w"): 1.0})
    assert len(history.series) == 512


# Events


def happened(*samples: Sample) -> list[str]:
    witness = Witness()
    return [event.kind for sample in samples for event in witness.see(sample)]


def test_a_lost_gpu_is_an_event_and_so_is_its_return() -> None:
    gone = replace(GPU, memory_used=LOST, throttle=LOST, utilisation=LOST)
    other = replace(GPU, index=1)
    assert happened(
        at(1, GPU, other), at(2, gone, other), at(3, gone, other), at(4, GPU, other)
    ) == [
        "gpu-lost",
        "gpu-back",
    ]


def test_throttling_that_comes_and_goes_within_a_second_is_one_event() -> None:
    hot = replace(GPU, throttle=frozenset({"power-cap", "idle"}))
    flicker = [at(s / 10, hot if s % 2 else GPU) for s in range(100)]
    assert happened(*flicker) == ["throttle-start"]
    assert happened(*flicker, at(10 + CALM_S)) == ["throttle-start", "throttle-end"]


def test_an_idle_gpu_does_not_throttle() -> None:
    assert happened(at(1, replace(GPU, throttle=frozenset({"idle", "application-clocks"})))) == []


def test_a_process_that_vanishes_from_a_full_gpu_ran_out_of_memory() -> None:
    training = GpuProcess(7, "python", 22 * GIB)
    full = replace(GPU, memory_used=23 * GIB, processes=(training, GpuProcess(8, "Xorg", GIB)))
    after = replace(GPU, memory_used=GIB, processes=(GpuProcess(8, "Xorg", GIB),))
    witness = Witness()
    witness.see(at(1, full))
    (event,) = witness.see(at(2, after))
    assert event.kind == "out-of-memory"
    assert "python" in render(event.message, "en")
    assert "22.0 GiB" in render(event.message, "ko")


def test_a_process_that_ends_on_a_gpu_with_room_just_ended() -> None:
    training = replace(GPU, memory_used=12 * GIB, processes=(GpuProcess(7, "python", 11 * GIB),))
    assert happened(at(1, training), at(2, replace(GPU, processes=()))) == []


def test_a_full_gpu_is_told_once() -> None:
    full = replace(GPU, memory_used=int(23.9 * GIB))
    assert happened(at(1, full), at(2, full), at(3), at(4, full)) == ["memory-full", "memory-full"]


def test_driver_sleep_and_the_kernel_ending_a_process() -> None:
    away = Sample(2, 1.8e9, gpus=NO_DRIVER, host=HostSample(oom_kills=1))
    back = replace(at(3, slept=600.0), host=HostSample(oom_kills=3))
    assert happened(at(1), away, back) == ["driver-gone", "slept", "killed", "driver-back"]


def test_a_computer_without_gpus_has_no_events() -> None:
    assert happened(*(Sample(s, s, gpus=NO_DRIVER) for s in range(3))) == []


def test_events_do_not_grow_without_end() -> None:
    monitor = Monitor()
    gone = replace(GPU, memory_used=LOST)
    for second in range(2 * EVENTS):
        monitor.hear(at(second, gone if second % 2 else GPU))
    assert len(monitor.events) == EVENTS


# Alerts

HOT = Alert("gpu", "temperature_c", "above", 80.0, for_s=5)


def alerted(monitor: Monitor, *samples: Sample) -> list[float]:
    return [
        sample.monotonic_s
        for sample in samples
        for event in monitor.hear(sample).events
        if event.kind == "alert"
    ]


def warm(seconds: float, degrees: float | Missing, slept: float = 0) -> Sample:
    return at(seconds, replace(GPU, temperature_c=degrees), slept=slept)


def test_an_alert_speaks_after_its_time_and_once() -> None:
    assert alerted(Monitor([HOT]), *(warm(s, 85) for s in range(20))) == [5]


def test_an_alert_speaks_again_after_it_was_calm() -> None:
    course = [85] * 7 + [70] + [85] * 7
    assert alerted(Monitor([HOT]), *(warm(s, t) for s, t in enumerate(course))) == [5, 13]


@pytest.mark.parametrize("broken", [warm(3, LOST), warm(3, 70), warm(3, 85, slept=100.0)])
def test_what_is_not_known_does_not_count_towards_an_alert(broken: Sample) -> None:
    samples = [broken if s == 3 else warm(s, 85) for s in range(8)]
    assert alerted(Monitor([HOT]), *samples) in ([], [8])


def test_an_alert_names_the_gpu_and_both_figures() -> None:
    monitor = Monitor([Alert("gpu", "memory_used", "above", 20.0 * GIB)])
    second = replace(GPU, index=1, memory_used=22 * GIB)
    (event,) = monitor.hear(at(1, GPU, second)).events
    assert render(event.message, "en") == ("Alert: GPU 1, Memory used is 22.0 GiB, above 20.0 GiB.")


def test_alerts_survive_being_kept() -> None:
    alerts = (HOT, Alert("host", "cpu", "below", 0.1))
    assert from_text(as_text(alerts)) == alerts


@pytest.mark.parametrize(
    "text", ["", "{", "3", "[1]", '[{"device": "host", "key": "gone", "beyond": "above"}]', "[{}]"]
)
def test_damaged_alerts_are_none(text: str) -> None:
    assert from_text(text) == ()


# The log


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_log_has_units_and_says_why_a_cell_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    monitor = Monitor()
    monitor.log_to(path)
    monitor.hear(at(1, cpu=0.5))
    monitor.hear(at(2, replace(GPU, utilisation=LOST, memory_used=LOST)))
    monitor.hear(at(3, replace(GPU, utilisation=LOST, memory_used=LOST)))
    first, second, third = rows(path)
    assert first["host.cpu [%]"] == "50"
    assert first["gpu0.memory_used [MiB]"] == "4096"
    assert second["gpu0.utilisation [%]"] == ""
    assert "gpu0.utilisation: the GPU has fallen off the bus" in second["note"]
    assert "no longer answers" in second["note"]  # the event
    assert third["note"] == ""  # nothing new


def test_a_gpu_that_goes_leaves_its_columns_and_a_new_one_adds_none(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    log = CsvLog(path)
    log.write(at(1, GPU))
    log.write(replace(at(2), gpus=NO_DRIVER))
    log.write(at(3, GPU, replace(GPU, index=1)))
    assert [row["gpu0.utilisation [%]"] for row in rows(path)] == ["50", "", "50"]
    assert "not present" in rows(path)[1]["note"]


def test_a_log_goes_on_where_it_ended_and_drops_a_half_line(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    CsvLog(path).write(at(1))
    with path.open("a") as file:
        file.write("2026-01-01T00:00")  # a power cut
    CsvLog(path).write(at(2))
    assert [row["monotonic [s]"] for row in rows(path)] == ["1.000", "2.000"]


def test_other_columns_are_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("name,age\nAnn,9\n")
    with pytest.raises(UserError, match="other columns"):
        CsvLog(path).write(at(1))
    assert path.read_text() == "name,age\nAnn,9\n"


@pytest.mark.parametrize("target", ["missing/log.csv", ".", "/dev/null"])
def test_what_is_no_file_is_refused(tmp_path: Path, target: str) -> None:
    with pytest.raises(UserError, match=r"log\.csv|not a regular file|cannot be written"):
        CsvLog(tmp_path / target).write(at(1))


def test_a_full_drive_ends_the_log_with_a_whole_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.csv"
    monitor = Monitor()
    monitor.log_to(path)
    monitor.hear(at(1))
    whole = path.read_bytes()
    real: Callable[[int, bytes], int] = os.write
    monkeypatch.setattr(os, "write", lambda file, data: real(file, data[:10]))
    (event,) = monitor.hear(at(2)).events
    assert event.kind == "log-ended"
    assert "full" in render(event.message, "en")
    assert path.read_bytes() == whole
    assert monitor.logging is None
    assert monitor.hear(at(3)).events == ()


# The pace


def test_samples_come_at_their_pace_and_missed_ones_are_not_made_up_for() -> None:
    taken: list[float] = []

    def read() -> Sample:
        if len(taken) == 2:
            time.sleep(0.5)
        return at(time.monotonic())

    enough = threading.Event()

    def heard(sample: Sample) -> None:
        taken.append(sample.monotonic_s)
        if len(taken) == 6:
            enough.set()

    sampler = Sampler(lambda: read, heard, hz=10)
    sampler.start()
    assert enough.wait(10)
    sampler.stop()
    assert not sampler.running
    gaps = np.diff(taken)
    assert (gaps > 0.05).all()
    count = len(taken)
    time.sleep(0.3)
    assert len(taken) == count


@pytest.fixture
def session(nvml_stub: NvmlStub, monkeypatch: pytest.MonkeyPatch) -> Iterator[Play]:
    """Return what starts a session with a driver of the stub's; its clock is the test's."""
    started: list[GpuSession] = []

    def play(scenario: str, clock: Callable[[], float] = time.monotonic) -> GpuSession:
        for name, value in nvml_stub.variables(scenario).items():
            monkeypatch.setenv(name, value)
        started.append(GpuSession(1.0, clock))
        return started[-1]

    yield play
    for each in started:
        each.close()
    assert not psutil.Process().children(), "no child is left, and no zombie"


def told(session: GpuSession, until: Callable[[Any], bool]) -> Any:
    """Read until a reading is of the kind; fail after ten seconds."""
    deadline = time.monotonic() + 10
    while not until(gpus := session.read()):
        assert time.monotonic() < deadline, gpus
        time.sleep(0.05)
    return gpus


def test_a_driver_that_hangs_keeps_nobody_waiting_and_costs_one_gpu(session: Play) -> None:
    late = 0.0
    hanging = session("hang", lambda: time.monotonic() + late)
    assert told(hanging, lambda gpus: gpus != STARTING) == HANGS
    start = time.monotonic()
    assert [hanging.read() for _ in range(20)] == [HANGS] * 20
    assert time.monotonic() - start < 1
    late = 20.0  # as if it had hung for so long
    first, second = told(hanging, lambda gpus: isinstance(gpus, tuple))
    assert isinstance(first.utilisation, float)
    assert second.utilisation.reason.id == "probe.no-answer"
    late += AGAIN_S + 1
    assert told(hanging, lambda gpus: gpus != STARTING) == HANGS, "it is asked again"


def test_a_driver_that_keeps_crashing_is_not_asked_without_end(
    session: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[object] = []
    real = sessions.Conversation
    monkeypatch.setattr(
        sessions, "Conversation", lambda arguments: started.append(arguments) or real(arguments)
    )
    crashing = session("crash-init")
    told(crashing, lambda gpus: len(started) == 2 and gpus == CRASHED)
    assert [crashing.read() for _ in range(20)] == [CRASHED] * 20
    assert len(started) == 2


def test_a_hanging_driver_leaves_no_process_behind_when_we_are_killed(nvml_stub: NvmlStub) -> None:
    program = """
import psutil, time
from trainwright.probe.monitor.session import GpuSession
session = GpuSession(1.0)
while session.read().reason.id != "probe.driver-hangs":
    time.sleep(0.05)
print(psutil.Process().children()[0].pid, flush=True)
time.sleep(60)
"""
    ours = subprocess.Popen(
        [sys.executable, "-c", program],
        env=nvml_stub.environment("hang-init"),
        stdout=subprocess.PIPE,
    )
    with ours:
        assert ours.stdout is not None
        child = psutil.Process(int(ours.stdout.readline()))
        ours.kill()
    psutil.wait_procs([child], timeout=10)
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE  # no init here


def test_a_fault_while_reading_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainwright.probe.monitor.gpus.pynvml.nvmlInit", lambda: 1 // 0)
    answer = gpus_of(_reading(Gpus()))
    assert isinstance(answer, Missing)
    assert "ZeroDivisionError" in render(answer.reason, "en")


def test_sleep_makes_no_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten hours on the clock that sleep does not stop: no rate over them is ever shown."""
    hours = 0.0
    monkeypatch.setattr(sampling, "elapsed_s", lambda: time.monotonic() + hours)
    reader = sampling.Reader()
    reader()
    time.sleep(0.05)
    assert not isinstance(reader().host.cpu, Missing)
    hours = 36_000.0
    asleep = reader()
    assert asleep.slept_s == pytest.approx(36_000, abs=1)
    assert isinstance(asleep.host.cpu, Missing)
    assert isinstance(asleep.host.disk_read, Missing)
    assert reader().slept_s == 0
    reader.close()
