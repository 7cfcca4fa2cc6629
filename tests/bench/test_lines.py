"""How many whole estimates a second one process answers, line by line."""

import json
import subprocess
import sys
import time

from trainwright.data import resources

GPUS = ("rtx-4090", "rtx-4070", "rtx-3090", "rtx-5090", "a100-80gb-pcie")
ASKED = {
    "batches and lengths": [
        {"settings.micro_batch": batch, "workload.inputs.sequence_length": 256 * times}
        for batch in (1, 2, 4, 8, 16)
        for times in range(1, 5)
    ],
    "GPUs": [{"machine.gpus": [{"id": gpu, "count": 1}]} for gpu in GPUS * 4],
    "loader and optimizer settings": [
        {"settings.loader.num_workers": workers, "settings.loader.prefetch_factor": ahead}
        for workers in range(1, 11)
        for ahead in (2, 4)
    ],
}


def test_lines(capsys):
    rows = []
    for plan in ("gpt2-rtx4070", "resnet50-rtx3060", "llama-8b-lora"):
        for what, lines in ASKED.items():
            if plan.startswith("resnet") and what.startswith("batches"):
                lines = [{"settings.micro_batch": batch} for batch in (8, 16, 32, 64)] * 5
            path = resources("examples", f"{plan}.plan.yaml")
            with subprocess.Popen(
                [sys.executable, "-m", "trainwright", "estimate", path, "--stdin"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            ) as process:
                first = {"settings.loader.num_workers": 3}  # loads what all lines need
                rates = []
                for asked in ([first], lines):
                    started = time.perf_counter()
                    process.stdin.write("".join(json.dumps(line) + "\n" for line in asked))
                    process.stdin.flush()
                    answers = [json.loads(process.stdout.readline()) for _ in asked]
                    rates.append(len(asked) / (time.perf_counter() - started))
                process.stdin.close()
            assert [one["error"] for one in answers if "error" in one] == []
            rows.append((plan, what, rates[-1]))
    with capsys.disabled():
        print("\nwhole estimates a second, `estimate PLAN --stdin`, one process")
        for plan, what, rate in rows:
            print(f"  {plan:18} {what:32} {rate:6.0f}")
