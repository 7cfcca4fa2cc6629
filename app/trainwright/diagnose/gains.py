"""Upper bounds of what a fix can take away of a step, by Amdahl's law on measured shares."""

from collections.abc import Callable, Iterable

from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.measures.avoidable import own_backward
from trainwright.diagnose.measures.cost import bubble, offloading, page_faults, update_elsewhere
from trainwright.diagnose.measures.figures import (
    affinity,
    at_least,
    cores_of_usable,
    data_wait,
    exposed_communication,
    number,
    on_cpu,
    outside_steps,
    ranks,
    starved,
    step_share,
    time_share,
    too_few_threads,
    uneven,
)
from trainwright.diagnose.measures.gpu import beside_step, least_idle, narrow_link_used
from trainwright.diagnose.measures.kernels import clock_of
from trainwright.diagnose.measures.names import fallback_attention, functions_of
from trainwright.diagnose.measures.trials import doubled_batch, saved_by
from trainwright.diagnose.measures.work import (
    achieved_of_matrix_rate,
    heavy_operators,
    products_of_matrix_rate,
    workers_cores,
)
from trainwright.diagnose.verdict import Cause

Bound = Callable[[Evidence], float | None]
LEAST = 0.01
"""Share of a step below which a measure found nothing, and the next one is asked; assumed."""


def _pages_anew(evidence: Evidence) -> float | None:
    """Return what pages take; nothing of a tensor that grows, whose gradients are copied too."""
    grows = at_least(0.05, number("profile.grown"))(evidence)
    return None if grows else page_faults(evidence)


def gain(cause: Cause, variant: str, evidence: Evidence) -> float | None:
    """Return the share of a step's time that goes away at most; None: nothing measures it.

    Measured by an experiment where there is one; else the whole share that the cause takes.
    """
    return _of_idle(cause, variant, evidence, _first(_bounds(cause, variant), evidence))


def _of_idle(cause: Cause, variant: str, evidence: Evidence, share: float | None) -> float | None:
    """Return a share, or what the GPU idles at all where that is less and nobody tried it."""
    idle = least_idle(cause, variant, evidence)
    if idle is None or _bounds(cause, variant)[0](evidence) is not None:  # the first is a trial's
        return share
    return min(idle, 1.0 if share is None else share)


def measured_gain(cause: Cause, variant: str, evidence: Evidence) -> float | None:
    """Return ``gain`` where the cause's own time was measured.

    How far a device is from what it could do at best bounds a gain, and no fix is known to come
    near: a cause is not put before others for it.
    """
    found = (each for each in _bounds(cause, variant) if each is not _below_matrix_rate)
    return _of_idle(cause, variant, evidence, _first(found, evidence))


def _bounds(cause: Cause, variant: str) -> tuple[Bound, ...]:
    return _BOUNDS.get((cause, variant), _BOUNDS.get((cause, ""), ()))


def _first(bounds: Iterable[Bound], evidence: Evidence) -> float | None:
    found = (bound(evidence) for bound in bounds)
    return next((min(0.99, each) for each in found if each is not None and each > LEAST), None)


def _half_of_doubled(evidence: Evidence) -> float | None:
    """Twice the samples in r times the time: each sample takes r / 2 of what it took."""
    ratio = doubled_batch(evidence)
    return None if ratio is None else 1 - ratio / 2


def _idle_cores(evidence: Evidence) -> float | None:
    """Computing spread over all usable cores at most."""
    used, threads = cores_of_usable(evidence), too_few_threads(evidence)
    shares = [share for share in (used, threads) if share is not None]
    if not on_cpu(evidence) or not shares or max(shares) >= 1:
        return None
    return (step_share("compute")(evidence) or 1) * (1 - max(shares))


def _misfit_threads(evidence: Evidence) -> float | None:
    """Cores that stand idle, or that the run's threads take from each other."""
    known = [share for share in (starved(evidence), _idle_cores(evidence)) if share is not None]
    return max(known, default=None)


def _stored_elsewhere(evidence: Evidence) -> float | None:
    """What lies between the steps, of a run that keeps state on a drive."""
    return step_share("other")(evidence) or None


def _put_and_taken(evidence: Evidence) -> float | None:
    """What is saved and loaded, of a run that does both in each step: its own state."""
    counters = evidence.counters
    if counters is None or not counters.steps or (counters.loads or 0) < counters.steps:
        return None
    shares = (time_share(f"{each}_seconds")(evidence) for each in ("load", "checkpoint"))
    return sum(share or 0.0 for share in shares)


def _logs(evidence: Evidence) -> float | None:
    """What lies after the update, outside the timed steps, in few of them, or in its functions."""
    timed = (time_share(f"{each}_seconds")(evidence) for each in ("evaluation", "checkpoint"))
    named = functions_of("log", "checkpoint", "evaluation")(evidence)
    usual = uneven(evidence)
    rare = None if usual is None else max(0.0, 1 - usual)
    known = [beside_step(evidence), outside_steps(evidence), named, rare, *timed]
    return max((share for share in known if share is not None), default=None)


def _waits_for_ranks(evidence: Evidence) -> float | None:
    """What collectives take in the step looked at, or what a rank sleeps in all steps."""
    asleep = step_share("blocked")(evidence) if ranks(evidence) > 1 else None
    known = [share for share in (exposed_communication(evidence), asleep) if share is not None]
    return max(known, default=None)


def _bound_cores(evidence: Evidence) -> float | None:
    """Computing spread over the cores that the run may not use."""
    share = affinity(evidence)
    if share is None:
        return None
    computing = (step_share("compute")(evidence) or 1) * (1 - share) if on_cpu(evidence) else 0.0
    return max(computing, _batches_late(evidence))


def _batches_late(evidence: Evidence) -> float:
    """What steps wait for batches: cores that the run lacks are those that make them."""
    return data_wait(evidence) or 0.0


def _stood_still(evidence: Evidence) -> float | None:
    """What a quota takes of the run's threads, or of its batches."""
    lost = starved(evidence)
    return None if lost is None else max(lost, _batches_late(evidence))


def _slower_clock(evidence: Evidence) -> float | None:
    """What the slowest GPU loses: the others wait for it."""
    known = [share for gpu in evidence.gpus or () if (share := clock_of(gpu)) is not None]
    return 1 - min(known) if known else None


def _not_on_tensor_cores(evidence: Evidence) -> float | None:
    profile = evidence.profile
    if profile is None or profile.tensor_core_eligible is None:
        return None
    idle = profile.idle or 0
    return max(0.0, profile.tensor_core_eligible - (profile.tensor_core or 0)) * (1 - idle)


def _below_matrix_rate(evidence: Evidence) -> float | None:
    """Computing that large products would not need."""
    rate = achieved_of_matrix_rate(evidence)
    return None if rate is None else (step_share("compute")(evidence) or 1) * max(0.0, 1 - rate)


def _slow_products(evidence: Evidence) -> float | None:
    """Products that would be as fast as a plain one in fp32, which large ones come near to."""
    rate = products_of_matrix_rate(evidence)
    return None if rate is None else (heavy_operators(evidence) or 0) * max(0.0, 1 - rate)


def _idle_device(evidence: Evidence) -> float | None:
    """What no kernel covers; GPU utilisation cannot say more than that."""
    busy = number("gpus.utilisation")(evidence)
    return None if busy is None else 1 - busy


_BOUNDS: dict[tuple[Cause, str], tuple[Bound, ...]] = {
    (Cause.INPUT, ""): (
        saved_by("synthetic_batch"),
        lambda evidence: max(data_wait(evidence) or 0, workers_cores(evidence) or 0),
        number("profile.data_loader"),
    ),
    (Cause.INPUT, "transfer"): (step_share("transfer"), number("profile.copies")),
    (Cause.PARALLELISM, ""): (
        saved_by("graphs"),
        bubble,
        _half_of_doubled,
        number("profile.host_wait"),
        number("profile.idle"),
        _idle_device,
        _below_matrix_rate,
    ),
    (Cause.TUNING, "precision"): (
        saved_by("other_precision"),
        _not_on_tensor_cores,
        _slow_products,
    ),
    (Cause.TUNING, "layout"): (saved_by("channels_last"), number("profile.layout")),
    (Cause.TUNING, "attention"): (
        saved_by("fused_attention"),
        number("profile.attention_eager"),
        fallback_attention,
    ),
    (Cause.TUNING, "compile"): (
        saved_by("compiled"),
        functions_of("compile"),
        number("profile.elementwise"),
    ),
    (Cause.TUNING, "kernels"): (saved_by("kernels"),),
    (Cause.TUNING, "shapes"): (saved_by("shapes"),),
    (Cause.TUNING, "padding"): (saved_by("padding"), number("setup.sequence_padding")),
    (Cause.MEMORY, "empty-cache"): (
        saved_by("without_empty_cache"),
        time_share("empty_cache_seconds"),
    ),
    (Cause.MEMORY, "heap"): (_pages_anew,),
    (Cause.MEMORY, "recomputation"): (
        saved_by("without_checkpointing"),
        time_share("recomputation_seconds"),
        functions_of("recomputation"),
        own_backward,
    ),
    (Cause.MEMORY, "garbage"): (saved_by("without_garbage"), time_share("garbage_seconds")),
    (Cause.MEMORY, "offload"): (
        saved_by("without_offloading"),
        step_share("transfer"),
        _put_and_taken,
        time_share("mid_step_seconds"),
        functions_of("offload"),
        offloading,
        _stored_elsewhere,
        number("profile.copies"),
        update_elsewhere,
    ),
    (Cause.COMMUNICATION, ""): (
        saved_by("single_device"),
        step_share("communication"),
        _waits_for_ranks,
    ),
    (Cause.SCHEDULING, "threads"): (saved_by("all_threads"), _misfit_threads),
    (Cause.SCHEDULING, "workers"): (starved,),
    (Cause.SCHEDULING, "affinity"): (saved_by("affinity"), _bound_cores),
    (Cause.SCHEDULING, "quota"): (
        saved_by("quota"),
        _stood_still,
        number("host.throttled_periods"),
    ),
    (Cause.SCHEDULING, "other-programs-cpu"): (saved_by("alone"), starved),
    (Cause.SCHEDULING, "other-programs-gpu"): (
        saved_by("alone"),
        number("gpus.foreign_utilisation"),
    ),
    (Cause.SCHEDULING, "heat"): (saved_by("cooling"), _slower_clock),
    (Cause.SCHEDULING, "power"): (saved_by("power_limit"), _slower_clock),
    (Cause.SCHEDULING, "battery"): (_slower_clock,),
    (Cause.SCHEDULING, "link"): (
        step_share("transfer"),
        number("profile.copies"),
        narrow_link_used,
    ),
    (Cause.SCHEDULING, "numa"): (step_share("transfer"),),
    (Cause.MONITORING, "synchronisation"): (saved_by("without_synchronisation"),),
    (Cause.MONITORING, "profiler"): (saved_by("without_profiler"),),
    (Cause.MONITORING, "anomaly-detection"): (saved_by("without_anomaly_detection"),),
    (Cause.MONITORING, "logging"): (saved_by("without_logging"), _logs),
}
