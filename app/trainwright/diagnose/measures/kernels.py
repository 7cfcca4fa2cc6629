"""How a device is used: in which precision, by which kernels, in which layout."""

from collections.abc import Callable

from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.evidence_readings import GpuReadings
from trainwright.diagnose.measures.figures import (
    less_than,
    lowest_capability,
    number,
    on_cpu,
    on_gpu,
    over_gpus,
)
from trainwright.diagnose.measures.names import is_compiled
from trainwright.diagnose.measures.trials import saved_by
from trainwright.diagnose.measures.work import any_products_rate, convolutions

TOO_HOT = 87
"""Degrees that no GPU reaches by its load alone; assumed: GeForce cards hold 83."""
_MANY_LAUNCHES = 50
"""Launches a wait from which waits cost little; assumed: a GPU that has caught up waits for the
next launch, one of as many."""


def waits_rarely(evidence: Evidence) -> bool:
    """Whether many kernels are known to be launched for each time that the GPU is waited for."""
    profile = evidence.profile
    if profile is None or not profile.launches_a_step or not profile.synchronise_calls:
        return False
    return profile.launches_a_step >= _MANY_LAUNCHES * profile.synchronise_calls


def full_precision(evidence: Evidence) -> str | None:
    """Return fp32 where the GPU has faster units that it leaves idle."""
    setup = evidence.setup
    if setup is None or not on_gpu(evidence) or setup.precision != "fp32":
        return None
    return "fp32" if has_tensor_cores(evidence) and in_tf32(evidence) is None else None


def in_tf32(evidence: Evidence) -> str | None:
    """Return the precision of products in TF32, which GPUs before Ampere do not have."""
    setup, capability = evidence.setup, lowest_capability(evidence)
    if setup is None or not on_gpu(evidence) or (capability is not None and capability < 8.0):
        return None
    single = setup.precision == "fp32" and setup.tf32_allowed
    return "tf32" if setup.precision == "tf32" or single else None


def could_be_faster(evidence: Evidence) -> float | None:
    """Return the compute capability of a GPU whose tensor cores the settings leave idle."""
    setup = evidence.setup
    if setup is None:
        return None
    idle = (
        full_precision(evidence) is not None
        or (mixed_convolutions(evidence) and setup.channels_last is False)
        or setup.attention == "eager"
    )
    return lowest_capability(evidence) if idle else None


def double_precision(evidence: Evidence) -> str | None:
    """Return fp64 where the run computes in it."""
    setup = evidence.setup
    return "fp64" if setup is not None and setup.precision == "fp64" else None


def half_precision(evidence: Evidence) -> bool:
    """Return whether a GPU computes in 16 bits."""
    setup = evidence.setup
    return setup is not None and setup.precision not in (None, "fp32") and on_gpu(evidence)


def mixed_convolutions(evidence: Evidence) -> bool:
    """Return whether a GPU convolves in 16 bits."""
    return half_precision(evidence) and is_kind(evidence, "convolution")


def is_kind(evidence: Evidence, kind: str) -> bool:
    """Return whether the model is of a kind."""
    return evidence.setup is not None and evidence.setup.model_kind == kind


def convolutions_on_cpu(evidence: Evidence) -> bool:
    """Return whether a convolutional network runs on a processor."""
    return on_cpu(evidence) and is_kind(evidence, "convolution")


def planes_apart_on_cpu(evidence: Evidence) -> bool:
    """Return whether it convolves there in fp32 with the channels apart."""
    setup = evidence.setup
    if setup is None or setup.precision not in (None, "fp32"):
        return False
    return convolutions_on_cpu(evidence) and setup.channels_last is False


def convolve_apart(evidence: Evidence) -> bool:
    """Return whether convolutions take a step on the processor that has their planes apart."""
    return planes_apart_on_cpu(evidence) and (convolutions(evidence) or 0) >= 0.5


def reduced_on_cpu(evidence: Evidence) -> bool:
    """Return whether a processor computes in 16 bits."""
    setup = evidence.setup
    reduced = setup is not None and setup.precision in ("bf16-mixed", "bf16", "fp16-mixed", "fp16")
    return reduced and on_cpu(evidence)


def double_on_cpu(evidence: Evidence) -> bool:
    """Return whether a processor computes in fp64."""
    return double_precision(evidence) is not None and on_cpu(evidence)


def few_bits(evidence: Evidence) -> str | None:
    """Return a processor's 16-bit precision, but where its products are as fast as in fp32."""
    setup, fast = evidence.setup, (any_products_rate(evidence) or 0) >= 1
    return setup.precision if setup is not None and reduced_on_cpu(evidence) and not fast else None


def untried(evidence: Evidence) -> bool:
    """Return whether no trial of a precision or of kernels says what they cost."""
    tried = ("other_precision", "channels_last", "fused_attention", "kernels")
    anew = number("profile.recompilations")(evidence) or 0  # the device waits for what is compiled
    return anew < 0.02 and all((saved_by(each)(evidence) or 0) < 0.2 for each in tried)


def untuned_convolutions(evidence: Evidence) -> bool:
    """Return whether cuDNN takes the first kernel that fits its convolutions."""
    setup = evidence.setup
    return on_gpu(evidence) and setup is not None and setup.cudnn_benchmark is False


def seconds_a_sample(evidence: Evidence) -> float | None:
    """Return a convolutional network's computing for each sample."""
    steps, setup = evidence.steps, evidence.setup
    if steps is None or not is_kind(evidence, "convolution") or not untuned_convolutions(evidence):
        return None
    samples = steps.samples or (setup.batch if setup is not None else None)
    return (steps.seconds - (steps.data_wait or 0)) / samples if samples else None


def counts_what_is_wanted(evidence: Evidence) -> bool:
    """Return whether little of what a GPU computes only fills rows up: products count that too."""
    return (number("setup.sequence_padding")(evidence) or 0) < 0.4


def has_tensor_cores(evidence: Evidence) -> bool:
    """Return whether the GPU has tensor cores; unknown ones count as having."""
    capability = lowest_capability(evidence)
    return capability is None or capability >= 7.0


def untraced_layout(evidence: Evidence) -> bool:
    """Return whether a profile on a GPU says nothing of layout changes."""
    return on_gpu(evidence) and evidence.profile is not None and evidence.profile.layout is None


def untraced_elementwise(evidence: Evidence) -> bool:
    """Whether a profile on a GPU says nothing of element-wise kernels, which nobody has fused."""
    profile = evidence.profile
    untraced = profile is not None and profile.elementwise is None
    return on_gpu(evidence) and untraced and not is_compiled(evidence)


def multiplies_on_tensor_cores(evidence: Evidence) -> bool:
    """Whether a model of large products is on GPUs that are far faster at them in 16 bits."""
    known = lowest_capability(evidence) is not None and has_tensor_cores(evidence)
    return known and any(is_kind(evidence, kind) for kind in ("convolution", "transformer"))


def clock_of(gpu: GpuReadings) -> float | None:
    """Return a GPU's clock over its maximum, where it works at least half of the time."""
    busy = gpu.utilisation is None or gpu.utilisation.mean >= 0.5
    if not busy or gpu.sm_clock_mhz is None or not gpu.sm_clock_max_mhz:
        return None
    return gpu.sm_clock_mhz.mean / gpu.sm_clock_max_mhz


def held_by_heat(gpu: GpuReadings) -> bool:
    """Whether heat lowers a GPU's clock for a tenth of the time and more."""
    reasons = gpu.throttled or {}
    return max(reasons.get("thermal", 0), reasons.get("hardware-thermal", 0)) >= 0.1


def clock_share(evidence: Evidence) -> float | None:
    """Return ``clock_of`` all GPUs, their mean."""
    return over_gpus(evidence, clock_of)


def clock_where(held: Callable[[GpuReadings], bool]) -> Callable[[Evidence], float | None]:
    """Return the measure of ``clock_of`` the GPUs that something holds, their mean."""
    return lambda evidence: over_gpus(evidence, lambda gpu: clock_of(gpu) if held(gpu) else None)


def is_capped(gpu: GpuReadings) -> bool:
    """Whether the limit of its power lowers a GPU's clock for a tenth of the time and more."""
    return (gpu.throttled or {}).get("power-cap", 0) >= 0.1


def is_hot(gpu: GpuReadings) -> bool:
    """Whether a GPU is as hot as those that slow down for it."""
    return gpu.temperature_c is not None and gpu.temperature_c.mean >= 80


def hottest(evidence: Evidence) -> float | None:
    """Return the temperature of the hottest GPU: the others wait for it."""
    return max((gpu.temperature_c.mean for gpu in evidence.gpus or () if gpu.temperature_c),
               default=None)  # fmt: skip


def braked(evidence: Evidence) -> float | None:
    """Return the largest share of samples in which the hardware slowed down, not for heat."""
    found = [_braked(gpu) for gpu in evidence.gpus or () if gpu.throttled is not None]
    return max(found, default=None)


def _braked(gpu: GpuReadings) -> float:
    """Return the share of one GPU: its slowdown is of power, of heat, or of either (NVML)."""
    reasons = gpu.throttled or {}
    slowed = reasons.get("hardware-slowdown", 0.0)
    if (heat := reasons.get("hardware-thermal")) is not None:
        slowed = max(0.0, slowed - heat)
    elif gpu.temperature_c is not None and gpu.temperature_c.mean > TOO_HOT:
        slowed = 0.0  # older drivers name no more than the slowdown
    return max(reasons.get("power-brake", 0.0), slowed)


def power_is_low(evidence: Evidence) -> float | None:
    """Return the lowest set power limit over the usual one."""
    found = [
        gpu.power_limit_w / gpu.power_limit_default_w
        for gpu in evidence.gpus or ()
        if gpu.power_limit_w and gpu.power_limit_default_w
    ]
    return min(found) if found else None


def capped_below(evidence: Evidence) -> float | None:
    """Return power over its limit of the GPUs that the driver caps, where nobody lowered it."""
    if less_than(0.9, power_is_low)(evidence):
        return None

    def share(gpu: GpuReadings) -> float | None:
        capped = is_capped(gpu) or (gpu.throttled or {}).get("power-brake", 0) >= 0.1
        if not capped or gpu.power_w is None or not gpu.power_limit_w:
            return None
        return gpu.power_w.mean / gpu.power_limit_w

    return over_gpus(evidence, share)


def capped_by_board(evidence: Evidence) -> bool:
    """Return whether the board, the power supply or the server holds a GPU below its limit."""
    return (braked(evidence) or 0) >= 0.1 or (capped_below(evidence) or 1) < 0.8
