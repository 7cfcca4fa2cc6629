"""Figures of what a run does for its time: its arithmetic, operators, threads and reads."""

import re

from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.measures.calls import LONG_CALLS, operator_calls
from trainwright.diagnose.measures.cost import QUIET_BYTES_S, takes_pages
from trainwright.diagnose.measures.figures import (
    Measure,
    cores_of_usable,
    data_wait,
    each_step,
    foreign_share,
    on_cpu,
    on_gpu,
    processes,
    ranks,
    starved,
    step_share,
    threads_of_cores,
    time_share,
)

DOUBLE_RATE = 0.5
"""Of fp64 over fp32 in a processor's vector units: a register holds half as many numbers."""


def workers_of_cores(evidence: Evidence) -> float | None:
    """Return the loader's workers, of all ranks, over the cores that the run may use."""
    setup, host = evidence.setup, evidence.host
    cores = (host.usable_cores or host.cores) if host is not None else None
    if setup is None or setup.num_workers is None or not cores:
        return None
    loaders = 1 if setup.strategy == "dp" else ranks(evidence)  # DataParallel is one process
    return setup.num_workers * loaders / cores


def cores_a_worker(evidence: Evidence) -> float | None:
    """Return the cores that a GPU run keeps busy over its workers, where there are four or more."""
    host, setup = evidence.host, evidence.setup
    workers = (setup.num_workers or 0) * ranks(evidence) if setup is not None else 0
    if host is None or host.run_cores is None or workers < 4 or not on_gpu(evidence):
        return None
    return host.run_cores / workers


def cores_of_a_process(evidence: Evidence) -> float | None:
    """Return the cores that each training process of a GPU run keeps busy, workers beside it."""
    host, setup = evidence.host, evidence.setup
    if host is None or host.run_cores is None or not on_gpu(evidence):
        return None
    workers = (setup.num_workers if setup is not None else None) or 0
    return host.run_cores / (processes(evidence) * (1 + workers))


def wait_of_slow_steps(evidence: Evidence) -> float | None:
    """Return the 95th percentile of the wait for a batch over that of the step, or its mean.

    Near 1, a step is slow when its batch comes late, and for no other reason.
    """
    steps = evidence.steps
    if steps is None or steps.data_wait_p95 is None:
        return None
    return min(1.0, steps.data_wait_p95 / (steps.p95_seconds or steps.seconds))


def queued(evidence: Evidence) -> float | None:
    """Return the share of a GPU's step in which its work was queued: the device is behind it.

    Of steps that nobody synchronised and that wait for no batch; what is queued at once may still
    be small, so that it says something only of a device that is known to be filled.
    """
    steps = evidence.steps
    if steps is None or steps.synchronised is not False or not steps.compute or on_cpu(evidence):
        return None
    return min(1.0, steps.compute / steps.seconds) if (steps.data_wait or 0) == 0 else None


def device_of_step(evidence: Evidence) -> float | None:
    """Return the kernels' time over a step's."""
    steps = evidence.steps
    if steps is None or steps.device_seconds is None:
        return None
    return min(1.0, steps.device_seconds / steps.seconds)


IMPOSSIBLE = 4.0
"""Times a plain product's rate that no processor reaches in the precisions that it is better at:
what was counted was computed elsewhere; assumed."""


def achieved_of_matrix_rate(evidence: Evidence) -> float | None:
    """Return a step's arithmetic a second over that of a plain matrix product beside it.

    Of a run in fp64, over what such a product would reach in fp64; None where much is not counted.
    """
    steps, profile = evidence.steps, evidence.profile
    if steps is None or not steps.compute or profile is None or profile.flops_a_step is None:
        return None
    if not profile.matrix_flops_s or not on_cpu(evidence) or _uncounted(evidence) >= 0.1:
        return None
    double = evidence.setup is not None and evidence.setup.precision == "fp64"
    rate = profile.matrix_flops_s * (DOUBLE_RATE if double else 1.0)
    uncounted = steps.seconds * (uncounted_convolutions(evidence) + _evaluated(evidence))
    seconds = max(0.1 * steps.compute, steps.compute - uncounted)
    found = profile.flops_a_step / seconds / rate
    return found if found <= IMPOSSIBLE else None


def _evaluated(evidence: Evidence) -> float:
    """Return the least share of a step's computing that is an evaluation, no arithmetic of its own.

    What of the counted evaluations has no room beside the computing lies in it.
    """
    counted = time_share("evaluation_seconds")(evidence) or 0.0
    return max(0.0, counted + (step_share("compute")(evidence) or 0.0) - 1)


def _uncounted(evidence: Evidence) -> float:
    """Return the share of the step in Fourier transforms, whose arithmetic is not counted."""
    rows = evidence.operators
    return sum(row.share for row in rows if "_fft" in row.name)


def products_of_matrix_rate(evidence: Evidence) -> float | None:
    """Return the rate of the step's products, convolutions and attention by themselves.

    Over that of a plain matrix product in fp32 beside the run; what is waited for cores is left
    out, and so is all that is no such operator. Small operators are slow in any precision and
    layout: of steps whose operators take 50 calls and more on average.
    """
    return any_products_rate(evidence) if (operator_calls(evidence) or 0) >= 50 else None


def any_products_rate(evidence: Evidence) -> float | None:
    """Return ``products_of_matrix_rate``, of small operators too."""
    steps, profile, heavy = evidence.steps, evidence.profile, heavy_operators(evidence)
    if steps is None or profile is None or not profile.flops_a_step or not heavy or heavy < 0.3:
        return None
    if not profile.matrix_flops_s:
        return None
    counted = max(0.1 * heavy, heavy - uncounted_convolutions(evidence))
    elsewhere = min(0.9, (starved(evidence) or 0) + _evaluated(evidence))
    seconds = counted * steps.seconds * (1 - elsewhere)
    return profile.flops_a_step / seconds / profile.matrix_flops_s


def has_its_cores(evidence: Evidence) -> bool:
    """Whether one process on the processor has the cores that its threads want.

    Few threads do not make a rate low: the plain product beside it is timed with as many.
    """
    starves = (starved(evidence) or 0) >= 0.15 or (threads_of_cores(evidence) or 0) >= 1.6
    return on_cpu(evidence) and ranks(evidence) == 1 and not starves


READS = 0.1
"""Share of a step in grouped convolutions from which its rate says little; assumed."""


def reads_more(evidence: Evidence) -> bool:
    """Whether convolutions of many groups take a part of the step: they multiply little."""
    profile = evidence.profile
    return profile is not None and (profile.grouped_convolutions or 0) >= READS


_WRITING = ("fill_", "zero_", "copy_", "_to_copy", "cat", "scatter_", "index_put_")


def written(evidence: Evidence) -> float | None:
    """Return the share of a step in operators that fill, copy or put numbers somewhere."""
    rows = evidence.operators
    found = (row.share for row in rows if row.name.removeprefix("aten::") in _WRITING)
    return min(1.0, sum(found)) if rows and on_cpu(evidence) else None


def written_not_computed(evidence: Evidence) -> float | None:
    """Return ``written`` of long operators that have their cores."""
    long = (operator_calls(evidence) or 0) >= 50
    alone = has_its_cores(evidence) and (foreign_share(evidence) or 0) < 0.25
    return written(evidence) if long and alone and not takes_pages(evidence) else None


def writes_much(evidence: Evidence) -> bool:
    """Whether a step on the processor writes large tensors rather than multiplies."""
    rate = achieved_of_matrix_rate(evidence)
    return (written_not_computed(evidence) or 0) >= 0.35 or (rate is not None and rate < 0.08)


DRAWS = "bernoulli_|native_dropout|normal_|uniform_|random_|exponential_"
"""Operators that draw numbers, for dropout and noise that a model is made for."""
DRAWING = re.compile(f"::({DRAWS})$")


def slow_operators(evidence: Evidence) -> float | None:
    """Return ``achieved_of_matrix_rate`` of the passes, where long operators take all of a step.

    They have their batches and their cores, and there is little beside them: what is slow is the
    way in which they compute. Updating and drawing numbers multiply nothing, and do not count.
    """
    rate, update = achieved_of_matrix_rate(evidence), step_share("optimizer")(evidence) or 0
    if rate is None or not only_computes(evidence) or reads_more(evidence):
        return None
    drawn = sum(row.share for row in evidence.operators if DRAWING.search(row.name))
    return rate / max(0.1, 1 - update - drawn)


def has_its_operators(evidence: Evidence) -> bool:
    """Whether operators take a step on the processor, with their cores and little beside."""
    shares = (data_wait(evidence), step_share("other")(evidence), step_share("blocked")(evidence))
    beside = any((share or 0) >= 0.1 for share in shares) or not has_its_cores(evidence)
    return (in_operators(evidence) or 0) >= 0.6 and not beside


def long_operators(evidence: Evidence) -> bool:
    """Whether a step's operators are long ones on average."""
    return (operator_calls(evidence) or 0) >= LONG_CALLS


def only_computes(evidence: Evidence) -> bool:
    """Whether long operators take a step on the processor, and nothing else."""
    return long_operators(evidence) and has_its_operators(evidence)


def kernels_a_read(evidence: Evidence) -> float | None:
    """Return the operators of a step over the values that it reads back."""
    reads, profile = each_step("item_reads")(evidence), evidence.profile
    if not reads or profile is None or not profile.kernels_a_step:
        return None
    return profile.kernels_a_step / reads


def computes_alone(evidence: Evidence) -> float | None:
    """Return ``passes_timed`` of a step that others do faster on the same GPU."""
    rate = evidence.throughput
    slower = rate is not None and (rate.expected_times or 1) >= 1.25
    return passes_timed(evidence) if slower else None


def passes_timed(evidence: Evidence) -> float | None:
    """Return the share of passes and update in what was timed.

    All of it, where that is a part of a step: nobody waits for batches or logs in it.
    """
    steps = evidence.steps
    if steps is None:
        return None
    if steps.unit == "part" and steps.data_wait is None and steps.transfer is None:
        return 1.0
    if steps.compute is not None:
        return min(1.0, steps.compute / steps.seconds)
    if steps.forward is None or steps.backward is None:
        return None
    return min(1.0, (steps.forward + steps.backward + (steps.optimizer or 0)) / steps.seconds)


def call_seconds(evidence: Evidence) -> float | None:
    """Return the mean time of a call of the kernels whose calls a profile counts and times."""
    rows = evidence.operators
    timed = [(row.calls, row.seconds) for row in rows if row.calls and row.seconds]
    calls = sum(each for each, _ in timed)
    return sum(each * seconds for each, seconds in timed) / calls if calls >= 100 else None


def uncounted_convolutions(evidence: Evidence) -> float:
    """Return the share of the step in convolutions whose arithmetic nobody counted.

    It is counted with the gradient's: a teacher's, say, which has none, is not. A convolution takes
    three quarters of its gradient's time at most.
    """
    rows = evidence.operators
    times = {row.name.removeprefix("aten::"): row.share for row in rows}
    backward = times.get("convolution_backward", 0.0)
    forward = sum(times.get(name, 0.0) for name in _forward_names("convolution_backward"))
    return max(0.0, forward - 0.75 * backward)


def _forward_names(backward: str) -> tuple[str, ...]:
    if backward == "convolution_backward":
        return ("mkldnn_convolution", "_convolution", "cudnn_convolution", "thnn_conv2d")
    stem, ending = backward.removesuffix("_backward"), backward.endswith("_backward")
    return (stem, f"{stem}_forward") if ending else ()


def workers_cores(evidence: Evidence) -> float | None:
    """Return the share of the usable cores that the loader's workers take from a CPU run.

    Of no more workers than cores on a computer that others leave alone for the most part.
    """
    loading, setup, host = evidence.loading, evidence.setup, evidence.host
    if loading is None or loading.workers_cpu is None or setup is None or host is None:
        return None
    if not on_cpu(evidence) or not host.usable_cores or not setup.num_workers:
        return None
    if (workers_of_cores(evidence) or 0) > 1 or (foreign_share(evidence) or 0) >= 0.25:
        return None
    return min(1.0, loading.workers_cpu * setup.num_workers / host.usable_cores)


def workers_threads(evidence: Evidence) -> float | None:
    """Return the share of the usable cores that the workers' threads take beside their first ones.

    Of no more than two workers for a core: more are too many by themselves.
    """
    host, workers = evidence.host, workers_of_cores(evidence)
    counted, setup = evidence.loading, evidence.setup
    if host is None or not host.usable_cores or counted is None or counted.workers_cpu is None:
        return None
    if host.run_cores is None or host.main_process_cores is None or setup is None or not workers:
        return None
    own = counted.workers_cpu * (setup.num_workers or 0)
    beside = host.run_cores - host.main_process_cores - own
    return max(0.0, beside) / host.usable_cores if workers <= 2 else None


def blocked_by_its_own(evidence: Evidence) -> float | None:
    """Return the share of the step in which one process works on while its training thread rests.

    Neither a drive nor another rank keeps that thread: it waits for threads beside it, or for the
    interpreter's lock, which one of them holds.
    """
    host = evidence.host
    if host is None or not on_cpu(evidence) or ranks(evidence) > 1:
        return None
    moved = (host.main_read_bytes_s or 0.0) + (host.main_written_bytes_s or 0.0)
    works = (cores_of_usable(evidence) or 0) >= 0.6
    quiet = moved < QUIET_BYTES_S and (host.pressure_io or 0.0) < 0.1
    return step_share("blocked")(evidence) if works and quiet else None


def waits_for_the_interpreter(evidence: Evidence) -> bool:
    """Whether a training thread rests that has as many threads as cores to compute with."""
    crowd = (threads_of_cores(evidence) or 0) >= 1.6
    return not crowd and (blocked_by_its_own(evidence) or 0) >= 0.15


def workers_starve_computing(evidence: Evidence) -> bool:
    """Whether a run on the processor waits for cores while its own loader has a part of them."""
    return (workers_cores(evidence) or 0) >= 0.15 and (starved(evidence) or 0) >= 0.15


def least_core_rate(evidence: Evidence) -> float | None:
    """Return the FLOP/s that each busy core does at least: 6 a parameter and sample.

    Of a model whose samples pass every parameter once; convolutions and sequences do more.
    """
    steps, setup, host = evidence.steps, evidence.setup, evidence.host
    if steps is None or setup is None or host is None or not host.run_cores:
        return None
    if not on_cpu(evidence) or setup.parameters is None or setup.batch is None:
        return None
    return 6 * setup.parameters * setup.batch / steps.seconds / host.run_cores


def convolutions(evidence: Evidence) -> float | None:
    """Return the share of the step in convolutions and what goes with their layout."""
    profile = evidence.profile
    if profile is None or not profile.top:
        return None
    kinds = ("conv", "batch_norm", "pool")
    return min(1.0, sum(o.share for o in profile.top if any(kind in o.name for kind in kinds)))


_HEAVY = ("mm", "conv", "rnn", "lstm", "gru", "attention", "linear")


def heavy(name: str) -> bool:
    """Return whether an operator multiplies matrices, convolves, or is a cell or attention."""
    return any(kind in name for kind in _HEAVY)


def heavy_operators(evidence: Evidence) -> float | None:
    """Return the share of a step on the processor in products, convolutions, cells, attention."""
    profile = evidence.profile
    if profile is None or not profile.top or not on_cpu(evidence):
        return None
    return min(1.0, sum(o.share for o in profile.top if heavy(o.name)))


def in_operators(evidence: Evidence) -> float | None:
    """Return the share of a step on the processor in the operators that take the most of it."""
    profile = evidence.profile
    if profile is None or not profile.top or not on_cpu(evidence):
        return None
    return min(1.0, sum(operator.share for operator in profile.top))


def threads_at_work(evidence: Evidence) -> float | None:
    """Return the run's threads that work or wait for a core over the cores that it may use."""
    host = evidence.host
    if host is None or host.runnable_threads is None or not host.usable_cores:
        return None
    return host.runnable_threads / host.usable_cores


def read_a_step(evidence: Evidence) -> float | None:
    """Return what the run reads from drives a step, but its workers, over its parameters."""
    host, steps, setup = evidence.host, evidence.steps, evidence.setup
    if host is None or steps is None or setup is None or not setup.parameters:
        return None
    if host.run_read_bytes_s is None:
        return None
    read = reads_of_steps(evidence)
    return None if read is None else read * steps.seconds / (4.0 * setup.parameters)


def oversubscription(evidence: Evidence) -> float | None:
    """Return the run's own threads that want a core over the cores that it may use.

    Threads that work or wait for a core: cores in use / (1 - the share of waiting). Above 1 the
    run is too much for the computer by itself, whoever else is there.
    """
    host = evidence.host
    if host is None or not (host.usable_cores or host.cores):
        return None
    wanted = host.runnable_threads
    if wanted is None:
        if host.run_cores is None or host.starved_share is None:
            return None
        wanted = host.run_cores / max(1e-3, 1 - host.starved_share)
    return wanted * ranks(evidence) / (host.usable_cores or host.cores or 1)


def others_on(*places: str) -> Measure:
    """Return the measure of how many other programs are known to be in these places."""

    def count(evidence: Evidence) -> float | None:
        others = evidence.host.other_programs if evidence.host is not None else ()
        return float(sum(each.gpu in places for each in others)) if others else None

    return count


def reads_of_steps(evidence: Evidence) -> float | None:
    """Return what the run reads a second beside its workers, which read the data set."""
    setup, host = evidence.setup, evidence.host
    if setup is None or not setup.num_workers:
        return run_reads(evidence)
    return None if host is None else host.main_read_bytes_s


def run_reads(evidence: Evidence) -> float | None:
    """Return what the run reads from drives a second; all that is read where nobody else works."""
    host = evidence.host
    if host is None or host.run_read_bytes_s is not None:
        return None if host is None else host.run_read_bytes_s
    return host.read_bytes_s if (foreign_share(evidence) or 0) < 0.25 else None
