"""Signs of a run that does not get the device: power, heat, others on the GPU, slices, links."""

from trainwright.diagnose.causes.rules import above, any_of, below, rules_of, yes
from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.measures.figures import (
    UNEVEN,
    given,
    gpu_ratio,
    imbalance,
    less_than,
    link_share,
    numa_mismatch,
    number,
    on_gpu,
    ranks,
    reading,
    slice_used,
    step_share,
    throttled,
)
from trainwright.diagnose.measures.kernels import (
    TOO_HOT,
    braked,
    capped_below,
    clock_share,
    clock_where,
    held_by_heat,
    hottest,
    is_capped,
    is_hot,
    power_is_low,
)
from trainwright.diagnose.measures.sharing import foreign_memory
from trainwright.diagnose.measures.trials import saved_by
from trainwright.diagnose.verdict import Cause

DCGM = "assumed, on NVML's clock event reasons, as DCGM's violation counters"
ASSUMED = "assumed"
DRIVES = "assumed: a thread launches the kernels of one device at a time"
FOREIGN = "assumed: 5 % of the memory"
ALIKE = "assumed: GPUs that share each step are busy alike, as a wait in NCCL counts as busy"

_rule = rules_of(Cause.SCHEDULING)


def _slice(evidence: Evidence) -> str | None:
    return next((gpu.mig_profile for gpu in evidence.gpus or () if gpu.mig_profile), None)


def _mps(evidence: Evidence) -> float | None:
    found = [gpu.mps_share for gpu in evidence.gpus or () if gpu.mps_share is not None]
    return min(found) if found else None


def _partitioned(evidence: Evidence) -> bool:
    return _slice(evidence) is not None or (_mps(evidence) or 1) < 1


def _taken_by_others(evidence: Evidence) -> float | None:
    """Return what the kernels of others take of the run's GPU."""
    others = evidence.host.other_programs if evidence.host is not None else ()
    taken = [o.utilisation for o in others if o.gpu == "same" and o.utilisation is not None]
    return min(1.0, sum(taken)) if taken else None


def _trainings_on_it(evidence: Evidence) -> float | None:
    """Return the programs on the run's GPU, those that train twice: a screen takes little."""
    others = evidence.host.other_programs if evidence.host is not None else ()
    found = [2.0 if each.trains else 1.0 for each in others if each.gpu == "same"]
    return sum(found) if others else None


def _threads_a_device(evidence: Evidence) -> float | None:
    """Return the threads of one process over the devices that it drives, where it has cores."""
    setup, host = evidence.setup, evidence.host
    if setup is None or setup.strategy not in ("dp", "other") or not on_gpu(evidence):
        return None
    cores = host.cores if host is not None else None
    if setup.torch_threads is None or not cores or cores < 2 * ranks(evidence):
        return None
    return setup.torch_threads / ranks(evidence)


def _slow_link(evidence: Evidence) -> bool:
    """Whether a GPU's link gives much less than it could, negotiated or measured."""
    copied = gpu_ratio("copy_bytes_s", "copy_expected_bytes_s")(evidence)
    return (link_share(evidence) or 1) < 0.6 or (copied is not None and copied < 0.7)


def _slow_generation(evidence: Evidence) -> bool:
    """Whether a link is slow by its generation alone, which a GPU at rest lowers."""
    narrow = gpu_ratio("link_width", "link_width_max")(evidence)
    return (link_share(evidence) or 1) < 0.6 and (narrow is None or narrow >= 1)


def _over_pcie(evidence: Evidence) -> bool:
    return evidence.setup is not None and evidence.setup.link == "pcie"


RULES = (
    # Power and heat
    _rule("gpus.throttled", throttled("thermal", "hardware-thermal"), "share", above(0.1, 4, DCGM),
          below(0.02, -1, DCGM), variant="heat"),
    _rule("setup.world_size",
          given(lambda evidence: (throttled("thermal", "hardware-thermal")(evidence) or 0) >= 0.5,
                number("setup.world_size")), "number",
          above(2, 1, "assumed: ranks that exchange gradients all wait for the hottest"),
          variant="heat"),
    _rule("gpus.throttled", braked, "share", above(0.1, 3, DCGM), variant="power"),
    _rule("gpus.throttled", throttled("power-cap"), "share", above(0.1, 1, DCGM),
          above(0.6, 2, DCGM), variant="power"),
    _rule("gpus.utilisation",
          given(lambda evidence: (throttled("power-cap")(evidence) or 0) >= 0.6,
                reading("gpus.utilisation")), "share",
          above(0.8, 1, "assumed: capped while it works, not while it rests"), variant="power"),
    _rule("gpus.clock", clock_where(is_capped), "share", below(0.85, 2, ASSUMED),
          below(0.7, 3, ASSUMED), variant="power"),
    _rule("gpus.power", capped_below, "share",
          below(0.8, 3, "assumed: held down below its own limit, by the board or the server"),
          above(0.9, -2, "assumed: a GPU at full work reaches its limit, and is capped there"),
          variant="power"),
    _rule("gpus.power_limit", power_is_low, "share", below(0.9, 2, ASSUMED),
          below(0.75, 3, ASSUMED), variant="power"),
    _rule("gpus.temperature_c", hottest, "celsius",
          above(83, 1, "NVIDIA's GeForce cards hold 83 °C by slowing down"),
          above(TOO_HOT, 2, "NVIDIA's GeForce cards hold 83 °C by slowing down"), variant="heat"),
    _rule("gpus.clock", clock_where(held_by_heat), "share", below(0.9, 1, ASSUMED),
          variant="heat"),
    _rule("host.on_battery", reading("host.on_battery"), "yes-no", yes(3, ASSUMED),
          variant="battery"),
    _rule("host.power_saving", reading("host.power_saving"), "yes-no", yes(2, ASSUMED),
          variant="battery"),
    _rule("gpus.clock",
          given(lambda evidence: evidence.host is not None and bool(evidence.host.on_battery),
                clock_share), "share", below(0.8, 2, ASSUMED), variant="battery"),
    # Other programs on the GPU, slices of it
    _rule("gpus.foreign_memory", foreign_memory, "share", above(0.05, 2, FOREIGN),
          above(0.25, 3, FOREIGN), variant="other-programs-gpu"),
    _rule("gpus.foreign_processes", reading("gpus.foreign_processes"), "number",
          above(1, 1, ASSUMED), above(2, 2, ASSUMED), below(0.5, -1, ASSUMED),
          variant="other-programs-gpu"),
    _rule("gpus.foreign_utilisation", reading("gpus.foreign_utilisation"), "share",
          above(0.1, 3, ASSUMED), above(0.3, 4, ASSUMED), variant="other-programs-gpu"),
    _rule("gpus.slice_used", slice_used, "share",
          above(0.8, 2, "assumed: the slice's memory is nearly full"), variant="mig"),
    _rule("gpus.mig_profile", _slice, "word", any_of(2, "NVIDIA MIG user guide"), variant="mig"),
    _rule("gpus.mps_share", _mps, "share",
          below(0.99, 2, "NVIDIA MPS guide: CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"), variant="mps"),
    _rule("gpus.sm_active", given(_partitioned, reading("gpus.sm_active")), "share",
          above(0.7, 2, "assumed: the slice itself is full")),
    _rule("gpus.utilisation", given(_partitioned, reading("gpus.utilisation")), "share",
          above(0.8, 1, "assumed: the share itself is full")),
    _rule("gpus.memory_used",
          given(_partitioned, gpu_ratio("memory_used_bytes", "memory_total_bytes")), "share",
          above(0.8, 1, "assumed: the slice itself is full")),
    # Work that is not divided evenly
    _rule("gpus.imbalance", imbalance, "share", above(UNEVEN, 3, ALIKE), variant="uneven"),
    # Links and NUMA
    _rule("gpus.link", link_share, "share",
          below(0.6, 2, "assumed: half of the lanes, or a generation less"),
          below(0.3, 3, "assumed: a quarter of the rate"), variant="link"),
    _rule("gpus.copy", gpu_ratio("copy_bytes_s", "copy_expected_bytes_s"), "share",
          below(0.7, 3, "assumed: 70 % of what the link gives"), above(0.8, -2, "assumed"),
          variant="link"),
    _rule("steps.transfer", given(_slow_link, step_share("transfer")), "share",
          above(0.1, 2, ASSUMED), variant="link"),
    _rule("setup.link_bytes_s", given(_over_pcie, number("setup.link_bytes_s")), "bytes",
          below(3e9, 2, "assumed: PCIe 3.0 carries 12 GB/s with all its lanes, and 3 with four"),
          below(1e9, 3, "assumed: PCIe 3.0 carries 12 GB/s with all its lanes, and 3 with four"),
          variant="link"),
    _rule("profile.copies", given(_slow_link, reading("profile.copies")), "share",
          above(0.1, 2, ASSUMED), variant="link"),
    _rule("gpus.utilisation",
          given(lambda evidence: (link_share(evidence) or 1) < 0.6, reading("gpus.utilisation")),
          "share",
          above(0.5, 1, "assumed: under load; at idle every link slows down to save power"),
          variant="link"),
    _rule("gpus.utilisation", given(_slow_generation, reading("gpus.utilisation")), "share",
        below(0.2, -2, "assumed: at idle every link slows down to save power, and keeps its lanes"),
        variant="link"),
    _rule("host.numa", numa_mismatch, "yes-no",
          yes(2, "assumed: memory of another node is slower to reach"), variant="numa"),
    _rule("gpus.copy",
          given(lambda evidence: bool(numa_mismatch(evidence)),
                gpu_ratio("copy_bytes_s", "copy_expected_bytes_s")), "share",
          below(0.85, 3, "nvbandwidth: affinity to the GPU's node first"), variant="numa"),
    _rule("host.other_programs", _trainings_on_it, "number", above(1, 2, FOREIGN),
          above(2, 3, "assumed: trainings take a GPU by turns"), variant="other-programs-gpu"),
    _rule("host.other_utilisation", _taken_by_others, "share", above(0.1, 3, ASSUMED),
          above(0.3, 4, ASSUMED), variant="other-programs-gpu"),
    _rule("gpus.clock",
          given(lambda evidence: throttled("power-cap", "thermal")(evidence) is None, clock_share),
          "share", below(0.75, 2, "assumed: a GPU at work holds most of its clock"),
          below(0.5, 3, "assumed: a GPU at work holds most of its clock"), variant="power"),
    _rule("gpus.clock",
          clock_where(is_hot), "share",
          below(0.85, 2, "assumed: a GPU at work holds most of its clock"),
          below(0.6, 3, "assumed: a GPU at work holds most of its clock"), variant="heat"),
    _rule("setup.torch_threads", _threads_a_device, "times", below(0.9, 3, DRIVES),
          variant="threads"),
    _rule("experiments.single_device",
          given(less_than(0.9, _threads_a_device), saved_by("single_device")), "share",
          above(0.2, 2, DRIVES), variant="threads"),
    _rule("gpus.performance_state",
          given(lambda evidence: (number("gpus.utilisation")(evidence) or 1) >= 0.3,
                number("gpus.performance_state")), "number",
          above(3, 2, "NVML: P0 and P2 are for work"), above(5, 3, "NVML: P0 and P2 are for work"),
          variant="power"),
    _rule("steps.transfer",
          given(lambda evidence: bool(numa_mismatch(evidence)), step_share("transfer")), "share",
          above(0.1, 2, ASSUMED), variant="numa"),
)  # fmt: skip
