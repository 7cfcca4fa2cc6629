"""SIGKILL at any moment costs less than a second of edits, and no file is half-written."""

import json
import random
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from trainwright.mig import drawings
from trainwright.plan import file, recovery
from trainwright.profile import codec

HERE = Path(__file__).parent
SECONDS = 1.0
"""What a kill may cost at most, of edits."""
CONFIG = {
    "model_type": "gpt2", "n_layer": 2, "n_head": 2, "n_embd": 64, "vocab_size": 512,
    "n_positions": 64,
}  # fmt: skip


@dataclass
class Losses:
    """Of the last edits before each kill."""

    edits: int = 0
    """How many were lost."""
    oldest_s: float = 0.0
    """Age of the oldest of them at the kill."""
    litter: list[str] = field(default_factory=list)


def killed_while_editing(folder: Path, seed: int, losses: Losses) -> None:
    folder.mkdir()
    child = subprocess.Popen(
        [sys.executable, str(HERE / "killed.py"), str(folder), str(seed)],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert child.stdout is not None
    first = child.stdout.readline()
    time.sleep(random.Random(seed).uniform(0.2, 2.0))
    end = time.monotonic()
    child.kill()
    lines = [first, *child.stdout]
    child.wait()
    child.stdout.close()
    edits = {int(number): float(at) for number, at in map(str.split, lines)}
    kept = min(plan_left(folder), board_left(folder))
    lost = [at for number, at in edits.items() if number > kept and at < end]
    losses.edits += len(lost)
    losses.oldest_s = max([losses.oldest_s, *(end - at for at in lost)])
    losses.litter += whole(folder)


def plan_left(folder: Path) -> int:
    """Return the newest state of the plan that its file or its copy holds."""
    saved = [file.read(path) for path in folder.glob("*.plan.yaml")]
    found = recovery.offered(file.SUFFIX, file.read, folder / "state" / "recovery")
    assert found.notes == ()
    plans = [*saved, *(one.document for one in found.found)]
    return max((plan.workload.effective_batch or 0 for plan in plans), default=0)


def board_left(folder: Path) -> int:
    saved = [drawings.read(path) for path in folder.glob("*.mig.yaml")]
    found = recovery.offered(drawings.SUFFIX, drawings.read, folder / "state" / "recovery")
    assert found.notes == ()
    boards = [*saved, *(one.document for one in found.found)]
    names = [board.rows[0].name.removeprefix("job ") for board in boards if board.rows]
    return max((int(name or 0) for name in names), default=0)


def whole(folder: Path) -> list[str]:
    """Check what was exported, and return temporary files that were left behind."""
    for run in folder.glob("run-*"):
        assert {path.name for path in run.iterdir()} >= {"train.py", "plan.json"}, run
    for path in folder.rglob("*"):
        if any(part.startswith(".") for part in path.relative_to(folder).parts):
            continue
        if path.suffix == ".py":
            compile(path.read_text(encoding="utf-8"), str(path), "exec")
        elif path.suffix == ".json":
            json.loads(path.read_text(encoding="utf-8"))
    return [path.name for path in folder.rglob(".*") if path.parent.name != "recovery"]


def killed_while_tracing(folder: Path, seed: int, cache: Path, limit_s: float | None) -> bool:
    """Trace, and kill it after a while; return whether it had been done."""
    folder.mkdir()
    config, out = folder / "config.json", folder / "a.profile"
    config.write_text(json.dumps(CONFIG | {"n_embd": 64 + 2 * seed}), encoding="utf-8")
    out.write_bytes(b"old")
    words = ["profile", str(config), "--sequence-length", "32", "-o", str(out), "--json"]
    child = subprocess.Popen(
        [sys.executable, "-m", "trainwright", *words], stdout=subprocess.DEVNULL
    )
    try:
        child.wait(limit_s)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    written = out.read_bytes()
    if written != b"old":
        codec.decode(written, out.name)
    for path in cache.rglob("*.profile*"):
        if not path.name.startswith("."):
            codec.decode(path.read_bytes(), path.name)
    return written != b"old"


def traces(folder: Path, kills: int) -> list[bool]:
    """Kill traces at moments between their start and their end; return which were done."""
    if not kills:
        return []
    start = time.monotonic()
    assert killed_while_tracing(folder / "trace", 0, folder / "cache", None)
    whole_s = time.monotonic() - start
    dice = random.Random(0)
    return [
        killed_while_tracing(
            folder / f"trace-{seed}", seed, folder / "cache", whole_s * dice.uniform(0.1, 1.2)
        )
        for seed in range(1, kills + 1)
    ]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL, nor its clock")
@pytest.mark.parametrize(
    ("editing", "tracing"),
    [(2, 0), pytest.param(45, 15, marks=pytest.mark.slow)],
    ids=["few", "sixty"],
)
def test_a_kill_loses_less_than_a_second_and_leaves_whole_files(
    tmp_path, monkeypatch, editing, tracing
):
    losses = Losses()
    for seed in range(editing):
        killed_while_editing(tmp_path / f"edit-{seed}", seed, losses)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    done = traces(tmp_path, tracing)
    print(
        f"{editing + tracing} kills: {losses.edits} edits lost, the oldest "
        f"{losses.oldest_s:.2f} s before its kill; {sum(done)} of {tracing} traces were done; "
        f"{len(losses.litter)} temporary files left"
    )
    assert losses.oldest_s < SECONDS
