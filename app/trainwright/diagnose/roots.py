"""Causes that show the same symptoms, and which of them is nearer to their root."""

from trainwright.diagnose.case import Case
from trainwright.diagnose.verdict import Cause

AnyOf = tuple[tuple[Cause, str], ...]
_SHORT_OF_CORES: AnyOf = tuple(
    (Cause.SCHEDULING, each)
    for each in ("quota", "other-programs-cpu", "workers", "threads", "affinity")
)
_ELSEWHERE: AnyOf = ((Cause.MEMORY, "offload"), (Cause.MEMORY, "swapping"))
_LATE_BATCHES: AnyOf = tuple((Cause.INPUT, each) for each in ("", "fetch", "preprocessing"))
_DEBUGS: AnyOf = ((Cause.MONITORING, "profiler"), (Cause.MONITORING, "anomaly-detection"))
EXPLAINED: dict[tuple[Cause, str], AnyOf] = {
    (Cause.PARALLELISM, ""): (
        *_ELSEWHERE,
        *_SHORT_OF_CORES,
        *_DEBUGS,
        (Cause.MEMORY, ""),
        (Cause.MEMORY, "empty-cache"),
        (Cause.MEMORY, "heap"),
        (Cause.MONITORING, "synchronisation"),
    ),
    (Cause.INPUT, ""): (
        (Cause.MEMORY, "swapping"),
        (Cause.SCHEDULING, "quota"),
        (Cause.SCHEDULING, "affinity"),
        (Cause.SCHEDULING, "threads"),
    ),
    (Cause.INPUT, "fetch"): ((Cause.MEMORY, "swapping"),),
    (Cause.TUNING, "kernels"): ((Cause.MEMORY, "heap"), (Cause.SCHEDULING, "other-programs-gpu")),
    (Cause.TUNING, "shapes"): ((Cause.MEMORY, "full"),),
    (Cause.COMMUNICATION, "straggler"): (
        (Cause.SCHEDULING, "power"),
        (Cause.SCHEDULING, "heat"),
        *_LATE_BATCHES,
    ),
    (Cause.COMMUNICATION, "exposed"): ((Cause.SCHEDULING, "heat"),),
    (Cause.INPUT, "transfer"): (
        *_ELSEWHERE,
        (Cause.SCHEDULING, "link"),
        (Cause.SCHEDULING, "numa"),
    ),
    (Cause.MONITORING, "synchronisation"): (*_ELSEWHERE, *_DEBUGS),
    (Cause.MONITORING, "logging"): (
        *_ELSEWHERE,
        *_DEBUGS,
        (Cause.COMMUNICATION, "exposed"),
        (Cause.MEMORY, "garbage"),
        (Cause.MEMORY, "empty-cache"),
    ),
}
"""Cause -> what shows the same symptoms, and is nearer to their root: a device waits for its host
or for a read also because something else keeps those."""
PARTS: AnyOf = (
    *_LATE_BATCHES,
    (Cause.MONITORING, "logging"),
    *((Cause.MEMORY, each) for each in ("garbage", "recomputation")),
)
"""Causes of which it was timed what they take of the training thread's time."""
DOUBTED: dict[tuple[Cause, str], AnyOf] = EXPLAINED | {
    (Cause.PARALLELISM, ""): (
        *EXPLAINED[Cause.PARALLELISM, ""],
        (Cause.MONITORING, "synchronisation"),
    ),
    (Cause.MONITORING, "synchronisation"): (
        *EXPLAINED[Cause.MONITORING, "synchronisation"],
        (Cause.PARALLELISM, "host-bound"),
    ),
    (Cause.INPUT, ""): (*_SHORT_OF_CORES, (Cause.MEMORY, "swapping"), (Cause.MEMORY, "garbage")),
    (Cause.INPUT, "fetch"): (*_SHORT_OF_CORES, (Cause.MEMORY, "swapping")),
    (Cause.COMMUNICATION, ""): _SHORT_OF_CORES,
    (Cause.TUNING, "kernels"): (*EXPLAINED[Cause.TUNING, "kernels"], *_SHORT_OF_CORES),
    (Cause.MONITORING, "logging"): (
        *EXPLAINED[Cause.MONITORING, "logging"],
        (Cause.MEMORY, "heap"),
    ),
}
"""Those, and causes that may be the root or not: of them it is told how fast batches would be."""
WITHIN_OPERATORS: AnyOf = ((Cause.MEMORY, "heap"), (Cause.TUNING, "compile"))
"""Operators take pages as they run, and what compiling saves is their launches as well."""


def among(table: dict[tuple[Cause, str], AnyOf], root: Case, symptom: Case) -> bool:
    """Whether one cause would show what speaks for the other."""
    known = table.get((symptom.cause, symptom.variant)) or table.get((symptom.cause, ""))
    return (root.cause, root.variant) in (known or ())


def explains(cause: Cause, variant: str, symptom: Cause) -> bool:
    """Whether a cause shows itself in what would speak for the other one."""
    roots = (known for (shown, _), known in EXPLAINED.items() if shown is symptom)
    return any((cause, variant) in known for known in roots)
