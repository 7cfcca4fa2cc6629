"""Measures an all-reduce: gradients summed over GPUs, or over processes where there are none.

Started by path. The question: ``backend`` (``nccl`` or ``gloo``), ``world`` (GPUs or processes),
``seconds``; a rank that this program starts gets ``rank`` and ``store`` too. The answer:
``versions``, ``name``, ``sizes``: {bytes: seconds of one all-reduce, the median},
``bus_bytes_per_s``: {value, low, high}: 2 (n - 1) / n of the bytes a second, as nccl-tests count.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from refusal import Refusal
from saying import Say, answer

MIB = 1 << 20
SIZES = (1 * MIB, 25 * MIB, 128 * MIB)
"""25 MiB is a bucket of DistributedDataParallel."""
PATIENCE_S = 120


def main(question: dict[str, Any], say: Say) -> dict[str, Any]:
    """Return what the ranks measured together.

    Raises:
        Refusal: there is no torch, or too few GPUs for it.
    """
    say(0.0, "bench.progress.torch")
    try:
        import torch
        import torch.distributed as distributed
    except ImportError as error:
        raise Refusal("bench.no-torch", interpreter=sys.executable) from error
    if "rank" in question:
        return _rank(question)
    world, nccl = question["world"], question["backend"] == "nccl"
    if nccl and (torch.cuda.device_count() < world or not distributed.is_nccl_available()):
        raise Refusal("bench.no-nccl", interpreter=sys.executable, version=torch.__version__)
    say(0.2, "bench.progress.reduce")
    store = str(Path.cwd() / "store")
    ranks = [_started(question | {"rank": rank, "store": store}) for rank in range(world)]
    try:
        told = [_answered(rank) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
    return told[0]


def _started(question: dict[str, Any]) -> subprocess.Popen[bytes]:
    rank = subprocess.Popen(
        [sys.executable, "-s", __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert rank.stdin is not None
    rank.stdin.write(json.dumps(question).encode())
    rank.stdin.close()
    return rank


def _answered(rank: subprocess.Popen[bytes]) -> dict[str, Any]:
    assert rank.stdout is not None
    said: dict[str, Any] = {}
    for line in rank.stdout:
        said = json.loads(line)
    if "sizes" not in said:
        reason = said.get("error", {}).get("values", {}).get("reason", "a rank ended")
        raise Refusal("bench.reduce", reason=reason)
    return said


def _rank(question: dict[str, Any]) -> dict[str, Any]:
    """Return what one rank measures; all take part in each all-reduce."""
    from datetime import timedelta

    import torch
    import torch.distributed as distributed

    rank, world, nccl = question["rank"], question["world"], question["backend"] == "nccl"
    device = torch.device("cuda", rank) if nccl else torch.device("cpu")
    if nccl:
        torch.cuda.set_device(device)
    else:
        torch.set_num_threads(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    distributed.init_process_group(
        question["backend"], init_method=f"file://{question['store']}", rank=rank,
        world_size=world, timeout=timedelta(seconds=PATIENCE_S),
    )  # fmt: skip
    try:
        found = {size: _seconds(size, device, question["seconds"] / len(SIZES)) for size in SIZES}
    finally:
        distributed.destroy_process_group()
    share = 2 * (world - 1) / world
    rates = {size: [share * size / each for each in times] for size, times in found.items()}
    best = max(rates, key=lambda size: statistics.median(rates[size]))
    return {
        "versions": {"torch": torch.__version__.partition("+")[0]},
        "name": torch.cuda.get_device_name(device) if nccl else "",
        "sizes": {str(size): statistics.median(times) for size, times in found.items()},
        "bus_bytes_per_s": {
            "value": statistics.median(rates[best]),
            "low": min(rates[best]),
            "high": max(rates[best]),
        },
    }


def _seconds(size: int, device: Any, budget: float) -> list[float]:
    """Return the seconds of all-reduces of ``size`` bytes; every rank makes as many."""
    import torch
    import torch.distributed as distributed

    values = torch.ones(size // 4, dtype=torch.float32, device=device)

    def once() -> float:
        distributed.barrier()
        began = time.perf_counter()
        distributed.all_reduce(values)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return time.perf_counter() - began

    first = [once() for _ in range(3)][-1]
    # Ranks must agree on how often: the slowest one's estimate decides.
    wish = torch.tensor([first], device=device)
    distributed.all_reduce(wish, op=distributed.ReduceOp.MAX)
    count = max(5, min(50, int(budget / max(float(wish), 1e-6))))
    return [once() for _ in range(count)]


if __name__ == "__main__":
    status = answer(main, "bench.failed")
    sys.stdout.flush()
    os._exit(status)
