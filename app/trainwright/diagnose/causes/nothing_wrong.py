"""Signs that nothing is wrong: the device is busy, and used well."""

import itertools

from trainwright.diagnose.causes import avoidable
from trainwright.diagnose.causes.communication import SCALES
from trainwright.diagnose.causes.remedies import REMEDIES
from trainwright.diagnose.causes.rules import Rule, above, any_of, below, rules_of
from trainwright.diagnose.causes.tuning import LEFT, TENSOR_CORES
from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.measures.avoidable import products_with_cores
from trainwright.diagnose.measures.calls import FEW_CALLS, operator_calls
from trainwright.diagnose.measures.cost import (
    achieved_by_rate,
    loader_alone,
    short_steps_alone,
)
from trainwright.diagnose.measures.figures import (
    affinity,
    at_least,
    cores_of_usable,
    data_wait,
    given,
    gpu_ratio,
    is_word,
    number,
    on_cpu,
    on_gpu,
    processes,
    reading,
    step_share,
    tensor_cores_of_eligible,
    time_share,
    too_few_threads,
    utilisation,
)
from trainwright.diagnose.measures.gpu import beside_step
from trainwright.diagnose.measures.hardware import another_gpu
from trainwright.diagnose.measures.kernels import (
    full_precision,
    has_tensor_cores,
    multiplies_on_tensor_cores,
)
from trainwright.diagnose.measures.names import fills_memory, kernels_of
from trainwright.diagnose.measures.scaling import lost_by_doubling
from trainwright.diagnose.measures.trials import (
    doubled_batch,
    doubled_past_filling,
    saved_by,
)
from trainwright.diagnose.measures.work import (
    achieved_of_matrix_rate,
    device_of_step,
    heavy_operators,
    in_operators,
    least_core_rate,
    products_of_matrix_rate,
    threads_at_work,
)
from trainwright.diagnose.verdict import Cause

ASSUMED = "assumed"
BUSY = "assumed: a remedy that does nothing for a device that is busy"
_rule = rules_of(Cause.NONE)


def _long_operators(evidence: Evidence) -> bool:
    return (operator_calls(evidence) or 0) >= 50


def _no_slow_products(evidence: Evidence) -> bool:
    rate = products_of_matrix_rate(evidence)
    return _long_operators(evidence) and (rate is None or rate >= 0.15)


_busy = at_least(0.85, utilisation)


def _tried(experiment: str) -> tuple[Rule, ...]:
    """Return the rules of a remedy of another cause, which changes nothing where nothing is wrong.

    Many that change nothing are each a sign that the device itself is what takes the time, and
    more so beside a device that is busy.
    """
    name, saved = f"experiments.{experiment}", saved_by(experiment)
    nothing = below(0.05, 1, "assumed: a remedy that does nothing, of what is common")
    idle = given(lambda evidence: not multiplies_on_tensor_cores(evidence), saved)
    tells = idle if experiment == "other_precision" else saved
    rules = (
        _rule(name, saved, "share", above(0.15, -4, ASSUMED)),
        _rule(name, given(_busy, saved), "share", below(0.03, 2, BUSY)),
    )
    return (*rules, _rule(name, tells, "share", nothing)) if experiment in _COMMON else rules


_COMMON = (
    *("more_workers", "other_precision", "compiled", "fused_attention"),
    "without_synchronisation",
)
"""Remedies of what is common: that one of a rare thing changes nothing tells little."""


def _between(counter: str) -> Rule:
    """Return the rule of what runs between the steps, or stops them."""
    return _rule(
        f"counters.{counter}",
        time_share(counter),
        "share",
        above(0.12, -4, "assumed: without it a run is an eighth faster and more"),
    )


_REMEDIES = dict.fromkeys(("more_workers", *(each.experiment for each in REMEDIES)))


def _multiplies(evidence: Evidence) -> bool:
    """Whether a device's arithmetic is what a run needs, and not its memory for tables."""
    return not fills_memory(evidence)


RULES = (
    *avoidable.NONE,
    *map(_between, ("evaluation_seconds", "garbage_seconds", "checkpoint_seconds")),
    *itertools.chain.from_iterable(map(_tried, _REMEDIES)),
    _rule("experiments.another_gpu", another_gpu, "share",
          above(0.3, 2, "assumed: what another GPU changes is the GPU's"),
          below(0.1, -4, "assumed: what another GPU does not change is no GPU's")),
    _rule("gpus.utilisation", given(on_gpu, utilisation), "share", above(0.85, 1, ASSUMED),
          above(0.9, 2, "MLPerf Storage: accelerator utilisation of 90 %"),
          below(0.7, -4, ASSUMED)),
    _rule("gpus.sm_active", reading("gpus.sm_active"), "share",
          above(0.8, 2, "DCGM user guide: SM activity of 0.8 is needed"),
          below(0.5, -3, "DCGM user guide: SM activity below 0.5 is likely ineffective")),
    _rule("gpus.power", gpu_ratio("power_w", "power_limit_w"), "share", above(0.7, 1, ASSUMED),
          above(0.8, 2, ASSUMED), below(0.5, -2, ASSUMED)),
    _rule("steps.data_wait", data_wait, "share",
          below(0.05, 2, "torch-tb-profiler: DataLoader above 5 % of the step"),
          above(0.15, -4, ASSUMED)),
    _rule("steps.optimizer", given(short_steps_alone, step_share("optimizer")), "share",
          above(0.13, -2, avoidable.UPDATE)),
    _rule("steps.other", beside_step, "share",
        above(0.1, -4, "assumed: between the optimizer and the next batch there is little to do")),
    _rule("experiments.synthetic_batch", saved_by("synthetic_batch"), "share",
          below(0.05, 2, "DS-Analyzer"), above(0.15, -4, "DS-Analyzer")),
    _rule("experiments.single_device", saved_by("single_device"), "share",
          below(0.1, 2, "assumed: devices that do nearly as much together as each alone")),
    _rule("experiments.each_doubling",
          given(at_least(0.1, saved_by("single_device")), lost_by_doubling), "share",
          below(0.055, 2, SCALES)),
    _rule("experiments.doubled_batch", doubled_batch, "times", above(1.8, 2, ASSUMED),
          below(1.4, -4, ASSUMED)),
    _rule("experiments.doubled_batch", doubled_past_filling, "times",
          above(1.8, 3, "assumed: smaller batches fill it less, and larger ones no more")),
    _rule("profile.idle", reading("profile.idle"), "share", below(0.1, 2, ASSUMED),
          above(0.3, -3, ASSUMED)),
    _rule("steps.device_seconds", device_of_step, "share",
          above(0.95, 1, "assumed: kernels take all of the step")),
    _rule("profile.tensor_core", tensor_cores_of_eligible, "share", above(0.7, 2, ASSUMED),
          below(0.3, -3, ASSUMED)),
    _rule("profile.achieved_of_peak", given(_multiplies, reading("profile.achieved_of_peak")),
          "share", above(0.4, 3, "ml-engineering: half of the peak is a good result"),
          below(0.15, -4, ASSUMED)),
    _rule("profile.achieved_by_rate", achieved_by_rate, "share",
          above(0.25, 2, "assumed: half of the peak is good, and attention's part is not counted"),
          above(0.4, 3, "ml-engineering: half of the peak is a good result"),
          below(0.15, -3, ASSUMED)),
    _rule("gpus.memory_utilisation", reading("gpus.memory_utilisation"), "share",
          above(0.4, 2, "assumed, on NVML: small kernels and copies keep the memory far less busy"),
          below(0.05, -2, "assumed, on NVML: kernels that read next to nothing")),
    _rule("gpus.dram_active", reading("gpus.dram_active"), "share",
          above(0.6, 2, "DCGM user guide: 0.8 is what memory gives at best")),
    _rule("throughput.expected", number("throughput.expected_times"), "times",
          below(1.15, 2, "assumed: others reach no more on the same hardware"),
          above(1.5, -4, "assumed: others reach more on the same hardware")),
    _rule("profile.achieved_of_matrix_rate", achieved_of_matrix_rate, "share",
        above(0.2, 2, "ml-engineering: half of the peak is a good result; assumed for processors"),
        above(0.5, 3, "ml-engineering: half of the peak is a good result; assumed for processors"),
        below(0.1, -4, "assumed: a tenth of what a plain matrix product reaches beside the run")),
    _rule("profile.operator_calls",
          given(lambda evidence: (achieved_of_matrix_rate(evidence) or 0) < 0.3, operator_calls),
          "times", below(15, -4, FEW_CALLS)),
    _rule("profile.operator_calls", operator_calls, "times", above(150, 1, FEW_CALLS)),
    _rule("steps.least_core_rate", least_core_rate, "flops",
          above(1e10, 2, "assumed: a core with AVX2 does 30 to 100 GFLOP/s at best")),
    _rule("host.run_cores", given(on_cpu, cores_of_usable), "share",
          above(0.8, 2, "assumed: a run on the processor that keeps its cores busy"),
          below(0.6, -3, ASSUMED)),
    _rule("host.runnable_threads", given(on_cpu, threads_at_work), "share",
          above(0.9, 1, "assumed: its threads work or would work on all cores")),
    _rule("profile.in_operators", in_operators, "share",
          below(0.4, -2, "assumed: most of the step is no operator's, but Python's or a drive's")),
    _rule("profile.heavy", given(_no_slow_products, heavy_operators), "share",
          above(0.6, 2, "assumed: the step is large matrix products, convolutions or cells")),
    _rule("setup.precision", given(on_cpu, is_word("setup.precision", "fp64")), "word",
          any_of(-4, "assumed: fp32 has at least twice the rate everywhere")),
    _rule("setup.precision", given(lambda evidence: processes(evidence) == 1, full_precision),
          "word", any_of(-4, TENSOR_CORES)),
    _rule("profile.products_rate", products_with_cores, "share",
          below(0.3, -4, "assumed: a third of what a plain matrix product reaches beside the run")),
    _rule("host.affinity", given(on_cpu, affinity), "share",
          below(0.9, -4, "assumed: cores that the run may not use do nothing for it")),
    _rule("setup.torch_threads", given(on_cpu, too_few_threads), "share",
          below(0.6, -4, "PyTorch: as many threads as cores by default")),
    _rule("host.starved_share", given(on_cpu, reading("host.starved_share")), "share",
          below(0.1, 1, ASSUMED),
          above(0.2, -4, "assumed: who waits for cores a fifth of the time is slowed by that")),
    _rule("loading.alone", loader_alone, "times",
          above(3, 3, "assumed: alone the loader is much faster than the run, as it should be"),
          below(1.5, -4, "assumed: alone the loader is hardly faster than the run")),
    _rule("profile.plain_matrix", given(has_tensor_cores, kernels_of("plain-matrix")), "share",
          above(0.3, -4, "cuBLAS and cuDNN: sgemm and scudnn kernels use no tensor cores")),
    _rule("profile.double_matrix", kernels_of("double-matrix"), "share",
          above(0.3, -4, "cuBLAS: dgemm kernels")),
    _rule("profile.fallback", kernels_of("fallback"), "share", above(0.15, -4, LEFT)),
    _rule("host.system_share", given(on_cpu, number("host.main_system_share")), "share",
          above(0.3, -2, "assumed: what the system does for a run that computes is little"),
          above(0.4, -4, "assumed: what the system does for a run that computes is little")),
)  # fmt: skip
