"""Traces of torch.profiler (``export_chrome_trace``), plain or packed, read as a stream."""

import json
from collections.abc import Iterator
from typing import Any

from trainwright.diagnose import budget
from trainwright.diagnose.readers import trace_device, trace_host
from trainwright.diagnose.readers.found import Found, without_absent
from trainwright.diagnose.readers.operator_table import WITHOUT_WORKERS
from trainwright.diagnose.readers.trace_events import LOADER, Trace, Window, collected, window
from trainwright.diagnose.readers.trace_stream import Stream
from trainwright.messages import Message, UserError


def recognised(text: str) -> bool:
    """Return whether the start of a file is that of a trace."""
    start = text.lstrip()[:1]
    return (start == "{" and '"traceEvents"' in text) or (
        start == "[" and '"ph"' in text and '"ts"' in text
    )


def read(chunks: Iterator[str]) -> Found:
    """Return the steady steps of a trace: their budget, and what a profile holds.

    Raises:
        UserError: it is damaged, or holds no operators and no kernels.
    """
    stream = Stream(chunks)
    trace = collected(stream.events())
    steps = window(trace)
    if steps is None:
        raise UserError.of("diagnose.file.no-operators")
    head = _head(stream.head)
    on_device = len(trace.device) > 0
    spent, facts = (trace_device if on_device else trace_host).read(trace, steps)
    seconds = (steps.end - steps.start) * trace_device.MICRO / steps.steps
    facts |= {"setup": _setup(head, trace)} | _gpu(head, on_device)
    source = "diagnose.budget.trace-device" if on_device else "diagnose.budget.trace-host"
    mean = {use: each / steps.steps for use, each in spent.items()}
    return Found(
        tuple(_took(trace, steps)),
        tuple(_missed(trace, steps, stream.cut_off)),
        facts,
        budget=budget.divided(
            seconds, mean, Message.of(source), of_step=steps.found != "none", on_device=on_device
        ),
    )


def _took(trace: Trace, steps: Window) -> Iterator[Message]:
    yield Message.of("diagnose.file.trace", operators=len(trace.host), kernels=len(trace.device))
    if steps.found != "none":
        yield Message.of(f"diagnose.file.steps-{steps.found}", count=steps.steps)


def _missed(trace: Trace, steps: Window, cut_off: bool) -> Iterator[Message]:
    if steps.found == "none":
        yield Message.of("diagnose.file.no-steps")
    if not len(trace.annotated(LOADER)):
        yield Message.of("diagnose.file.no-loader")
    if cut_off:
        yield Message.of("diagnose.file.cut-off")
    if trace.odd or trace.left_out:
        yield Message.of("diagnose.file.events-left", count=trace.odd + trace.left_out)
    if trace.processes > 1:
        yield Message.of("diagnose.file.processes", count=trace.processes)


def _head(text: str) -> dict[str, Any]:
    """Return what stands before the events, as plain data; nothing where it cannot be read."""
    try:
        head = json.loads(text.rstrip().removesuffix(",") + "}")
    except (ValueError, RecursionError):
        return {}
    return head if isinstance(head, dict) else {}


def _setup(head: dict[str, Any], trace: Trace) -> dict[str, Any]:
    group = head.get("distributedInfo")
    group = group if isinstance(group, dict) else {}
    backend, size = group.get("backend"), group.get("world_size")
    device = None
    if len(trace.device):
        names = {trace.names[at][:3] for at in set(trace.launches["name"].tolist())}
        device = "cuda" if "cud" in names else "rocm" if "hip" in names else None
    elif head.get("deviceProperties") == []:
        device = "cpu"
    single = any(WITHOUT_WORKERS in name for name in trace.names)
    return without_absent({
        "device": device,
        "num_workers": 0 if single else None,
        "backend": backend if backend in ("nccl", "rccl", "gloo", "mpi", "xccl", "ucc") else None,
        "world_size": size if isinstance(size, int) and 0 < size < 1_000_000 else None,
    })  # fmt: skip


def _gpu(head: dict[str, Any], on_device: bool) -> dict[str, Any]:
    """Return the GPU that the head describes, where it describes one."""
    devices = head.get("deviceProperties")
    if not on_device or not isinstance(devices, list) or len(devices) != 1:
        return {}
    device = devices[0] if isinstance(devices[0], dict) else {}
    name, total = device.get("name"), device.get("totalGlobalMem")
    major, minor = device.get("computeMajor"), device.get("computeMinor")
    whole = all(isinstance(each, int) and 0 <= each < 10 for each in (major, minor))
    gpu = without_absent({
        "name": name[:200] if isinstance(name, str) and name else None,
        "memory_total_bytes": total if isinstance(total, int) and 0 < total < 1 << 50 else None,
        "compute_capability": f"{major}.{minor}" if whole else None,
    })  # fmt: skip
    return {"gpus": [gpu]} if gpu else {}
