"""A detector's step with given matches takes the memory of torchvision's own step."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from trainwright.worker import client

PROGRAM = Path(__file__).with_name("detection_runs.py")


@pytest.mark.slow
@pytest.mark.skipif(find_spec("torchvision") is None, reason="needs torchvision")
@pytest.mark.parametrize("kind", ["faster", "mask"])
def test_the_peak_is_that_of_torchvision_at_its_recipes_numbers(kind):
    command = [sys.executable, str(PROGRAM), str(client.PROGRAMS), kind, "256"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    per_image = found["regions"] / found["images"], found["positives"] / found["images"]
    assert per_image == (512, 128), "torchvision must have sampled as many as we assume"
    print(f"{kind}: torchvision {found['real']:,} B, ours {found['ours']:,} B")
    assert found["ours"] == pytest.approx(found["real"], rel=0.005)
