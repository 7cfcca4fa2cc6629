"""Contention: what others, or the run itself, take from its hardware. No sign of it stands alone.

Other jobs with threads for all processors, drives where no memory is left, changing shapes under a
compiler.
"""

from statistics import median

from trainwright.diagnose.causes.parallelism import device_idles, fed_alone
from trainwright.diagnose.causes.rules import above, any_of, below, rules_of
from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.measures.cost import QUIET_BYTES_S, offloads, page_faults
from trainwright.diagnose.measures.figures import (
    affinity,
    at_least,
    cores_of_usable,
    data_wait,
    given,
    is_word,
    less_than,
    number,
    odd_dims,
    on_cpu,
    on_gpu,
    processes,
    ranks_here,
    ratio,
    tensor_cores_of_eligible,
    threads_of_cores,
    uneven,
    utilisation,
)
from trainwright.diagnose.measures.hardware import on_another_processor, saved_by_fewer_cores
from trainwright.diagnose.measures.kernels import half_precision, held_by_heat, is_kind
from trainwright.diagnose.measures.scaling import kept_by_fewer_devices
from trainwright.diagnose.measures.sharing import drives_are_shared, others_read, share_cores
from trainwright.diagnose.measures.trials import (
    beyond_their_size,
    doubled_batch,
    saved_by,
    saved_by_smaller,
)
from trainwright.diagnose.verdict import Cause

_memory = rules_of(Cause.MEMORY)
_monitoring = rules_of(Cause.MONITORING)
_scheduling = rules_of(Cause.SCHEDULING)
_tuning = rules_of(Cause.TUNING)
CROWDED = "assumed: work that fewer cores hurry has threads in each other's way"
CLIFF = "assumed: no arithmetic falls faster than with the cube of a size; what does was room"
DONE = "assumed: one GPU has its batches, and others are sooner done with kernels as large"
CROWD = "PyTorch: as many threads as cores by default, in every job"
ANEW = "PyTorch: compiling and autotuning are for shapes that stay"


def _late_on_few_cores(evidence: Evidence) -> bool:
    """Whether a processor's step waits for batches, and for cores of which it has only some."""
    bound = less_than(0.9, affinity)(evidence) and on_cpu(evidence)
    starved = at_least(0.3, number("host.starved_share"))(evidence)
    return bound and starved and at_least(0.3, data_wait)(evidence)


def _computes_pictures(evidence: Evidence) -> bool:
    """Whether one GPU convolves pictures that are there, and is not known to idle."""
    here = is_word("loading.data_on", "memory")(evidence) is not None or fed_alone(evidence)
    waits = device_idles(evidence) or offloads(evidence) or at_least(0.05, data_wait)(evidence)
    alone = on_gpu(evidence) and processes(evidence) == 1 and here and not waits
    return alone and is_kind(evidence, "convolution")


def _on_one_gpu(evidence: Evidence) -> bool:
    return on_gpu(evidence) and processes(evidence) == 1


def _jobs(evidence: Evidence) -> float:
    """Return how many other trainings are known to be on the computer, on any GPU."""
    others = evidence.host.other_programs if evidence.host is not None else ()
    return float(sum(bool(each.trains) for each in others))


def _threads_of_all_jobs(evidence: Evidence) -> float | None:
    """Return torch's threads over the cores, had the other trainings as many as this one."""
    own = threads_of_cores(evidence)
    return own * (1 + _jobs(evidence)) if own is not None and _jobs(evidence) else None


def _many_threads_beside_jobs(evidence: Evidence) -> bool:
    return (_threads_of_all_jobs(evidence) or 0) >= 1.6


def _fight_for_cores(evidence: Evidence) -> bool:
    """Whether fewer processes of one computer give more all together than all of them do."""
    return share_cores(evidence) and at_least(1.5, kept_by_fewer_devices)(evidence)


def _pools_of_threads(evidence: Evidence) -> bool:
    """Whether a run has many times as many threads as there are cores."""
    return at_least(8, ratio("host.run_threads", "host.cores"))(evidence)


def _spreads_threads(evidence: Evidence) -> bool:
    """Whether threads fill all cores of a run: on a processor, or more of them than it has."""
    full = at_least(0.9, number("host.utilisation"))(evidence)
    return _pools_of_threads(evidence) or (on_cpu(evidence) and full)


def _bound_to_few(evidence: Evidence) -> bool:
    return on_gpu(evidence) and less_than(0.15, affinity)(evidence)


def _shares_gpu(evidence: Evidence) -> bool:
    return at_least(1, number("gpus.foreign_processes"))(evidence)


def _nothing_left(evidence: Evidence) -> bool:
    """Whether the computer's memory is known to be used up."""
    left = ratio("host.memory_available_bytes", "host.memory_total_bytes")
    return less_than(0.03, left)(evidence)


def _odd_widths(evidence: Evidence) -> bool:
    """Whether most widths of a run in 16 bits are not multiples of 8."""
    return half_precision(evidence) and at_least(0.5, odd_dims)(evidence)


def _shapes_change(evidence: Evidence) -> bool:
    """Whether what is compiled or searched for once has to be so for every new shape."""
    setup = evidence.setup
    anew = setup is not None and bool(setup.compile or setup.cudnn_benchmark)
    return setup is not None and bool(setup.dynamic_shapes) and anew


def _least_clock(evidence: Evidence) -> float | None:
    """Return the clock of the slowest of several GPUs over their middle one, of those at work."""
    working = (
        gpu
        for gpu in evidence.gpus or ()
        if not held_by_heat(gpu) and (gpu.utilisation is None or gpu.utilisation.mean >= 0.5)
    )  # one at rest lowers its clock
    clocks = [gpu.sm_clock_mhz.mean for gpu in working if gpu.sm_clock_mhz is not None]
    return min(clocks) / median(clocks) if len(clocks) > 2 and median(clocks) else None


def _one_is_slow(evidence: Evidence) -> bool:
    return less_than(0.8, _least_clock)(evidence)


def _load_of_others(evidence: Evidence) -> float | None:
    """Return the load less what the run with its workers can be of it, over the cores."""
    host, setup = evidence.host, evidence.setup
    if host is None or host.load_average is None or not host.cores or not on_gpu(evidence):
        return None
    if setup is None or setup.num_workers is None or threads_of_cores(evidence) is not None:
        return None
    own = ranks_here(evidence) * (1 + setup.num_workers)
    return max(0.0, host.load_average - own) / host.cores


def _waits_in_the_system(evidence: Evidence) -> float | None:
    """Return the system's share of the cores' time, of a processor run of several threads.

    Where neither pages nor files are known to be what the system works for.
    """
    host, steps = evidence.host, evidence.steps
    if host is None or host.run_cores is None or not on_cpu(evidence):
        return None
    moved = (host.main_read_bytes_s or 0) + (host.main_written_bytes_s or 0)
    elsewhere = moved >= QUIET_BYTES_S or (page_faults(evidence) or 0) >= 0.05
    waits = steps is not None and at_least(0.15, data_wait)(evidence)
    several = host.run_cores / ranks_here(evidence) >= 1.5
    return host.main_system_share if several and not (elsewhere or waits) else None


def _alone_on_cpu(evidence: Evidence) -> bool:
    return on_cpu(evidence) and not share_cores(evidence)


def _limited(evidence: Evidence) -> bool:
    """Whether a run on the processor has a quota."""
    return on_cpu(evidence) and number("host.quota_cores")(evidence) is not None


def _evaluates(evidence: Evidence) -> float | None:
    """Return the steps between two evaluations."""
    setup = evidence.setup
    return None if setup is None or setup.evaluate_every is None else float(setup.evaluate_every)


RULES = {
    Cause.MEMORY: (
        _memory("experiments.smaller_inputs", given(_on_one_gpu, beyond_their_size), "times",
              above(2, 3, CLIFF), above(4, 4, CLIFF), variant="full"),
        _memory("experiments.doubled_batch", given(offloads, doubled_batch), "times",
              below(1.4, 2,
                    "assumed: what is kept elsewhere is moved once for samples of any number"),
              variant="offload"),
        _memory("host.io_wait", given(_nothing_left, number("host.io_wait")), "share",
              above(0.1, 2, "assumed: where no memory is left, what drives do is paging"),
              variant="swapping"),
        _memory("throughput.expected", given(offloads, number("throughput.expected_times")),
              "times", above(1.5, 2, "assumed: others who keep all on the device reach more"),
              variant="offload"),
    ),
    Cause.MONITORING: (
        _monitoring("gpus.utilisation", given(_on_one_gpu, utilisation), "share",
              above(0.85, -1, "assumed: a GPU that is busy loses little by what it is asked for"),
              variant="synchronisation"),
        _monitoring("setup.intervals", _evaluates, "number",
              below(21, 1, "assumed: an evaluation takes many steps' time"), variant="logging"),
    ),
    Cause.SCHEDULING: (
        _scheduling("experiments.single_device", given(_fight_for_cores, saved_by("single_device")),
            "share",
            above(0.5, 3, "assumed: processes that only share cores lose no more than their part"),
            variant="threads"),
        _scheduling("host.utilisation", given(_fight_for_cores, number("host.utilisation")),
              "share", above(0.9, 1, "assumed: threads beyond the cores fight for them"),
              variant="threads"),
        _scheduling("gpus.clock", _least_clock, "share",
              below(0.8, 3, "assumed: GPUs that compute the same hold the same clock"),
              variant="power"),
        _scheduling("steps.slowest_rank", given(_one_is_slow, number("steps.slowest_rank")),
              "times", above(1.15, 2, "assumed: the others wait for the GPU of the lowest clock"),
              variant="power"),
        _scheduling("host.load_average", _load_of_others, "times",
            above(1.5, 3, "assumed: what wants cores beyond the run and its workers is another's"),
            variant="other-programs-cpu"),
        _scheduling("host.system_share", _waits_in_the_system, "share",
              above(0.5, 3, "assumed: threads beyond the cores fight for them"), variant="threads"),
        _scheduling("experiments.faster_cpu", given(_limited, on_another_processor), "share",
              above(0.75, 3, "assumed: no core is four times as fast as another of its time"),
              variant="quota"),
        *(
            _scheduling(
                "host.load_average",
                given(where, ratio("host.load_average", "host.cores")),
                "times",
                above(4, 3, "assumed: twice as many threads want a core as there are"),
                variant=variant,
            )
            for where, variant in ((share_cores, "threads"), (_alone_on_cpu, "other-programs-cpu"))
        ),
        _scheduling("setup.threads_of_jobs", given(on_gpu, _threads_of_all_jobs), "times",
              above(1.6, 1, CROWD), above(3, 2, CROWD), variant="threads"),
        _scheduling("host.other_programs", given(_many_threads_beside_jobs, _jobs), "number",
              above(1, 2, CROWD), variant="threads"),
        _scheduling("experiments.fewer_cores", given(_spreads_threads, saved_by_fewer_cores),
              "share", above(0.2, 2, CROWDED), above(0.5, 3, CROWDED), variant="threads"),
        _scheduling("host.affinity", given(_late_on_few_cores, affinity), "share",
              below(0.9, 2, "assumed: the run is bound to some of the cores"), variant="affinity"),
        _scheduling("host.run_cores", given(_late_on_few_cores, cores_of_usable), "share",
              above(0.9, 2, "assumed: it uses up what it may use"), variant="affinity"),
        _scheduling("steps.data_wait", given(_bound_to_few, data_wait), "share",
              above(0.15, 2, "assumed: batches are made by the few cores that the run may use"),
              variant="affinity"),
        _scheduling("throughput.expected", given(_shares_gpu, number("throughput.expected_times")),
              "times", above(1.5, 2, "assumed: trainings take a GPU by turns"),
              variant="other-programs-gpu"),
        _scheduling("host.read_bytes_s", others_read, "bytes",
              above(50e6, 2, "assumed: what others read all the time, a drive has not left"),
              variant="other-programs-cpu"),
        _scheduling("host.drive_busy", given(drives_are_shared, number("host.drive_busy")), "share",
              above(0.7, 2, "assumed: a drive that others read all the time has little left"),
              variant="other-programs-cpu"),
    ),
    Cause.TUNING: (
        _tuning("experiments.smaller_batch", given(_on_one_gpu, saved_by_smaller), "share",
              above(0.5, -3, CLIFF), above(0.75, -5, CLIFF)),
        _tuning("throughput.expected",
              given(_computes_pictures, number("throughput.expected_times")), "times",
              above(1.4, 2, DONE), variant="kernels"),
        _tuning("loading.data_on", given(_computes_pictures, is_word("loading.data_on", "memory")),
              "word", any_of(1, "assumed: pictures in memory are no loader's"), variant="kernels"),
        _tuning("profile.tensor_core", given(_odd_widths, tensor_cores_of_eligible), "share",
              below(0.3, 2,
                    "NVIDIA, Deep Learning Performance Guide: widths in multiples of 8 (fp16)"),
              variant="shapes"),
        _tuning("steps.uneven", given(_shapes_change, uneven), "times", above(1.8, 2, ANEW),
              above(4, 3, ANEW), variant="compile"),
    ),
}  # fmt: skip
