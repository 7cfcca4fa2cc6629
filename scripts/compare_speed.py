"""Prints CPU seconds of this tree over those of another commit, both run in turn.

    python scripts/compare_speed.py BASE [--runs 7] [--only WORD] [--suite]

The other commit gets a worktree and an environment of its own under ``build/``. Each run is a
fresh process, and its CPU seconds are those of all its children too. The first run of each fills
caches and is not counted. ``--suite`` also runs both test suites, once: that takes an hour.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = "resources/examples/llama-8b-lora.plan.yaml"
BARE = "import numpy, pydantic, yaml, click"
EMPTY = """
import os
from PySide6.QtWidgets import QApplication, QMainWindow
app = QApplication([])
window = QMainWindow()
window.resize(1440, 900)
window.show()
os._exit(0)
"""
WINDOW = """
import os
from PySide6.QtWidgets import QApplication
QApplication.exec = lambda *_: os._exit(0)
from trainwright.ui.app import main
main()
"""
REPLAY = """
import sys, time
from dataclasses import replace
from pathlib import Path
from trainwright.plan import file
from trainwright.plan.evaluate import memory_of, resolve
plan = file.read(Path(sys.argv[1]))
facts = resolve(plan)
start = time.process_time()
for batch in range(1, 9):
    settings = facts.settings.model_copy(update={"micro_batch": batch})
    memory_of(plan, replace(facts, settings=settings))
print(time.process_time() - start)
"""
OPENED = """
import random, sys, time
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
    while (session.provisional or session.report is None) and session.problem is None:
        app.processEvents()
def rested():
    end = time.perf_counter() + 0.3
    while time.perf_counter() < end or session.provisional:
        app.processEvents()
answered()
"""
EDIT = (
    OPENED
    + """
window.go("plan")
spent = 0.0
for step in range(12):
    rested()
    start = time.process_time()
    session.set_key("settings.micro_batch", 1 + step % 4)
    answered()
    app.processEvents()
    spent += time.process_time() - start
print(spent / 12, flush=True)
import os
os._exit(0)
"""
)
WALK = (
    OPENED
    + """
import os
choice = random.Random(1).choice
places = [id for id in window.actions_by_id if id.startswith("go-")]
keys = {"micro_batch": (1, 2, 4), "precision": ("bf16", "bf16-mixed", "fp32", None),
        "optimizer": ("adamw", "sgd", None), "checkpointing": ("none", "full", None)}
for step in range(2000):
    kind = choice(("go", "set", "set", "undo", "redo"))
    if kind == "set":
        key = choice(list(keys))
        session.set_key("settings." + key, choice(keys[key]))
    else:
        window.actions_by_id[choice(places) if kind == "go" else kind].trigger()
    for _ in range(3):
        app.processEvents()
rested()
status = Path("/proc/self/status").read_text()
print(int(status.split("VmRSS:")[1].split()[0]) / 1024, flush=True)
os._exit(0)
"""
)
TRACE = """
import sys
from pathlib import Path
from trainwright.plan import file
from trainwright.plan.evaluate import resolve
from trainwright.profile import store
pending = resolve(file.read(Path(sys.argv[1])))
store.trace(pending.spec, at=pending.point)
"""
PARTS = """
import dataclasses, sys, time
from pathlib import Path
now, parts = time.process_time, {}
def timed(owner, name, part):
    plain = getattr(owner, name)
    def timing(*arguments, **named):
        start = now()
        made = plain(*arguments, **named)
        parts[part] = parts.get(part, 0.0) + now() - start
        return made
    setattr(owner, name, timing)
def done(part, since):
    parts[part] = now() - since
    return now()
at = done("interpreter", 0.0)
import numpy, pydantic, yaml, click
at = done("libraries", at)
from pydantic._internal import _model_construction
timed(dataclasses, "_process_class", "of which dataclasses")
timed(_model_construction.ModelMetaclass, "__new__", "of which pydantic models")
import trainwright.cli.estimate
at = done("own modules", at)
from trainwright.plan import file
from trainwright.plan.evaluate import evaluate, resolve
plan = file.read(Path(sys.argv[1]))
facts = resolve(plan)
at = done("plan, machine and profile", at)
evaluate(plan, facts)
done("memory and time", at)
print(", ".join(f"{part} {1000 * spent:.0f}" for part, spent in parts.items()))
"""
LIBRARIES = "import torch, transformers.models.llama.modeling_llama, transformers.modeling_utils"
LLAMA = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 128_256,
    "hidden_size": 4096, "intermediate_size": 14_336, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 8192,
    "rope_theta": 500_000.0, "rms_norm_eps": 1e-5, "hidden_act": "silu",
    "tie_word_embeddings": False,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Tree:
    """A checkout with its interpreter."""

    root: Path
    python: Path


@dataclass(frozen=True, slots=True)
class Measure:
    """One row of the table."""

    name: str
    aim: float
    of: Callable[[Tree], float]
    unit: str = "s"
    than: str = ""
    """What else this tree is compared with: a row that is no measure of its own."""


def cpu(tree: Tree, *arguments: str, printed: bool = False, tests: bool = False) -> float:
    """Return the CPU seconds of a process and its children, or the number that it prints.

    Of ``tests`` the last line is shown: one that fails today takes its time nevertheless.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = os.environ | {
        "PYTHONPATH": str(tree.root / "app"),
        "QT_QPA_PLATFORM": "offscreen",
        "XDG_DATA_HOME": tempfile.mkdtemp(dir=SCRATCH),  # neither tree meets the other's state
        "XDG_CONFIG_HOME": tempfile.mkdtemp(dir=SCRATCH),
        "XDG_STATE_HOME": tempfile.mkdtemp(dir=SCRATCH),
    }
    run = subprocess.run(
        [tree.python, *arguments], cwd=tree.root, env=environment, capture_output=True, text=True
    )
    if tests:
        print(f"{tree.root.name}: {run.stdout.splitlines()[-1]}", file=sys.stderr, flush=True)
    elif run.returncode:
        raise SystemExit(f"{tree.root}: {run.stderr[-2000:]}")
    if printed:
        return float(run.stdout.split()[-1])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def program(source: str, *arguments: str, printed: bool = False) -> Callable[[Tree], float]:
    """Return the measure of a program of ours, run by each tree."""
    return lambda tree: cpu(tree, "-c", source, *arguments, printed=printed)


def unseen(task: str) -> Callable[[Tree], float]:
    """Return the measure of the trace of a model that neither tree has profiles of."""
    folder = Path(SCRATCH) / task
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(LLAMA))
    plan = folder / "llama.plan.yaml"
    plan.write_text(
        "trainwright: 1\nmodel: {hf: config.json}\n"
        f"workload: {{task: {task}, effective_batch: 16, inputs: {{sequence_length: 2048}}}}\n"
        "machine: {gpus: [{id: h100-80gb-sxm}]}\nsettings: {micro_batch: 2}\n"
    )

    def of(tree: Tree) -> float:
        os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(dir=SCRATCH)
        try:
            return cpu(tree, "-c", TRACE, str(plan))
        finally:
            del os.environ["XDG_CACHE_HOME"]

    return of


def suite(tree: Tree) -> float:
    """Return the CPU seconds of the quick tests, collection and waiting children included."""
    quick = ("-m", "pytest", "-q", "-n", "2", "-m", "not slow", "tests/unit", "tests/ui")
    return cpu(tree, *quick, tests=True)


def measures() -> tuple[Measure, ...]:
    """Return the table's rows, with the ratio that each should reach."""
    small = Path(SCRATCH) / "small.plan.yaml"
    small.write_text(
        "trainwright: 1\nmodel: {preset: gpt2}\nworkload: {task: pretrain, inputs: "
        "{sequence_length: 1024}, effective_batch: 480}\nmachine: {gpus: [{id: rtx-4070}]}\n"
    )
    estimate = ("-m", "trainwright", "estimate", EXAMPLE, "--json")
    return (
        Measure("estimate --json of a preset", 0.45, lambda tree: cpu(tree, *estimate),
                than=BARE),
        Measure("window until its first event loop", 0.45, program(WINDOW), than=EMPTY),
        Measure("eight memory estimates of an 8B LoRA plan", 0.15,
                program(REPLAY, EXAMPLE, printed=True)),
        Measure("trace of an unseen Llama-3-8B, full", 0.4, unseen("full")),
        Measure("trace of an unseen Llama-3-8B, LoRA", 0.4, unseen("lora")),
        Measure("changed setting to repainted verdict", 0.5,
                program(EDIT, str(small), printed=True)),
        Measure("window's memory after 2,000 actions", 0.5,
                program(WALK, str(small), printed=True), unit="MiB"),
    )  # fmt: skip


def other(commit: str) -> Tree:
    """Return the other commit's tree with its own environment, made where it is not there."""
    sha = subprocess.check_output(["git", "rev-parse", "--short", commit], cwd=ROOT, text=True)
    root = ROOT / "build" / f"base-{sha.strip()}"
    if not root.exists():
        add = ["git", "worktree", "add", "--detach", str(root), commit]
        subprocess.run(add, cwd=ROOT, check=True)
    subprocess.run(["make", "-s", ".venv/test.stamp"], cwd=root, check=True)
    return Tree(root, root / ".venv/bin/python")


def compared(measure: Measure, base: Tree, here: Tree, runs: int) -> str:
    """Return a row: medians of both, their ratio, and what it should be."""
    pairs = [(measure.of(base), measure.of(here)) for _ in range(runs + (runs > 1))]
    pairs = pairs[-runs:]  # the first fills caches
    before, after = (statistics.median(column) for column in zip(*pairs, strict=True))
    row = (
        f"{measure.name:44} {before:9.2f} {after:9.2f} {measure.unit:4} {after / before:6.2f} "
        f"{measure.aim:6.2f}"
    )
    if measure.than:
        alone = statistics.median(program(measure.than)(here) for _ in range(runs))
        row += f"   {after / alone:.1f} x {alone:.2f} s of the bare imports or an empty window"
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("base", help="the other commit")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--only", default="", help="rows whose name holds this")
    parser.add_argument("--suite", action="store_true", help="run both test suites too")
    asked = parser.parse_args()
    base, here = other(asked.base), Tree(ROOT, Path(sys.executable))
    commits = [
        subprocess.check_output(["git", "describe", "--always", "--dirty"], cwd=root, text=True)
        for root in (base.root, here.root)
    ]
    print(f"{'median of ' + str(asked.runs) + ' runs':44} {commits[0].strip()[:9]:>9} "
          f"{commits[1].strip()[:9]:>9}      ratio    aim", flush=True)  # fmt: skip
    for measure in measures():
        if asked.only in measure.name:
            print(compared(measure, base, here, asked.runs), flush=True)
    if not asked.only:
        parts = subprocess.check_output([here.python, "-c", PARTS, EXAMPLE], cwd=ROOT, text=True)
        print(f"CPU milliseconds of an estimate: {parts.strip()}")
        print(f"CPU seconds of the libraries of a trace: {cpu(here, '-c', LIBRARIES):.1f}")
    if asked.suite:
        print(compared(Measure("quick tests, once", 0.45, suite), base, here, 1), flush=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as SCRATCH:
        main()
