"""Signs of state that waits elsewhere than on the device: offloading, paging to files."""

from trainwright.diagnose.causes.rules import above, at_least, below, less_than, rules_of, yes
from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.measures.cost import (
    loads_in_each_step,
    main_read_a_step,
    memory_share,
    offloading,
    offloads,
    step_seconds,
    swapped_files,
    update_elsewhere,
)
from trainwright.diagnose.measures.figures import (
    MIB,
    data_wait,
    each_step,
    given,
    number,
    on_cpu,
    on_gpu,
    ranks,
    reading,
    step_share,
    time_share,
)
from trainwright.diagnose.measures.gpu import beside_step
from trainwright.diagnose.measures.names import functions_of, kernels_of
from trainwright.diagnose.measures.trials import saved_by
from trainwright.diagnose.measures.work import device_of_compute, read_a_step, reads_of_steps
from trainwright.diagnose.verdict import Cause

RETRIES = "PyTorch: num_alloc_retries counts calls that had to empty the cache"
FAIRSEQ = "fairseq: emptying the cache every 64 updates costs below 0.2 %"
TB = "torch-tb-profiler: peak above 90 % of the memory"
ASSUMED = "assumed"
LINK = "assumed: 25 GB/s over PCIe 4.0 x16, 50 GB/s over PCIe 5.0"
PASSES = "assumed: passes that wait for a drive, and have their batches, keep something there"
MID_STEP = "assumed: what is saved between a batch and its update is the step's own state"


_rule = rules_of(Cause.MEMORY)


def _reads_elsewhere(evidence: Evidence) -> bool:
    """Whether drives work though the loader keeps up: what is read is no data set."""
    wait = data_wait(evidence)
    return wait is not None and wait < 0.05


def _read_in_steps(evidence: Evidence) -> float | None:
    """Return the share of the time in functions that read, where it is more than waits can hold."""
    read, wait = functions_of("fetch")(evidence), data_wait(evidence)
    if read is None or wait is None or wait >= 0.15:
        return None
    return max(0.0, read - wait)


def _alone(evidence: Evidence) -> bool:
    """Whether the run is one process: several pickle the objects that they exchange."""
    return ranks(evidence) == 1


def _loads_state(evidence: Evidence) -> bool:
    return _alone(evidence) and loads_in_each_step(evidence)


def _saves_within(evidence: Evidence) -> bool:
    """Whether what is saved is saved within the pass: it takes longer than what lies after it."""
    saving, after = time_share("checkpoint_seconds")(evidence), step_share("other")(evidence)
    return saving is not None and after is not None and saving > 2 * after + 0.02


def _puts_aside(evidence: Evidence) -> bool:
    """Whether functions of a run on the processor, or that offloads, put state aside."""
    there = on_cpu(evidence) or offloads(evidence)
    return there and (functions_of("offload")(evidence) or 0) >= 0.1


def _drives_in_passes(evidence: Evidence) -> bool:
    """Whether a step on the processor is its passes alone, whose batches are there."""
    saves = number("counters.checkpoints")(evidence)
    passes = (step_share("compute")(evidence) or 0) >= 0.9
    return on_cpu(evidence) and _reads_elsewhere(evidence) and passes and not saves


def _updates_on_the_processor(evidence: Evidence) -> bool:
    """Whether a GPU run that offloads has its batches, and a long update."""
    fed, long = less_than(0.05, data_wait), at_least(0.25, step_share("optimizer"))
    return on_gpu(evidence) and offloads(evidence) and fed(evidence) and long(evidence)


RULES = (
    _rule("host.pressure_io", given(_drives_in_passes, number("host.pressure_io")), "share",
          above(0.1, 2, PASSES), variant="offload"),
    _rule("profile.host_offload", given(_drives_in_passes, functions_of("offload")), "share",
          above(0.03, 1, PASSES), variant="offload"),
    _rule("profile.host_offload",
          given(lambda evidence: offloads(evidence) or on_cpu(evidence), functions_of("offload")),
          "share", above(0.1, 2, "assumed: functions that put state aside and fetch it back"),
          above(0.3, 3, "assumed: functions that put state aside and fetch it back"),
          variant="offload"),
    _rule("steps.other", given(_puts_aside, step_share("other")), "share",
          above(0.1, 2, "assumed: what lies after the update puts state aside"), variant="offload"),
    _rule("setup.offload", reading("setup.offload"), "yes-no", yes(1, ASSUMED), variant="offload"),
    _rule("counters.offloaded_bytes", number("counters.offloaded_bytes"), "bytes",
          above(256 * MIB, 2, ASSUMED), variant="offload"),
    _rule("steps.transfer", given(offloads, step_share("transfer")), "share",
          above(0.1, 2, ASSUMED), above(0.3, 3, ASSUMED), variant="offload"),
    _rule("profile.copies", given(offloads, reading("profile.copies")), "share",
          above(0.1, 2, ASSUMED), above(0.3, 3, ASSUMED), variant="offload"),
    _rule("steps.device_seconds", given(offloads, device_of_compute), "share",
          below(0.5, 2, "assumed: the device waits for what is computed or kept elsewhere"),
          below(0.2, 3, ASSUMED), variant="offload"),
    _rule("host.read_a_step", given(_reads_elsewhere, read_a_step), "times",
          above(0.5, 3, "assumed: no log or program is read anew each step; kept state is"),
          variant="offload"),
    _rule("host.read_bytes_s", given(_reads_elsewhere, reads_of_steps), "bytes",
          above(50e6, 2, "assumed: a run whose loader keeps up reads little else"),
          variant="offload"),
    _rule(
        "steps.other",
        given(
            lambda evidence: _reads_elsewhere(evidence) and (reads_of_steps(evidence) or 0) >= 50e6,
            beside_step,
        ),
        "share",
        above(0.25, 2, "assumed: state that is read from a drive between the steps"),
        variant="offload",
    ),
    _rule("counters.offloading", offloading, "share", above(0.1, 2, LINK), above(0.25, 3, LINK),
          above(0.5, 4, LINK), variant="offload"),
    _rule("setup.update_elsewhere", update_elsewhere, "share",
          above(0.1, 2, "assumed, on DeepSpeed's figures of Adam on the processor"),
          above(0.4, 3, "assumed, on DeepSpeed's figures of Adam on the processor"),
          variant="offload"),
    _rule("setup.offloaded",
          given(lambda evidence: bool(evidence.setup and evidence.setup.offloaded), offloads),
          "yes-no", yes(1, ASSUMED), variant="offload"),
    _rule("gpus.memory_used", given(offloads, memory_share), "share",
          below(0.5, 1, "assumed: what is offloaded would fit"), variant="offload"),
    _rule("steps.optimizer", given(offloads, step_share("optimizer")), "share",
          above(0.25, 2, "assumed: on the device an update reads each parameter a few times"),
          above(0.5, 3, ASSUMED), variant="offload"),
    _rule("gpus.utilisation", given(offloads, number("gpus.utilisation")), "share",
          below(0.5, 1, "torch-tb-profiler: utilisation below 50 %"),
          below(0.3, 2, "assumed: the device waits for what is computed or kept elsewhere"),
          variant="offload"),
    _rule("profile.idle", given(offloads, number("profile.idle")), "share",
          above(0.3, 1, "assumed, after HTA's idle time"), variant="offload"),
    _rule("profile.copies", given(offloads, kernels_of("copy")), "share", above(0.15, 2, ASSUMED),
          above(0.3, 3, ASSUMED), variant="offload"),
    _rule("counters.mid_step", given(_alone, time_share("mid_step_seconds")), "share",
          above(0.03, 2, MID_STEP), above(0.1, 4, MID_STEP), variant="offload"),
    _rule("counters.checkpoints", given(_saves_within, each_step("checkpoints")), "number",
          above(2, 3, "assumed: nobody keeps several checkpoints of each step"), variant="offload"),
    _rule("counters.checkpoint_seconds", given(_saves_within, time_share("checkpoint_seconds")),
          "share", above(0.05, 2, MID_STEP), above(0.2, 3, MID_STEP), variant="offload"),
    _rule("counters.load_seconds", given(_loads_state, time_share("load_seconds")), "share",
          above(0.03, 2, "assumed: what is loaded in every step is the step's own state"),
          above(0.15, 3, "assumed: what is loaded in every step is the step's own state"),
          variant="offload"),
    _rule("host.main_read_a_step", main_read_a_step, "times",
          above(0.3, 2, "assumed: no log or program is read anew each step; kept state is"),
          variant="offload"),
    _rule("host.swapped_files", swapped_files, "bytes",
          above(5e6, 2, "assumed: what is written and read again is state, no data and no log"),
          above(50e6, 4, "assumed: what is written and read again is state, no data and no log"),
          variant="offload"),
    _rule("profile.host_offload", given(offloads, functions_of("copy")), "share",
          above(0.2, 2, "assumed: what is kept elsewhere is copied each step"), variant="offload"),
    _rule("profile.host_fetch", given(on_cpu, _read_in_steps), "share",
        above(0.15, 2, "assumed: what is read in a step whose batch is there is the step's state"),
        above(0.4, 3, "assumed: what is read in a step whose batch is there is the step's state"),
        variant="offload"),
    _rule("steps.seconds", given(offloads, step_seconds), "seconds",
          above(10, 2, "assumed: what computes on the device is done sooner with most steps"),
          variant="offload"),
    _rule("host.run_cores", given(_updates_on_the_processor, number("host.run_cores")), "number",
          above(4, 2, "assumed: cores that are busy though batches are there compute an update"),
          variant="offload"),
    _rule("experiments.accumulation", given(offloads, saved_by("accumulation")), "share",
          above(0.1, 3, "assumed: an update of what waits elsewhere fetches it, a pass does not"),
          above(0.3, 4, "assumed: an update of what waits elsewhere fetches it, a pass does not"),
          variant="offload"),
)  # fmt: skip
