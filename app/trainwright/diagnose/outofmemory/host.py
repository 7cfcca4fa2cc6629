"""System memory that ran out: refused, or the process ended by the system."""

import re

from trainwright.diagnose.outofmemory.account import SIZE, Account, Explanation, fix, found_bytes
from trainwright.messages import Message

_ASKED = tuple(
    re.compile(words)
    for words in (
        "tried to allocate " + SIZE,
        "unable to mmap " + SIZE,
        "Unable to allocate " + SIZE + " for an array",
        r"requires more system memory \(" + SIZE + r"\)",
    )
)
_AVAILABLE = re.compile(r"than is available \(" + SIZE + r"\)")


def refused(text: str) -> Explanation:
    """Explain memory that the system did not give, or a process that it ended for want of it."""
    sizes = (found_bytes(pattern, text) for pattern in _ASKED)
    account = Account(
        asked=next((size for size in sizes if size is not None), None),
        free=found_bytes(_AVAILABLE, text),
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


def page_file(text: str) -> Explanation:
    """Explain Windows' refusal to load a library: memory that it promised exceeds the page file."""
    says = Message.of("diagnose.oom.page-file")
    return Explanation("host", says, Account(), (fix("page-file"),), quoted=text[:600])


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
         r"|shm[^.]{0,200}No space left on device", shared),
        (r"WinError 1455|paging file is too small", page_file),
        (r"DefaultCPUAllocator|[Cc]annot allocate memory|can't allocate memory|\bMemoryError"
         r"|_ArrayMemoryError|bad_alloc|requires more system memory", refused),
        (r"worker \(pid\(?s?\)? [0-9, ]+\) (is killed by signal: Killed|exited unexpectedly)",
         worker),
        (r"(^|\s)[Kk]illed\s*$|line [0-9]+: +[0-9]+ Killed\b|exit ?code *(?:[:=] *)?-9\b"
         r"|return code = -9\b|Signal 9 \(SIGKILL\) received|OOMKilled|oom-kill"
         r"|Out of memory: Killed process", refused),
    )
)  # fmt: skip
"""What is looked for, the most telling first. A launcher that ends its other processes after an
error of one writes of SIGKILL, too: that is not the system's doing."""
