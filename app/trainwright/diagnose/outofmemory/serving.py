"""Serving engines that find no room: for the weights, or for the cache of keys and values."""

import re

from trainwright.diagnose.outofmemory.account import (
    SIZE,
    Account,
    Explanation,
    fix,
    found_bytes,
    unsized,
)
from trainwright.messages import Message

_NEEDED = re.compile(SIZE + " KV cache is needed")
_AVAILABLE = re.compile(r"available KV cache memory \(" + SIZE + r"\)")
_AT_START = re.compile(r"Free memory on device[^(]{0,40}\(([0-9.]+)/([0-9.]+) GiB\)")
_DESIRED = re.compile(r"utilization \([0-9.]+, ([0-9.]+) GiB\)")
_BUFFER = re.compile(r"buffer of size ([0-9]+)|Device memory allocation of size ([0-9]+)")
_ALLOCATING = re.compile(r"allocating " + SIZE + " on device")
_GIB = 1 << 30


def cache(text: str) -> Explanation:
    """Explain keys and values that find no room beside the weights."""
    account = Account(asked=found_bytes(_NEEDED, text), free=found_bytes(_AVAILABLE, text))
    if account.asked is None or account.free is None:
        says = Message.of("diagnose.oom.cache")
        return Explanation("cache", says, account, (fix("engine-share"),), quoted=text[:600])
    missing = max(0, account.asked - account.free)
    values = {"asked": account.asked, "free": account.free, "missing": missing}
    says = Message.of("diagnose.oom.cache-sized", **values)
    return Explanation("cache", says, account, (fix("engine-share"),), missing, text[:600])


def at_start(text: str) -> Explanation:
    """Explain an engine that others left less memory than it was to take."""
    there, wanted = _AT_START.search(text), _DESIRED.search(text)
    if there is None or wanted is None:
        return cache(text)
    free, total, asked = (int(float(number) * _GIB) for number in (there[1], there[2], wanted[1]))
    missing = max(0, asked - free)
    account = Account(asked=asked, free=free, total=total, others=total - free)
    says = Message.of("diagnose.oom.other-programs", others=total - free, total=total, asked=asked)
    fixes = (fix("other-programs-gpu"), fix("engine-less"))
    return Explanation("other-programs", says, account, fixes, missing, text[:600])


def llama_cpp(text: str) -> Explanation:
    """Explain a buffer that llama.cpp did not get; it tells the bytes and a rounded size."""
    exact = _BUFFER.findall(text)
    asked = int("".join(exact[-1])) if exact else found_bytes(_ALLOCATING, text)
    says = Message.of("diagnose.oom.too-big-untold", asked=asked or 0)
    if asked is None:
        says = Message.of("diagnose.oom.engine-full")
    return Explanation("too-big", says, Account(asked=asked), (), quoted=text[:600])


FORMS = tuple(
    (re.compile(words), form)
    for words, form in (
        (r"Free memory on device[^(]{0,40}\([0-9.]+/[0-9.]+ GiB\)", at_start),
        (r"KV cache is needed|No available memory for the cache blocks"
         r"|larger than the (maximum number of tokens that can be stored in|available) KV cache"
         r"|Not enough memory\. Please try to increase --mem-fraction-static"
         r"|(Prefill|Decode) out of memory\. Try to lower|not enough KV cache space", cache),
        (r"out of memory occurred when warming up",
         unsized("cache", "warm-up", "fewer-requests")),
        (r"ggml_backend_[a-z_]{1,60}alloc_buffer: allocating|cudaMalloc failed: out of memory"
         r"|(failed|unable) to allocate (?!CPU)[A-Za-z]+[0-9]* buffer"
         r"|ggml_vulkan: Device memory allocation of size [0-9]+ failed", llama_cpp),
    )
)  # fmt: skip
"""What is looked for, the most telling first."""
