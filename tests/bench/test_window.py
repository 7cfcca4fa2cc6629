"""Speed of the window and of the command line: printed as medians and ratios, never judged."""

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from trainwright.data import resources

EMPTY = """
import sys, time
start = time.perf_counter()
from PySide6.QtWidgets import QApplication, QMainWindow
app = QApplication([])
window = QMainWindow()
window.resize(1440, 900)
window.show()
window.grab()
print(time.perf_counter() - start)
"""

OURS = """
import sys, time
start = time.perf_counter()
from PySide6.QtWidgets import QApplication
from trainwright.ui.app import prepared
from trainwright.ui.core import Core
from trainwright.ui.preferences import Preferences
app = QApplication([])
window = prepared(app, Core(), Preferences())
window.show()
window.grab()
print(time.perf_counter() - start)
"""

EDITS = """
import statistics, sys, time
from pathlib import Path
from PySide6.QtWidgets import QApplication
from trainwright.ui.app import prepared
from trainwright.ui.core import Core
from trainwright.ui.preferences import Preferences
app = QApplication([])
window = prepared(app, Core(), Preferences())
window.show()
window.wake()
window.open_path(Path(sys.argv[1]))
session = window.session

def answered():
    end = time.perf_counter() + 60
    while (session.provisional or session.report is None) and session.problem is None:
        app.processEvents()
        if time.perf_counter() > end or session.tracing is not None:
            sys.exit("no stored profile for " + sys.argv[1])

answered()
def rested():
    while not session.resting:
        app.processEvents()
    end = time.perf_counter() + 0.05
    while time.perf_counter() < end:
        app.processEvents()

plan = window.screen_named("plan")
first, cpu, full, burst = [], [], [], []
for step in range(16):
    if step < 12:
        rested()
    start, work, mine = time.perf_counter(), time.process_time(), time.thread_time()
    session.set_key("settings.micro_batch", 1 + step % 4)
    plan.memory.repaint()  # and with it everything that the edit made stale
    if step >= 12:  # at once after an answer, which is still being painted and elaborated
        burst.append(time.thread_time() - mine)
        answered()
        continue
    first.append(time.perf_counter() - start)
    cpu.append(time.process_time() - work)
    answered()
    full.append(time.perf_counter() - start)
print(*map(statistics.median, (first, cpu, full, burst)))
window.session.draft.discard()
window.close()
"""

PLAN = """
trainwright: 1
model: {preset: gpt2}
workload: {task: pretrain, inputs: {sequence_length: 1024}, effective_batch: 480}
machine: {gpus: [{id: rtx-4070}]}
"""


def seconds(program: str, *arguments: str) -> list[float]:
    """Run a program in a fresh interpreter and return the numbers that it prints."""
    environment = os.environ | {"QT_QPA_PLATFORM": "offscreen"}
    child = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True, text=True, timeout=240, env=environment,
    )  # fmt: skip
    assert child.returncode == 0, child.stderr
    return [float(word) for word in child.stdout.split()]


def test_first_window_against_an_empty_one(capsys):
    empty, ours = [], []
    for _ in range(3):
        empty += seconds(EMPTY)
        ours += seconds(OURS)
    ratio = statistics.median(ours) / statistics.median(empty)
    with capsys.disabled():
        print(
            f"\nfirst window: {statistics.median(ours) * 1e3:.0f} ms, empty PySide6 window "
            f"{statistics.median(empty) * 1e3:.0f} ms, ratio {ratio:.2f} (budget 3)"
        )


def test_an_edit_of_a_preset(capsys, tmp_path: Path):
    path = tmp_path / "a.plan.yaml"
    path.write_text(PLAN, encoding="utf-8")
    started = time.perf_counter()
    first, cpu, full, burst = seconds(EDITS, str(path))
    with capsys.disabled():
        print(
            f"\nedit of a preset: all that changed repainted in {first * 1e3:.1f} ms, of which "
            f"{cpu * 1e3:.1f} ms CPU (budget 16), replayed in {full * 1e3:.0f} ms (budget 200); "
            f"right after an answer {burst * 1e3:.1f} ms CPU of the window; load "
            f"{os.getloadavg()[0] if hasattr(os, 'getloadavg') else 0:.1f}; "
            f"{time.perf_counter() - started:.1f} s in all"
        )


EXAMPLE = str(resources("examples", "llama-8b-lora.plan.yaml"))
RUNS = 5


def median_seconds(*arguments):
    def once():
        start = time.perf_counter()
        subprocess.run([sys.executable, *arguments], capture_output=True, check=False)
        return time.perf_counter() - start

    once()  # fills the page cache and the byte code
    return statistics.median(once() for _ in range(RUNS))


def test_estimate_answers_without_torch(capsys):
    imports = [
        sys.executable,
        "-X",
        "importtime",
        "-m",
        "trainwright",
        "estimate",
        EXAMPLE,
        "--json",
    ]
    run = subprocess.run(imports, capture_output=True, text=True, check=False)
    assert json.loads(run.stdout)["memory"]["allocated_peak_bytes"] > 0
    loaded = {line.rsplit("|", 1)[-1].strip() for line in run.stderr.splitlines()}
    assert {"numpy", "trainwright.plan.evaluate"} <= loaded
    assert loaded.isdisjoint({"torch", "transformers", "PySide6", "rich"})

    bare = median_seconds("-c", "pass")
    answer = median_seconds("-m", "trainwright", "estimate", EXAMPLE, "--json")
    listing = median_seconds("-m", "trainwright", "catalog", "list", "--json")
    rows = {"estimate --json": answer, "catalog list --json": listing, "python -c pass": bare}
    with capsys.disabled():
        print("\nmedian of 5 runs; the budget of estimate is 1.5 s on 2 idle cores")
        for name, seconds in rows.items():
            print(f"  {name:20} {seconds:6.2f} s {seconds / bare:6.1f} x")
