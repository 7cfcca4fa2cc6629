"""System memory that ran out: refused, or the process ended by the system."""

import re

from trainwright.diagnose.outofmemory.account import (
    COUNT,
    SIZE,
    Account,
    Explanation,
    fix,
    found_bytes,
    unsized,
)
from trainwright.messages import Message

_ASKED = tuple(
    re.compile(words)
    for words in (
        "tried to allocate " + SIZE,
        "unable to mmap " + SIZE,
        "Unable to allocate " + SIZE + " for an array",
        r"requires more system memory \(" + SIZE + r"\)",
        "malloc of size " + COUNT + " failed",  # Arrow
        "failed to allocate buffer of size " + COUNT,  # llama.cpp
    )
)
_HELD = re.compile("anon-rss:([0-9]{1,16})(kB)")
"""What the kernel's log says of the process that it ended."""
_AVAILABLE = re.compile(r"than is available \(" + SIZE + r"\)")


def refused(text: str) -> Explanation:
    """Explain memory that the system did not give, or a process that it ended for want of it."""
    sizes = (found_bytes(pattern, text) for pattern in _ASKED)
    account = Account(
        asked=next((size for size in sizes if size is not None), None),
        free=found_bytes(_AVAILABLE, text),
        process=found_bytes(_HELD, text),
    )
    missing = None
    if account.asked is not None and account.free is not None:
        missing = max(0, account.asked - account.free)
    says = Message.of("diagnose.oom.host", asked=account.asked or 0)
    if account.asked is None:
        says = Message.of("diagnose.oom.host-unsized")
    elif account.free is not None:
        values = {"asked": account.asked, "free": account.free, "missing": missing}
        says = Message.of("diagnose.oom.host-available", **values)
    return Explanation("host", says, account, (fix("swapping"),), missing, text[:600])


def shared(text: str) -> Explanation:
    """Explain a full /dev/shm."""
    fixes = (fix("shared-memory"), fix("no-workers", {"settings.loader.num_workers": 0}))
    says = Message.of("diagnose.oom.shared-memory")
    return Explanation("shared-memory", says, Account(), fixes, quoted=text[:600])


def worker(text: str) -> Explanation:
    """Explain a loader worker that was ended from outside."""
    fixes = (fix("swapping"), fix("no-workers", {"settings.loader.num_workers": 0}))
    says = Message.of("diagnose.oom.worker")
    return Explanation("worker", says, Account(), fixes, quoted=text[:600])


FORMS = tuple(
    (re.compile(words), form)
    for words, form in (
        (r"[Bb]us error|out of shared memory|unable to (write to file|mmap)[^.]{0,200}/?torch_"
         r"|No space left on device[^.]{0,200}(shm|torch_)"
         r"|shm[^.]{0,200}No space left on device|unable to allocate shared memory\(shm\)", shared),
        (r"failed to extend /dev/shm/nccl|Error while creating shared memory segment \S{0,60}nccl",
         unsized("shared-memory", "nccl-shared", "shared-memory")),
        (r"WinError 1455|paging file is too small", unsized("host", "page-file", "page-file")),
        (r"DefaultCPUAllocator|[Cc]annot allocate memory|can't allocate memory|\bMemoryError"
         r"|_ArrayMemoryError|ArrowMemoryError|bad_alloc|requires more system memory"
         r"|cpu_buffer_type_alloc_buffer: failed to allocate buffer|WinError 8\]"
         r"|OOM when allocating tensor(?:(?!device:).){0,300}device:CPU", refused),
        (r"worker \(pid\(?s?\)? [0-9, ]+\) (is killed by signal: Killed|exited unexpectedly)",
         worker),
        (r"(^|\s)[Kk]illed\s*$|line [0-9]+: +[0-9]+ Killed\b|exit ?code *(?:[:=] *)?-9\b"
         r"|[Ee]xit(?:ed)?(?: with)? ?(?:code|status)? ?[:=(]? ?137\b"
         r"|return code = -9\b|Signal 9 \(SIGKILL\) received|OOMKilled|oom-kill"
         r"|[Oo]ut of memory: Kill(?:ed)? process|exceeded (?:job )?memory limit"
         r"|task [0-9]+: Out Of Memory|node running low on memory"
         r"|session crashed after using all available RAM"
         r"|tried to allocate more memory than is available", refused),
    )
)  # fmt: skip
"""What is looked for, the most telling first. A launcher that ends its other processes after an
error of one writes of SIGKILL, too: that is not the system's doing."""
