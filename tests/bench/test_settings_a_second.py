"""Settings a second of the search, against the build before it looked below points lazily."""

import io
import json
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

BEFORE = "7ae80e55"
TREE = Path(__file__).parents[2]
CASES = (
    ("gpt2", "pretrain", 55_440, {"sequence_length": 1024}),
    ("resnet50", "pretrain", 720, {}),
    ("llama-3.1-8b", "qlora", 720, {"sequence_length": 512}),
)
PROGRAM = """
import json, sys, time
sys.path.insert(0, sys.argv[1])
from trainwright.advise import advise
from trainwright.plan.evaluate import resolve
from trainwright.plan.schema import Plan
plan = Plan.model_validate(json.loads(sys.argv[2]))
facts, taken = resolve(plan), []
for _ in range(4):
    begun = time.process_time()
    advice = advise(plan, facts)
    taken.append(time.process_time() - begun)
best = advice.choices[0]
names = ("precision", "micro_batch", "accumulation", "checkpointing", "optimizer", "attention",
         "channels_last", "allocator")
chosen = {name: getattr(best.settings, name) for name in names}
step = best.estimate.time.step_seconds.value
print(json.dumps([advice.considered, taken[0], sorted(taken[1:])[1], step, chosen]))
"""


def searched(app, plan):
    """Settings considered, seconds of CPU at first and later, the best step's time and settings."""
    command = [sys.executable, "-c", PROGRAM, str(app), json.dumps(plan)]
    return json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)


@pytest.mark.slow
def test_settings_a_second_against_the_build_before(tmp_path, capsys):
    archive = subprocess.run(["git", "archive", BEFORE], cwd=TREE, capture_output=True)
    if archive.returncode:
        pytest.skip(f"the history has no {BEFORE}")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as packed:
        packed.extractall(tmp_path, filter="data")
    for preset, task, batch, inputs in CASES:
        plan = {
            "trainwright": 1,
            "model": {"preset": preset},
            "workload": {"task": task, "effective_batch": batch, "inputs": inputs},
            "machine": {"gpus": [{"id": "rtx-4090"}], "memory_gib": 128},
        }
        (before, first, was, _, chosen), (now, begins, takes, best, _) = (
            searched(tree / "app", plan) for tree in (tmp_path, TREE)
        )
        # The clock is another one: the old choice is timed by today's.
        again = searched(TREE / "app", {**plan, "settings": chosen})[3]
        assert best <= again * (1 + 1e-9), preset
        old, new = before / was, now / takes
        with capsys.disabled():
            print(
                f"\n{preset}: {old:,.0f} settings a second before, {new:,.0f} now: "
                f"{new / old:.1f} times; {now:,} settings in {takes:.2f} s CPU. The first answer: "
                f"{first:.2f} s for {before:,} settings before, {begins:.2f} s for {now:,} now, "
                f"{now / begins / (before / first):.1f} times"
            )
