"""What was tried, and helped or not: one table from what is changed to the cause it tells.

A change that takes much of a step's time away names what took it; one that changes nothing rules
it out. Trials that say more than that (of batches, devices, workers, another GPU) are elsewhere.
"""

from collections.abc import Callable
from dataclasses import dataclass

from trainwright.diagnose.causes.rules import Rule, above, below, rules_of
from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.measures.cost import offloads
from trainwright.diagnose.measures.figures import foreign_share, given, on_cpu, on_gpu, processes
from trainwright.diagnose.measures.kernels import in_tf32
from trainwright.diagnose.measures.trials import saved_by
from trainwright.diagnose.verdict import Cause

HELPS = "assumed: what a change takes away of a step, the thing that was changed had cost"
CHANGES_NOTHING = "assumed: a change that takes nothing away is of a thing that costs nothing"
_HELPS = (above(0.05, 2, HELPS), above(0.1, 3, HELPS), above(0.2, 4, HELPS))
WHOLLY, PARTLY, NOT_AT_ALL = -6, -3, 0
"""How far a change that does nothing denies its cause: wholly where it takes all of it away, which
outweighs any two signs that it is there; not at all where it is one of many ways; assumed."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change, and the cause that it tells where it helps."""

    experiment: str
    """As ``saved_by`` calls it."""
    cause: Cause
    variant: str
    where: Callable[[Evidence], bool] = lambda _: True
    """Runs in which it tells this cause."""
    denies: int = PARTLY
    """The weight against the cause where the change does nothing."""


def _keeps_all(evidence: Evidence) -> bool:
    return not offloads(evidence)


def _not_on_cpu(evidence: Evidence) -> bool:
    return not on_cpu(evidence)


def _several(evidence: Evidence) -> bool:
    setup = evidence.setup
    return processes(evidence) > 1 or (setup is not None and (setup.nodes or 1) > 1)


def _one_device(evidence: Evidence) -> bool:
    return not _several(evidence)


def _may_be_several(evidence: Evidence) -> bool:
    """Whether a run is not known to be on one device alone."""
    setup = evidence.setup
    return setup is None or (setup.world_size != 1 and setup.strategy != "single")


def _for_cores(evidence: Evidence) -> bool:
    """Whether other programs can only be, or are known to be, on the run's cores."""
    return on_cpu(evidence) or (foreign_share(evidence) or 0) >= 0.25


def _for_a_gpu(evidence: Evidence) -> bool:
    return on_gpu(evidence) and not _for_cores(evidence)


def _in_fewer_bits(evidence: Evidence) -> bool:
    """Whether a trial of another precision is none of more bits in place of TF32."""
    return in_tf32(evidence) is None or (saved_by("other_precision")(evidence) or 0) > -0.1


REMEDIES = (
    Remedy("cached_data", Cause.INPUT, "fetch"),
    Remedy("augmentation", Cause.INPUT, "preprocessing", denies=WHOLLY),
    Remedy("pinned_memory", Cause.INPUT, "transfer", _keeps_all),
    Remedy("without_workers", Cause.INPUT, ""),
    Remedy("graphs", Cause.PARALLELISM, "host-bound"),
    Remedy("other_precision", Cause.TUNING, "precision", _in_fewer_bits),
    Remedy("channels_last", Cause.TUNING, "layout"),
    Remedy("fused_attention", Cause.TUNING, "attention"),
    Remedy("compiled", Cause.TUNING, "compile"),
    Remedy("shapes", Cause.TUNING, "shapes"),
    Remedy("padding", Cause.TUNING, "padding", denies=WHOLLY),
    Remedy("kernels", Cause.TUNING, "kernels"),
    Remedy("without_empty_cache", Cause.MEMORY, "empty-cache", denies=WHOLLY),
    Remedy("without_garbage", Cause.MEMORY, "garbage"),
    Remedy("allocator", Cause.MEMORY, "fragmentation", _not_on_cpu, denies=NOT_AT_ALL),
    Remedy("allocator", Cause.MEMORY, "heap", on_cpu),
    Remedy("without_offloading", Cause.MEMORY, "offload", denies=WHOLLY),
    Remedy("pinned_memory", Cause.MEMORY, "offload", offloads, denies=NOT_AT_ALL),
    Remedy("without_checkpointing", Cause.MEMORY, "recomputation"),
    Remedy("communication", Cause.COMMUNICATION, "exposed", _may_be_several, denies=NOT_AT_ALL),
    Remedy("link", Cause.COMMUNICATION, "exposed", _several),
    Remedy("link", Cause.SCHEDULING, "link", _one_device),
    Remedy("alone", Cause.SCHEDULING, "other-programs-cpu", _for_cores, denies=WHOLLY),
    Remedy("alone", Cause.SCHEDULING, "other-programs-gpu", _for_a_gpu, denies=WHOLLY),
    Remedy("all_threads", Cause.SCHEDULING, "threads"),
    Remedy("quota", Cause.SCHEDULING, "quota"),
    Remedy("affinity", Cause.SCHEDULING, "affinity"),
    Remedy("power_limit", Cause.SCHEDULING, "power"),
    Remedy("cooling", Cause.SCHEDULING, "heat"),
    Remedy("slice", Cause.SCHEDULING, "mig"),
    Remedy("without_synchronisation", Cause.MONITORING, "synchronisation", denies=WHOLLY),
    Remedy("without_logging", Cause.MONITORING, "logging", denies=WHOLLY),
    Remedy("without_profiler", Cause.MONITORING, "profiler", denies=WHOLLY),
    Remedy("without_anomaly_detection", Cause.MONITORING, "anomaly-detection", denies=WHOLLY),
)


def remedies_of(cause: Cause) -> tuple[Rule, ...]:
    """Return the rules of the changes that tell a cause."""
    rule = rules_of(cause)
    return tuple(
        rule(
            f"experiments.{each.experiment}",
            given(each.where, saved_by(each.experiment)),
            "share",
            *_HELPS,
            *((below(0.03, each.denies, CHANGES_NOTHING),) if each.denies else ()),
            variant=each.variant,
        )
        for each in REMEDIES
        if each.cause is cause
    )
