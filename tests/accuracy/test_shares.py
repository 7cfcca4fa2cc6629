"""The shares of a step, held against torch.profiler's own times of the same steps."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

NEAR = 0.05
"""Of the step: five points."""


@pytest.mark.slow
def test_shares_of_twenty_runs_agree_with_the_profilers_own(tmp_path: Path) -> None:
    program = Path(__file__).with_name("profiledruns.py")
    command = [sys.executable, str(program), str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=900)
    runs = json.loads(run.stdout)
    assert len(runs) == 20
    apart = {
        f"{name}: {use} by {who}": (found[who][use], found["profiler"][use])
        for name, found in runs.items()
        for who in ("recorder", "trace")
        for use in ("input", "optimizer")
        if abs(found[who][use] - found["profiler"][use]) > NEAR
    }
    assert apart == {}
    assert all(
        abs(found[who]["sum"] - 1) <= 0.02
        for found in runs.values()
        for who in ("recorder", "trace")
    )
    # Not all alike: a constant would not pass.
    assert max(found["profiler"]["input"] for found in runs.values()) > 0.3
    assert min(found["profiler"]["input"] for found in runs.values()) < 0.1
