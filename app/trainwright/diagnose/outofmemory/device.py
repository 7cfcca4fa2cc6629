"""GPU memory that ran out: messages of torch, JAX, CuPy, NCCL and NVIDIA's libraries."""

import re
from dataclasses import replace
from math import prod

from trainwright.diagnose.outofmemory.account import (
    COUNT,
    SIZE,
    Account,
    Explanation,
    Kind,
    as_bytes,
    fix,
    found_bytes,
    unsized,
)
from trainwright.diagnose.verdict import Fix
from trainwright.messages import Message

OTHERS_SHARE = 0.1
"""Share of the memory from which other programs are worth a word; assumed."""

_ASKED = re.compile("[Tt]ried to allocate " + SIZE)
_ALREADY = re.compile(SIZE + " already allocated")
_ALLOCATED = re.compile(SIZE + " is allocated by PyTorch")
_UNALLOCATED = re.compile(SIZE + " is reserved by PyTorch but unallocated")
_RESERVED = re.compile(SIZE + " reserved in total by PyTorch")
_CACHED = re.compile(SIZE + " cached")
_CAPACITY_OF = re.compile("total capac?i?ty of " + SIZE)
_CAPACITY = re.compile(SIZE + " total capacity")
_OF_WHICH_FREE = re.compile("of which " + SIZE + " is free")
_FREE = re.compile("; " + SIZE + " free")
_IN_USE = re.compile("this process has " + SIZE + " memory in use")
_ALLOWED = re.compile(SIZE + " allowed")
_OTHERS = re.compile("Process [0-9]+ has " + SIZE + " memory in use")
EXPANDABLE_ON = re.compile(r"(?<!try setting )PYTORCH_(?:CUDA_|HIP_)?ALLOC_CONF[\"' =:]{1,4}"
                            r"[\"']?[^ \"']{0,200}expandable_segments:True")  # fmt: skip
"""As a shell or a script sets it, not as torch's own message proposes it."""
_MPS_ALLOCATED = re.compile("MPS allocated: " + SIZE)
_MPS_OTHER = re.compile("other allocations: " + SIZE)
_MPS_ALLOWED = re.compile("max allowed: " + SIZE)
_ASYNC_HELD = re.compile("Currently allocated ?: " + SIZE)
_ASYNC_ASKED = re.compile("Requested ?: " + SIZE)
_ASYNC_TOTAL = re.compile("Device limit ?: " + SIZE)
_ASYNC_FREE = re.compile(r"Free \(according to CUDA\) ?: " + SIZE)
_BUFFER = re.compile("Invalid buffer size: " + SIZE)
_OTHERS_ASKED = tuple(
    re.compile(words + size)
    for words, size in (
        ("[Tt]rying to allocate ", SIZE),  # XLA, TensorFlow
        ("Failed to allocate request for ", SIZE),  # XLA
        (r"failed to allocate [0-9.]{1,20}[KMGT]? \(", SIZE),  # TensorFlow
        ("Out of memory allocating ", SIZE),  # XLA, CuPy
        ("Cannot allocate ", SIZE),  # Paddle
        (r"Requested amount of GPU memory \(", SIZE),  # TensorRT
        ("requested buffer of size ", COUNT),  # ONNX Runtime
    )
)
_OTHERS_HELD = re.compile("allocated so far: " + SIZE)
_TENSOR = re.compile(
    r"tensor with shape\[([0-9]{1,20}(?:,[0-9]{1,20}){0,20})\] and type (\w{1,20})"
)
_ELEMENT = {"bool": 1, "int8": 1, "half": 2, "bfloat16": 2, "int32": 4, "float": 4, "int64": 8,
            "double": 8}  # fmt: skip
"""Bytes of TensorFlow's types, as its messages name them."""
_KERNEL = re.compile("out of resource: shared memory, Required: ([0-9]{1,12}), "
                     "Hardware limit: ([0-9]{1,12})")  # fmt: skip


def torch_allocator(text: str) -> Explanation:
    """Explain a message of torch's allocator for CUDA, ROCm or XPU."""
    account = _account(text)
    if account.asked is None:
        return Explanation("driver", Message.of("diagnose.oom.driver"), account)
    quoted = text[max(0, text.find("out of memory") - 60) :][:600]
    return judged(account, quoted, expandable=EXPANDABLE_ON.search(text) is not None)


def _account(text: str) -> Account:
    allocated = _first(found_bytes(_ALREADY, text), found_bytes(_ALLOCATED, text))
    unused, reserved = found_bytes(_UNALLOCATED, text), found_bytes(_RESERVED, text)
    if unused is None and reserved is not None and allocated is not None:
        unused = max(0, reserved - allocated)
    named = [as_bytes(*each) for each in _OTHERS.findall(text)]
    account = Account(
        asked=found_bytes(_ASKED, text),
        total=found_bytes(_CAPACITY_OF, text) or found_bytes(_CAPACITY, text),
        free=_first(found_bytes(_OF_WHICH_FREE, text), found_bytes(_FREE, text)),
        process=found_bytes(_IN_USE, text),
        others=sum(named) if named else None,
        allocated=allocated,
        # torch before 1.4 says what it caches beside what is allocated
        unused=_first(unused, found_bytes(_CACHED, text)),
        allowed=found_bytes(_ALLOWED, text),
    )
    return _own_process(_others_worked_out(account), named)


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)


def _others_worked_out(account: Account) -> Account:
    """Return the account with the others' memory worked out where the message leaves it out.

    Without the memory of this process, only a share that no context explains is another's.
    """
    total, free, process = account.total, account.free, account.process
    if account.others is not None or total is None or free is None:
        return account
    if process is not None:
        return replace(account, others=max(0, total - free - process))
    if account.allocated is None or account.unused is None:
        return account
    rest = total - free - account.allocated - account.unused
    return replace(account, others=rest) if rest >= OTHERS_SHARE * total else account


def _own_process(account: Account, named: list[int]) -> Account:
    """Return the account with a named process that can only be this one moved to its place.

    In a container the driver numbers processes as the host does, so torch does not know its own.
    """
    total, free = account.total, account.free
    if account.process is not None or total is None or free is None:
        return account
    own = (account.allocated or 0) + (account.unused or 0)
    mine = min((size for size in named if size >= own), default=None)
    if mine is None or sum(named) + own <= total - free:
        return account
    return replace(account, process=mine, others=sum(named) - mine if len(named) > 1 else None)


def _missing(account: Account) -> int | None:
    """Return the bytes that were lacking; None where the message leaves too much out.

    With a limit, what the process has reserved counts against it. Where nobody says what is
    free, it is at most what torch has not reserved.
    """
    asked, own = account.asked or 0, (account.allocated or 0) + (account.unused or 0)
    if account.allowed is not None and account.allocated is not None:
        return max(0, asked + own - account.allowed)
    if account.free is not None:
        return max(0, asked - account.free)
    if account.total is not None and account.allocated is not None:
        return max(0, asked + own - account.total)
    return None


def judged(account: Account, quoted: str, *, expandable: bool) -> Explanation:
    """Return what the bytes of an account mean, for torch's allocator."""
    asked, free, unused = account.asked or 0, account.free or 0, account.unused or 0
    total, others, allocated = account.total, account.others or 0, account.allocated or 0
    missing = _missing(account)

    def told(kind: Kind, *fixes: Fix, id: str = "") -> Explanation:
        known = {"asked": asked, "free": free, "unused": unused, "total": total or 0}
        known |= {"others": others, "missing": missing or 0, "allocated": allocated}
        known |= {"allowed": account.allowed or 0}
        message = Message.of(f"diagnose.oom.{id or kind}", **known)
        return Explanation(kind, message, account, fixes, missing, quoted)

    if account.allowed is not None and missing:
        return told("limit", fix("raise-limit"), id="allowed")
    if total is not None and asked > total:
        return told("too-big", id="more-than-all")
    if total is not None and allocated + unused > total:
        return told("spilled")
    if account.free is not None and free >= asked:
        return told("limit", fix("memory-limit"))
    if total and others >= OTHERS_SHARE * total and others + free + unused >= asked:
        return told("other-programs", fix("other-programs-gpu"))
    if unused + free >= asked and unused >= asked / 2:
        if expandable:
            return told("fragmentation", id="fragmentation-still")
        return told("fragmentation", fix("expandable", {"settings.allocator": "expandable"}))
    if None in (account.allocated, account.free, total):
        return told("too-big", id="too-big-untold")
    return told("too-big")


def metal(text: str) -> Explanation:
    """Explain a message of torch's allocator for Apple's GPUs."""
    allocated = found_bytes(_MPS_ALLOCATED, text)
    besides = found_bytes(_MPS_OTHER, text)  # by Metal, of this process too
    taken = (allocated or 0) + (besides or 0)
    account = Account(
        asked=found_bytes(_ASKED, text),
        process=taken or None,
        allocated=allocated,
        allowed=found_bytes(_MPS_ALLOWED, text),
    )
    missing = max(0, (account.asked or 0) + taken - (account.allowed or 0))
    values = {"asked": account.asked or 0, "taken": taken, "allowed": account.allowed or 0}
    says = Message.of("diagnose.oom.mps", missing=missing, **values)
    return Explanation("too-big", says, account, (), missing, text[:600])


def malloc_async(text: str) -> Explanation:
    """Explain a message of torch's other allocator, ``backend:cudaMallocAsync``."""
    account = Account(
        asked=found_bytes(_ASYNC_ASKED, text),
        total=found_bytes(_ASYNC_TOTAL, text),
        free=found_bytes(_ASYNC_FREE, text),
        allocated=found_bytes(_ASYNC_HELD, text),
    )
    if account.asked is None:
        return Explanation("driver", Message.of("diagnose.oom.driver"), account)
    return judged(account, text[:600], expandable=False)


def metal_buffer(text: str) -> Explanation:
    """Explain a tensor that is larger than Metal allows for one buffer, whatever is free."""
    asked = found_bytes(_BUFFER, text)
    says = Message.of("diagnose.oom.buffer-limit", asked=asked or 0)
    return Explanation("too-big", says, Account(asked=asked), quoted=text[:600])


def other_framework(text: str) -> Explanation:
    """Explain a message of JAX, CuPy, TensorFlow, TensorRT, ONNX Runtime or Paddle."""
    sizes = (found_bytes(pattern, text) for pattern in _OTHERS_ASKED)
    asked = _first(_tensor_bytes(text), *sizes)
    account = Account(asked=asked, process=found_bytes(_OTHERS_HELD, text))
    if asked is None:
        return Explanation("driver", Message.of("diagnose.oom.driver"), account)
    says = Message.of("diagnose.oom.too-big-untold", asked=asked)
    return Explanation("too-big", says, account, quoted=text[:600])


def _tensor_bytes(text: str) -> int | None:
    """Return the bytes of the tensor that TensorFlow names by its shape and type."""
    found = _TENSOR.findall(text)
    shape, kind = found[-1] if found else ("", "")
    if kind not in _ELEMENT:
        return None
    return as_bytes(str(prod(map(int, shape.split(","))) * _ELEMENT[kind]))


def kernel(text: str) -> Explanation:
    """Explain a Triton kernel that wants more of a processor's own memory than the GPU gives it."""
    found = _KERNEL.search(text)
    required, limit = (int(each) for each in found.groups()) if found else (0, 0)
    says = Message.of("diagnose.oom.kernel-limit", required=required, limit=limit)
    return Explanation("kernel", says, Account(), quoted=text[:600])


FORMS = tuple(
    (re.compile(words), form)
    for words, form in (
        (r"MPS backend out of memory", metal),
        (r"Invalid buffer size: [0-9.]+ [KMG]i?B", metal_buffer),
        (r"(CUDA|HIP|XPU) out of memory|Tried to allocate [0-9.]+ [KMG]iB \(GPU", torch_allocator),
        (r"Allocation on device [0-9]* ?would exceed allowed memory"
         r"|OutOfMemoryError: Allocation on device", malloc_async),
        (r"RESOURCE_EXHAUSTED: (Out of memory|Failed to allocate request)"
         r"|Out of memory allocating [0-9]"
         r"|OOM when allocating tensor(?!(?:(?!device:).){0,300}device:CPU)"
         r"|ran out of memory trying to allocate|failed to allocate [0-9.]+[KMGT]? \([0-9]+ bytes"
         r"|Out of memory error on GPU|Requested amount of GPU memory \("
         r"|BFCArena::AllocateRawInternal", other_framework),
        (r"Cuda failure (2 )?'out of memory'", unsized("driver", "nccl")),
        (r"Error out of memory at line [0-9]+ in file", unsized("driver", "bitsandbytes")),
        (r"modules are dispatched on the CPU or the disk", unsized("too-big", "dispatched")),
        (r"(CUDA|HIP) error: out of memory|cudaErrorMemoryAlloc|CUDA_ERROR_OUT_OF_MEMORY"
         r"|CUDA runtime error in .{1,200}?: out of memory"
         r"|CUDA failure 2: out of memory|Cuda Runtime \(out of memory\)"
         r"|kIOGPUCommandBufferCallbackErrorOutOfMemory", torch_allocator),
        (r"C(UBLAS|UDNN|USOLVER)_STATUS_ALLOC_FAILED|CUBLAS_STATUS_NOT_INITIALIZED",
         unsized("driver", "library")),
        (r"No executable batch size found, reached zero", unsized("too-big", "no-batch")),
        (r"out of resource: shared memory, Required: [0-9]+, Hardware limit", kernel),
    )
)  # fmt: skip
"""What is looked for, the most telling first."""
