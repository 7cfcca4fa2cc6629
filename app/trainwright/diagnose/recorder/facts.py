"""How a training is set up, as far as its loaders, optimizers and torch itself tell."""

import os
import sys
import time
from typing import Any

from . import surroundings


def loader_facts(loader: Any) -> dict[str, Any]:
    """Return what a DataLoader, or its iterator, says of itself."""
    found: dict[str, Any] = {}
    for name in ("num_workers", "prefetch_factor", "pin_memory", "persistent_workers"):
        values = (getattr(loader, each, None) for each in (name, f"_{name}"))
        value = next((each for each in values if isinstance(each, (bool, int))), None)
        if value is not None:
            found[name] = value
    sampler = getattr(loader, "_index_sampler", None)
    batch = getattr(loader, "batch_size", None) or getattr(sampler, "batch_size", None)
    if isinstance(batch, int) and batch > 0:
        found["batch"] = batch
    if not found.get("num_workers", 1):
        found.pop("persistent_workers", None)
        found.pop("prefetch_factor", None)
    return found


MOST_TARGETS = 0.9
"""Share of the targets that get scores where none is left out for being ignored: one of a sequence
has no score where each score is of the next; assumed."""


_SHARDS, _FSDP1 = ("DTensor", "FlatParameter"), "_fsdp_flattened"
"""What PyTorch's FSDP calls a parameter that it shards, and sets on one that it flattens."""


def optimizer_facts(optimizer: Any) -> dict[str, Any]:
    """Return what the parameters that an optimizer moves say of the model."""
    parameters = [each for group in optimizer.param_groups for each in group["params"]]
    if not parameters:
        return {}
    multiplied = (each for each in parameters if each.dim() >= 2 and not _added(each))
    sizes = {size for each in multiplied for size in each.shape[:2]}
    kernels = [each for each in parameters if each.dim() in (4, 5) and max(each.shape[2:]) > 1]
    found: dict[str, Any] = {
        "parameters": sum(each.numel() for each in parameters),
        "optimizer": type(optimizer).__name__.lower(),
        "dims": sorted(sizes)[-32:],
        "_dtype": str(parameters[0].dtype),
        "_device": parameters[0].device.type,
    }
    if any(type(each).__name__ in _SHARDS or getattr(each, _FSDP1, False) for each in parameters):
        found["strategy"] = "fsdp"
    group = optimizer.param_groups[0]
    if group.get("foreach") is False and not group.get("fused"):
        found["optimizer_foreach"] = False
    if kernels:
        found["model_kind"] = "convolution"
        torch = sys.modules["torch"]
        last = {4: torch.channels_last, 5: torch.channels_last_3d}
        found["channels_last"] = all(
            each.is_contiguous(memory_format=last[each.dim()]) for each in kernels
        )
    return found


def _added(parameter: Any) -> bool:
    """Whether a tensor is added to all samples alike, as places are: no product has its widths."""
    return bool(parameter.dim() == 3 and parameter.shape[0] == 1)


def profiling() -> bool:
    """Whether a profiler, or a trace of lines or memory, runs now; afterwards nobody tells."""
    torch, memory = sys.modules.get("torch"), sys.modules.get("tracemalloc")
    traced = sys.gettrace() is not None or sys.getprofile() is not None
    traced = traced or (memory is not None and memory.is_tracing())
    return traced or (torch is not None and bool(torch.autograd._profiler_enabled()))


def compiled() -> int:
    """Return how many functions torch.compile has compiled until now, some of them again."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    return int(dynamo.counters["frames"].get("ok", 0)) if dynamo else 0


def torch_facts() -> dict[str, Any]:
    """Return how torch is set up, of what can be told now."""
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "get_num_threads"):
        return {}
    found: dict[str, Any] = {
        "torch": str(torch.__version__),
        "torch_threads": torch.get_num_threads(),
        "anomaly_detection": torch.is_anomaly_enabled(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
    }
    if torch.backends.mkldnn.is_available():
        found["onednn"] = torch.backends.mkldnn.enabled
    threads = os.environ.get("OMP_NUM_THREADS", "")
    if threads.isdigit() and int(threads):
        found["omp_num_threads"] = int(threads)
    if torch.cuda.is_initialized():
        found["tf32_allowed"] = torch.get_float32_matmul_precision() != "highest"
        found["cudnn_benchmark"] = torch.backends.cudnn.benchmark
        found["_convolutions_tf32"] = torch.backends.cudnn.allow_tf32
        settings = os.environ.get("PYTORCH_ALLOC_CONF") or os.environ.get("PYTORCH_CUDA_ALLOC_CONF")
        found["allocator"] = (
            "expandable" if "expandable_segments:true" in (settings or "").lower() else "native"
        )
    found["compile"] = bool(compiled())
    return found | world_facts()


def world_facts() -> dict[str, Any]:
    """Return how many processes train together, while they are joined."""
    distributed = sys.modules.get("torch.distributed")
    if not (distributed and distributed.is_available() and distributed.is_initialized()):
        return {}
    return {"world_size": distributed.get_world_size(), "backend": distributed.get_backend()}


AT_WORK = 64 * 2**20
"""Bytes that a run once held on a GPU from which it computes there; assumed."""


def settled(setup: dict[str, Any]) -> dict[str, Any]:
    """Return the set-up with device and precision told from what the parameters were."""
    setup = dict(setup)
    kind, dtype = setup.pop("_device", None), setup.pop("_dtype", "")
    convolutions_tf32 = setup.pop("_convolutions_tf32", False)
    targets, scored = setup.pop("_targets", 0), setup.pop("_scored", 0)
    if scored < MOST_TARGETS * targets:  # what is ignored was left out before it got scores
        setup.pop("ignored_targets", None)
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    on_gpu = cuda and cuda.is_initialized() and cuda.max_memory_allocated() >= AT_WORK
    if kind == "cpu" and on_gpu:  # what the update moves is kept away from the GPU
        setup |= {"offloaded": ["optimizer"], "offloaded_to": "host"}
        kind = "cuda"
    if kind == "cuda":
        hip = getattr(getattr(sys.modules.get("torch"), "version", None), "hip", None)
        kind = "rocm" if hip else "cuda"
    if kind in ("cuda", "rocm", "xpu", "mps", "cpu"):
        setup["device"] = kind
    if setup.get("precision") is None:
        convolutions = setup.get("model_kind") == "convolution" and convolutions_tf32
        tf32 = (setup.get("tf32_allowed") or convolutions) and kind == "cuda"
        setup["precision"] = {
            "torch.float32": "tf32" if tf32 else "fp32",
            "torch.bfloat16": "bf16",
            "torch.float16": "fp16",
            "torch.float64": "fp64",
            "torch.complex64": "fp32",
            "torch.complex128": "fp64",
        }.get(dtype)
    if setup.get("world_size") == 1 or (kind == "cpu" and "world_size" not in setup):
        setup.setdefault("strategy", "single")
    return {key: value for key, value in setup.items() if value is not None}


def observed() -> dict[str, Any]:
    """Return counters of this moment."""
    torch = sys.modules.get("torch")
    found: dict[str, Any] = {"time": time.perf_counter(), "compiled": compiled()}
    if torch is not None and torch.cuda.is_initialized():
        found["memory"] = torch.cuda.memory_stats()
    found["around"] = surroundings.observed()
    return found


def allocator_facts(before: dict[str, int] | None, after: dict[str, int] | None) -> dict[str, int]:
    """Return what torch's allocator did between two moments, and bytes that it had at most."""
    if not before or not after:
        return {}
    rise = {key: after.get(key, 0) - before.get(key, 0) for key in after}
    freed_and_taken = rise.get("num_device_alloc", 0) + rise.get("num_device_free", 0)
    return {
        "alloc_retries": rise.get("num_alloc_retries", 0),
        "out_of_memory": rise.get("num_ooms", 0),
        "device_allocations": freed_and_taken,
        "allocated_bytes": after.get("allocated_bytes.all.peak", 0),
        "reserved_bytes": after.get("reserved_bytes.all.peak", 0),
        "inactive_split_bytes": after.get("inactive_split_bytes.all.peak", 0),
    }
