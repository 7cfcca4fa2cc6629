"""Signs of a device that works, but not as it could: precision, shapes, layout, kernels."""

from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.measures import (
    data_wait,
    given,
    is_word,
    lowest_capability,
    number,
    odd_dims,
    on_cpu,
    on_gpu,
    reading,
    starved,
    step_share,
    tensor_cores_of_eligible,
    too_few_threads,
    utilisation,
)
from trainwright.diagnose.measures_names import functions_of, kernels_of, odd_kernel
from trainwright.diagnose.measures_trials import another_gpu, saved_by
from trainwright.diagnose.measures_work import (
    convolutions,
    device_of_step,
    products_of_matrix_rate,
    score_matrices,
)
from trainwright.diagnose.rules import above, any_of, below, no, rules_of, yes
from trainwright.diagnose.verdict import Cause

TB = "torch-tb-profiler: tensor cores unused though operators could use them"
KEMPNER = "KempnerPulse: tensor pipe below 15 % with SMs active above 40 %"
NVIDIA = "NVIDIA, Deep Learning Performance Guide: widths in multiples of 8 (fp16)"
GUIDE = "PyTorch performance tuning guide"
MFU = "ml-engineering: half of the peak is a good result"
ASSUMED = "assumed"
_SAVED = (below(0.05, -2, ASSUMED), above(0.1, 2, ASSUMED), above(0.2, 4, ASSUMED))


_rule = rules_of(Cause.TUNING)


def _full_precision(evidence: Evidence) -> str | None:
    """Return fp32 where the GPU has faster units that it leaves idle."""
    setup = evidence.setup
    if setup is None or not on_gpu(evidence) or setup.precision != "fp32" or setup.tf32_allowed:
        return None
    capability = lowest_capability(evidence)
    return "fp32" if capability is None or capability >= 7.0 else None


def _could_be_faster(evidence: Evidence) -> float | None:
    """Return the compute capability of a GPU whose tensor cores the settings leave idle."""
    setup = evidence.setup
    if setup is None:
        return None
    idle = (
        _full_precision(evidence) is not None
        or (_mixed_convolutions(evidence) and setup.channels_last is False)
        or setup.attention == "eager"
    )
    return lowest_capability(evidence) if idle else None


def _double_precision(evidence: Evidence) -> str | None:
    setup = evidence.setup
    return "fp64" if setup is not None and setup.precision == "fp64" else None


def _half(evidence: Evidence) -> bool:
    setup = evidence.setup
    return setup is not None and setup.precision not in (None, "fp32") and on_gpu(evidence)


def _mixed_convolutions(evidence: Evidence) -> bool:
    return _half(evidence) and _is(evidence, "convolution")


def _is(evidence: Evidence, kind: str) -> bool:
    return evidence.setup is not None and evidence.setup.model_kind == kind


def _convolutions_on_cpu(evidence: Evidence) -> bool:
    return on_cpu(evidence) and _is(evidence, "convolution")


def _planes_apart_on_cpu(evidence: Evidence) -> bool:
    setup = evidence.setup
    if setup is None or setup.precision not in (None, "fp32"):
        return False
    return _convolutions_on_cpu(evidence) and setup.channels_last is False


def _convolve(evidence: Evidence) -> bool:
    """Whether convolutions take a step on the processor that has their planes apart."""
    return _planes_apart_on_cpu(evidence) and (convolutions(evidence) or 0) >= 0.5


def _reduced_on_cpu(evidence: Evidence) -> bool:
    setup = evidence.setup
    reduced = setup is not None and setup.precision in ("bf16-mixed", "bf16", "fp16-mixed", "fp16")
    return reduced and on_cpu(evidence)


def _double_on_cpu(evidence: Evidence) -> bool:
    return _double_precision(evidence) is not None and on_cpu(evidence)


def _slow_in_few_bits(evidence: Evidence) -> str | None:
    """Return a precision that the processor computes more slowly than fp32."""
    slow = (products_of_matrix_rate(evidence) or 1) < 0.3
    setup = evidence.setup
    return setup.precision if setup is not None and _reduced_on_cpu(evidence) and slow else None


def _untried(evidence: Evidence) -> bool:
    """Whether no trial of a precision or of kernels says what they cost."""
    tried = ("other_precision", "channels_last", "fused_attention", "kernels")
    return all((saved_by(each)(evidence) or 0) < 0.2 for each in tried)


def _untuned_convolutions(evidence: Evidence) -> bool:
    """Whether cuDNN takes the first kernel that fits its convolutions."""
    setup = evidence.setup
    return on_gpu(evidence) and setup is not None and setup.cudnn_benchmark is False


def _seconds_a_sample(evidence: Evidence) -> float | None:
    """Return a convolutional network's computing for each sample."""
    steps, setup = evidence.steps, evidence.setup
    if steps is None or not _is(evidence, "convolution") or not _untuned_convolutions(evidence):
        return None
    samples = steps.samples or (setup.batch if setup is not None else None)
    return (steps.seconds - (steps.data_wait or 0)) / samples if samples else None


def _multiprocessors_busy(evidence: Evidence) -> bool:
    return (number("gpus.sm_active")(evidence) or 0) >= 0.4


def _has_tensor_cores(evidence: Evidence) -> bool:
    capability = lowest_capability(evidence)
    return capability is None or capability >= 7.0


def _untraced_layout(evidence: Evidence) -> bool:
    return on_gpu(evidence) and evidence.profile is not None and evidence.profile.layout is None


def _untraced_attention(evidence: Evidence) -> bool:
    return evidence.profile is not None and score_matrices(evidence) is None


def _scores(evidence: Evidence) -> bool:
    """Whether attention keeps matrices of scores, by its setting or by a profile."""
    eager = evidence.setup is not None and evidence.setup.attention == "eager"
    traced = score_matrices(evidence) or kernels_of("scores")(evidence)
    return eager or (traced or 0) >= 0.1


def _untraced_elementwise(evidence: Evidence) -> bool:
    profile = evidence.profile
    return on_gpu(evidence) and profile is not None and profile.elementwise is None


RULES = (
    _rule(
        "profile.tensor_core",
        tensor_cores_of_eligible,
        "share",
        below(0.05, 4, TB),
        below(0.3, 2, ASSUMED),
        above(0.7, -3, ASSUMED),
        variant="precision",
    ),
    _rule(
        "gpus.tensor_active",
        given(_multiprocessors_busy, reading("gpus.tensor_active")),
        "share",
        below(0.15, 2, KEMPNER),
        below(0.02, 3, KEMPNER),
        above(0.3, -2, ASSUMED),
        variant="precision",
    ),
    _rule(
        "setup.precision",
        _full_precision,
        "word",
        any_of(2, f"{GUIDE}: mixed precision uses tensor cores from compute capability 7.0 on"),
        variant="precision",
    ),
    _rule(
        "setup.precision",
        _double_precision,
        "word",
        any_of(3, "assumed: fp32 has at least twice the rate everywhere"),
        variant="precision",
    ),
    _rule(
        "steps.compute",
        given(lambda evidence: _double_precision(evidence) is not None, step_share("compute")),
        "share",
        above(0.5, 1, ASSUMED),
        variant="precision",
    ),
    _rule(
        "setup.precision",
        _slow_in_few_bits,
        "word",
        any_of(1, "oneDNN: bf16 and fp16 need AVX512-BF16, AVX512-FP16 or AMX to be fast"),
        variant="precision",
    ),
    _rule(
        "profile.products_rate",
        given(_reduced_on_cpu, products_of_matrix_rate),
        "share",
        below(0.3, 4, "assumed: in few bits, less than a third of a matrix product's rate in fp32"),
        above(1.0, -3, "faster than a matrix product in fp32"),
        variant="precision",
    ),
    _rule(
        "profile.products_rate",
        given(_double_on_cpu, products_of_matrix_rate),
        "share",
        below(0.6, 2, "vector units: half as many doubles as numbers of fp32"),
        variant="precision",
    ),
    _rule(
        "gpus.compute_capability",
        _could_be_faster,
        "number",
        above(7.0, 1, "NVIDIA: tensor cores from compute capability 7.0 on"),
    ),
    _rule(
        "experiments.other_precision",
        saved_by("other_precision"),
        "share",
        *_SAVED,
        variant="precision",
    ),
    _rule(
        "setup.dims",
        given(_half, odd_dims),
        "share",
        above(0.1, 2, NVIDIA),
        above(0.5, 3, NVIDIA),
        variant="shapes",
    ),
    _rule(
        "setup.channels_last",
        given(_mixed_convolutions, reading("setup.channels_last")),
        "yes-no",
        no(2, f"{GUIDE}: channels_last for convolutions on tensor cores"),
        variant="layout",
    ),
    _rule(
        "setup.channels_last",
        given(_planes_apart_on_cpu, reading("setup.channels_last")),
        "yes-no",
        no(2, f"{GUIDE}; PyTorch's figures for processors: 1.0 to 1.8 times"),
        variant="layout",
    ),
    _rule(
        "profile.products_rate",
        given(_convolve, products_of_matrix_rate),
        "share",
        below(0.15, 2, "assumed: convolutions at a sixth of a plain matrix product's rate"),
        above(0.25, -3, "assumed: convolutions that compute fast lose little by their layout"),
        variant="layout",
    ),
    _rule(
        "host.starved_share",
        given(_planes_apart_on_cpu, starved),
        "share",
        above(0.15, -2, "assumed: what lacks cores is slow in any layout"),
        above(0.3, -3, "assumed: what lacks cores is slow in any layout"),
        variant="layout",
    ),
    _rule(
        "setup.torch_threads",
        given(_planes_apart_on_cpu, too_few_threads),
        "share",
        below(0.6, -2, "assumed: what lacks cores is slow in any layout"),
        variant="layout",
    ),
    _rule(
        "profile.convolutions",
        given(_planes_apart_on_cpu, convolutions),
        "share",
        below(0.25, -3, "assumed: a layout matters where convolutions take the step"),
        variant="layout",
    ),
    _rule(
        "setup.cudnn_benchmark",
        given(
            lambda evidence: _untuned_convolutions(evidence) and _is(evidence, "convolution"),
            reading("setup.cudnn_benchmark"),
        ),
        "yes-no",
        no(2, f"{GUIDE}: cuDNN's autotuner for convolutions of one size"),
        variant="kernels",
    ),
    _rule(
        "steps.seconds",
        _seconds_a_sample,
        "seconds",
        above(0.02, 1, "assumed: GPUs train convolutional networks on more than 50 pictures/s"),
        below(0.005, -2, ASSUMED),
        variant="kernels",
    ),
    _rule(
        "profile.layout",
        reading("profile.layout"),
        "share",
        above(0.05, 2, ASSUMED),
        above(0.15, 3, ASSUMED),
        variant="layout",
    ),
    _rule(
        "experiments.channels_last", saved_by("channels_last"), "share", *_SAVED, variant="layout"
    ),
    _rule(
        "setup.attention",
        is_word("setup.attention", "eager"),
        "word",
        any_of(2, "PyTorch: scaled_dot_product_attention keeps no score matrix"),
        variant="attention",
    ),
    _rule(
        "profile.attention_eager",
        score_matrices,
        "share",
        above(0.1, 2, ASSUMED),
        above(0.2, 3, ASSUMED),
        variant="attention",
    ),
    _rule(
        "experiments.fused_attention",
        saved_by("fused_attention"),
        "share",
        *_SAVED,
        variant="attention",
    ),
    _rule(
        "profile.elementwise",
        reading("profile.elementwise"),
        "share",
        above(0.3, 2, ASSUMED),
        above(0.5, 3, ASSUMED),
        variant="compile",
    ),
    _rule(
        "setup.compile",
        given(
            lambda evidence: (number("profile.elementwise")(evidence) or 0) >= 0.3,
            reading("setup.compile"),
        ),
        "yes-no",
        no(1, f"{GUIDE}: fuse pointwise operations"),
        variant="compile",
    ),
    _rule("experiments.compiled", saved_by("compiled"), "share", *_SAVED, variant="compile"),
    _rule(
        "setup.sequence_padding",
        reading("setup.sequence_padding"),
        "share",
        above(0.2, 2, ASSUMED),
        above(0.4, 3, ASSUMED),
        variant="padding",
    ),
    _rule(
        "setup.deterministic",
        given(on_gpu, reading("setup.deterministic")),
        "yes-no",
        above(0.5, 1, "PyTorch: deterministic algorithms are often slower"),
        variant="architecture",
    ),
    _rule(
        "profile.achieved_of_peak",
        reading("profile.achieved_of_peak"),
        "share",
        below(0.3, 1, MFU),
        above(0.5, -3, MFU),
    ),
    _rule(
        "gpus.utilisation",
        given(lambda evidence: on_gpu(evidence) and _untried(evidence), utilisation),
        "share",
        above(0.8, 1, "assumed: the device is busy, so it matters with what"),
        below(0.5, -2, "torch-tb-profiler: utilisation below 50 % has another cause"),
    ),
    _rule(
        "steps.data_wait",
        data_wait,
        "share",
        below(0.05, 1, ASSUMED),
        above(0.3, -3, "assumed: the device waits for batches"),
    ),
    _rule(
        "profile.plain_matrix",
        given(_has_tensor_cores, kernels_of("plain-matrix")),
        "share",
        above(0.15, 2, "cuBLAS and cuDNN: sgemm and scudnn kernels use no tensor cores"),
        above(0.3, 3, "cuBLAS and cuDNN: sgemm and scudnn kernels use no tensor cores"),
        variant="precision",
    ),
    _rule(
        "profile.double_matrix",
        kernels_of("double-matrix"),
        "share",
        above(0.15, 3, "cuBLAS: dgemm kernels"),
        variant="precision",
    ),
    _rule(
        "profile.layout",
        given(_untraced_layout, kernels_of("layout")),
        "share",
        above(0.08, 2, ASSUMED),
        above(0.2, 3, ASSUMED),
        variant="layout",
    ),
    _rule(
        "profile.elementwise",
        given(_untraced_elementwise, kernels_of("elementwise")),
        "share",
        above(0.3, 2, ASSUMED),
        above(0.5, 3, ASSUMED),
        variant="compile",
    ),
    _rule(
        "profile.odd_kernel",
        odd_kernel,
        "share",
        above(0.25, 2, "assumed: a kernel that is no library's takes much of the device's time"),
        above(0.4, 3, "assumed: a kernel that is no library's takes much of the device's time"),
        variant="kernels",
    ),
    _rule(
        "steps.device_seconds",
        given(lambda evidence: (odd_kernel(evidence) or 0) >= 0.25, device_of_step),
        "share",
        above(0.7, 1, "assumed: the device is busy, so it matters with what"),
        variant="kernels",
    ),
    _rule("experiments.shapes", saved_by("shapes"), "share", *_SAVED, variant="shapes"),
    _rule("experiments.padding", saved_by("padding"), "share", *_SAVED, variant="padding"),
    _rule("experiments.kernels", saved_by("kernels"), "share", *_SAVED, variant="kernels"),
    _rule(
        "profile.recompilations",
        reading("profile.recompilations"),
        "number",
        above(0.02, 3, "PyTorch: torch.compile compiles anew for each new shape"),
        variant="compile",
    ),
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
    _rule(
        "profile.attention_eager",
        given(_untraced_attention, kernels_of("scores")),
        "share",
        above(0.15, 2, ASSUMED),
        above(0.3, 3, ASSUMED),
        variant="attention",
    ),
    _rule(
        "setup.sequence_length",
        given(_scores, number("setup.sequence_length")),
        "number",
        above(2048, 1, "assumed: score matrices grow with the square of the length"),
        variant="attention",
    ),
    _rule(
        "profile.host_compile",
        functions_of("compile"),
        "share",
        above(0.1, 2, "PyTorch: torch.compile compiles anew for each new shape"),
        above(0.3, 3, "PyTorch: torch.compile compiles anew for each new shape"),
        variant="compile",
    ),
    _rule(
        "experiments.another_gpu",
        another_gpu,
        "share",
        below(0.1, -3, "assumed: what another GPU does not change is no GPU's"),
    ),
    _rule(
        "throughput.expected",
        number("throughput.expected_times"),
        "times",
        above(1.5, 1, "assumed: others reach more on the same hardware"),
    ),
)
