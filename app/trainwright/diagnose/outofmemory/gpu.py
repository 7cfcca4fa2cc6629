"""GPU memory that ran out: torch, JAX, TensorFlow, CuPy and others, NCCL and NVIDIA's libraries."""

import re

from trainwright.diagnose.outofmemory.account import COUNT, SIZE, Account, Explanation
from trainwright.diagnose.outofmemory.forms import BEHIND, form, quoted
from trainwright.diagnose.outofmemory.torch_messages import allocator, malloc_async, metal, shape
from trainwright.messages import Message

_KERNEL = re.compile("Required: ([0-9]{1,12}), Hardware limit: ([0-9]{1,12})")


def _kernel(text: str, at: int) -> Explanation:
    """Explain a Triton kernel that wants more of a processor's own memory than the GPU gives it."""
    found = _KERNEL.search(text, at, at + BEHIND)
    required, limit = (int(each) for each in found.groups()) if found else (0, 0)
    says = Message.of("diagnose.oom.kernel-limit", required=required, limit=limit)
    return Explanation("kernel", says, Account(), quoted=quoted(text, at))


FORMS = (
    form(re.compile(r"MPS backend out of memory"), "too-big", "mps", own=metal),
    form(
        re.compile(r"Invalid buffer size: [0-9.]+ [KMG]i?B"),
        "too-big",
        "buffer-limit",
        asked=re.compile("Invalid buffer size: " + SIZE),
    ),
    form(
        re.compile(
            r"\b[A-Z]{2,12}[0-9]? out of memory\. Tried to allocate"
            r"|Tried to allocate [0-9.]+ [KMG]iB"
            r" \([A-Z]{3}"
        ),
        "too-big",
        "too-big",
        own=allocator,
    ),
    form(
        re.compile(
            r"Allocation on device [0-9]* ?would exceed allowed memory"
            r"|OutOfMemoryError: Allocation on device"
        ),
        "too-big",
        "too-big",
        own=malloc_async,
    ),
    form(
        re.compile(
            r"Ran out of memory in memory space hbm|Attempting to (?:allocate|reserve) [0-9.]+[KMG]"
        ),
        "too-big",
        "driver",
        "less-on-jax",
        asked=re.compile(rf"Used {SIZE} of|Attempting to (?:allocate|reserve) {SIZE}"),
        free=re.compile(rf"of {SIZE} hbm|There are {SIZE} free"),
    ),
    form(
        re.compile(
            r"Requested size was [0-9]+ bytes|Requested amount of GPU memory \("
            r"|Error Code 2: OutOfMemory"
        ),
        "too-big",
        "driver",
        "look-who",
        asked=re.compile(rf"Requested size was {SIZE}|Requested amount of GPU memory \({SIZE}"),
    ),
    form(
        re.compile(r"RESOURCE_EXHAUSTED: (?:Out of memory|Failed to allocate request)"),
        "too-big",
        "driver",
        "less-on-jax",
        asked=re.compile(
            rf"[Tt]rying to allocate {SIZE}|Out of memory allocating {SIZE}"
            rf"|Failed to allocate request for {SIZE}"
        ),
    ),
    form(
        re.compile(r"OOM when allocating tensor(?!(?:(?!device:).){0,300}device:CPU)"),
        "too-big",
        "driver",
        own=shape,
    ),
    form(
        re.compile(
            r"Out of memory allocating [0-9]|ran out of memory trying to allocate"
            r"|failed to allocate [0-9.]+[KMGT]? \([0-9]+ bytes|Out of memory error on GPU"
            r"|BFCArena::AllocateRawInternal|Could not allocate tensor with [0-9]+ bytes"
        ),
        "too-big",
        "driver",
        "lower-peak",
        asked=re.compile(
            rf"Out of memory allocating {SIZE}|[Tt]rying to allocate {SIZE}"
            rf"|failed to allocate [0-9.]{{1,20}}[KMGT]? \({SIZE}|Cannot allocate {SIZE}"
            rf"|requested buffer of size {COUNT}|Could not allocate tensor with {SIZE}"
        ),
        process=re.compile(f"allocated so far: {SIZE}"),
    ),
    form(re.compile(r"Cuda failure (?:2 )?'out of memory'"), "driver", "nccl", "look-who"),
    form(
        re.compile(r"Error out of memory at line [0-9]+ in file"),
        "driver",
        "bitsandbytes",
        "lower-peak",
    ),
    form(
        re.compile(r"modules are dispatched on the CPU or the disk"),
        "too-big",
        "dispatched",
        "smaller-model",
    ),
    form(
        re.compile(
            r"(?:CUDA|HIP) error: out of memory|cudaErrorMemoryAlloc|CUDA_ERROR_OUT_OF_MEMORY"
            r"|CUDA runtime error in .{1,200}?: out of memory|cuda runtime error \(2\)"
            r"|CUDA failure 2: out of memory|Cuda Runtime \(out of memory\)|CL_OUT_OF_RESOURCES"
            r"|CL_MEM_OBJECT_ALLOCATION_FAILURE|kIOGPUCommandBufferCallbackErrorOutOfMemory"
            r"|(?:UR_RESULT|PI|ZE_RESULT)_ERROR_OUT_OF_(?:DEVICE_MEMORY|RESOURCES|HOST_MEMORY)"
            r"|Error ?OutOfDeviceMemory|ERROR_OUT_OF_DEVICE_MEMORY"
            r"|(?<!ray\.exceptions\.)(?<!java\.lang\.)\bOutOfMemoryError\b(?!: Task)"
            r"|\b(?:CUDA|HIP|XPU|NPU) out of memory\b"
        ),
        "driver",
        "driver",
        own=allocator,
    ),
    form(
        re.compile(
            r"C(?:UBLAS|UDNN|USOLVER|USPARSE|UFFT)_(?:STATUS_)?"
            r"(?:ALLOC_FAILED|INSUFFICIENT_RESOURCES)"
            r"|(?:cuDNN|cuFFT) error: CUFFT_ALLOC_FAILED"
        ),
        "driver",
        "library",
        "library-room",
    ),
    form(
        re.compile(
            r"CUBLAS_STATUS_NOT_INITIALIZED|Could not create cudnn handle"
            r"|DNN library initialization failed|cuDNN failed to initialize"
            r"|unable to find an engine to execute this computation"
            r"|Unable to find a valid cuDNN algorithm"
        ),
        "driver",
        "library-likely",
        "library-room",
    ),
    form(
        re.compile(r"No executable batch size found, reached zero"),
        "too-big",
        "no-batch",
        "lower-peak",
    ),
    form(
        re.compile(r"out of resource: shared memory, Required: [0-9]+, Hardware limit"),
        "kernel",
        "kernel-limit",
        own=_kernel,
    ),
)
"""What is looked for, the most telling first."""
