"""Serving engines that find no room: for the weights, or for the cache of keys and values."""

import re

from trainwright.diagnose.outofmemory.account import (
    COUNT,
    SIZE,
    Account,
    Explanation,
    fix,
    found_bytes,
)
from trainwright.diagnose.outofmemory.forms import BEHIND, form, quoted
from trainwright.messages import Message

_AT_START = re.compile(r"Free memory on device[^(]{0,40}\(([0-9.]+)/([0-9.]+) GiB\)")
_DESIRED = re.compile(f"utilization \\([0-9.]+, {SIZE}\\)")
_GIB = 1 << 30
_NEEDED = re.compile(f"\\({SIZE} ?KV ?cach ?e is needed")
_AVAILABLE = re.compile(f"available KV cache memory \\({SIZE}\\)")
_LONGEST = re.compile(
    r"estimated ?maximum ?mode ?l ?length ?is ([0-9]{1,9})"
    r"|stored in KV cache \(([0-9]{1,9})\)"
)
"""Words of vLLM from 0.2 on; a terminal may have broken them anywhere."""
_LLAMA = (
    re.compile(rf"(?:buffer|allocation) of size {COUNT}"),
    re.compile(rf"allocating {SIZE} on"),
)
"""llama.cpp tells the bytes behind a rounded size."""
_LAYERS = ("fewer-layers", "smaller-model")


def _longest(text: str, at: int) -> Explanation:
    """Explain vLLM's longest context that finds no room for its keys and values."""
    near = text[max(0, at - BEHIND) : at + BEHIND]
    asked, free = found_bytes(_NEEDED, near), found_bytes(_AVAILABLE, near)
    longest = _LONGEST.search(near)
    fixes = [fix("engine-share")]
    if longest is not None and (tokens := int(longest[1] or longest[2])) > 0:
        fixes.insert(0, fix("shorter-context-of", tokens=tokens))
    else:
        fixes.append(fix("shorter-context"))
    account = Account(asked=asked, free=free)
    if asked is None or free is None:
        says = Message.of("diagnose.oom.cache-context")
        return Explanation("cache", says, account, tuple(fixes), quoted=quoted(text, at))
    missing = max(0, asked - free)
    says = Message.of("diagnose.oom.cache-sized", asked=asked, free=free, missing=missing)
    return Explanation("cache", says, account, tuple(fixes), missing, quoted(text, at))


def _at_start(text: str, at: int) -> Explanation:
    """Explain vLLM that others left less memory than it was to take."""
    there = _AT_START.search(text, at, at + BEHIND)
    asked = found_bytes(_DESIRED, text[at : at + BEHIND])
    fixes = (fix("other-programs-gpu"), fix("engine-less"))
    if there is None or asked is None:
        says = Message.of("diagnose.oom.others-changed")
        return Explanation("other-programs", says, Account(), fixes, quoted=quoted(text, at))
    free, total = (int(float(number) * _GIB) for number in there.groups())
    account = Account(asked=asked, free=free, total=total, others=total - free)
    says = Message.of("diagnose.oom.other-programs", others=total - free, total=total, asked=asked)
    missing = max(0, asked - free)
    return Explanation("other-programs", says, account, fixes, missing, quoted(text, at))


FORMS = (
    form(
        re.compile(r"Free memory on device[^(]{0,40}\([0-9.]+/[0-9.]+ GiB\)"),
        "other-programs",
        "others-changed",
        own=_at_start,
    ),
    form(
        re.compile(
            r"Error in memory profiling\. Initial free memory|memory capacity is unbalanced"
        ),
        "other-programs",
        "others-changed",
        "other-programs-gpu",
    ),
    form(
        re.compile(
            r"KV ?cach ?e is needed|larger than the"
            r" (?:maximum number of tokens that can be stored in"
            r"|available) KV ?cach ?e"
        ),
        "cache",
        "cache-context",
        own=_longest,
    ),
    form(
        re.compile(r"No available memory for the cache blocks|Available KV cache memory: -"),
        "cache",
        "cache",
        "engine-share",
        "shorter-context",
        "smaller-model",
    ),
    form(re.compile(r"Capture cuda graph failed"), "cache", "graphs", "less-static"),
    form(
        re.compile(r"Not enough memory\. Please try to increase --mem-fraction-static"),
        "cache",
        "cache",
        "engine-share",
        "smaller-model",
    ),
    form(
        re.compile(
            r"(?:Prefill|Decode) out of memory\. Try to lower|not enough KV cache space"
            r"|failed to find a memory slot for batch|could not find a KV slot"
        ),
        "cache",
        "cache-busy",
        "fewer-tokens",
    ),
    form(
        re.compile(r"Not enough memory to handle [0-9]+ (?:prefill|total) tokens"),
        "cache",
        "warm-up",
        "fewer-prefill",
    ),
    form(
        re.compile(r"out of memory occurred when warming up"), "cache", "warm-up", "fewer-requests"
    ),
    form(
        re.compile(r"could not be created: KV cache|kv_?cache.{0,80}insufficient GPU memory"),
        "cache",
        "cache",
        "trt-share",
        "shorter-context",
    ),
    form(
        re.compile(r"Insufficient VRAM in split|Insufficient VRAM for model and cache"),
        "cache",
        "cache",
        "exllama",
        "smaller-model",
    ),
    form(
        re.compile(r"failed to allocate (?:buffer for )?kv ?cache"),
        "cache",
        "cache",
        "llama-cache",
        *_LAYERS,
        asked=_LLAMA,
    ),
    form(
        re.compile(r"failed to allocate compute(?: pp)? buffers?"),
        "too-big",
        "engine-step",
        "llama-batch",
        *_LAYERS,
        asked=_LLAMA,
    ),
    form(
        re.compile(
            r"ggml_backend_[a-z_]{1,60}alloc_buffer: allocating|cudaMalloc failed: out of memory"
            r"|(?:failed|unable) to allocate (?!CPU)[A-Za-z]+[0-9]* buffer"
            r"|ggml_vulkan: Device memory allocation of size [0-9]+ failed"
            r"|memory layout cannot be allocated"
        ),
        "too-big",
        "engine",
        *_LAYERS,
        asked=_LLAMA,
    ),
)
"""What is looked for, the most telling first."""
