"""A window used at random by a seed: nothing crashes, nothing is left running, memory stays."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import monkey
import pytest

GROWTH_MIB = 60
"""From the first 1,000 actions on; what they load and keep is counted before."""


def seen(home: Path, *how: str) -> dict[str, Any]:
    """Return what a run in a program of its own saw: a crash would end the tests' one."""
    environment = os.environ | {"HOME": str(home), "QT_QPA_PLATFORM": "offscreen"}
    ran = subprocess.run(
        [sys.executable, monkey.__file__, *how], env=environment, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    figures = {key: value for key, value in found.items() if isinstance(value, int | float)}
    print(figures, found["mib"], found["longest"][:5], found["kinds"])
    return found


def assert_well(found: dict[str, Any]) -> None:
    assert found["exceptions"] == []
    assert found["crash_files"] == []
    assert found["warnings"] == []
    assert found["busy_workers"] == 0
    assert found["children"] == []
    assert found["seconds_to_close"] < 1


def test_three_hundred_random_actions_do_no_harm(tmp_path):
    found = seen(tmp_path, "--actions", "300", "--fake")
    assert_well(found)
    assert len(found["kinds"]) >= 15


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_ten_thousand_with_real_estimates_keep_memory_within_bounds(tmp_path):
    found = seen(tmp_path, "--actions", "10000")
    assert_well(found)
    assert found["mib"][-1] - found["mib"][0] <= GROWTH_MIB
