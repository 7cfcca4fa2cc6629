"""Budget: a torch.profiler trace of 300 MB is read within 60 s and 1 GiB."""

import json
import resource
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from time import perf_counter

import pytest

SIZE = 300_000_000
STEP = 40_000
"""Operators of a step."""
BUDGET_S, BUDGET_BYTES = 60.0, 1 << 30


def event(
    category: str, name: str, start: float, lasts: float, **args: object
) -> dict[str, object]:
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": start,
            "dur": lasts, "args": args}  # fmt: skip


def events() -> Iterator[dict[str, object]]:
    """Yield what torch writes with shapes and stacks on: a function, an operator, its kernel."""
    dims, types = [[32, 128, 768], [768, 768], [768]], ["float"] * 3
    grid, block = [1, 2, 3], [128, 1, 1]
    for number in count():
        at = 7.0 * number
        function = f"torch/nn/modules/linear.py({number % 100}): forward"
        shapes: dict[str, object] = {"Input Dims": dims, "Input type": types}
        kernel = "ampere_sgemm_128x64_nn"
        yield event("python_function", function, at, 6.9, python_id=number)
        yield event("cpu_op", "aten::addmm", at + 0.1, 6.5, **shapes)
        yield event("cuda_runtime", "cudaLaunchKernel", at + 1, 4, correlation=number)
        yield event("kernel", kernel, at + 5, 6, correlation=number, grid=grid, block=block)
        if number % STEP == STEP - 1:
            yield event("user_annotation", "Optimizer.step#AdamW.step", at + 6.9, 0.1)


@pytest.mark.slow
def test_a_trace_of_300_mb(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    written = 0
    with path.open("w", encoding="utf-8") as file:
        file.write('{"schemaVersion": 1, "traceEvents": [\n')
        for each in events():
            written += file.write(json.dumps(each) + ",\n")
            if written >= SIZE:
                break
        file.write('{"ph": "i", "name": "end", "ts": 0}]}')
    command = [sys.executable, "-m", "trainwright", "diagnose", str(path), "--json"]
    start = perf_counter()
    done = subprocess.run(command, capture_output=True, timeout=600, check=True)
    took = perf_counter() - start
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    most, core = used.ru_maxrss * 1024, used.ru_utime + used.ru_stime
    budget = json.loads(done.stdout)["budget"]
    with capsys.disabled():
        print(f"\na trace of {written / 1e6:.0f} MB: read in {took:.1f} s ({core:.1f} s of a core) "
              f"with {most >> 20} MiB; budget {BUDGET_S:g} s, 1 GiB")  # fmt: skip
    assert budget["seconds"] == pytest.approx(STEP * 7e-6, rel=0.01)
    assert most <= BUDGET_BYTES
