"""Signs that hold only beside something else that a report states: settings with an idle device,
experiments with full cores, other jobs with threads for all processors.
"""

from statistics import median

from trainwright.diagnose.causes_parallelism import cores_make_batches, device_idles, fed_alone
from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.measures import (
    affinity,
    data_wait,
    each_step,
    given,
    is_word,
    number,
    on_cpu,
    on_gpu,
    processes,
    ranks_here,
    ratio,
    reading,
    step_share,
    threads_of_cores,
    uneven,
    utilisation,
)
from trainwright.diagnose.measures_cost import loader_alone, offloads
from trainwright.diagnose.measures_trials import another_gpu, doubled_batch, doubled_model, saved_by
from trainwright.diagnose.measures_work import device_of_step
from trainwright.diagnose.rules import above, any_of, at_least, below, less_than, rules_of
from trainwright.diagnose.verdict import Cause

_communication = rules_of(Cause.COMMUNICATION)
_input = rules_of(Cause.INPUT)
_memory = rules_of(Cause.MEMORY)
_monitoring = rules_of(Cause.MONITORING)
_parallelism = rules_of(Cause.PARALLELISM)
_scheduling = rules_of(Cause.SCHEDULING)
_tuning = rules_of(Cause.TUNING)

PICTURES = "assumed: a core decodes some 100 pictures a second, a GPU trains on more"
CROWD = "PyTorch: as many threads as cores by default, in every job"
ANEW = "PyTorch: compiling and autotuning are for shapes that stay"
APART = "assumed: GPUs of several computers that rest wait for their network"
SHARED = "assumed: devices share the batches that the cores of one computer make"
SLOWEST = {"hdd": 100e6, "network": 100e6, "ssd": 450e6}
"""Bytes a second that a drive gives at best, or nearly: a disk 100 to 250 MB/s one file after the
other, a network of 1 Gb/s 118, an SSD on SATA 550; by their data sheets."""


def _untimed(evidence: Evidence) -> bool:
    """Whether a GPU idles, and nobody knows whether it has its batches."""
    fed = data_wait(evidence) is not None or fed_alone(evidence)
    return device_idles(evidence) and not fed and not offloads(evidence)


def _makes_pictures(evidence: Evidence) -> bool:
    """Whether that GPU learns from pictures on one computer, so that making them is much work."""
    pictures = evidence.setup is not None and evidence.setup.model_kind == "convolution"
    return pictures and _one_computer(evidence) and _untimed(evidence)


def _few_workers(evidence: Evidence) -> bool:
    return _makes_pictures(evidence) and less_than(3, number("setup.num_workers"))(evidence)


def _drive_is_slow(evidence: Evidence) -> bool:
    """Whether the data's drive is full, or of a slow kind."""
    slow = is_word("loading.data_on", "hdd", "network", "object-store")(evidence) is not None
    return slow or at_least(0.7, number("host.drive_busy"))(evidence)


def _from_afar(evidence: Evidence) -> bool:
    """Whether data lie on a slow drive, and the GPU is neither known to be fed nor to be busy."""
    busy = at_least(0.7, utilisation)(evidence)
    untimed = data_wait(evidence) is None and not fed_alone(evidence)
    return on_gpu(evidence) and _drive_is_slow(evidence) and untimed and not busy


def _one_computer(evidence: Evidence) -> bool:
    return evidence.setup is None or (evidence.setup.nodes or 1) == 1


def _cores_are_full(evidence: Evidence) -> bool:
    """Whether all cores of a GPU run's one computer are busy, and the GPUs are not known to be."""
    busy = at_least(0.6, utilisation)(evidence)
    return cores_make_batches(evidence) and _one_computer(evidence) and not busy


def _loader_is_full(evidence: Evidence) -> bool:
    """Whether the loader alone gives no more than all devices take."""
    return _one_computer(evidence) and less_than(1.3, loader_alone)(evidence)


def _by_drive(evidence: Evidence) -> float | None:
    """Return what is read over what a drive of that kind gives at best."""
    host, loading = evidence.host, evidence.loading
    best = SLOWEST.get(loading.data_on or "") if loading is not None else None
    if host is None or best is None or host.drive_max_bytes_s or offloads(evidence):
        return None
    read = host.read_bytes_s or host.run_read_bytes_s or host.network_bytes_s
    return read / best if read else None


def _late_by_turns(evidence: Evidence) -> bool:
    """Whether some steps find no batch ready."""
    return at_least(0.04, number("loading.queue_empty"))(evidence)


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


def _crowded_by_threads(evidence: Evidence) -> bool:
    """Whether a GPU run has several times as many threads as cores."""
    return on_gpu(evidence) and (threads_of_cores(evidence) or 0) >= 3


def _bound_to_few(evidence: Evidence) -> bool:
    return on_gpu(evidence) and less_than(0.15, affinity)(evidence)


def _shares_gpu(evidence: Evidence) -> bool:
    return at_least(1, number("gpus.foreign_processes"))(evidence)


def _others_read(evidence: Evidence) -> float | None:
    """Return what other programs read a second."""
    others = evidence.host.other_programs if evidence.host is not None else ()
    known = [each.read_bytes_s for each in others if each.read_bytes_s is not None]
    return sum(known) if known else None


def _drives_are_shared(evidence: Evidence) -> bool:
    return (_others_read(evidence) or 0) >= 50e6


def _nothing_left(evidence: Evidence) -> bool:
    """Whether the computer's memory is known to be used up."""
    left = ratio("host.memory_available_bytes", "host.memory_total_bytes")
    return less_than(0.03, left)(evidence)


def _collects_each_step(evidence: Evidence) -> bool:
    return (each_step("garbage_collections")(evidence) or 0) >= 0.5


def _shapes_change(evidence: Evidence) -> bool:
    """Whether what is compiled or searched for once has to be so for every new shape."""
    setup = evidence.setup
    anew = setup is not None and bool(setup.compile or setup.cudnn_benchmark)
    return setup is not None and bool(setup.dynamic_shapes) and anew


def _looks_busy(evidence: Evidence) -> bool:
    return at_least(0.6, utilisation)(evidence) and processes(evidence) == 1


def _idle_seconds(evidence: Evidence) -> float | None:
    """Return the seconds of a step in which a GPU does nothing."""
    steps, busy = evidence.steps, device_of_step(evidence)
    idle = number("profile.idle")(evidence) if busy is None else 1 - busy
    if steps is None or steps.unit != "step" or idle is None or not on_gpu(evidence):
        return None
    return idle * steps.seconds


def _computers_apart(evidence: Evidence) -> bool:
    """Whether GPUs of several computers rest, and nobody timed what for."""
    setup = evidence.setup
    several = setup is not None and (setup.nodes or 1) > 1
    timed = data_wait(evidence) is not None or number("profile.communication")(evidence) is not None
    return several and on_gpu(evidence) and not timed and not offloads(evidence)


def _share_cores(evidence: Evidence) -> bool:
    """Whether several processes of a run on processors are on one computer."""
    return on_cpu(evidence) and ranks_here(evidence) > 1


def _shards_layers(evidence: Evidence) -> bool:
    """Whether each layer's products are shared out over several computers."""
    setup = evidence.setup
    return setup is not None and setup.strategy == "tp" and (setup.nodes or 1) > 1


def _least_clock(evidence: Evidence) -> float | None:
    """Return the clock of the slowest of several GPUs over the others' middle one."""
    clocks = [gpu.sm_clock_mhz.mean for gpu in evidence.gpus or () if gpu.sm_clock_mhz is not None]
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


def _evaluates(evidence: Evidence) -> float | None:
    """Return the steps between two evaluations, where something says that these take time."""
    setup = evidence.setup
    return None if setup is None or setup.evaluate_every is None else float(setup.evaluate_every)


RULES = {
    Cause.INPUT: (
        _input(
            "setup.num_workers",
            given(_makes_pictures, number("setup.num_workers")),
            "number",
            below(3, 2, PICTURES),
        ),
        _input(
            "experiments.another_gpu",
            given(_few_workers, another_gpu),
            "share",
            below(0.1, 3, PICTURES),
        ),
        _input(
            "experiments.larger_model",
            given(_makes_pictures, doubled_model),
            "times",
            below(1.2, 3, "assumed: pictures take as long to make for a model of any size"),
        ),
        _input(
            "experiments.other_precision",
            given(_few_workers, saved_by("other_precision")),
            "share",
            below(0.05, 2, PICTURES),
        ),
        _input(
            "experiments.other_precision",
            given(_cores_are_full, saved_by("other_precision")),
            "share",
            below(0.05, 2, "assumed: fewer bits do not hurry cores that are full"),
            variant="preprocessing",
        ),
        _input(
            "experiments.single_device",
            given(_cores_are_full, saved_by("single_device")),
            "share",
            above(0.2, 3, SHARED),
            variant="preprocessing",
        ),
        _input(
            "experiments.single_device",
            given(_loader_is_full, saved_by("single_device")),
            "share",
            above(0.2, 3, "assumed: devices share what their one loader gives"),
        ),
        _input(
            "host.drive_used",
            _by_drive,
            "share",
            above(0.9, 2, "data sheets: disks, SATA and 1 Gb/s give little more"),
            variant="fetch",
        ),
        _input(
            "steps.uneven",
            given(_late_by_turns, uneven),
            "times",
            above(2, 3, "assumed: steps that find no batch wait for the workers' next ones"),
        ),
        _input(
            "experiments.more_workers",
            given(_drive_is_slow, saved_by("more_workers")),
            "share",
            below(0.05, 1, "assumed: more workers do not hurry a drive that gives what it can"),
            variant="fetch",
        ),
        _input(
            "experiments.another_gpu",
            given(_from_afar, another_gpu),
            "share",
            below(0.1, 3, "assumed: slower than what GPUs read, whichever they are"),
            variant="fetch",
        ),
        _input(
            "experiments.faster_cpu",
            given(_makes_pictures, saved_by("faster_cpu")),
            "share",
            above(0.15, 3, PICTURES),
            variant="preprocessing",
        ),
        _input(
            "host.drive_busy",
            given(_drives_are_shared, number("host.drive_busy")),
            "share",
            above(0.7, -3, "assumed: a drive that others read all the time has little left"),
        ),
    ),
    Cause.COMMUNICATION: (
        _communication(
            "host.utilisation",
            given(_cores_are_full, number("host.utilisation")),
            "share",
            above(0.95, -2, SHARED),
            variant="exposed",
        ),
        _communication(
            "loading.alone",
            given(_one_computer, loader_alone),
            "times",
            below(1.3, -3, "assumed: alone the loader is hardly faster than the run"),
            variant="exposed",
        ),
        _communication(
            "profile.idle",
            given(_computers_apart, number("profile.idle")),
            "share",
            above(0.4, 2, APART),
            variant="exposed",
        ),
        _communication(
            "steps.device_seconds",
            given(_computers_apart, device_of_step),
            "share",
            below(0.5, 2, APART),
            variant="exposed",
        ),
        _communication(
            "gpus.utilisation",
            given(_computers_apart, utilisation),
            "share",
            below(0.5, 2, APART),
            variant="exposed",
        ),
        _communication(
            "experiments.single_device",
            given(_share_cores, saved_by("single_device")),
            "share",
            above(0.1, -2, "assumed: processes of one computer share its cores and its memory"),
            variant="exposed",
        ),
        _communication(
            "setup.strategy",
            given(_shards_layers, reading("setup.strategy")),
            "word",
            any_of(
                3, "Megatron-LM: tensor parallel within a computer, it exchanges in every layer"
            ),
            variant="exposed",
        ),
    ),
    Cause.PARALLELISM: (
        _parallelism(
            "setup.num_workers",
            given(_makes_pictures, number("setup.num_workers")),
            "number",
            below(3, -2, PICTURES),
        ),
        _parallelism(
            "experiments.larger_model",
            given(_makes_pictures, doubled_model),
            "times",
            below(1.2, -2, "assumed: pictures take as long to make for a model of any size"),
        ),
        _parallelism(
            "experiments.faster_cpu",
            given(_makes_pictures, saved_by("faster_cpu")),
            "share",
            above(0.15, -2, PICTURES),
        ),
        _parallelism(
            "experiments.another_gpu",
            given(_from_afar, another_gpu),
            "share",
            below(0.1, -2, "assumed: slower than what GPUs read, whichever they are"),
        ),
        _parallelism(
            "gpus.sm_occupancy",
            given(_looks_busy, number("gpus.sm_occupancy")),
            "share",
            below(0.1, 2, "assumed: matrix products hold 6 to 12 of 64 warps, and seldom fewer"),
        ),
        _parallelism(
            "steps.idle_seconds",
            _idle_seconds,
            "seconds",
            above(2, -2, "assumed: at 10 µs for a launch, 200,000 of them, which few steps have"),
            variant="host-bound",
        ),
    ),
    Cause.MEMORY: (
        _memory(
            "experiments.doubled_batch",
            given(offloads, doubled_batch),
            "times",
            below(
                1.4, 3, "assumed: what is kept elsewhere is moved once for samples of any number"
            ),
            variant="offload",
        ),
        _memory(
            "host.io_wait",
            given(_nothing_left, number("host.io_wait")),
            "share",
            above(0.1, 2, "assumed: where no memory is left, what drives do is paging"),
            variant="swapping",
        ),
        _memory(
            "steps.other",
            given(_collects_each_step, step_share("other")),
            "share",
            above(0.1, 1, "assumed: what is collected in every step is part of what lies after it"),
            variant="garbage",
        ),
        _memory(
            "profile.idle",
            given(offloads, number("profile.idle")),
            "share",
            above(0.5, 2, "assumed: the device waits for what is computed or kept elsewhere"),
            variant="offload",
        ),
    ),
    Cause.MONITORING: (
        _monitoring(
            "setup.intervals",
            _evaluates,
            "number",
            below(21, 1, "assumed: an evaluation takes many steps' time"),
            variant="logging",
        ),
    ),
    Cause.SCHEDULING: (
        _scheduling(
            "gpus.clock",
            _least_clock,
            "share",
            below(0.8, 3, "assumed: GPUs that compute the same hold the same clock"),
            variant="power",
        ),
        _scheduling(
            "steps.slowest_rank",
            given(_one_is_slow, number("steps.slowest_rank")),
            "times",
            above(1.15, 2, "assumed: the others wait for the GPU of the lowest clock"),
            variant="power",
        ),
        _scheduling(
            "host.load_average",
            _load_of_others,
            "times",
            above(1.5, 3, "assumed: what wants cores beyond the run and its workers is another's"),
            variant="other-programs-cpu",
        ),
        _scheduling(
            "setup.torch_threads",
            given(on_gpu, _threads_of_all_jobs),
            "times",
            above(1.6, 1, CROWD),
            above(3, 2, CROWD),
            variant="threads",
        ),
        _scheduling(
            "host.other_programs",
            given(_many_threads_beside_jobs, _jobs),
            "number",
            above(1, 2, CROWD),
            variant="threads",
        ),
        _scheduling(
            "host.utilisation",
            given(_crowded_by_threads, number("host.utilisation")),
            "share",
            above(0.9, 2, "assumed: threads beyond the cores fight for them"),
            variant="threads",
        ),
        _scheduling(
            "steps.data_wait",
            given(_bound_to_few, data_wait),
            "share",
            above(0.15, 2, "assumed: batches are made by the few cores that the run may use"),
            variant="affinity",
        ),
        _scheduling(
            "throughput.expected",
            given(_shares_gpu, number("throughput.expected_times")),
            "times",
            above(1.5, 2, "assumed: trainings take a GPU by turns"),
            variant="other-programs-gpu",
        ),
        _scheduling(
            "host.read_bytes_s",
            _others_read,
            "bytes",
            above(50e6, 2, "assumed: what others read all the time, a drive has not left"),
            variant="other-programs-cpu",
        ),
        _scheduling(
            "host.drive_busy",
            given(_drives_are_shared, number("host.drive_busy")),
            "share",
            above(0.7, 2, "assumed: a drive that others read all the time has little left"),
            variant="other-programs-cpu",
        ),
    ),
    Cause.TUNING: (
        _tuning(
            "steps.uneven",
            given(_shapes_change, uneven),
            "times",
            above(1.8, 2, ANEW),
            above(4, 3, ANEW),
            variant="compile",
        ),
    ),
}
