"""What was verified and kept here is in every estimate of this computer, and nowhere else."""

import json
import subprocess
import sys

from nvmlstub import NvmlStub

CHILD = """
import json, sys
from trainwright.data import resources
from trainwright.estimate import correction
from trainwright.estimate.correction import Verified
from trainwright.messages import render
from trainwright.plan import file
from trainwright.plan.evaluate import evaluate, look_again, resolve
from trainwright.probe import snapshot
from trainwright.profile import interpreter

plan = file.read(str(resources("examples", "resnet50-rtx3060.plan.yaml")),
                 json.loads(sys.argv[1]))

def told():
    facts = resolve(plan)
    report = evaluate(plan, facts)
    parts = [part for _, part in report.memory.device_used.walk() if part.role == "context"]
    return [parts[0].kind, parts[0].value, sum(s.works for s in report.time.stages),
            [render(note, "en") for note in report.notes]]

before = told()
gpu = snapshot.machine_of(snapshot.take()).gpu.record.id
correction.keep(Verified(device=gpu, driver="580.65.06", torch=interpreter.torch_version(),
    date="2026-11-01T00:00:00+00:00", plan="a", steps=20, context_bytes=123 << 20, ratio=1.5,
    scatter=0.01))
look_again()
print(json.dumps([before, told()]))
"""
LOCAL = ['machine={"local": true}']


def estimated(stub: NvmlStub, folder: object, overrides: list[str]) -> list[list[object]]:
    done = subprocess.run(
        [sys.executable, "-c", CHILD, json.dumps(overrides)],
        env=stub.environment("plain", XDG_DATA_HOME=str(folder)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answer: list[list[object]] = json.loads(done.stdout)
    return answer


def test_estimates_of_this_computer_take_the_kept_run_over(nvml_stub, tmp_path):
    (kind, value, seconds, _), (later_kind, later_value, later_seconds, notes) = estimated(
        nvml_stub, tmp_path, LOCAL
    )
    assert (kind, later_kind) == ("assumed", "measured")
    assert value != later_value == 123 << 20
    assert later_seconds > seconds
    assert any("calibrated here on 2026-11-01" in note for note in notes)


def test_other_machines_keep_their_estimates(nvml_stub, tmp_path):
    before, after = estimated(nvml_stub, tmp_path, [])
    assert before == after
    assert before[0] == "assumed"
