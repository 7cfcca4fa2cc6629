"""Which sentence says a verdict: a processor launches nothing, and a drive is not memory."""

from collections.abc import Callable

from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.measures.avoidable import ignored_scores
from trainwright.diagnose.measures.cost import main_read_a_step, swapped_files
from trainwright.diagnose.measures.figures import number, on_cpu, on_gpu, time_share
from trainwright.diagnose.measures.kernels import capped_by_board, untuned_convolutions
from trainwright.diagnose.measures.names import fallback_attention, odd_kernel
from trainwright.diagnose.measures.trials import attention_by_length, saved_by
from trainwright.diagnose.measures.work import waits_for_the_interpreter, workers_starve_computing
from trainwright.diagnose.verdict import Cause


def wording(cause: Cause, variant: str, evidence: Evidence) -> str:
    """Return what the verdict's sentence is called beyond its cause and variant; often nothing."""
    choices = WORDINGS.get((cause, variant), ())
    return next((name for name, holds in choices if holds(evidence)), "")


def _on_drive(evidence: Evidence) -> bool:
    """Whether what is kept elsewhere is in files."""
    setup = evidence.setup
    if setup is not None and setup.offloaded_to is not None:
        return setup.offloaded_to == "drive"
    seen = (
        number("counters.mid_step_seconds")(evidence),
        number("counters.load_seconds")(evidence),
        swapped_files(evidence),
    )
    reads = (main_read_a_step(evidence) or 0) >= 0.3  # the limit of causes/offload
    return any(seen) or reads or (on_cpu(evidence) and not (setup is not None and setup.offload))


def _in_double(evidence: Evidence) -> bool:
    return evidence.setup is not None and evidence.setup.precision == "fp64"


def _in_few_bits(evidence: Evidence) -> bool:
    setup = evidence.setup
    return on_cpu(evidence) and setup is not None and setup.precision not in (None, "fp32", "fp64")


def _tried(evidence: Evidence) -> bool:
    return (saved_by("other_precision")(evidence) or 0) >= 0.1  # the limit of causes/tuning


def _by_a_kernel(evidence: Evidence) -> bool:
    return on_gpu(evidence) and (odd_kernel(evidence) or 0) >= 0.25  # the limit of causes/tuning


def _by_fallback(evidence: Evidence) -> bool:
    """Whether attention is fused, and slow nevertheless."""
    fused = evidence.setup is not None and evidence.setup.attention == "sdpa"
    grows = (attention_by_length(evidence) or 0) >= 0.25  # the limit of causes/trials
    return (fallback_attention(evidence) or 0) >= 0.25 or (fused and grows)


def _by_slow_operators(evidence: Evidence) -> bool:
    """Whether it is not cuDNN's autotuner that is missed."""
    tried = (saved_by("kernels")(evidence) or 0) >= 0.1  # the limit of causes/tuning
    return on_cpu(evidence) or not (tried or untuned_convolutions(evidence))


def _by_ignored(evidence: Evidence) -> bool:
    """Whether it is scores that the loss leaves out, and hardly the ends of rows."""
    padding = number("setup.sequence_padding")(evidence) or 0
    return (ignored_scores(evidence) or 0) >= 0.5 and padding < 0.2  # the limits of causes/tuning


def _by_growing(evidence: Evidence) -> bool:
    return (number("profile.grown")(evidence) or 0) >= 0.05  # the limit of causes/memory


def _compiles_anew(evidence: Evidence) -> bool:
    return (number("profile.recompilations")(evidence) or 0) >= 0.02  # the limit of causes/tuning


def _most_of_what_is_beside(counter: str) -> Callable[[Evidence], bool]:
    """Return whether this takes most of what was timed beside the steps."""

    def most(evidence: Evidence) -> bool:
        shares = {each: time_share(each)(evidence) or 0.0 for each in _BESIDE_STEPS}
        return shares[counter] >= 0.05 and shares[counter] > 0.5 * sum(shares.values())

    return most


def _has(setting: str, *values: object) -> Callable[[Evidence], bool]:
    """Return whether the run is set up like this, so that its lack is not what slows it."""
    return lambda evidence: getattr(evidence.setup, setting, None) in values


_BESIDE_STEPS = ("checkpoint_seconds", "evaluation_seconds", "log_seconds")
WORDINGS: dict[tuple[Cause, str], tuple[tuple[str, Callable[[Evidence], bool]], ...]] = {
    (Cause.PARALLELISM, ""): (("on-cpu", on_cpu),),
    (Cause.PARALLELISM, "small-batch"): (("on-cpu", on_cpu),),
    (Cause.PARALLELISM, "host-bound"): (("on-cpu", on_cpu),),
    (Cause.INPUT, "preprocessing"): (("on-cores", workers_starve_computing),),
    (Cause.TUNING, ""): (("on-cpu", on_cpu),),
    (Cause.TUNING, "precision"): (
        ("double", _in_double),
        ("few-bits", _in_few_bits),
        ("tried", _tried),
    ),
    (Cause.TUNING, "layout"): (("in-place", _has("channels_last", True)), ("on-cpu", on_cpu)),
    (Cause.TUNING, "attention"): (
        ("fallback", _by_fallback),
        ("in-place", _has("attention", "sdpa", "flash")),
    ),
    (Cause.TUNING, "kernels"): (("own", _by_a_kernel), ("slow", _by_slow_operators)),
    (Cause.TUNING, "padding"): (("ignored", _by_ignored),),
    (Cause.MEMORY, "heap"): (("grown", _by_growing),),
    (Cause.MEMORY, "offload"): (("on-drive", _on_drive),),
    (Cause.SCHEDULING, "threads"): (("own", waits_for_the_interpreter),),
    (Cause.COMMUNICATION, ""): (("on-cpu", on_cpu),),
    (Cause.TUNING, "compile"): (("anew", _compiles_anew),),
    (Cause.SCHEDULING, "power"): (("by-board", capped_by_board),),
    (Cause.MONITORING, "synchronisation"): (("on-cpu", on_cpu),),
    (Cause.MONITORING, "anomaly-detection"): (("unset", _has("anomaly_detection", False)),),
    (Cause.MONITORING, "profiler"): (("unset", _has("profiler_on", False)),),
    (Cause.MONITORING, "logging"): (
        ("checkpoints", _most_of_what_is_beside("checkpoint_seconds")),
        ("evaluation", _most_of_what_is_beside("evaluation_seconds")),
        ("logs", _most_of_what_is_beside("log_seconds")),
    ),
    (Cause.NONE, ""): (("on-cpu", on_cpu),),
}
"""Of several that would fit, the first."""
