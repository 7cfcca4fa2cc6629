"""Memory that CUDA libraries take beside the tensors that a trace sees, by rule.

Inside the caching allocator: cuBLAS workspaces, temporaries of attention kernels, cuDNN
workspaces. Outside it: the CUDA context and NCCL. Not modelled, because small against what is
live at the same time: scratch of sorts, reductions and embedding gradients, the reserve of
cuDNN's batch normalisation, and random-number states.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

from trainwright.catalog import GpuRecord
from trainwright.estimate.calibration import Range, memory_calibration
from trainwright.explain import Quantity
from trainwright.profile.memo import KEPT
from trainwright.profile.profile import Profile, evaluate

FLASH_SOURCE = "torch: aten/src/ATen/native/transformers/cuda/flash_attn/flash_api.cpp, mha_bwd"
EFFICIENT_SOURCE = (
    "torch: aten/src/ATen/native/transformers/cuda/mem_eff_attention/kernel_backward.h,"
    " workspace_size"
)
CUBLAS_SOURCE = "torch: aten/src/ATen/cuda/CublasHandlePool.cpp; pytorch#95668"
PRODUCT_SOURCE = "torch: aten/src/ATen/native/cuda/SoftMax.cu, softmax_backward_cuda_out"
SOFTMAX_SOURCE = "torch: aten/src/ATen/native/SoftMax.cpp, _safe_softmax"
DDP_SOURCE = "torch: torch/csrc/distributed/c10d/reducer.hpp, bucket_cap_mb=25"

WORKSPACES = ("cublas-forward", "cublas-backward")
"""Rules of the cuBLAS workspaces, one for each host thread that multiplies: ours and autograd's."""
USUAL_WORKSPACE = 32 << 20
"""Bytes of one on compute capability 9, 10 and 12."""

BUCKET = 25 << 20
"""``bucket_cap_mb`` of DistributedDataParallel."""


@dataclass(frozen=True, slots=True)
class Device:
    """What of a GPU the rules ask for."""

    vendor: str
    major: int
    """Compute capability; 8 where it is unknown."""
    workspace: int | None = None
    """Bytes of one cuBLAS workspace, where they were measured."""
    workspace_source: str = CUBLAS_SOURCE

    @classmethod
    def of(cls, record: GpuRecord, workspace: Quantity | None = None) -> "Device":
        """Return the traits of a catalog record, and what was measured of the device."""
        capability = record.compute_capability
        device = cls(record.vendor, capability[0] if capability else 8)
        if workspace is None:
            return device
        return replace(device, workspace=int(workspace.value), workspace_source=workspace.source)


def alike(device: Device) -> Device:
    """Return the device by which all are known whose workspaces are as large."""
    if device.vendor == "NVIDIA":
        return replace(device, major=9 if device.major >= 9 else 8)
    return replace(device, major=0)


def cublas_workspace(device: Device) -> int:
    """Return bytes of one cuBLAS workspace; there is one for each host thread that multiplies.

    32 MiB on compute capability 9, 10 and 12; otherwise 2 x 4096 KiB + 8 x 16 KiB, as
    ``getChosenWorkspaceSize`` decides; cuBLASLt shares it since torch 2.7. On AMD 76 MiB, for
    hipBLASLt. Apple and Intel have none. A measured one goes before all rules.
    """
    if device.workspace is not None:
        return device.workspace
    if device.vendor == "AMD":
        return 76 << 20
    if device.vendor != "NVIDIA":
        return 0
    return USUAL_WORKSPACE if device.major >= 9 else 8_519_680


def context(record: GpuRecord) -> Range:
    """Return bytes of the context and loaded kernels, outside the allocator.

    CUDA keeps local memory for every thread that the GPU can hold at once, which makes most of
    it: a T4 takes 140 MiB, an RTX 4090 470, an H100 700. Kernels come to it as they are first
    called, since CUDA 11.7; before, all were loaded at once, and a V100 took 1343 MiB.
    (Fitted on ``tests/accuracy/rows/context.csv``; transformers' documentation for the V100.)
    """
    known = memory_calibration()
    if record.vendor != "NVIDIA" or record.sm_count is None or record.compute_capability is None:
        return known.context_elsewhere
    threads = record.sm_count.value * _threads(record.compute_capability)
    middle = known.context.base + threads * known.context.per_thread
    return Range(middle * known.context.least, middle, middle * known.context.most)


def _threads(capability: tuple[int, int]) -> int:
    """Return how many threads a multiprocessor holds.

    (CUDA C++ Programming Guide, technical specifications per compute capability.)
    """
    if capability == (7, 5):
        return 1024
    return 1536 if capability in ((8, 6), (8, 7), (8, 9)) or capability[0] >= 11 else 2048


@dataclass(frozen=True, slots=True)
class Call:
    """One operator call at a point."""

    dims: tuple[int, ...]
    bytes_read: int
    bytes_written: int
    itemsize: int
    convolution_share: float
    of_half: bool = False
    """Whether an operand of this shape was cast from fp16."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Memory that a kernel takes for as long as it runs."""

    name: str
    op: str
    """Beginning of the op's name."""
    size: Callable[[Call], int]
    source: str


def _up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def _flash_delta(call: Call) -> int:
    batch, heads, queries, *_ = call.dims
    return 4 * batch * heads * _up(queries, 128)


def _flash_dq(call: Call) -> int:
    batch, heads, queries, _, head_dim, *_ = call.dims
    padded = _up(head_dim, 32 if head_dim <= 128 else 64)
    return 4 * batch * _up(queries, 128) * heads * padded


def _flash_expanded(call: Call) -> int:
    """Gradient of keys or values with a head for each query head, before groups are summed."""
    batch, heads, _, keys, head_dim, kv_heads, *_ = call.dims
    return call.itemsize * batch * keys * heads * head_dim if kv_heads != heads else 0


def _efficient_delta(call: Call) -> int:
    batch, heads, queries, *_ = call.dims
    return 4 * batch * heads * _up(queries, 32)


def _efficient_workspace(call: Call) -> int:
    batch, heads, queries, keys, head_dim, *_ = call.dims
    rows = _up(queries, 64)
    # dK and dV fit into registers up to head size 128, and need no cast in fp32.
    if head_dim > 128 and call.itemsize < 4:
        rows += 2 * _up(keys, 64)
    return 4 * batch * heads * rows * _up(head_dim, 64)


def _softmax_mask(call: Call) -> int:
    return call.bytes_written // call.itemsize


def _softmax_product(call: Call) -> int:
    """The gradient times the result, which the kernel of softmax's backward is given.

    From fp16 the kernel writes fp16, where the trace has fp32 and a cast after it: what it then
    writes less is as much as half of the product.
    """
    return call.bytes_written // 2 if call.of_half else call.bytes_written


def _convolution(call: Call) -> int:
    return int(_one_convolution(call) * (call.bytes_read + call.bytes_written))


def _convolution_backward(call: Call) -> int:
    # The gradients of input and weight come one after the other; each sees two of the three.
    return int(_one_convolution(call) * (call.bytes_read + call.bytes_written) * 2 / 3)


def _one_convolution(call: Call) -> float:
    _, channels, _, groups, *_ = call.dims
    # torch has depthwise kernels of its own, which need no workspace.
    return 0.0 if groups > 1 and groups == channels else call.convolution_share


RULES = (
    Rule(
        "flash-delta",
        "aten._scaled_dot_product_flash_attention_backward",
        _flash_delta,
        FLASH_SOURCE,
    ),
    Rule("flash-dq", "aten._scaled_dot_product_flash_attention_backward", _flash_dq, FLASH_SOURCE),
    Rule(
        "flash-dk",
        "aten._scaled_dot_product_flash_attention_backward",
        _flash_expanded,
        FLASH_SOURCE,
    ),
    Rule(
        "flash-dv",
        "aten._scaled_dot_product_flash_attention_backward",
        _flash_expanded,
        FLASH_SOURCE,
    ),
    Rule(
        "efficient-delta",
        "aten._scaled_dot_product_efficient_attention_backward",
        _efficient_delta,
        EFFICIENT_SOURCE,
    ),
    Rule(
        "efficient-workspace",
        "aten._scaled_dot_product_efficient_attention_backward",
        _efficient_workspace,
        EFFICIENT_SOURCE,
    ),
    Rule("softmax-mask", "aten._safe_softmax", _softmax_mask, SOFTMAX_SOURCE),
    Rule("softmax-product", "aten._softmax_backward_data", _softmax_product, PRODUCT_SOURCE),
    Rule("softmax-copy", "aten._safe_softmax", lambda call: call.bytes_written, SOFTMAX_SOURCE),
    Rule("convolution", "aten.convolution.", _convolution, memory_calibration().source),
    Rule(
        "convolution",
        "aten.convolution_backward",
        _convolution_backward,
        memory_calibration().source,
    ),
)

GEMMS = (
    "aten.mm.",
    "aten.addmm",
    "aten.bmm",
    "aten.baddbmm",
    "aten.addbmm",
    "aten.mv.",
    "aten.linear",
    "aten.matmul",
    "aten._scaled_mm",
    "aten._grouped_mm",
)
"""Beginnings of the names of ops that call cuBLAS."""

ITEMSIZE = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2, "int64": 8, "int32": 4}


@dataclass(frozen=True, slots=True)
class Hidden:
    """A storage that no trace shows: a rule for one op row, or constant bytes."""

    rule: str
    source: str
    row: int = -1
    """Row of ``Profile.ops``; -1 where ``nbytes`` says it all."""
    size: Callable[[Call], int] | None = None
    nbytes: int = 0
    formula: str = ""
    """How the bytes came about, where no op says it."""


def hidden_of(profile: Profile, row: int) -> tuple[Hidden, ...]:
    """Return what a call of an op row takes while it runs."""
    name = profile.ops.name[row]
    return tuple(
        Hidden(rule.name, rule.source, row, rule.size) for rule in RULES if name.startswith(rule.op)
    )


@lru_cache(maxsize=KEPT)
def _halves(profile: Profile) -> frozenset[bytes]:
    """Return the shapes of what was cast from fp16."""
    ops = profile.ops
    return frozenset(
        ops.dims[row].tobytes()
        for row, name in enumerate(ops.name)
        if name.startswith("aten._to_copy") and ops.dtype[row] == "float16"
    )


def hidden_bytes(
    hidden: Hidden, profile: Profile, batch: int, sequence: int, *, channels_last: bool
) -> int:
    """Return the bytes of a hidden storage at a point."""
    if hidden.size is None:
        return hidden.nbytes
    ops, row = profile.ops, hidden.row
    shares = memory_calibration().convolution_workspace
    call = Call(
        dims=tuple(evaluate(ops.dims[row], batch, sequence).tolist()),
        bytes_read=int(evaluate(ops.bytes_read[row : row + 1], batch, sequence)[0]),
        bytes_written=int(evaluate(ops.bytes_written[row : row + 1], batch, sequence)[0]),
        itemsize=ITEMSIZE.get(ops.dtype[row], 4),
        convolution_share=shares["channels_last" if channels_last else "channels_first"],
        of_half=ops.dims[row].tobytes() in _halves(profile),
    )
    return hidden.size(call)
