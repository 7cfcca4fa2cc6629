"""What a run of another kind says: of its parallel work, and of its kernels."""

from trainwright.diagnose.causes.parallelism import (
    cores_make_batches,
    device_idles,
    fed_alone,
    only_computes,
)
from trainwright.diagnose.causes.rules import above, below, rules_of
from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.measures.cost import (
    bubble,
    gradients_on_link,
    in_stages,
    keeps_all_alone,
    kernel_spacing,
    offloads,
)
from trainwright.diagnose.measures.figures import (
    accumulates,
    at_least,
    given,
    input_keeps_up,
    less_than,
    number,
    on_cpu,
    on_gpu,
    ranks,
    step_time,
    utilisation,
)
from trainwright.diagnose.measures.hardware import (
    another_gpu,
    beyond_its_peak,
    on_the_processor,
    saved_by_cores,
)
from trainwright.diagnose.measures.kernels import (
    full_precision,
    in_tf32,
    multiplies_on_tensor_cores,
)
from trainwright.diagnose.measures.trials import (
    attention_by_length,
    doubled_batch,
    doubled_model,
    saved_by,
)
from trainwright.diagnose.measures.work import in_operators
from trainwright.diagnose.verdict import Cause

ASSUMED = "assumed"
BETWEEN = "assumed: between hundreds of operators Python and dispatch take the time, not a kernel"
GPIPE = "GPipe: a bubble of (stages - 1) / (stages - 1 + micro-batches)"
DOUBLING = "assumed: a full device takes twice the time for twice the samples"


_LARGER = (
    below(1.2, 2, "assumed: a device takes twice the time for twice the model, where it is filled"),
    above(1.85, -1, ASSUMED),
)
_parallelism = rules_of(Cause.PARALLELISM)
_input = rules_of(Cause.INPUT)
_tuning = rules_of(Cause.TUNING)


def _launches_alone(evidence: Evidence) -> bool:
    """Whether no loader of a GPU run is known to need the processor as well."""
    more = saved_by("more_workers")(evidence) or 0
    cores = saved_by_cores(evidence) or 0
    return on_gpu(evidence) and max(more, cores) < 0.1 and not cores_make_batches(evidence)


def _accumulates_though_fed(evidence: Evidence) -> bool:
    """Whether a GPU that waits for no data gets its batch in pieces."""
    return on_gpu(evidence) and accumulates(evidence) and input_keeps_up(evidence)


def _waits_for_launches(evidence: Evidence) -> bool:
    """Whether a GPU idles, or its kernels follow each other as fast as PyTorch launches them."""
    launched = on_gpu(evidence) and less_than(50e-6, kernel_spacing)(evidence)
    return device_idles(evidence) or launched


def _sums_are_quick(evidence: Evidence) -> bool:
    """Whether GPUs of one host are known to sum their gradients in next to no time.

    PCIe's rate is of one pair of them; where all send at once, they share it.
    """
    apart = evidence.setup is not None and evidence.setup.link == "nvlink"
    return on_gpu(evidence) and less_than(0.03 if apart else 0.01, gradients_on_link)(evidence)


def _sends_little(evidence: Evidence) -> bool:
    """Whether nothing is known of a step that takes its time whatever the batch."""
    sends = at_least(0.2, saved_by("communication"))(evidence) and ranks(evidence) > 1
    return not offloads(evidence) and not sends


def _products_hold_it_back(evidence: Evidence) -> bool:
    """Whether a GPU with tensor cores has its batches, and is not known to idle."""
    return (
        fed_alone(evidence) and multiplies_on_tensor_cores(evidence) and not device_idles(evidence)
    )


def _in_single(evidence: Evidence) -> bool:
    """Whether one GPU with tensor cores computes without them, in steps of few launches."""
    single = full_precision(evidence) is not None and keeps_all_alone(evidence)
    return single and less_than(0.05, step_time)(evidence)


def _calls_many(evidence: Evidence) -> bool:
    """Whether a step is hundreds of operators on one processor, and nothing beside its passes."""
    many = at_least(600, number("profile.kernels_a_step"))(evidence)
    return on_cpu(evidence) and many and only_computes(evidence)


def _by_precision(evidence: Evidence) -> float | None:
    """Return by what share another precision changes a step's time, faster or slower."""
    saved = saved_by("other_precision")(evidence)
    return None if saved is None else abs(saved)


PARALLELISM = (
    _parallelism("gpus.utilisation", given(_accumulates_though_fed, utilisation), "share",
        below(0.6, 2, "assumed: a GPU that idles at parts of a batch has more to do at all of it"),
        variant="small-batch"),
    _parallelism("profile.in_operators", given(_calls_many, in_operators), "share",
          below(0.45, 2, BETWEEN), variant="host-bound"),
    _parallelism("experiments.doubled_batch", given(_sends_little, doubled_batch), "times",
          below(1.2, 4, DOUBLING), below(1.4, 3, DOUBLING), below(1.5, 2, DOUBLING),
          above(1.8, -3, DOUBLING), variant="small-batch"),
    _parallelism("experiments.larger_model", doubled_model, "times", *_LARGER),
    _parallelism("profile.bubble", bubble, "share", above(0.15, 2, GPIPE), above(0.3, 3, GPIPE),
          variant="small-batch"),
    _parallelism("experiments.accumulation", given(in_stages, saved_by("accumulation")), "share",
          above(0.1, 3, GPIPE), variant="small-batch"),
    _parallelism("experiments.faster_cpu", given(_launches_alone, saved_by("faster_cpu")), "share",
          above(0.15, 2, "assumed: the processor that launches holds the run back"),
          above(0.3, 3, "assumed: the processor that launches holds the run back"),
          below(0.03, -2, ASSUMED), variant="host-bound"),
    _parallelism("experiments.another_gpu", another_gpu, "share",
          below(0.1, 2, "assumed: what another GPU does not change is no GPU's"),
          above(0.3, -2, "assumed: what another GPU changes is the GPU's"), variant="host-bound"),
    _parallelism("experiments.compiled", given(_waits_for_launches, saved_by("compiled")), "share",
          above(0.15, 3, "PyTorch: compiling fuses small kernels and drops Python's part of each"),
          variant="host-bound"),
    _parallelism("experiments.other_precision", given(_in_single, _by_precision), "share",
          below(0.05, 2, "assumed: tensor cores hurry a step that fills the GPU")),
    _parallelism("experiments.faster_cpu", given(on_cpu, saved_by("faster_cpu")), "share",
          below(0.03, 1, "assumed: a step that other cores do not change is not spread over cores"),
          variant="small-batch"),
    _parallelism("experiments.processor", on_the_processor, "times",
          below(2, 2, "assumed: work that fills a GPU takes a processor many times as long"),
          below(1.1, 3, "assumed: work that fills a GPU takes a processor many times as long"),
          below(0.6, 4, "assumed: work that fills a GPU takes a processor many times as long"),
          above(4, -2, ASSUMED)),
)  # fmt: skip

INPUT = (
    _input("experiments.single_device", given(_sums_are_quick, saved_by("single_device")), "share",
          above(0.2, 2,
                "assumed: what fewer devices save, and no sums of gradients take, is the host's")),
    _input("experiments.larger_model", doubled_model, "times", *_LARGER),
    _input("experiments.more_cores", given(on_gpu, saved_by_cores), "share",
          above(0.15, 3, "assumed: one core launches what a GPU does, and many make its batches")),
)  # fmt: skip

TUNING = (
    _tuning("experiments.other_precision",
          given(lambda evidence: in_tf32(evidence) is not None, _by_precision), "share",
          above(0.2, 2, "assumed: of what TF32 saves over single precision 16 bits save more"),
          variant="precision"),
    _tuning("experiments.other_precision", given(_products_hold_it_back, _by_precision), "share",
          below(0.05, 2, "assumed: products are faster in 16 bits, unless their kernels are poor"),
          variant="kernels"),
    _tuning("experiments.attention_by_length", attention_by_length, "share",
          above(0.25, 2, "assumed: attention takes little of a step up to lengths of the width"),
          above(0.5, 3, "assumed: attention takes little of a step up to lengths of the width"),
          variant="attention"),
    _tuning("experiments.another_gpu", another_gpu, "share",
          below(0.1, -3, "assumed: what another GPU does not change is no GPU's")),
    _tuning("experiments.beyond_peak", beyond_its_peak, "times",
          above(2, 3, "assumed: what only this model of GPU computes slowly is its kernels"),
          above(4, 4, "assumed: what only this model of GPU computes slowly is its kernels"),
          variant="kernels"),
)  # fmt: skip
