"""Signs of a run that nobody watches, or whose watching costs."""

from trainwright.diagnose.causes.rules import above, below, rules_of, yes
from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.measures.cost import (
    loads_in_each_step,
    offloads,
    page_faults,
    swapped_files,
    written_a_step,
)
from trainwright.diagnose.measures.figures import (
    UNEVEN,
    at_least,
    cores_of_usable,
    data_wait,
    each_step,
    failed_for,
    given,
    imbalance,
    input_keeps_up,
    number,
    on_cpu,
    on_gpu,
    outside_steps,
    ranks,
    reading,
    step_share,
    time_share,
    utilisation,
)
from trainwright.diagnose.measures.gpu import beside_step
from trainwright.diagnose.measures.kernels import waits_rarely
from trainwright.diagnose.measures.names import functions_of
from trainwright.diagnose.measures.work import (
    in_operators,
    kernels_a_read,
)
from trainwright.diagnose.verdict import Cause

GUIDE = "PyTorch performance tuning guide: avoid unnecessary synchronisation"
DEBUG = "PyTorch: anomaly detection and profilers are for debugging only"
ASSUMED = "assumed"
READS = "assumed: on the processor a read waits for nothing, but what is read is made first"
READ_OPERATORS = 15
"""Operators for each value that is read, from which a step is more than the values that it reads.
Assumed: recorded runs on a processor that reads slowed have 11 at most, those that act on what they
read 25."""

_rule = rules_of(Cause.MONITORING)


def _watched_closely(evidence: Evidence) -> bool:
    """Whether the script does what usually serves only to watch or debug it."""
    setup = evidence.setup
    debugs = setup is not None and (setup.anomaly_detection or setup.profiler_on)
    reads = each_step("item_reads")(evidence) or 0
    explicit = each_step("synchronisations")(evidence) or 0
    return bool(debugs) or reads >= 5 or explicit >= 0.5


def _reads(evidence: Evidence) -> float | None:
    return each_step("item_reads")(evidence)


def _reads_for_themselves(evidence: Evidence) -> bool:
    """Whether a run on the processor computes little more than the values that it reads.

    A policy that acts, say, reads one value of many operators, and needs it.
    """
    return on_cpu(evidence) and (kernels_a_read(evidence) or 0) < READ_OPERATORS


def _idles(evidence: Evidence) -> bool:
    """Whether a device idles though batches are there."""
    return on_gpu(evidence) and (number("profile.idle")(evidence) or 0) >= 0.3


def _unmeasured(evidence: Evidence) -> float | None:
    """Return 1 where the device's own word is all there is: no timer, counter or trace."""
    parts = (evidence.steps, evidence.counters, evidence.profile, evidence.experiments)
    more = evidence.trials or (evidence.loading, evidence.throughput) != (None, None)
    seen = bool(evidence.gpus) and all(part is None for part in parts) and not more
    return 1.0 if seen else None


def _unmeasured_alike(evidence: Evidence) -> bool:
    """Whether only devices were looked at, and the mean of them is what each of them does."""
    return bool(_unmeasured(evidence)) and not at_least(UNEVEN, imbalance)(evidence)


def _writes_alone(evidence: Evidence) -> bool:
    """Whether a process without ranks beside it writes, and does not read it again."""
    return ranks(evidence) == 1 and not offloads(evidence) and swapped_files(evidence) is None


def _not_full(evidence: Evidence) -> bool:
    """Whether a device may idle: the host of a full one waits for it as well."""
    return (utilisation(evidence) or 0) < 0.9


def _launches_more(evidence: Evidence) -> bool:
    """Whether the host launches kernels for longer than it waits for them, or dozens a wait."""
    launches, waits = functions_of("launch")(evidence), functions_of("waiting")(evidence)
    longer = launches is not None and waits is not None and launches > 1.5 * waits
    return longer or waits_rarely(evidence)


def _compiles_little(evidence: Evidence) -> bool:
    """Whether time beside the steps is not known to be a compiler's."""
    anew = number("profile.recompilations")(evidence) or 0
    return (functions_of("compile")(evidence) or 0) < 0.3 and anew < 0.15


RULES = (
    _rule("steps.absent", _unmeasured, "yes-no",
          yes(2, "NVIDIA, nvml.h: utilisation says whether a kernel ran, not how full the GPU was"),
          variant="nothing-measured"),
    _rule("gpus.utilisation", given(_unmeasured_alike, utilisation),
          "share", below(0.7, 1, ASSUMED), variant="nothing-measured"),
    _rule("counters.item_reads", given(on_gpu, _reads), "number", above(3, 1, GUIDE),
          above(8, 2, GUIDE), above(30, 3, GUIDE), variant="synchronisation"),
    _rule("counters.item_reads", given(_reads_for_themselves, _reads), "number", above(8, 1, READS),
          above(30, 3, READS), variant="synchronisation"),
    _rule("counters.load_seconds", given(loads_in_each_step, time_share("load_seconds")), "share",
          above(0.03, -4, "assumed: what is loaded in every step is the step's own state"),
          variant="logging"),
    _rule("profile.synchronise_calls",
        given(lambda evidence: not _launches_more(evidence), reading("profile.synchronise_calls")),
        "number", above(3, 1, GUIDE), above(8, 3, GUIDE), variant="synchronisation"),
    _rule("setup.anomaly_detection", reading("setup.anomaly_detection"), "yes-no", yes(4, DEBUG),
          variant="anomaly-detection"),
    _rule("steps.other", given(_compiles_little, beside_step), "share",
          above(0.1, 2, "assumed: between the optimizer and the next batch there is little to do"),
          above(0.25, 3, ASSUMED), above(0.5, 4, ASSUMED), variant="logging"),
    _rule("host.system_share", given(at_least(0.1, page_faults), number("host.main_system_share")),
          "share",
          above(0.45, -3, "assumed: what the system does for a run that writes little is pages"),
          variant="logging"),
    _rule("profile.in_operators",
          given(lambda evidence: (beside_step(evidence) or 0) >= 0.1, in_operators), "share",
          below(0.5, 1, "assumed: most of the step is no operator's, but Python's or a drive's"),
          variant="logging"),
    _rule(
        "host.run_cores",
        given(
            lambda evidence: (
                on_cpu(evidence)
                and (step_share("other")(evidence) or 0) >= 0.25
                and (evidence.setup is not None and (evidence.setup.torch_threads or 1) > 1)
            ),
            cores_of_usable,
        ),
        "share",
        below(0.75, 1, "assumed: what comes after the update uses one core"),
        variant="logging",
    ),
    _rule("counters.item_reads",
          given(lambda evidence: (beside_step(evidence) or 0) >= 0.1, _reads), "number",
          above(8, 1, "assumed: values that are read after the update are written down somewhere"),
          variant="logging"),
    _rule("counters.checkpoint_seconds", time_share("checkpoint_seconds"), "share",
          above(0.05, 2, ASSUMED), above(0.2, 3, ASSUMED), variant="logging"),
    _rule("counters.checkpoints", each_step("checkpoints"), "number",
          above(0.1, 2, "assumed: a checkpoint every ten steps"),
          above(0.4, 3, "assumed: a checkpoint every other step"), variant="logging"),
    _rule("steps.outside", outside_steps, "share",
          above(0.12, 2, "assumed: evaluation, checkpoints or logging between the steps"),
          above(0.2, 3, "assumed: evaluation, checkpoints or logging between the steps"),
          above(0.5, 5, "assumed: evaluation, checkpoints or logging between the steps"),
          variant="logging"),
    _rule("counters.item_reads", given(_idles, _reads), "number", above(0.5, 1, GUIDE),
          variant="synchronisation"),
    _rule("profile.idle",
          given(lambda evidence: (_reads(evidence) or 0) >= 0.5, reading("profile.idle")), "share",
          above(0.3, 2, "assumed, after HTA's idle time: the queue runs dry at each read"),
          variant="synchronisation"),
    _rule("steps.compute",
          given(lambda evidence: _watched_closely(evidence) and input_keeps_up(evidence),
                step_share("compute")), "share",
          above(0.5, 1, "assumed: what watching costs is in there")),
    _rule(
        "gpus.utilisation",
        given(
            lambda evidence: (
                on_gpu(evidence) and _watched_closely(evidence) and input_keeps_up(evidence)
            ),
            utilisation,
        ),
        "share",
        below(0.7, 1, "torch-tb-profiler, raised: the device waits at each synchronisation"),
    ),
    _rule("counters.evaluation_seconds", time_share("evaluation_seconds"), "share",
          above(0.08, 2, ASSUMED),
          above(0.12, 3, "assumed: without it a run is an eighth faster and more"),
          above(0.3, 4, ASSUMED), variant="logging"),
    _rule("host.written_a_step",
          given(lambda evidence: swapped_files(evidence) is None, written_a_step), "times",
          above(0.5, 2, "assumed: a checkpoint is written in every second step"),
          variant="logging"),
    _rule("host.main_written", given(_writes_alone, number("host.main_written_bytes_s")), "bytes",
          above(20e6, 2, "assumed: what a training writes all the time is logs or checkpoints"),
          above(100e6, 3, "assumed: what a training writes all the time is logs or checkpoints"),
          variant="logging"),
    _rule("profile.host_log",
          given(lambda evidence: (data_wait(evidence) or 0) < 0.3,
                functions_of("log", "checkpoint", "evaluation")), "share", above(0.1, 2, ASSUMED),
          above(0.25, 3, ASSUMED), above(0.6, 4, ASSUMED), variant="logging"),
    _rule("failure.log", failed_for("wandb", "tensorboard", "mlflow", "no space left"), "yes-no",
          yes(3, "the run's own error names what is written down"), variant="logging"),
    _rule("profile.host_profiler", functions_of("anomaly"), "share", above(0.1, 2, DEBUG),
          above(0.25, 3, DEBUG), variant="anomaly-detection"),
    _rule("profile.host_waiting",
          given(lambda evidence: not on_cpu(evidence) and _not_full(evidence),
                functions_of("waiting")), "share", above(0.1, 2, ASSUMED), above(0.2, 3, ASSUMED),
          variant="synchronisation"),
    _rule("counters.mid_step", time_share("mid_step_seconds"), "share",
          above(0.03, -4, "assumed: what is saved between a batch and its update is no checkpoint"),
          variant="logging"),
)  # fmt: skip
