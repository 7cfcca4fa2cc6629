"""Cost of monitoring: memory over a simulated day, and processor time beside nvitop's."""

import gc
import json
import os
import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil
import pytest

from trainwright.probe.monitor.alerts import Alert
from trainwright.probe.monitor.monitor import Monitor
from trainwright.probe.sample import Activity, GpuProcess, GpuSample, HostSample, Sample, Throttle

DAY_S = 7_200 if os.environ.get("CI") else 86_400
"""Simulated seconds; CI has no minutes for a day, which grows as two hours do."""
BUDGET_MB = 5.0
BUDGET_CORE = 0.01
SECONDS = 20
"""Of processor time that is measured: long enough for 20 samples."""
GIB = 1 << 30


def moment(second: int, chance: random.Random) -> Sample:
    """Return a sample of a computer with four GPUs on which things go on happening."""
    hot: frozenset[Throttle] = frozenset({"power-cap"} if chance.random() < 0.05 else set())
    gpus = tuple(
        GpuSample(
            index,
            "NVIDIA H100 80GB HBM3",
            chance.random(),
            int(chance.random() * 80 * GIB),
            80 * GIB,
            60 + 30 * chance.random(),
            700 * chance.random(),
            700.0,
            sm_clock_mhz=1980 * chance.random(),
            throttle=hot,
            processes=(GpuProcess(second // 60, f"python-{second // 60}", 40 * GIB),),
            activity=Activity(*(chance.random() for _ in range(4))),
        )
        for index in range(4)
    )
    host = HostSample(chance.random(), (0.5,) * 32, disk_read=chance.random() * 1e9)
    return Sample(float(second), 1.8e9 + second, host, gpus)


def test_a_simulated_day_holds_memory_flat(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Every second of a day, with alerts and a log; the first ten minutes fill the buffers."""
    monitor = Monitor([Alert("gpu", "temperature_c", "above", 80, 5)])
    monitor.log_to(tmp_path / "day.csv")
    chance = random.Random(1)
    moments = [moment(second, chance) for second in range(3600)]
    process = psutil.Process()
    marks: list[tuple[str, float]] = []
    busy = time.process_time()
    for second in range(DAY_S):
        at = moments[second % len(moments)]
        monitor.hear(replace(at, monotonic_s=float(second), wall_s=1.8e9 + second))
        if second in (599, DAY_S // 4, DAY_S // 2, DAY_S - 1):
            gc.collect()
            marks.append((f"{(second + 1) / 3600:.1f} h", process.memory_info().rss / 1e6))
    each = (time.process_time() - busy) / DAY_S
    lines = (tmp_path / "day.csv").read_text(encoding="utf-8").count("\n")
    assert lines == DAY_S + 1
    grown = marks[-1][1] - marks[0][1]
    with capsys.disabled():
        print(f"\n{DAY_S / 3600:g} simulated hours at 1 Hz, 4 GPUs, {DAY_S:,} lines of a log")
        print("  resident " + ", ".join(f"{mb:.1f} MB after {at}" for at, mb in marks))
        print(f"  grown by {grown:+.2f} MB from the tenth minute on; budget {BUDGET_MB:g} MB")
        print(f"  {each * 1e3:.2f} ms of processor time a sample")


OURS = """
import json, psutil, sys, time
from trainwright.probe.monitor.monitor import Monitor
from trainwright.probe.monitor.sampler import Reader, Sampler
monitor = Monitor()
sampler = Sampler(Reader, monitor.hear, 1.0)
sampler.start()
time.sleep(2)
def spent():
    # Of ours and of the child that reads the driver, by Linux's MAKE_PROCESS_CPUCLOCK.
    child, = psutil.Process().children()
    return time.process_time() + time.clock_gettime(~child.pid << 3 | 2)
start = spent()
time.sleep(float(sys.argv[1]))
print(json.dumps(spent() - start))
sampler.stop()
assert monitor.latest.gpus[0].utilisation >= 0
"""
NVITOP = """
import json, sys, threading, time, warnings
warnings.simplefilter("ignore")
from nvitop import Device, ResourceMetricCollector
collector = ResourceMetricCollector(Device.all(), root_pids={1}, interval=1.0)
collector.daemonize(on_collect=lambda metrics: True, interval=1.0, tag="bench")
time.sleep(2)
start = time.process_time()
time.sleep(float(sys.argv[1]))
print(json.dumps(time.process_time() - start))
"""


def share_of_a_core(program: str, environment: dict[str, str]) -> float:
    run = subprocess.run(
        [sys.executable, "-c", program, str(SECONDS)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    return float(json.loads(run.stdout.splitlines()[-1])) / SECONDS


def test_processor_time_beside_nvitops(capsys: pytest.CaptureFixture[str], nvml_stub: Any) -> None:
    """Both over the same driver library with two GPUs, once a second; times of each process.

    Ours and nvitop's read at the same time: neither takes a hundredth of a core from the other.
    """
    environment = nvml_stub.environment("two", COLUMNS="160", LINES="50")
    programs = (OURS, NVITOP) if find_spec("nvitop") else (OURS,)
    with ThreadPoolExecutor() as at_once:
        ours, *theirs = at_once.map(lambda each: share_of_a_core(each, environment), programs)
    with capsys.disabled():
        print(
            f"\nreadings once a second for {SECONDS} s, two GPUs of the driver stub, processor time"
        )
        print(f"  Trainwright      {ours:7.2%} of a core; budget {BUDGET_CORE:.0%}")
        if not theirs:
            print("  nvitop           not installed (pip install nvitop): no figure")
            return
        print(f"  nvitop collector {theirs[0]:7.2%} of a core")
    commands = (("nvitop", "--interval", "1"), ("trainwright", "monitor"))
    with ThreadPoolExecutor() as at_once:
        screen, table = at_once.map(
            lambda each: terminal_share([sys.executable, "-m", *each], environment), commands
        )
    with capsys.disabled():
        print(f"  on a terminal: trainwright monitor {table:.2%}, nvitop {screen:.2%} of a core")


def terminal_share(command: list[str], environment: dict[str, str]) -> float:
    """Return the processor time of a program that paints a terminal, from its fourth second on."""
    import pty
    import threading

    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        command,
        env=environment | {"TERM": "xterm-256color"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)

    def drain() -> None:
        try:
            while os.read(ours, 65536):
                pass
        except OSError:
            pass  # the other end is closed

    threading.Thread(target=drain, daemon=True).start()
    process = psutil.Process(child.pid)

    def spent() -> float:
        times = [each.cpu_times() for each in (process, *process.children())]
        return sum(each.user + each.system for each in times)

    try:
        time.sleep(4)
        before = spent()
        time.sleep(SECONDS)
        after = spent()
    finally:
        child.kill()
        child.wait()
        os.close(ours)
    return (after - before) / SECONDS
