"""Measures products, copies and the link of a GPU, or of the processor where there is none.

Started by path. The question: ``device`` (``auto``, ``cuda:0`` or ``cpu``), ``parts``
(``products``, ``copy``, ``link``), ``seconds`` (of each test), ``host_bytes`` (pinned at most).
The answer: ``device``: {type, name, uuid, threads}, ``versions``, ``products``: {kind: {value,
low, high, shape}} in FLOP/s, ``copy`` and ``link``: {name: {value, low, high, bytes}} in bytes/s,
``skipped``: {name: reason}.
"""

import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

from refusal import Refusal
from saying import Say, answer
from timing import Stopwatch, tf32, told

MIB = 1 << 20
NK = 4096
"""Columns and depth of the products, as in the quick set of Bekman's MAMF finder."""
ROWS = (1024, 2048, 4096, 8192, 16384)
CPU_NK, CPU_ROWS = 1024, (512, 1024, 2048)
"""On a processor: a hundred times slower, and caches a hundredth (assumed)."""
COPY_BYTES, CPU_COPY_BYTES = 1 << 30, 256 << 20
"""Larger than any last-level cache; assumed."""
LINK_SIZES = (16 * MIB, 64 * MIB, 256 * MIB)
COPIES = 16
"""Between a pair of events, so that starting them does not count: as nvbandwidth does."""


def main(question: dict[str, Any], say: Say) -> dict[str, Any]:
    """Return what the device reaches.

    Raises:
        Refusal: there is no torch.
    """
    say(0.0, "bench.progress.torch")
    try:
        import torch
    except ImportError as error:
        raise Refusal("bench.no-torch", interpreter=sys.executable) from error
    device = question["device"]
    if device == "auto":
        device = "cuda:0" if torch.cuda.is_available() else "cpu"
    if device.startswith("cuda"):
        torch.cuda.set_device(device)
        _near(device)
    watch = Stopwatch(device)
    steps = list(_steps(question, watch))
    found: dict[str, dict[str, Any]] = {"products": {}, "copy": {}, "link": {}}
    skipped: dict[str, str] = {}
    for number, (part, name, step) in enumerate(steps):
        say(0.1 + 0.9 * number / len(steps), f"bench.progress.{part}")
        try:
            found[part][name] = step()
        except (RuntimeError, TypeError, AttributeError, NotImplementedError) as error:
            lines = str(error).splitlines() or [type(error).__name__]
            skipped[f"{part}.{name}"] = lines[0][:200]
    return {
        "device": _described(device),
        "versions": {"torch": torch.__version__.partition("+")[0]},
        **found,
        "skipped": skipped,
    }


def _described(device: str) -> dict[str, str]:
    import torch

    if not device.startswith("cuda"):
        return {"type": "cpu", "name": "", "uuid": "", "threads": str(torch.get_num_threads())}
    properties = torch.cuda.get_device_properties(device)
    return {
        "type": "cuda",
        "name": properties.name,
        "uuid": str(getattr(properties, "uuid", "")),
        "threads": "",
    }


def _near(device: str) -> None:
    """Stay on the cores that the GPU's slot belongs to: memory beyond another socket is slower."""
    import torch

    properties = torch.cuda.get_device_properties(device)
    numbers = [getattr(properties, f"pci_{part}_id", None) for part in ("domain", "bus", "device")]
    place = [number for number in numbers if isinstance(number, int)]
    if len(place) < len(numbers) or not hasattr(os, "sched_setaffinity"):
        return
    address = f"{place[0]:04x}:{place[1]:02x}:{place[2]:02x}.0"
    try:
        with open(f"/sys/bus/pci/devices/{address}/local_cpulist", encoding="ascii") as file:
            near = _cores(file.read().strip())
        wanted = near & os.sched_getaffinity(0)
        if wanted:
            os.sched_setaffinity(0, wanted)
    except (OSError, ValueError):
        return


def _cores(text: str) -> set[int]:
    """Return the numbers of a list such as ``0-3,8``."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


Step = tuple[str, str, Callable[[], dict[str, Any]]]


def _steps(question: dict[str, Any], watch: Any) -> Iterator[Step]:
    """Yield (part, name, what measures it)."""
    seconds, parts = question["seconds"], question["parts"]
    if "products" in parts:
        for kind in KINDS if watch.cuda else CPU_KINDS:
            yield "products", kind, _bound(_products, watch, kind, seconds)
    if "copy" in parts:
        yield "copy", "device", _bound(_copy, watch, seconds)
    if "link" in parts and watch.cuda:
        for direction in ("h2d", "d2h"):
            for pinned in (True, False):
                name = f"{direction}.{'pinned' if pinned else 'pageable'}"
                most = question["host_bytes"] if pinned else LINK_SIZES[-1]
                yield "link", name, _bound(_link, watch, direction, pinned, most, seconds)


def _bound(function: Callable[..., dict[str, Any]], *arguments: Any) -> Callable[[], Any]:
    return lambda: function(*arguments)


KINDS = ("bfloat16", "float16", "tf32", "float32", "float8")
CPU_KINDS = ("float32", "bfloat16")


def _products(watch: Any, kind: str, seconds: float) -> dict[str, Any]:
    """Return the FLOP/s of the fastest of several shapes: the median of its runs."""
    side, rows = (NK, ROWS) if watch.cuda else (CPU_NK, CPU_ROWS)
    best: dict[str, Any] = {"value": 0.0}
    with tf32(kind == "tf32"):
        for m in rows:
            work = _product(watch.device, kind, m, side)
            flops = 2.0 * m * side * side
            times = watch.seconds(work, seconds / len(rows))
            found = told([flops / each for each in times])
            if found["value"] > best["value"]:
                best = found | {"shape": f"{m}x{side}x{side}"}
            if max(times) > seconds / len(rows):
                break  # larger ones would take too long, as BF16 on a processor without it
    return best


def _product(device: Any, kind: str, m: int, side: int) -> Callable[[], Any]:
    """Return the product of random matrices: zeros would draw less power, and run faster."""
    import torch

    names = {"tf32": "float32", "float8": "bfloat16"}
    dtype = getattr(torch, names.get(kind, kind))
    a = torch.randn(m, side, device=device).to(dtype)
    b = torch.randn(side, side, device=device).to(dtype)
    if kind == "float8":
        one = torch.ones((), device=device)
        first, second = a.to(torch.float8_e4m3fn), b.t().contiguous().to(torch.float8_e4m3fn).t()
        return lambda: torch._scaled_mm(
            first, second, scale_a=one, scale_b=one, out_dtype=torch.bfloat16
        )
    goal = torch.empty(m, side, device=device, dtype=dtype)
    return lambda: torch.mm(a, b, out=goal)


def _copy(watch: Any, seconds: float) -> dict[str, Any]:
    """Return the bytes/s of a copy within the memory: read and written counted."""
    import torch

    size = CPU_COPY_BYTES
    if watch.cuda:
        size = min(COPY_BYTES, torch.cuda.mem_get_info()[0] // 4)
    source = torch.ones(size // 4, dtype=torch.float32, device=watch.device)
    goal = torch.empty_like(source)
    times = watch.seconds(lambda: goal.copy_(source), seconds, flush=False)
    return told([2 * size / each for each in times]) | {"bytes": size}


def _link(watch: Any, direction: str, pinned: bool, most: int, seconds: float) -> dict[str, Any]:
    """Return the bytes/s between system memory and the GPU, of the fastest of three sizes."""
    import torch

    best: dict[str, Any] = {"value": 0.0}
    sizes = [size for size in LINK_SIZES if size <= most] or [MIB]
    for size in sizes:
        here = torch.ones(size, dtype=torch.uint8, pin_memory=pinned)
        there = torch.ones(size, dtype=torch.uint8, device=watch.device)
        goal, source = (there, here) if direction == "h2d" else (here, there)

        def work(goal: Any = goal, source: Any = source) -> None:
            for _ in range(COPIES):
                goal.copy_(source, non_blocking=pinned)

        times = watch.seconds(work, seconds / len(sizes), flush=False)
        found = told([COPIES * size / each for each in times])
        if found["value"] > best["value"]:
            best = found | {"bytes": size}
    return best


if __name__ == "__main__":
    status = answer(main, "bench.failed")
    sys.stdout.flush()
    os._exit(status)
