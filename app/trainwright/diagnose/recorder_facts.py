"""How a training is set up, as far as its loaders, optimizers and torch itself tell."""

import os
import sys
from typing import Any


def loader_facts(loader: Any) -> dict[str, Any]:
    """Return what a DataLoader, or its iterator, says of itself."""
    names = {
        "num_workers": ("num_workers", "_num_workers"),
        "prefetch_factor": ("prefetch_factor", "_prefetch_factor"),
        "pin_memory": ("pin_memory", "_pin_memory"),
        "persistent_workers": ("persistent_workers", "_persistent_workers"),
    }
    found: dict[str, Any] = {}
    for key, choices in names.items():
        for name in choices:
            value = getattr(loader, name, None)
            if isinstance(value, (bool, int)):
                found[key] = value
                break
    sampler = getattr(loader, "_index_sampler", None)
    batch = getattr(loader, "batch_size", None) or getattr(sampler, "batch_size", None)
    if isinstance(batch, int) and batch > 0:
        found["batch"] = batch
    if not found.get("num_workers", 1):
        found.pop("persistent_workers", None)
        found.pop("prefetch_factor", None)
    return found


SEQUENCE = 16
"""Positions from which rows are sequences, and what ends them alike may be padding; assumed."""


def batch_facts(batch: Any) -> dict[str, Any]:
    """Return the share of a batch's positions that only fill rows up to the longest one's length.

    Of whole numbers, the value that most rows end with; of features, positions of zeros alone.
    """
    shares = [share for each in _tensors(batch) if (share := _padding(each)) is not None]
    return {"sequence_padding": max(shares)} if shares else {}


def _tensors(batch: Any, depth: int = 0) -> list[Any]:
    """Return the tensors of a batch, which may be in lists and mappings."""
    if hasattr(batch, "cumprod") and hasattr(batch, "is_floating_point"):
        return [batch]
    inside = batch.values() if hasattr(batch, "values") else batch
    if depth > 3 or not (hasattr(batch, "values") or isinstance(batch, (list, tuple))):
        return []
    return [each for one in list(inside)[:16] for each in _tensors(one, depth + 1)]


def _padding(values: Any) -> float | None:
    whole = not values.is_floating_point() and not values.is_complex()
    sequences = values.dim() == (2 if whole else 3) and min(values.shape, default=0) > 1
    if not sequences or values.shape[1] < SEQUENCE or values.device.type != "cpu":
        return None
    if whole:
        last = values[:, -1]
        filling = values == last.mode().values
    else:
        filling = (values == 0).all(-1)
    trailing = filling.flip(1).int().cumprod(1)
    return float(trailing.sum()) / int(filling.numel())


def optimizer_facts(optimizer: Any) -> dict[str, Any]:
    """Return what the parameters that an optimizer moves say of the model."""
    parameters = [each for group in optimizer.param_groups for each in group["params"]]
    if not parameters:
        return {}
    sizes = {size for each in parameters if each.dim() >= 2 for size in each.shape[:2]}
    kernels = [each for each in parameters if each.dim() == 4 and max(each.shape[2:]) > 1]
    found: dict[str, Any] = {
        "parameters": sum(each.numel() for each in parameters),
        "optimizer": type(optimizer).__name__.lower(),
        "dims": sorted(sizes)[-32:],
        "_dtype": str(parameters[0].dtype),
        "_device": parameters[0].device.type,
    }
    group = optimizer.param_groups[0]
    if group.get("foreach") is False and not group.get("fused"):
        found["optimizer_foreach"] = False
    if kernels:
        found["model_kind"] = "convolution"
        last = sys.modules["torch"].channels_last
        found["channels_last"] = all(each.is_contiguous(memory_format=last) for each in kernels)
    return found


def profiling() -> bool:
    """Whether a profiler, or a trace of the script's lines, runs now; afterwards nobody tells."""
    torch = sys.modules.get("torch")
    traced = sys.gettrace() is not None or sys.getprofile() is not None
    return traced or (torch is not None and bool(torch.autograd._profiler_enabled()))


def compiled() -> int:
    """Return how many functions torch.compile has compiled until now, some of them anew."""
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
    threads = os.environ.get("OMP_NUM_THREADS", "")
    if threads.isdigit() and int(threads):
        found["omp_num_threads"] = int(threads)
    if torch.cuda.is_initialized():
        found["tf32_allowed"] = torch.get_float32_matmul_precision() != "highest"
        found["cudnn_benchmark"] = torch.backends.cudnn.benchmark
        settings = os.environ.get("PYTORCH_ALLOC_CONF") or os.environ.get("PYTORCH_CUDA_ALLOC_CONF")
        found["allocator"] = (
            "expandable" if "expandable_segments:true" in (settings or "").lower() else "native"
        )
    found["compile"] = bool(compiled())
    distributed = sys.modules.get("torch.distributed")
    if distributed and distributed.is_available() and distributed.is_initialized():
        found["world_size"] = distributed.get_world_size()
        found["backend"] = distributed.get_backend()
    return found


def settled(setup: dict[str, Any]) -> dict[str, Any]:
    """Return the set-up with device and precision told from what the parameters were."""
    setup = dict(setup)
    kind, dtype = setup.pop("_device", None), setup.pop("_dtype", "")
    if kind == "cuda":
        hip = getattr(getattr(sys.modules.get("torch"), "version", None), "hip", None)
        kind = "rocm" if hip else "cuda"
    if kind in ("cuda", "rocm", "xpu", "mps", "cpu"):
        setup["device"] = kind
    if setup.get("precision") is None:
        tf32 = setup.get("tf32_allowed") and kind == "cuda"
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
