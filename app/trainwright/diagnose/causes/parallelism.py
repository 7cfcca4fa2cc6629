"""Signs of too little parallel work: a device that waits for launches, or is not filled."""

from trainwright.diagnose.causes.rules import above, any_of, below, no, rules_of
from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.measures.avoidable import of_short_operators
from trainwright.diagnose.measures.calls import FEW_CALLS, operator_calls, short_operator_calls
from trainwright.diagnose.measures.cost import (
    close_launches,
    keeps_all_alone,
    kernel_spacing,
    loader_alone,
    memory_share,
    offloads,
)
from trainwright.diagnose.measures.figures import (
    at_least,
    data_wait,
    each_step,
    given,
    gpu_ratio,
    input_keeps_up,
    is_word,
    less_than,
    number,
    on_cpu,
    on_gpu,
    processes,
    reading,
    steady,
    step_share,
    utilisation,
)
from trainwright.diagnose.measures.kernels import waits_rarely
from trainwright.diagnose.measures.names import functions_of
from trainwright.diagnose.measures.trials import saved_by, waits_by_samples
from trainwright.diagnose.measures.work import (
    achieved_of_matrix_rate,
    device_of_step,
    in_operators,
)
from trainwright.diagnose.verdict import Cause

TB = "torch-tb-profiler: utilisation below 50 %: raise the batch"
HTA = "HTA: get_idle_time_breakdown, host wait"
KEMPNER = "KempnerPulse: busy above 40 % and SMs active below 25 %"
DCGM = "DCGM user guide: SM activity below 0.5 is likely ineffective"
ASSUMED = "assumed"
FED = "assumed: one device, its batches ready: it waits for launches or is not filled"
UPDATE = "assumed: an update reads each weight a few times, and its kernels are small"
DISPATCH = "assumed: PyTorch takes 5 to 10 µs for an operator, and as much for its gradient"
MFU = "ml-engineering: half of the peak is a good result"


_rule = rules_of(Cause.PARALLELISM)


def _synchronises(evidence: Evidence) -> float | None:
    """Return reads and synchronisations a step: what empties the queue of launches."""
    explicit, reads = each_step("synchronisations")(evidence), each_step("item_reads")(evidence)
    traced = number("profile.synchronise_calls")(evidence)
    found = [value for value in (explicit, reads, traced) if value is not None]
    return max(found) if found and on_gpu(evidence) and not waits_rarely(evidence) else None


def _computes(evidence: Evidence) -> bool:
    """Whether a step is forward, backward and optimizer mostly; backward is more than forward."""
    taken = step_share("compute")(evidence)
    return taken >= 0.5 if taken is not None else (step_share("backward")(evidence) or 0) >= 0.4


def only_computes(evidence: Evidence) -> bool:
    """Whether there is nothing in the step of one device beside its passes and update."""
    return keeps_all_alone(evidence) and (step_share("compute")(evidence) or 0) >= 0.9


def _seen_busy(evidence: Evidence) -> bool:
    return (utilisation(evidence) or 0) >= 0.4


def _alone_and_busy(evidence: Evidence) -> bool:
    """Whether one GPU says that it is busy: of several, each spins while it waits for others."""
    return _seen_busy(evidence) and processes(evidence) == 1


def _alone_with_room(evidence: Evidence) -> bool:
    """Whether it has memory left besides: one that has none waits for the computer's."""
    return _alone_and_busy(evidence) and not at_least(0.97, memory_share)(evidence)


def fed_alone(evidence: Evidence) -> bool:
    """Whether one GPU is known to have its batches, and keeps what it works on."""
    wait, tried = data_wait(evidence), less_than(0.05, saved_by("synthetic_batch"))(evidence)
    fed = wait < 0.05 if wait is not None else tried or (loader_alone(evidence) or 0) >= 2
    alone = processes(evidence) == 1 or less_than(0.05, saved_by("single_device"))(evidence)
    return on_gpu(evidence) and fed and alone and not offloads(evidence)


def device_idles(evidence: Evidence) -> bool:
    """Whether a GPU has nothing to do for much of the time."""
    idles = at_least(0.3, number("profile.idle"))(evidence)
    return on_gpu(evidence) and (idles or less_than(0.5, utilisation)(evidence))


def cores_make_batches(evidence: Evidence) -> bool:
    """Whether the cores of a GPU run are full, or its loader's workers are: not by launching."""
    full = at_least(0.85, number("host.utilisation"))(evidence)
    return on_gpu(evidence) and (full or at_least(0.6, number("loading.cpu_share"))(evidence))


def _updates_here(evidence: Evidence) -> bool:
    """Whether the GPU that computes has all weights, which no other must send it."""
    setup = evidence.setup
    shared = setup is not None and setup.strategy in ("zero", "fsdp")
    return on_gpu(evidence) and not offloads(evidence) and not (shared and processes(evidence) > 1)


def only_launches(evidence: Evidence) -> bool:
    """Whether the training thread is known to make no batches and no updates itself."""
    makes = evidence.setup is not None and evidence.setup.num_workers == 0
    return input_keeps_up(evidence) and not makes and not offloads(evidence)


def _no_parts(evidence: Evidence) -> bool:
    """Whether kernels' time is known, but not that of the step's parts."""
    steps = evidence.steps
    return steps is not None and steps.compute is None and not offloads(evidence)


def _may_compute(evidence: Evidence) -> bool:
    """Whether a step is its passes mostly, or a loop of one's own whose parts nobody knows."""
    return _computes(evidence) or _no_parts(evidence)


def _pauses_between(evidence: Evidence) -> bool:
    """Whether operators are not known to follow each other as fast as Python calls them."""
    return not less_than(10, short_operator_calls)(evidence)


RULES = (
    _rule("profile.kernel_median_seconds", given(on_gpu, reading("profile.kernel_median_seconds")),
          "seconds",
          below(10e-6, 3, "assumed: a launch takes 5 to 10 µs, and shorter kernels cannot hide it"),
          below(20e-6, 1, "assumed: a launch takes 5 to 10 µs"),
          above(50e-6, -2, "HTA: runtime cutoff of 50 µs"), variant="host-bound"),
    _rule("profile.idle", given(input_keeps_up, reading("profile.idle")), "share",
          above(0.3, 1, "assumed, after HTA's idle time"),
          below(0.05, -2, "assumed, after HTA's idle time"), variant="host-bound"),
    _rule("gpus.sm_active", given(_seen_busy, reading("gpus.sm_active")), "share",
          below(0.25, 3, KEMPNER), below(0.5, 2, DCGM),
          above(0.8, -3, "DCGM user guide: SM activity of 0.8 is needed")),
    _rule("gpus.power", given(_alone_with_room, gpu_ratio("power_w", "power_limit_w")), "share",
          below(0.5, 2, "assumed: a GPU that says it is busy at half of its power is not filled"),
          above(0.85, -2, "assumed")),
    _rule("gpus.utilisation", given(input_keeps_up, utilisation), "share", below(0.5, 1, TB)),
    _rule("gpus.utilisation", given(fed_alone, utilisation), "share", below(0.5, 2, FED)),
    _rule("profile.idle", given(fed_alone, reading("profile.idle")), "share", above(0.4, 2, FED),
          variant="host-bound"),
    _rule("gpus.steady", given(input_keeps_up, steady), "share",
          below(0.5, 2, "assumed: a kernel is always there, but never a large one")),
    _rule("profile.launch_median_seconds", reading("profile.launch_median_seconds"), "seconds",
          above(20e-6, 2, "HTA: a launch takes 5 to 10 µs where the host keeps up"),
          variant="host-bound"),
    _rule("gpus.memory_used", given(input_keeps_up, memory_share), "share",
          below(0.5, 1, "assumed: there is room for a larger batch"), variant="small-batch"),
    _rule("setup.batch", given(input_keeps_up, number("setup.batch")), "number",
          below(9, 1, ASSUMED), variant="small-batch"),
    _rule("steps.seconds",
          given(lambda evidence: input_keeps_up(evidence) and of_short_operators(evidence),
                given(on_cpu, number("steps.seconds"))), "seconds",
          below(0.01, 2, "assumed: a step of tens of operators at tens of µs each"),
          variant="small-batch"),
    _rule("profile.operator_calls", given(_may_compute, short_operator_calls), "times",
          below(10, 3, FEW_CALLS), variant="host-bound"),
    _rule("profile.operator_calls", given(_computes, operator_calls), "times",
          below(50, 1, FEW_CALLS), below(15, 2, FEW_CALLS), above(150, -3, FEW_CALLS),
          variant="host-bound"),
    _rule("profile.operator_calls", given(_computes, operator_calls), "times",
          below(15, 1, FEW_CALLS), above(150, -3, FEW_CALLS), variant="small-batch"),
    _rule("profile.achieved_of_matrix_rate", given(_computes, achieved_of_matrix_rate), "share",
          below(0.1, 2, "assumed: a tenth of what a plain matrix product reaches beside the run"),
          above(0.4, -3, MFU)),
    _rule("setup.optimizer_foreach", given(on_gpu, reading("setup.optimizer_foreach")), "yes-no",
          no(1, "PyTorch: foreach and fused optimizers launch few kernels"), variant="host-bound"),
    _rule("setup.model_kind", given(on_gpu, is_word("setup.model_kind", "recurrent")), "word",
          any_of(1, "assumed: recurrent layers launch small kernels one after the other"),
          variant="host-bound"),
    _rule("steps.data_wait", waits_by_samples, "share",
          above(0.3, -3, "assumed: the device waits for batches")),
    _rule("counters.empty_cache", each_step("empty_cache"), "number",
          above(0.5, -2, "assumed: emptying the cache makes the device wait")),
    _rule("counters.synchronisations", _synchronises, "number",
          above(5, -2, "assumed: synchronising makes the device wait for launches")),
    _rule("profile.kernel_spacing", given(on_gpu, kernel_spacing), "seconds",
        below(100e-6, 1, DISPATCH), below(50e-6, 2, DISPATCH),
        below(30e-6, 3, "assumed: launches as fast as PyTorch makes them, 10 to 30 µs with Python"),
        above(1e-3, -2, ASSUMED), variant="host-bound"),
    _rule("profile.kernels_a_step", given(on_gpu, close_launches), "number",
          above(500, 1, "assumed: more launches than a step of a few large layers has"),
          variant="host-bound"),
    _rule("profile.host_launch", given(on_gpu, functions_of("launch")), "share",
          above(0.3, 2, ASSUMED), above(0.5, 3, ASSUMED), variant="host-bound"),
    _rule("steps.device_seconds", given(_no_parts, device_of_step), "share",
          below(0.6, 1, "assumed: most of the rest is the host's"),
          below(0.35, 2, "assumed: most of the rest is the host's"), above(0.9, -2, ASSUMED),
          variant="host-bound"),
    _rule("profile.achieved_of_peak", number("profile.achieved_of_peak"), "share",
          below(0.1, 1, MFU), above(0.4, -3, MFU)),
    _rule("steps.optimizer", given(_updates_here, step_share("optimizer")), "share",
          above(0.25, 2, UPDATE), above(0.5, 3, UPDATE), variant="host-bound"),
    _rule("profile.host_optimizer", given(_updates_here, functions_of("optimizer")), "share",
          above(0.15, 2, "assumed: an update of few, fused kernels takes little of the host"),
          above(0.3, 3, "assumed: an update of few, fused kernels takes little of the host"),
          variant="host-bound"),
    _rule("loading.alone", given(device_idles, loader_alone), "times",
          above(2, 1, "assumed: a device that idles though its batches could be there")),
    _rule("profile.in_operators", given(_pauses_between, in_operators), "share",
          below(0.25, -1, "assumed: what Python does between operators may not be the model's")),
    _rule("profile.host_named",
        functions_of("offload", "fetch", "log", "checkpoint", "evaluation", "profiler", "anomaly"),
        "share",
        above(0.3, -3, "assumed: what the training thread does is known, and no launching")),
)  # fmt: skip
