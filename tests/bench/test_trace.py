"""Budget: an 8B model from a config.json, exact at the asked point, within 20 s; and cancelled."""

import json
import resource
from itertools import pairwise
from pathlib import Path
from time import perf_counter

import pytest
from compare_speed import LLAMA

from trainwright.messages import UserError
from trainwright.plan.evaluate import Pending, evaluate, resolve
from trainwright.plan.schema import Plan
from trainwright.profile import store

BUDGET_S = 20.0


def planned(folder: Path, task: str) -> Plan:
    path = folder / "config.json"
    path.write_text(json.dumps(LLAMA), encoding="utf-8")
    return Plan.model_validate(
        {
            "trainwright": 1,
            "model": {"hf": str(path)},
            "workload": {"task": task, "effective_batch": 16, "inputs": {"sequence_length": 2048}},
            "machine": {"gpus": [{"id": "h100-80gb-sxm"}]},
            "settings": {"micro_batch": 2},
        }
    )


def children_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


@pytest.mark.slow
@pytest.mark.parametrize("task", ["lora", "full"])
def test_an_8b_model_from_its_config(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, task: str
) -> None:
    plan = planned(tmp_path, task)
    pending = resolve(plan)
    assert isinstance(pending, Pending)
    heard: list[tuple[float, float]] = []
    start, cpu = perf_counter(), children_s()
    profile = store.trace(
        pending.spec,
        at=pending.point,
        on_progress=lambda share, _: heard.append((perf_counter() - start, share)),
    )
    wall, cpu = perf_counter() - start, children_s() - cpu
    report = evaluate(plan, pending.answered(profile))
    answered = perf_counter() - start

    assert pending.point == (2, 2048)
    assert profile.answers(2, 2048)
    assert report.memory.allocated_peak.value > 8e9 * 2  # The weights alone, in 16 bits.
    shares = [share for _, share in heard]
    assert len(shares) >= 5
    assert shares == sorted(shares)
    times = [0.0, *(at for at, _ in heard), wall]
    silent = max(after - before for before, after in pairwise(times))
    with capsys.disabled():
        print(
            f"\nLlama 3 8B from a config.json, {task}: traced in {wall:.1f} s ({cpu:.1f} s CPU), "
            f"report after {answered:.1f} s; budget {BUDGET_S:g} s on 2 idle cores; "
            f"{len(heard)} progress events, the first after {heard[0][0]:.1f} s, "
            f"at most {silent:.1f} s apart"
        )


@pytest.mark.slow
def test_a_trace_is_cancelled(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pending = resolve(planned(tmp_path, "lora"))
    assert isinstance(pending, Pending)
    asked: list[float] = []

    def on_progress(share: float, _: str) -> None:
        if share >= 0.3 and not asked:
            asked.append(perf_counter())

    with pytest.raises(UserError) as caught:
        store.trace(
            pending.spec, at=pending.point, on_progress=on_progress, cancelled=lambda: bool(asked)
        )
    after = perf_counter() - asked[0]
    assert caught.value.message.id == "worker.cancelled"
    with capsys.disabled():
        print(f"\ncancelled in the middle of the trace: the child is gone after {after:.2f} s")
