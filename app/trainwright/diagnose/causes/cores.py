"""Signs of a run that does not get the processor: others on its cores, quotas, threads, masks."""

from trainwright.diagnose.causes.rules import above, below, rules_of
from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.measures.figures import (
    Measure,
    affinity,
    at_least,
    cores_of_usable,
    foreign_share,
    given,
    less_than,
    number,
    on_cpu,
    on_gpu,
    ranks,
    ratio,
    reading,
    starved,
    threads_of_cores,
    too_few_threads,
)
from trainwright.diagnose.measures.sharing import (
    computes,
    computes_in_long_operators,
    cores_a_bound_worker,
    stopped,
)
from trainwright.diagnose.measures.trials import fewer_workers, saved_by
from trainwright.diagnose.measures.work import (
    blocked_by_its_own,
    cores_of_a_process,
    others_on,
    oversubscription,
    passes_timed,
    workers_of_cores,
    workers_threads,
)
from trainwright.diagnose.verdict import Cause

ASSUMED = "assumed"
THREADS = "PyTorch: as many threads as cores by default"
LOCKED = "assumed: cores that work while the training thread rests do its other threads' work"
CGROUP = "assumed, on the cgroup's nr_throttled"
SPIN = "assumed: one core launches kernels; more of them spin or fight"

_rule = rules_of(Cause.SCHEDULING)

_STARVED = (above(0.15, 1, ASSUMED), above(0.3, 3, ASSUMED), above(0.5, 4, ASSUMED))


def _starved_by(evidence: Evidence) -> str:
    """Return who takes the cores that the run waits for."""
    if stopped(evidence):
        return "quota"
    full = at_least(0.8, cores_of_usable)(evidence) and less_than(0.05, foreign_share)(evidence)
    if full or too_many_of_its_own(evidence) or (workers_threads(evidence) or 0) >= 0.25:
        return "workers" if (workers_of_cores(evidence) or 0) > 2 else "threads"
    return "other-programs-cpu"


def too_many_of_its_own(evidence: Evidence) -> bool:
    """Whether the run's own threads want more cores than it may use.

    A thread that is kept from its core wants it for longer; beside busy others only many count.
    """
    wanted = oversubscription(evidence) or 0
    return wanted > (1.5 if (foreign_share(evidence) or 0) < 0.25 else 3)


def _crowds_itself(evidence: Evidence) -> bool:
    """Whether a run on the processor has more threads than cores, and no quota beside."""
    crowds = (threads_of_cores(evidence) or 0) >= 1.6
    return on_cpu(evidence) and not stopped(evidence) and crowds


def _starved_for(variant: str) -> Measure:
    return given(lambda evidence: _alone(evidence) and _starved_by(evidence) == variant, starved)


def _computes_alone(evidence: Evidence) -> bool:
    return computes(evidence) and _alone(evidence)


def _too_few_threads(evidence: Evidence) -> bool:
    return on_cpu(evidence) and less_than(0.6, too_few_threads)(evidence)


def _workers_of_quota(evidence: Evidence) -> float | None:
    """Return the loader's workers over the cores of a quota that is half of them or less."""
    host, setup = evidence.host, evidence.setup
    if host is None or setup is None or not setup.num_workers or not host.quota_cores:
        return None
    small = host.cores is not None and host.quota_cores <= host.cores / 2
    return setup.num_workers / host.quota_cores if small else None


def _throttled_time(evidence: Evidence) -> float | None:
    """Return the seconds of throttling over those watched."""
    host, watched = evidence.host, evidence.watched_seconds
    if host is None or host.throttled_seconds is None or not watched:
        return None
    return min(1.0, host.throttled_seconds / watched)


def _spin(evidence: Evidence) -> bool:
    """Whether neither more workers nor more cores make a run faster whose workers fill theirs."""
    more = (saved_by("more_workers")(evidence), saved_by("affinity")(evidence))
    full = (number("loading.workers_cpu")(evidence) or 0) >= 0.9
    return full and all(saved is not None and saved < 0.05 for saved in more)


def _alone(evidence: Evidence) -> bool:
    """Whether the run is one process with its workers, which no sibling can starve."""
    return ranks(evidence) == 1


def _top_others(evidence: Evidence) -> float | None:
    """Return how many busy programs are named, where their share is not known."""
    host = evidence.host
    if host is None or host.foreign_cores is not None or not host.foreign_top:
        return None
    return float(len(host.foreign_top))


def _bound_workers(evidence: Evidence) -> bool:
    """Whether the computer has cores for all workers of a GPU run, but the run may use few."""
    host, wanted, share = evidence.host, workers_of_cores(evidence), affinity(evidence)
    if host is None or not host.cores or wanted is None or share is None:
        return False
    return on_gpu(evidence) and share < 0.3 and wanted * share <= 1


def _used_up(evidence: Evidence) -> float | None:
    """Return the cores that the run kept busy over its quota."""
    host = evidence.host
    if host is None or host.run_cores is None or host.quota_cores is None:
        return None
    return host.run_cores / host.quota_cores


RULES = (
    _rule("host.throttled_periods", reading("host.throttled_periods"), "share",
          above(0.05, 2, CGROUP), above(0.25, 4, CGROUP), below(0.01, -1, CGROUP), variant="quota"),
    _rule("host.quota_cores", ratio("host.quota_cores", "host.cores"), "share",
          below(0.99, 1, ASSUMED), below(0.5, 2, ASSUMED), variant="quota"),
    _rule("host.starved_share", _starved_for("quota"), "share", *_STARVED, variant="quota"),
    _rule("host.starved_share", _starved_for("other-programs-cpu"), "share", *_STARVED,
          variant="other-programs-cpu"),
    _rule("host.starved_share", _starved_for("threads"), "share", *_STARVED, variant="threads"),
    _rule("host.starved_threads", given(_crowds_itself, number("host.starved_share")), "share",
        above(0.3, 2, "assumed: threads beyond the cores wait for each other's at every operator"),
        variant="threads"),
    _rule("steps.blocked", blocked_by_its_own, "share", above(0.15, 2, LOCKED),
          above(0.25, 3, LOCKED), variant="threads"),
    _rule("host.run_cores",
          given(lambda evidence: (blocked_by_its_own(evidence) or 0) >= 0.15, cores_of_usable),
          "share", above(0.6, 2, LOCKED), variant="threads"),
    _rule("setup.num_workers", workers_of_cores, "times",
          above(2, 2, "PyTorch's DataLoader warns of more workers than cores"), variant="workers"),
    _rule("host.starved_share", starved, "share", below(0.05, -1, ASSUMED),
          variant="other-programs-cpu"),
    _rule("host.foreign_cores", foreign_share, "share", above(0.25, 1, ASSUMED),
          above(0.4, 2, ASSUMED), above(0.6, 3, ASSUMED), below(0.05, -1, ASSUMED),
          variant="other-programs-cpu"),
    _rule("host.foreign_top", _top_others, "number", above(1, 2, ASSUMED),
          variant="other-programs-cpu"),
    _rule("host.affinity", given(computes, affinity), "share",
          below(0.9, 2, "assumed: the run is bound to some of the cores"), variant="affinity"),
    _rule("host.run_cores",
          given(lambda evidence: computes(evidence) and (affinity(evidence) or 1) < 0.9,
                cores_of_usable), "share", above(0.9, 2, "assumed: it uses up what it may use"),
          variant="affinity"),
    _rule("setup.torch_threads", given(computes_in_long_operators, too_few_threads), "share",
          below(0.6, 3, THREADS), variant="threads"),
    _rule("setup.torch_threads", given(on_cpu, threads_of_cores), "share", above(1.6, 2, THREADS),
          above(3, 3, THREADS), above(8, 4, THREADS), variant="threads"),
    _rule("setup.torch_threads", given(on_gpu, threads_of_cores), "share", above(3, 2, THREADS),
          variant="threads"),
    _rule("host.run_cores", cores_of_a_process, "number", above(4, 2, SPIN), above(16, 3, SPIN),
          variant="threads"),
    _rule("host.run_cores", given(_computes_alone, cores_of_usable), "share",
          below(0.6, 1, "assumed: computing that leaves cores idle"),
          below(0.3, 2, "assumed: computing that leaves most of many cores idle"),
          above(0.8, -1, ASSUMED), variant="threads"),
    _rule("host.other_programs", others_on("other", "none"), "number",
          above(1, 2, "assumed: they share cores, memory, drives and links with the run"),
          variant="other-programs-cpu"),
    _rule("host.load_average", ratio("host.load_average", "host.cores"), "times",
          above(1.2, 1, ASSUMED),
          above(2, 2, "assumed: twice as many threads want a core as there are"),
          variant="other-programs-cpu"),
    _rule("host.run_threads",
          given(lambda evidence: (threads_of_cores(evidence) or 2) >= 1.6,
                ratio("host.run_threads", "host.cores")), "times",
          above(4, 2, "assumed: pools of threads that each take all cores for theirs"),
          above(20, 3, "assumed: pools of threads that each take all cores for theirs"),
          variant="threads"),
    _rule("loading.workers_cpu", given(_spin, number("loading.workers_cpu")), "share",
          above(0.9, 2, "assumed: cores that are full and do no work are fought for by threads"),
          variant="threads"),
    _rule("experiments.more_workers", given(_spin, saved_by("more_workers")), "share",
        below(0.05, 1, "assumed: workers that wait for each other's threads gain nothing by more"),
        variant="threads"),
    _rule("experiments.fewer_workers", fewer_workers, "share",
          above(0.1, 3, "assumed: workers beyond the cores take them from each other"),
          above(0.3, 4, "assumed: workers beyond the cores take them from each other"),
          variant="workers"),
    _rule("host.affinity", given(on_gpu, affinity), "share",
          below(0.3, 2, "assumed: the run is bound to a few of the cores"), variant="affinity"),
    _rule("host.run_cores", _used_up, "share", above(0.9, 2, "assumed: it uses up what it may use"),
          variant="quota"),
    _rule("host.run_cores",
          given(lambda evidence: on_gpu(evidence) and (affinity(evidence) or 1) < 0.5,
                cores_of_usable), "share", above(0.9, 2, "assumed: it uses up what it may use"),
          variant="affinity"),
    _rule("host.cores_a_worker",
          given(lambda evidence: (number("gpus.utilisation")(evidence) or 0) < 0.8,
                cores_a_bound_worker), "share",
          below(0.3, 3, "assumed: workers that share a few cores, or wait for one another"),
          variant="affinity"),
    _rule("setup.num_workers", given(_bound_workers, workers_of_cores), "times",
          above(2, 2, "assumed: as many workers as the computer has cores for, bound to a few"),
          variant="affinity"),
    _rule("host.throttled_seconds", _throttled_time, "share", above(0.1, 2, CGROUP),
          above(0.3, 3, CGROUP), variant="quota"),
    _rule("steps.compute", given(_too_few_threads, passes_timed), "share",
          above(0.9, 1, "assumed: what is timed only computes, and could on more cores"),
          variant="threads"),
    _rule("setup.num_workers", _workers_of_quota, "times",
          above(2, 1, "assumed: workers for the computer's cores, and a quota of a part of them"),
          variant="quota"),
)  # fmt: skip
