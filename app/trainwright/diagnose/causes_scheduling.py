"""Signs of a run that does not get what the computer has: others, limits, heat, threads, links."""

from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.measures import (
    Measure,
    affinity,
    clock_share,
    cores_of_usable,
    data_wait,
    foreign_share,
    given,
    gpu_ratio,
    link_share,
    numa_mismatch,
    number,
    on_cpu,
    on_gpu,
    ranks,
    ratio,
    reading,
    slice_used,
    starved,
    step_share,
    threads_of_cores,
    throttled,
)
from trainwright.diagnose.measures_trials import saved_by
from trainwright.diagnose.measures_work import (
    cores_of_a_process,
    oversubscription,
    workers_of_cores,
)
from trainwright.diagnose.rules import above, any_of, below, rules_of, yes
from trainwright.diagnose.verdict import Cause

DCGM = "assumed, on NVML's clock event reasons, as DCGM's violation counters"
ASSUMED = "assumed"
FOREIGN = "assumed: 5 % of the memory"
THREADS = "PyTorch: as many threads as cores by default"
CGROUP = "assumed, on the cgroup's nr_throttled"

_rule = rules_of(Cause.SCHEDULING)


def _starved_by(evidence: Evidence) -> str:
    """Return who takes the cores that the run waits for."""
    host = evidence.host
    if host is not None and (host.throttled_periods or 0) >= 0.05:
        return "quota"
    if _too_many_of_its_own(evidence):
        return "workers" if (workers_of_cores(evidence) or 0) > 2 else "threads"
    return "other-programs-cpu"


def _too_many_of_its_own(evidence: Evidence) -> bool:
    """Whether the run's own threads want more cores than it may use.

    A thread that is kept from its core wants it for longer; beside busy others only many count.
    """
    wanted = oversubscription(evidence) or 0
    return wanted > (1.5 if (foreign_share(evidence) or 0) < 0.25 else 3)


def _starved_for(variant: str) -> Measure:
    return given(lambda evidence: _alone(evidence) and _starved_by(evidence) == variant, starved)


def _computes(evidence: Evidence) -> bool:
    """Whether a run on the processor spends its steps computing."""
    return on_cpu(evidence) and (data_wait(evidence) or 0) < 0.3


def _power_is_low(evidence: Evidence) -> float | None:
    """Return the lowest set power limit over the usual one."""
    found = [
        gpu.power_limit_w / gpu.power_limit_default_w
        for gpu in evidence.gpus or ()
        if gpu.power_limit_w and gpu.power_limit_default_w
    ]
    return min(found) if found else None


def _slice(evidence: Evidence) -> str | None:
    return next((gpu.mig_profile for gpu in evidence.gpus or () if gpu.mig_profile), None)


def _mps(evidence: Evidence) -> float | None:
    found = [gpu.mps_share for gpu in evidence.gpus or () if gpu.mps_share is not None]
    return min(found) if found else None


def _partitioned(evidence: Evidence) -> bool:
    return _slice(evidence) is not None or (_mps(evidence) or 1) < 1


_TRIED = (below(0.02, -2, ASSUMED), above(0.05, 3, ASSUMED), above(0.2, 4, ASSUMED))
_STARVED = (above(0.15, 1, ASSUMED), above(0.3, 3, ASSUMED), above(0.5, 4, ASSUMED))
_SIBLINGS = "assumed: ranks on one computer take cores from each other as others do"


def _alone(evidence: Evidence) -> bool:
    """Whether the run is one process with its workers, which no sibling can starve."""
    return ranks(evidence) == 1


def _capped_below(evidence: Evidence) -> float | None:
    """Return power over its limit where the driver caps it nevertheless."""
    if (throttled("power-cap", "power-brake")(evidence) or 0) < 0.1:
        return None
    return gpu_ratio("power_w", "power_limit_w")(evidence)


def _top_others(evidence: Evidence) -> float | None:
    """Return how many busy programs are named, where their share is not known."""
    host = evidence.host
    if host is None or host.foreign_cores is not None or not host.foreign_top:
        return None
    return float(len(host.foreign_top))


def _others_on(*places: str) -> Measure:
    """Return the measure of the programs that are known to be in these places."""

    def count(evidence: Evidence) -> float | None:
        others = evidence.host.other_programs if evidence.host is not None else ()
        return float(sum(each.gpu in places for each in others)) if others else None

    return count


def _taken_by_others(evidence: Evidence) -> float | None:
    """Return what the kernels of others take of the run's GPU."""
    others = evidence.host.other_programs if evidence.host is not None else ()
    taken = [o.utilisation for o in others if o.gpu == "same" and o.utilisation is not None]
    return min(1.0, sum(taken)) if taken else None


RULES = (
    # Power and heat
    _rule(
        "gpus.throttled",
        throttled("thermal", "hardware-thermal"),
        "share",
        above(0.1, 4, DCGM),
        below(0.02, -1, DCGM),
        variant="heat",
    ),
    _rule(
        "gpus.throttled",
        throttled("power-brake", "hardware-slowdown"),
        "share",
        above(0.1, 3, DCGM),
        variant="power",
    ),
    _rule(
        "gpus.throttled",
        throttled("power-cap"),
        "share",
        above(0.1, 1, DCGM),
        above(0.6, 2, DCGM),
        variant="power",
    ),
    _rule(
        "gpus.utilisation",
        given(
            lambda evidence: (throttled("power-cap")(evidence) or 0) >= 0.6,
            reading("gpus.utilisation"),
        ),
        "share",
        above(0.8, 1, "assumed: capped while it works, not while it rests"),
        variant="power",
    ),
    _rule(
        "gpus.clock",
        given(lambda evidence: (throttled("power-cap")(evidence) or 0) >= 0.1, clock_share),
        "share",
        below(0.85, 2, ASSUMED),
        below(0.7, 3, ASSUMED),
        variant="power",
    ),
    _rule(
        "gpus.power",
        _capped_below,
        "share",
        below(0.8, 3, "assumed: held down below its own limit, by the board or the server"),
        above(0.9, -2, "assumed: a GPU at full work reaches its limit, and is capped there"),
        variant="power",
    ),
    _rule(
        "gpus.power_limit",
        _power_is_low,
        "share",
        below(0.9, 2, ASSUMED),
        below(0.75, 3, ASSUMED),
        variant="power",
    ),
    _rule(
        "gpus.temperature_c",
        reading("gpus.temperature_c"),
        "celsius",
        above(83, 2, "NVIDIA's GeForce cards hold 83 °C by slowing down"),
        variant="heat",
    ),
    _rule(
        "gpus.clock",
        given(
            lambda evidence: (throttled("thermal", "hardware-thermal")(evidence) or 0) >= 0.1,
            clock_share,
        ),
        "share",
        below(0.9, 1, ASSUMED),
        variant="heat",
    ),
    _rule(
        "host.on_battery", reading("host.on_battery"), "yes-no", yes(3, ASSUMED), variant="battery"
    ),
    _rule(
        "host.power_saving",
        reading("host.power_saving"),
        "yes-no",
        yes(2, ASSUMED),
        variant="battery",
    ),
    _rule(
        "gpus.clock",
        given(
            lambda evidence: evidence.host is not None and bool(evidence.host.on_battery),
            clock_share,
        ),
        "share",
        below(0.8, 2, ASSUMED),
        variant="battery",
    ),
    # Other programs on the GPU, slices of it
    _rule(
        "gpus.foreign_memory",
        gpu_ratio("foreign_memory_bytes", "memory_total_bytes"),
        "share",
        above(0.05, 2, FOREIGN),
        above(0.25, 3, FOREIGN),
        variant="other-programs-gpu",
    ),
    _rule(
        "gpus.foreign_processes",
        reading("gpus.foreign_processes"),
        "number",
        above(1, 1, ASSUMED),
        below(0.5, -1, ASSUMED),
        variant="other-programs-gpu",
    ),
    _rule(
        "gpus.foreign_utilisation",
        reading("gpus.foreign_utilisation"),
        "share",
        above(0.1, 3, ASSUMED),
        above(0.3, 4, ASSUMED),
        variant="other-programs-gpu",
    ),
    _rule(
        "experiments.alone",
        given(
            lambda evidence: on_gpu(evidence) and (foreign_share(evidence) or 0) < 0.25,
            saved_by("alone"),
        ),
        "share",
        below(0.05, -3, ASSUMED),
        above(0.1, 3, ASSUMED),
        above(0.3, 4, ASSUMED),
        variant="other-programs-gpu",
    ),
    _rule(
        "gpus.slice_used",
        slice_used,
        "share",
        above(0.8, 2, "assumed: the slice's memory is nearly full"),
        variant="mig",
    ),
    _rule("gpus.mig_profile", _slice, "word", any_of(2, "NVIDIA MIG user guide"), variant="mig"),
    _rule(
        "gpus.mps_share",
        _mps,
        "share",
        below(0.99, 2, "NVIDIA MPS guide: CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"),
        variant="mps",
    ),
    _rule(
        "gpus.sm_active",
        given(_partitioned, reading("gpus.sm_active")),
        "share",
        above(0.7, 2, "assumed: the slice itself is full"),
    ),
    _rule(
        "gpus.utilisation",
        given(_partitioned, reading("gpus.utilisation")),
        "share",
        above(0.8, 1, "assumed: the share itself is full"),
    ),
    _rule(
        "gpus.memory_used",
        given(_partitioned, gpu_ratio("memory_used_bytes", "memory_total_bytes")),
        "share",
        above(0.8, 1, "assumed: the slice itself is full"),
    ),
    # Links and NUMA
    _rule(
        "gpus.link",
        link_share,
        "share",
        below(0.6, 2, "assumed: half of the lanes, or a generation less"),
        below(0.3, 3, "assumed: a quarter of the rate"),
        variant="link",
    ),
    _rule(
        "gpus.copy",
        gpu_ratio("copy_bytes_s", "copy_expected_bytes_s"),
        "share",
        below(0.7, 3, "assumed: 70 % of what the link gives"),
        above(0.8, -2, "assumed"),
        variant="link",
    ),
    _rule(
        "steps.transfer",
        given(lambda evidence: (link_share(evidence) or 1) < 0.6, step_share("transfer")),
        "share",
        above(0.1, 2, ASSUMED),
        variant="link",
    ),
    _rule(
        "gpus.utilisation",
        given(lambda evidence: (link_share(evidence) or 1) < 0.6, reading("gpus.utilisation")),
        "share",
        above(0.5, 1, "assumed: under load; at idle every link slows down to save power"),
        below(0.2, -2, "assumed: at idle every link slows down to save power"),
        variant="link",
    ),
    _rule(
        "host.numa",
        numa_mismatch,
        "yes-no",
        yes(2, "assumed: memory of another node is slower to reach"),
        variant="numa",
    ),
    _rule(
        "gpus.copy",
        given(
            lambda evidence: bool(numa_mismatch(evidence)),
            gpu_ratio("copy_bytes_s", "copy_expected_bytes_s"),
        ),
        "share",
        below(0.85, 3, "nvbandwidth: affinity to the GPU's node first"),
        variant="numa",
    ),
    # Cores
    _rule(
        "host.throttled_periods",
        reading("host.throttled_periods"),
        "share",
        above(0.05, 2, CGROUP),
        above(0.25, 4, CGROUP),
        below(0.01, -1, CGROUP),
        variant="quota",
    ),
    _rule(
        "host.quota_cores",
        ratio("host.quota_cores", "host.cores"),
        "share",
        below(0.99, 1, ASSUMED),
        below(0.5, 2, ASSUMED),
        variant="quota",
    ),
    _rule("host.starved_share", _starved_for("quota"), "share", *_STARVED, variant="quota"),
    _rule(
        "host.starved_share",
        _starved_for("other-programs-cpu"),
        "share",
        *_STARVED,
        variant="other-programs-cpu",
    ),
    _rule("host.starved_share", _starved_for("threads"), "share", *_STARVED, variant="threads"),
    _rule("host.starved_share", _starved_for("workers"), "share", *_STARVED, variant="workers"),
    _rule(
        "setup.num_workers",
        workers_of_cores,
        "times",
        above(2, 2, "PyTorch's DataLoader warns of more workers than cores"),
        variant="workers",
    ),
    _rule(
        "host.starved_share",
        given(lambda evidence: not _alone(evidence), starved),
        "share",
        above(0.3, 2, _SIBLINGS),
        variant="other-programs-cpu",
    ),
    _rule(
        "host.starved_share",
        starved,
        "share",
        below(0.05, -1, ASSUMED),
        variant="other-programs-cpu",
    ),
    _rule(
        "host.foreign_cores",
        foreign_share,
        "share",
        above(0.25, 1, ASSUMED),
        above(0.4, 2, ASSUMED),
        below(0.05, -1, ASSUMED),
        variant="other-programs-cpu",
    ),
    _rule(
        "host.foreign_top",
        _top_others,
        "number",
        above(1, 2, ASSUMED),
        variant="other-programs-cpu",
    ),
    _rule(
        "gpus.utilisation",
        given(lambda evidence: _top_others(evidence) is not None, reading("gpus.utilisation")),
        "share",
        below(0.7, 1, ASSUMED),
        variant="other-programs-cpu",
    ),
    _rule(
        "host.affinity",
        given(_computes, affinity),
        "share",
        below(0.9, 2, "assumed: the run is bound to some of the cores"),
        variant="affinity",
    ),
    _rule(
        "host.run_cores",
        given(
            lambda evidence: _computes(evidence) and (affinity(evidence) or 1) < 0.9,
            cores_of_usable,
        ),
        "share",
        above(0.9, 2, "assumed: it uses up what it may use"),
        variant="affinity",
    ),
    _rule(
        "host.pressure_cpu",
        given(
            lambda evidence: (foreign_share(evidence) or 0) >= 0.25, reading("host.pressure_cpu")
        ),
        "share",
        above(0.4, 1, "assumed, on Linux's PSI"),
        variant="other-programs-cpu",
    ),
    _rule(
        "experiments.alone",
        given(lambda evidence: (foreign_share(evidence) or 0) >= 0.25, saved_by("alone")),
        "share",
        below(0.05, -3, ASSUMED),
        above(0.1, 3, ASSUMED),
        above(0.3, 4, ASSUMED),
        variant="other-programs-cpu",
    ),
    _rule(
        "setup.torch_threads",
        given(_computes, threads_of_cores),
        "share",
        below(0.6, 3, THREADS),
        variant="threads",
    ),
    _rule(
        "setup.torch_threads",
        given(on_cpu, threads_of_cores),
        "share",
        above(1.6, 2, THREADS),
        above(3, 3, THREADS),
        variant="threads",
    ),
    _rule(
        "setup.torch_threads",
        given(on_gpu, threads_of_cores),
        "share",
        above(3, 2, THREADS),
        variant="threads",
    ),
    _rule(
        "host.run_cores",
        cores_of_a_process,
        "number",
        above(4, 2, "assumed: one core launches kernels; more of them spin or fight"),
        variant="threads",
    ),
    _rule(
        "setup.omp_num_threads",
        given(_computes, ratio("setup.omp_num_threads", "host.usable_cores")),
        "share",
        below(0.6, 1, "OpenMP: OMP_NUM_THREADS limits the threads"),
        variant="threads",
    ),
    _rule(
        "host.run_cores",
        given(_computes, cores_of_usable),
        "share",
        below(0.6, 1, "assumed: computing that leaves cores idle"),
        above(0.8, -1, ASSUMED),
        variant="threads",
    ),
    _rule(
        "experiments.all_threads",
        saved_by("all_threads"),
        "share",
        below(0.05, -3, ASSUMED),
        above(0.1, 3, ASSUMED),
        above(0.3, 4, ASSUMED),
        variant="threads",
    ),
    _rule(
        "host.other_programs",
        _others_on("same"),
        "number",
        above(1, 2, FOREIGN),
        variant="other-programs-gpu",
    ),
    _rule(
        "host.other_utilisation",
        _taken_by_others,
        "share",
        above(0.1, 3, ASSUMED),
        above(0.3, 4, ASSUMED),
        variant="other-programs-gpu",
    ),
    _rule(
        "host.other_programs",
        _others_on("other", "none"),
        "number",
        above(1, 2, "assumed: they share cores, memory, drives and links with the run"),
        variant="other-programs-cpu",
    ),
    _rule(
        "host.load_average",
        ratio("host.load_average", "host.cores"),
        "times",
        above(1.2, 1, ASSUMED),
        above(2, 2, "assumed: twice as many threads want a core as there are"),
        variant="other-programs-cpu",
    ),
    _rule(
        "host.load_average",
        given(
            lambda evidence: (threads_of_cores(evidence) or 0) >= 1.6,
            ratio("host.load_average", "host.cores"),
        ),
        "times",
        above(1.2, 1, ASSUMED),
        above(2, 2, "assumed: twice as many threads want a core as there are"),
        variant="threads",
    ),
    _rule(
        "host.run_threads",
        given(
            lambda evidence: (threads_of_cores(evidence) or 2) >= 1.6,
            ratio("host.run_threads", "host.cores"),
        ),
        "times",
        above(4, 2, "assumed: pools of threads that each take all cores for theirs"),
        variant="threads",
    ),
    _rule("experiments.quota", saved_by("quota"), "share", *_TRIED, variant="quota"),
    _rule("experiments.affinity", saved_by("affinity"), "share", *_TRIED, variant="affinity"),
    _rule("experiments.power_limit", saved_by("power_limit"), "share", *_TRIED, variant="power"),
    _rule("experiments.cooling", saved_by("cooling"), "share", *_TRIED, variant="heat"),
    _rule("experiments.slice", saved_by("slice"), "share", *_TRIED, variant="mig"),
    _rule(
        "gpus.clock",
        given(lambda evidence: throttled("power-cap", "thermal")(evidence) is None, clock_share),
        "share",
        below(0.75, 2, "assumed: a GPU at work holds most of its clock"),
        below(0.5, 3, "assumed: a GPU at work holds most of its clock"),
        variant="power",
    ),
    _rule(
        "gpus.clock",
        given(lambda evidence: (number("gpus.temperature_c")(evidence) or 0) >= 80, clock_share),
        "share",
        below(0.85, 2, "assumed: a GPU at work holds most of its clock"),
        below(0.6, 3, "assumed: a GPU at work holds most of its clock"),
        variant="heat",
    ),
)
