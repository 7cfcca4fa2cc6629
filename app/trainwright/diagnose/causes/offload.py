"""Signs of state that waits elsewhere than on the device: offloading, paging to files."""

from trainwright.diagnose.causes.rules import above, below, rules_of, yes
from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.measures.cost import (
    loads_in_each_step,
    main_read_a_step,
    memory_share,
    offloads,
    step_seconds,
    swapped_files,
    update_elsewhere,
)
from trainwright.diagnose.measures.figures import (
    at_least,
    data_wait,
    given,
    less_than,
    number,
    on_cpu,
    on_gpu,
    ranks,
    reading,
    step_share,
    time_share,
)
from trainwright.diagnose.measures.gpu import beside_step
from trainwright.diagnose.measures.names import functions_of
from trainwright.diagnose.measures.work import reads_of_steps
from trainwright.diagnose.verdict import Cause

TB = "torch-tb-profiler: peak above 90 % of the memory"
ASSUMED = "assumed"
LINK = "assumed: 25 GB/s over PCIe 4.0 x16, 50 GB/s over PCIe 5.0"
PASSES = "assumed: passes that wait for a drive, and have their batches, keep something there"
MID_STEP = "assumed: what is saved between a batch and its update is the step's own state"


_rule = rules_of(Cause.MEMORY)


def _reads_elsewhere(evidence: Evidence) -> bool:
    """Whether drives work though the loader keeps up: what is read is not a data set."""
    wait = data_wait(evidence)
    return wait is not None and wait < 0.05


def _alone(evidence: Evidence) -> bool:
    """Whether the run is one process: several pickle the objects that they exchange."""
    return ranks(evidence) == 1


def _loads_state(evidence: Evidence) -> bool:
    return _alone(evidence) and loads_in_each_step(evidence)


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
    _rule("setup.offload", reading("setup.offload"), "yes-no", yes(1, ASSUMED), variant="offload"),
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
    _rule("setup.update_elsewhere", update_elsewhere, "share",
          above(0.1, 2, "assumed, on DeepSpeed's figures of Adam on the processor"),
          above(0.4, 3, "assumed, on DeepSpeed's figures of Adam on the processor"),
          variant="offload"),
    _rule("gpus.memory_used", given(offloads, memory_share), "share",
          below(0.5, 1, "assumed: what is offloaded would fit"), variant="offload"),
    _rule("steps.optimizer", given(offloads, step_share("optimizer")), "share",
          above(0.25, 2, "assumed: on the device an update reads each parameter a few times"),
          above(0.5, 3, ASSUMED), variant="offload"),
    _rule("gpus.utilisation", given(offloads, number("gpus.utilisation")), "share",
          below(0.5, 1, "torch-tb-profiler: utilisation below 50 %"),
          below(0.3, 2, "assumed: the device waits for what is computed or kept elsewhere"),
          variant="offload"),
    _rule("counters.mid_step", given(_alone, time_share("mid_step_seconds")), "share",
          above(0.03, 2, MID_STEP), above(0.1, 4, MID_STEP), variant="offload"),
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
    _rule("steps.seconds", given(offloads, step_seconds), "seconds",
          above(10, 2, "assumed: what computes on the device is done sooner with most steps"),
          variant="offload"),
    _rule("host.run_cores", given(_updates_on_the_processor, number("host.run_cores")), "number",
          above(4, 2, "assumed: cores that are busy though batches are there compute an update"),
          variant="offload"),
)  # fmt: skip
