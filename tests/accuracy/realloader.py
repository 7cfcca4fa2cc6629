"""A DataLoader that decodes generated pictures: run by itself, so that torch starts afresh.

``python tests/accuracy/realloader.py`` prints what it measures as JSON.
"""

import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass

BATCH = 32
SIDE = 224
OUTPUT_BYTES = 3 * SIDE * SIDE * 4
WORKERS = (0, 1, 2)
SAMPLES = 1536


@dataclass(frozen=True)
class Measured:
    """What the machine did."""

    cores: int
    load: float
    """Programs that were running beside, on average over the minute before."""
    alone: float
    """Core-seconds of one sample, without any loader."""
    runs: dict[int, "Run"]
    """By workers."""


@dataclass(frozen=True)
class Run:
    """One loader, run while other programs may have run too."""

    rate: float
    """Samples a second."""
    spent: float
    """Core-seconds a sample of all its processes."""
    left: float
    """Cores that other programs, and the host of a virtual machine, left to it."""
    idle: float
    """Cores that nobody used."""


def measure() -> Measured:
    """Return what a fresh interpreter measures."""
    threads = os.environ | {"OMP_NUM_THREADS": "1"}
    run = subprocess.run(
        [sys.executable, __file__], capture_output=True, check=True, text=True, env=threads
    )
    found = json.loads(run.stdout)
    runs = {int(workers): Run(*each) for workers, each in found.pop("runs").items()}
    return Measured(**found, runs=runs)


def main() -> None:
    import numpy as np
    import psutil
    import torch
    from PIL import Image
    from torch.utils.data import DataLoader, Dataset

    torch.set_num_threads(1)
    random = np.random.default_rng(0)

    def picture() -> bytes:
        """Return a photograph-like JPEG of 500 x 375 pixels, about 86 KB."""
        coarse = random.integers(0, 255, (24, 32, 3), dtype=np.uint8)
        smooth = np.asarray(Image.fromarray(coarse).resize((500, 375), Image.Resampling.BICUBIC))
        noisy = smooth.astype(np.int16) + random.integers(-22, 22, smooth.shape)
        file = io.BytesIO()
        Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(file, "JPEG", quality=90)
        return file.getvalue()

    pictures = [picture() for _ in range(48)]

    class Pictures(Dataset):  # type: ignore[type-arg]
        """Decode, crop, resize, convert, normalise."""

        def __len__(self) -> int:
            return SAMPLES

        def __getitem__(self, index: int) -> torch.Tensor:
            image = Image.open(io.BytesIO(pictures[index % len(pictures)])).convert("RGB")
            box = (50, 40, 420, 330)
            small = image.resize((SIDE, SIDE), Image.Resampling.BILINEAR, box=box)
            values = torch.from_numpy(np.array(small)).permute(2, 0, 1).contiguous()
            return values.float().div_(255).sub_(0.45).div_(0.22)

    def alone(count: int) -> float:
        start = time.process_time()
        for index in range(count):
            data[index]
        return (time.process_time() - start) / count

    def through(loader: Iterable[torch.Tensor]) -> tuple[float, float, float, float]:
        """Return the fields of ``Run``, without start and end."""
        samples = iter(loader)
        next(samples)
        processes = [psutil.Process(), *psutil.Process().children()]
        start, before, machine, count = time.perf_counter(), spent(processes), busy(), 0
        for _ in range(SAMPLES // BATCH - 9):
            count += len(next(samples))
        now = time.perf_counter() - start
        own, (used, idle) = spent(processes) - before, busy()
        others = max(0.0, used - machine[0] - own) / now
        return count / now, own / count, cores - others, (idle - machine[1]) / now

    def spent(processes: list[psutil.Process]) -> float:
        return sum(sum(process.cpu_times()[:2]) for process in processes)

    def busy() -> tuple[float, float]:
        """Return core-seconds since the start that somebody used, and that nobody did."""
        times = psutil.cpu_times()  # those of guests are part of the user's
        used = times.user + times.nice + times.system + times.irq + times.softirq
        return used + times.steal, times.idle + times.iowait

    data, load = Pictures(), os.getloadavg()[0]
    cores = len(os.sched_getaffinity(0))
    alone(100)
    each = min(alone(300) for _ in range(3))
    runs = {}
    for workers in WORKERS:
        loader: DataLoader[torch.Tensor] = DataLoader(data, batch_size=BATCH, num_workers=workers)
        runs[workers] = through(loader)
    print(json.dumps({"cores": cores, "load": load, "alone": each, "runs": runs}))


if __name__ == "__main__":
    main()
