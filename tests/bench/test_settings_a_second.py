"""Settings a second of the search, against the build before it looked below points lazily.

Compared is what *Make it fit* waits for, which was the whole advice then and is its first choice
now; beside it the whole advice of both.
"""

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
import inspect, json, sys, time
sys.path.insert(0, sys.argv[1])
from trainwright.advise import advise
from trainwright.plan.evaluate import resolve
from trainwright.plan.schema import Plan
plan = Plan.model_validate(json.loads(sys.argv[2]))
facts = resolve(plan)
fit = {"alone": True} if "alone" in inspect.signature(advise).parameters else {}

def timed(**how):
    begun = time.process_time()
    found = advise(plan, facts, **how)
    return time.process_time() - begun, found

first, (again, _), (once_more, _) = (timed(**fit)[0], timed(**fit), timed(**fit))
whole, advice = min((timed() for _ in range(3)), key=lambda one: one[0])
best = advice.choices[0]
names = ("precision", "micro_batch", "accumulation", "checkpointing", "optimizer", "attention",
         "channels_last", "allocator")
chosen = {name: getattr(best.settings, name) for name in names}
step = best.estimate.time.step_seconds.value
taken = min(again, once_more), first, whole
print(json.dumps([advice.considered, *taken, step, chosen]))
"""


def searched(app, plan):
    """Settings considered, seconds of CPU (a fit, the first one, whole advice), the best choice."""
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
        (before, *old, _, chosen), (now, *new, best, _) = (
            searched(tree / "app", plan) for tree in (tmp_path, TREE)
        )
        # The clock is another one: the old choice is timed by today's.
        again = searched(TREE / "app", {**plan, "settings": chosen})[4]
        assert best <= again * (1 + 1e-9), preset
        ratios = [(now / after) / (before / was) for was, after in zip(old, new, strict=True)]
        with capsys.disabled():
            print(
                f"\n{preset}: {before / old[0]:,.0f} settings a second before, {now / new[0]:,.0f} "
                f"now: {ratios[0]:.1f} times; {now:,} settings in {new[0]:.2f} s CPU. The first "
                f"time {ratios[1]:.1f} times ({old[1]:.2f} s for {before:,} settings before, "
                f"{new[1]:.2f} s now); five choices with notes {ratios[2]:.1f} times"
            )
