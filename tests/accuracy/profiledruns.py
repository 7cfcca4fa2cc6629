"""Twenty trainings, each watched by torch.profiler, by the recorder and through its trace.

python tests/accuracy/profiledruns.py FOLDER    # prints one JSON document
"""

import json
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils.data import DataLoader, Dataset

from trainwright.diagnose import budget, record
from trainwright.diagnose.callback import Recorder
from trainwright.diagnose.gathering import gather

STEPS = 20
FIRST = 5
"""Steps that the recorder leaves out."""
DELAYS = (0.0, 0.005, 0.02, 0.05)
"""Seconds that a batch takes to make."""
WIDTH = 256
MODELS = {
    "narrow": lambda: torch.nn.Sequential(*(torch.nn.Linear(WIDTH, WIDTH) for _ in range(12))),
    "wide": lambda: torch.nn.Linear(WIDTH, 1 << 14),
    "deep": lambda: torch.nn.Sequential(*(torch.nn.Linear(WIDTH, WIDTH) for _ in range(40))),
    "large": lambda: torch.nn.Sequential(torch.nn.Linear(WIDTH, 8192), torch.nn.Linear(8192, 256)),
    "attention": lambda: torch.nn.TransformerEncoderLayer(WIDTH, 4, 4096, dropout=0.0),
}
"""Steps of ten milliseconds and more, so that what watching costs is little of them."""


class Batches(Dataset[torch.Tensor]):
    """Batches that take their time."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __len__(self) -> int:
        return STEPS

    def __getitem__(self, at: int) -> torch.Tensor:
        time.sleep(self._seconds)
        return torch.full((256, WIDTH), float(at))


def watched(name: str, seconds: float, folder: Path) -> dict[str, dict[str, float]]:
    """Return the shares of a step of one training, by who tells them."""
    model = MODELS[name]()
    optimizer = torch.optim.AdamW(model.parameters())
    recorder = Recorder(folder / "run.record.json", sample=False)
    recorder.start()
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        for batch in DataLoader(Batches(seconds), batch_size=None):
            model(batch).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    recorder.stop()
    profiler.export_chrome_trace(str(folder / "trace.json"))
    return {
        "profiler": of_profiler(profiler.events()),
        "recorder": of_budget(budget.of(record.read(folder / "run.record.json"))),
        "trace": of_budget(gather([folder / "trace.json"]).budget),
    }


def of_profiler(events: Iterable[Any]) -> dict[str, float]:
    """Return the shares of the steady steps, from the ends of the optimizer's own events."""
    spans = [(each.name, each.time_range.start, each.time_range.end) for each in events]
    ends = sorted(end for name, _, end in spans if name.startswith("Optimizer.step#"))
    begin, end = ends[FIRST - 1], ends[-1]

    def share(start: str) -> float:
        held = (b - a for name, a, b in spans if name.startswith(start) and begin <= a and b <= end)
        return float(sum(held)) / (end - begin)

    return {"input": share("enumerate(DataLoader)#"), "optimizer": share("Optimizer.step#")}


def of_budget(found: budget.Budget | None) -> dict[str, float]:
    """Return our shares, and what they sum to."""
    assert found is not None
    shares = {each.use: each.seconds / found.seconds for each in found.shares}
    return {
        "input": shares.get("input", 0.0),
        "optimizer": shares.get("optimizer", 0.0),
        "sum": sum(shares.values()),
    }


def main() -> None:
    torch.set_num_threads(1)
    folder = Path(sys.argv[1])
    runs = {f"{name}, {seconds} s": watched(name, seconds, folder)
            for name in MODELS for seconds in DELAYS}  # fmt: skip
    print(json.dumps(runs))


if __name__ == "__main__":
    main()
