"""How long the command line takes to answer, beside a bare Python interpreter."""

import json
import statistics
import subprocess
import sys
import time

from trainwright.data import resources

PLAN = str(resources("examples", "llama-8b-lora.plan.yaml"))
RUNS = 5


def median_seconds(*arguments):
    def once():
        start = time.perf_counter()
        subprocess.run([sys.executable, *arguments], capture_output=True, check=False)
        return time.perf_counter() - start

    once()  # fills the page cache and the byte code
    return statistics.median(once() for _ in range(RUNS))


def test_estimate_answers_without_torch(capsys):
    imports = [sys.executable, "-X", "importtime", "-m", "trainwright", "estimate", PLAN, "--json"]
    run = subprocess.run(imports, capture_output=True, text=True, check=False)
    assert json.loads(run.stdout)["memory"]["allocated_peak_bytes"] > 0
    loaded = {line.rsplit("|", 1)[-1].strip() for line in run.stderr.splitlines()}
    assert {"numpy", "trainwright.plan.evaluate"} <= loaded
    assert loaded.isdisjoint({"torch", "transformers", "PySide6", "rich"})

    bare = median_seconds("-c", "pass")
    answer = median_seconds("-m", "trainwright", "estimate", PLAN, "--json")
    listing = median_seconds("-m", "trainwright", "catalog", "list", "--json")
    rows = {"estimate --json": answer, "catalog list --json": listing, "python -c pass": bare}
    with capsys.disabled():
        print("\nmedian of 5 runs; the budget of estimate is 1.5 s on 2 idle cores")
        for name, seconds in rows.items():
            print(f"  {name:20} {seconds:6.2f} s {seconds / bare:6.1f} x")
