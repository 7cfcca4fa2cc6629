"""Signs of a device that works, but not as it could: precision, shapes, layout, kernels."""

from trainwright.diagnose.causes.rules import above, any_of, below, no, rules_of, yes
from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.measures.avoidable import (
    computes_again,
    layout_may_cost,
    layout_shows,
    products_with_cores,
    slow_beside_products,
)
from trainwright.diagnose.measures.cost import keeps_all_alone
from trainwright.diagnose.measures.figures import (
    accumulates,
    cores_of_usable,
    data_wait,
    given,
    is_word,
    number,
    odd_dims,
    on_cpu,
    on_gpu,
    processes,
    ratio,
    reading,
    starved,
    step_share,
    tensor_cores_of_eligible,
    too_few_threads,
    utilisation,
)
from trainwright.diagnose.measures.kernels import (
    convolutions_on_cpu,
    could_be_faster,
    counts_what_is_wanted,
    double_precision,
    few_bits,
    full_precision,
    half_precision,
    has_tensor_cores,
    in_tf32,
    is_kind,
    mixed_convolutions,
    planes_apart_on_cpu,
    reduced_on_cpu,
    seconds_a_sample,
    untraced_elementwise,
    untraced_layout,
    untried,
    untuned_convolutions,
)
from trainwright.diagnose.measures.names import (
    fallback_attention,
    functions_of,
    kernels_of,
    odd_kernel,
)
from trainwright.diagnose.measures.work import (
    any_products_rate,
    computes_alone,
    device_of_step,
    products_of_matrix_rate,
    slow_operators,
)
from trainwright.diagnose.verdict import Cause

NVIDIA = "NVIDIA, Deep Learning Performance Guide: widths in multiples of 8 (fp16)"
GUIDE = "PyTorch performance tuning guide"
TENSOR_CORES = f"{GUIDE}: mixed precision uses tensor cores from compute capability 7.0 on"
HALVES = "NVIDIA, A100 data sheet: 16 bits have twice the rate of TF32"
MFU = "ml-engineering: half of the peak is a good result"
ASSUMED = "assumed"
PRODUCTS = "assumed: products of few rows, read rather than computed, reach a third of the rate"
BACKWARD = "assumed: a gradient takes twice its operator's time, with recomputing thrice"
SLOW = "assumed: long operators that do a tenth of what a plain product does beside the run"
LEFT = "PyTorch: slow_conv and the like are what is left where no library fits"
CHANNELS = f"{GUIDE}; PyTorch's figures for processors: 1.0 to 1.8 times"

_rule = rules_of(Cause.TUNING)


def _passes_alone(evidence: Evidence) -> bool:
    """Whether one process computes both passes of each batch on one device, once and timed."""
    apart = accumulates(evidence) and on_cpu(evidence)
    return keeps_all_alone(evidence) and not apart and not computes_again(evidence)


RULES = (
    _rule("profile.tensor_core", tensor_cores_of_eligible, "share",
          below(0.05, 4, "torch-tb-profiler: tensor cores unused though operators could use them"),
          below(0.3, 2, ASSUMED), above(0.7, -3, ASSUMED), variant="precision"),
    _rule("setup.precision", full_precision, "word", any_of(2, TENSOR_CORES), variant="precision"),
    _rule("setup.precision", in_tf32, "word", any_of(1, HALVES), variant="precision"),
    _rule("setup.precision", double_precision, "word",
          any_of(3, "assumed: fp32 has at least twice the rate everywhere"), variant="precision"),
    _rule("steps.compute",
          given(lambda evidence: double_precision(evidence) is not None, step_share("compute")),
          "share", above(0.5, 1, ASSUMED), variant="precision"),
    _rule("setup.precision", few_bits, "word",
          any_of(2, "oneDNN: bf16 and fp16 need AVX512-BF16, AVX512-FP16 or AMX to be fast"),
          variant="precision"),
    _rule("profile.products_rate", given(reduced_on_cpu, any_products_rate), "share",
        below(0.5, 2, "assumed: in few bits, less than half of a matrix product's rate in fp32"),
        below(0.3, 4, "assumed: in few bits, less than a third of a matrix product's rate in fp32"),
        above(1.0, -3, "faster than a matrix product in fp32"), variant="precision"),
    _rule("gpus.compute_capability", could_be_faster, "number",
          above(7.0, 1, "NVIDIA: tensor cores from compute capability 7.0 on")),
    _rule("setup.dims", given(half_precision, odd_dims), "share", above(0.1, 2, NVIDIA),
          above(0.5, 3, NVIDIA), variant="shapes"),
    _rule("setup.channels_last", given(mixed_convolutions, reading("setup.channels_last")),
          "yes-no", no(2, f"{GUIDE}: channels_last for convolutions on tensor cores"),
          variant="layout"),
    _rule("setup.channels_last", given(layout_may_cost, reading("setup.channels_last")), "yes-no",
          no(2, CHANNELS), variant="layout"),
    _rule("setup.channels_last", given(planes_apart_on_cpu, reading("setup.channels_last")),
          "yes-no", no(1, CHANNELS), variant="layout"),
    _rule("profile.products_rate", given(layout_shows, products_of_matrix_rate), "share",
          below(0.15, 2, "assumed: convolutions at a sixth of a plain matrix product's rate"),
          variant="layout"),
    _rule("profile.products_rate", given(layout_shows, any_products_rate), "share",
          above(0.25, -3, "assumed: convolutions that compute fast lose little by their layout"),
          variant="layout"),
    _rule("host.starved_share", given(planes_apart_on_cpu, starved), "share",
          above(0.15, -2, "assumed: what lacks cores is slow in any layout"),
          above(0.3, -3, "assumed: what lacks cores is slow in any layout"), variant="layout"),
    _rule("setup.torch_threads", given(planes_apart_on_cpu, too_few_threads), "share",
          below(0.6, -2, "assumed: what lacks cores is slow in any layout"), variant="layout"),
    _rule("setup.cudnn_benchmark",
        given(lambda evidence: untuned_convolutions(evidence) and is_kind(evidence, "convolution"),
              reading("setup.cudnn_benchmark")), "yes-no",
        no(2, f"{GUIDE}: cuDNN's autotuner for convolutions of one size"), variant="kernels"),
    _rule("steps.seconds", seconds_a_sample, "seconds",
          above(0.02, 1, "assumed: GPUs train convolutional networks on more than 50 pictures/s"),
          below(0.005, -2, ASSUMED), variant="kernels"),
    _rule("setup.attention", is_word("setup.attention", "eager"), "word",
          any_of(2, "PyTorch: scaled_dot_product_attention keeps no score matrix"),
          variant="attention"),
    _rule("setup.sequence_padding", reading("setup.sequence_padding"), "share",
          above(0.2, 2, ASSUMED), above(0.4, 3, ASSUMED), variant="padding"),
    _rule("setup.onednn", given(convolutions_on_cpu, reading("setup.onednn")), "yes-no",
          no(5, "PyTorch: on processors oneDNN has the fast convolutions"), variant="kernels"),
    _rule("setup.deterministic", given(on_gpu, reading("setup.deterministic")), "yes-no",
          above(0.5, 2, "PyTorch: deterministic algorithms are often slower"),
          variant="architecture"),
    _rule("profile.achieved_of_peak",
          given(counts_what_is_wanted, reading("profile.achieved_of_peak")), "share",
          below(0.3, 1, MFU), above(0.5, -3, MFU)),
    _rule("gpus.utilisation",
          given(lambda evidence: on_gpu(evidence) and untried(evidence), utilisation), "share",
          above(0.8, 1, "assumed: the device is busy, so it matters with what"),
          below(0.5, -2, "torch-tb-profiler: utilisation below 50 % has another cause")),
    _rule("steps.data_wait", data_wait, "share", below(0.05, 1, ASSUMED),
          above(0.3, -3, "assumed: the device waits for batches")),
    _rule("profile.plain_matrix", given(has_tensor_cores, kernels_of("plain-matrix")), "share",
          above(0.15, 2, "cuBLAS and cuDNN: sgemm and scudnn kernels use no tensor cores"),
          above(0.3, 3, "cuBLAS and cuDNN: sgemm and scudnn kernels use no tensor cores"),
          variant="precision"),
    _rule("profile.double_matrix", kernels_of("double-matrix"), "share",
          above(0.15, 3, "cuBLAS: dgemm kernels"), variant="precision"),
    _rule("profile.layout", given(untraced_layout, kernels_of("layout")), "share",
          above(0.08, 2, ASSUMED), above(0.2, 3, ASSUMED), variant="layout"),
    _rule("profile.elementwise", given(untraced_elementwise, kernels_of("elementwise")), "share",
          above(0.3, 2, ASSUMED), above(0.5, 3, ASSUMED), variant="compile"),
    _rule("profile.odd_kernel", odd_kernel, "share",
          above(0.25, 2, "assumed: a kernel that is no library's takes much of the device's time"),
          above(0.4, 3, "assumed: a kernel that is no library's takes much of the device's time"),
          variant="kernels"),
    _rule("steps.device_seconds",
          given(lambda evidence: (odd_kernel(evidence) or 0) >= 0.25, device_of_step), "share",
          above(0.7, 1, "assumed: the device is busy, so it matters with what"), variant="kernels"),
    _rule("profile.fallback_attention", fallback_attention, "share",
          above(0.25, 2, "PyTorch: flash kernels take no dense mask; what takes one is slower"),
          above(0.4, 3, "PyTorch: flash kernels take no dense mask; what takes one is slower"),
          variant="attention"),
    _rule("profile.recompilations", reading("profile.recompilations"), "number",
          above(0.02, 3, "PyTorch: torch.compile compiles anew for each new shape"),
          variant="compile"),
    _rule(
        "setup.dynamic_shapes",
        given(
            lambda evidence: bool(
                evidence.setup and (evidence.setup.compile or evidence.setup.cudnn_benchmark)
            ),
            reading("setup.dynamic_shapes"),
        ),
        "yes-no",
        yes(2, "PyTorch: compiling and autotuning are for shapes that stay"),
        variant="compile",
    ),
    _rule("profile.host_compile", functions_of("compile"), "share",
          above(0.1, 2, "PyTorch: torch.compile compiles anew for each new shape"),
          above(0.3, 3, "PyTorch: torch.compile compiles anew for each new shape"),
          variant="compile"),
    _rule("throughput.expected", number("throughput.expected_times"), "times",
          above(1.25, 1, "assumed: others reach more on the same hardware")),
    _rule("profile.achieved_of_matrix_rate", slow_beside_products, "share", below(0.2, 2, SLOW),
          below(0.1, 3, SLOW), variant="kernels"),
    _rule("host.run_cores",
          given(lambda evidence: slow_operators(evidence) is not None, cores_of_usable), "share",
          above(0.8, 1, "assumed: cores that are busy, so it matters with what"),
          variant="kernels"),
    _rule("profile.fallback", kernels_of("fallback"), "share", above(0.15, 2, LEFT),
          above(0.3, 3, LEFT), variant="kernels"),
    _rule("steps.compute", given(lambda evidence: processes(evidence) == 1, computes_alone),
          "share",
          above(0.95, 2, "assumed: a step that only computes, and that others compute faster"),
          variant="kernels"),
    _rule("profile.products_rate", products_with_cores, "share", below(0.3, 2, PRODUCTS),
          below(0.2, 3, PRODUCTS), variant="kernels"),
    _rule("steps.backward", given(_passes_alone, ratio("steps.backward", "steps.forward")), "times",
          above(4, 2, BACKWARD), above(8, 3, BACKWARD), variant="kernels"),
)  # fmt: skip
