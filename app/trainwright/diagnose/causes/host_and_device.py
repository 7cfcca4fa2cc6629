"""What the device and its host say together: each alone is not a sign, or a weak one.

A GPU that idles waits for its host. What the host's cores do meanwhile says for what: all of them
busy, or more than launching takes, make batches; none busy, they wait themselves.
"""

from trainwright.diagnose.causes.parallelism import MFU, cores_make_batches, device_idles
from trainwright.diagnose.causes.rules import above, below, rules_of
from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.measures.cost import (
    keeps_all_alone,
    link_rate,
    offloads,
    power_share,
)
from trainwright.diagnose.measures.figures import (
    at_least,
    data_wait,
    foreign_share,
    given,
    less_than,
    number,
    on_cpu,
    on_gpu,
    over_gpus,
    processes,
    ranks_here,
    ratio,
    reading,
    starved,
    utilisation,
)
from trainwright.diagnose.measures.kernels import untried
from trainwright.diagnose.measures.names import (
    filled,
    fills_memory,
    functions_of,
    odd_takes_most,
    reads_within,
)
from trainwright.diagnose.measures.play import MOST, in_one_world, model_in_play
from trainwright.diagnose.measures.scaling import one_computer
from trainwright.diagnose.measures.trials import doubled_batch, saved_by
from trainwright.diagnose.measures.work import passes_timed, workers_of_cores
from trainwright.diagnose.verdict import Cause

_input = rules_of(Cause.INPUT)
_memory = rules_of(Cause.MEMORY)
_tuning = rules_of(Cause.TUNING)
_parallelism = rules_of(Cause.PARALLELISM)
_scheduling = rules_of(Cause.SCHEDULING)

BATCHES = "assumed: one thread launches; what keeps more cores busy beside an idle GPU is batches"
NOBODY = "assumed: where neither the GPU nor a core works, both wait for a drive or a network"
FULL = "assumed: workers that had batches to spare would rest"
FEW_BITS = "assumed: a function that rounds as fewer bits would computes no faster for it"
NEITHER = "Williams et al. 2009 (roofline): where neither holds work back, it is too small"
RESTS = "torch-tb-profiler: utilisation below 50 % has another cause"
ASKED = "assumed: a model that is asked of many positions at once is as fast"
LINK_READ = "assumed: kernels that read over the link leave the GPU's own memory alone"
LINK = "assumed: what crosses the link all the time is what the GPU waits for"


_expected = number("throughput.expected_times")


def _device_rests(evidence: Evidence) -> bool:
    """Whether a GPU idles at times, and is not known to have its batches."""
    rests = device_idles(evidence) or less_than(0.7, utilisation)(evidence)
    fed = less_than(0.05, data_wait)(evidence) or at_least(0.97, passes_timed)(evidence)
    return on_gpu(evidence) and rests and not fed


def _kernels_untried(evidence: Evidence) -> bool:
    """Whether nobody tried what the kernels cost, and none that no library has takes most."""
    return untried(evidence) and not odd_takes_most(evidence)


def _busy_cores(evidence: Evidence) -> float | None:
    """Return the cores that each training process keeps busy; all that are, where it is alone."""
    host = evidence.host
    if host is None:
        return None
    busy = host.run_cores
    if busy is None and host.utilisation is not None and host.cores:
        busy = host.utilisation.mean * host.cores
    return None if busy is None else busy / ranks_here(evidence)


def _waits_untold(evidence: Evidence) -> bool:
    """Whether a GPU of one computer idles or is slow, untimed for what, and has cores to itself."""
    host = evidence.host
    others = host is not None and (host.foreign_top or host.other_programs)
    crowded = (foreign_share(evidence) or 0) >= 0.25 or (starved(evidence) or 0) >= 0.15
    untold = data_wait(evidence) is None and number("profile.data_loader")(evidence) is None
    alone = one_computer(evidence) and not others and not crowded and not offloads(evidence)
    busy = at_least(0.5, utilisation)(evidence)
    slow = on_gpu(evidence) and not busy and at_least(1.5, _expected)(evidence)
    return (device_idles(evidence) or slow) and untold and alone


def _workers_fill_cores(evidence: Evidence) -> bool:
    """Whether a GPU run has workers for half of the cores or all, and fed steps are not known."""
    fed, workers = less_than(0.05, data_wait)(evidence), workers_of_cores(evidence)
    return on_gpu(evidence) and not fed and workers is not None and 0.5 <= workers <= 1.5


def _link_used(evidence: Evidence) -> float | None:
    """Return what crosses the link to the host over what it carries, in the busier direction."""
    rates = (
        over_gpus(evidence, lambda gpu: gpu.received_bytes_s),
        over_gpus(evidence, lambda gpu: gpu.sent_bytes_s),
    )
    known = [rate for rate in rates if rate is not None]
    return min(1.0, max(known) / link_rate(evidence)) if known else None


def _memory_beside_the_link(evidence: Evidence) -> float | None:
    """Return how busy a GPU's memory is beside a link that is, where all it works on is its own."""
    linked = keeps_all_alone(evidence) and at_least(0.5, _link_used)(evidence)
    return number("gpus.dram_active")(evidence) if linked else None


def _busy_alone(evidence: Evidence) -> bool:
    """Whether a GPU is busy, and nothing says that it only looks so, or is so for others."""
    draws = power_share(evidence)
    full = (utilisation(evidence) or 0) >= 0.9 and (draws is None or draws >= 0.5)
    shared = at_least(1, number("gpus.foreign_processes"))(evidence)
    apart = processes(evidence) == 1 or less_than(0.05, saved_by("single_device"))(evidence)
    return full and apart and not (shared or fills_memory(evidence))


def _beside_the_passes(evidence: Evidence) -> float | None:
    """Return what one GPU's step takes beside passes and update, where nobody timed for what."""
    steps = evidence.steps
    if steps is None or not keeps_all_alone(evidence) or on_cpu(evidence) or steps.unit == "part":
        return None
    if (steps.data_wait, steps.transfer, steps.communication, steps.other) != (None,) * 4:
        return None
    passes = steps.compute
    if passes is None and steps.forward is not None and steps.backward is not None:
        passes = steps.forward + steps.backward + (steps.optimizer or 0)
    return None if passes is None else max(0.0, 1 - passes / steps.seconds)


INPUT = (
    _input("host.busy_cores", given(_waits_untold, _busy_cores), "number", above(2, 2, BATCHES),
          variant="preprocessing"),
    _input("host.busy_cores", given(_waits_untold, _busy_cores), "number", below(0.5, 2, NOBODY),
          variant="fetch"),
    _input("host.utilisation", given(_workers_fill_cores, number("host.utilisation")), "share",
          above(0.95, 3, FULL), variant="preprocessing"),
    _input("gpus.link_used", given(keeps_all_alone, _link_used), "share", above(0.3, 2, LINK),
          above(0.6, 3, LINK), variant="transfer"),
    _input("profile.host_model", model_in_play, "share", above(MOST, -3, ASKED)),
    _input("setup.batch", in_one_world, "number",
          below(2, -1, "assumed: the work of one world, or that there is only one")),
    _input("gpus.dram_active", _memory_beside_the_link, "share", below(0.2, 3, LINK_READ),
          variant="transfer"),
    _input("experiments.faster_cpu", given(cores_make_batches, saved_by("faster_cpu")), "share",
        above(0.15, 3, "assumed: a faster processor makes the batches sooner that fill its cores"),
        variant="preprocessing"),
    _input("experiments.doubled_batch", given(_device_rests, doubled_batch), "times",
          above(1.8, 3,
                "assumed: a GPU that idles takes more samples a step for less, a loader not")),
    _input("steps.rest", _beside_the_passes, "share",
          above(0.4, 2, "assumed: beside passes and update a step does little but get its batch"),
          above(0.6, 3, "assumed: beside passes and update a step does little but get its batch")),
)  # fmt: skip

MEMORY = (
    _memory(
        "gpus.link_used",
        given(offloads, _link_used),
        "share",
        above(0.3, 2, LINK),
        above(0.6, 3, LINK),
        variant="offload",
    ),
)


def _far_from_peak(evidence: Evidence) -> bool:
    """Whether a device that its memory does not hold back reaches a third of its peak at most."""
    achieved = less_than(0.35, number("profile.achieved_of_peak"))(evidence)
    return achieved and not fills_memory(evidence)


def _deterministic(evidence: Evidence) -> bool:
    return evidence.setup is not None and bool(evidence.setup.deterministic)


_memory_beside_arithmetic = given(
    less_than(0.05, reading("profile.achieved_of_peak")), reading("gpus.dram_active")
)
"""How busy the memory of a device is that computes next to nothing."""

PARALLELISM = (
    _parallelism("profile.host_model", model_in_play, "share", above(MOST, 3, ASKED),
          variant="host-bound"),
    _parallelism("gpus.dram_active", _memory_beside_arithmetic, "share", below(0.1, 2, NEITHER),
          variant="host-bound"),
    _parallelism("profile.host_loader", given(reads_within, functions_of("fetch", "preprocess")),
          "share",
          above(0.3, -3, "assumed: what the training thread does is known, and no launching")),
    _parallelism("profile.recompilations", reading("profile.recompilations"), "number",
          above(0.15, -3, "assumed: a host that compiles in one step of seven launches nothing")),
)  # fmt: skip

TUNING = (
    _tuning("profile.idle", given(_kernels_untried, number("profile.idle")), "share",
          above(0.5, -2, RESTS)),
    _tuning("gpus.idle_share", given(untried, number("gpus.idle_share")), "share",
          above(0.4, -2, RESTS)),
    _tuning("profile.filled", given(_deterministic, filled), "share",
          above(0.05, 2, "PyTorch: deterministic algorithms fill the memory of each new tensor"),
          variant="architecture"),
    _tuning("profile.host_few_bits", given(on_cpu, functions_of("few-bits")), "share",
          above(0.2, 3, FEW_BITS), above(0.4, 4, FEW_BITS), variant="precision"),
    _tuning("gpus.dram_active", _memory_beside_the_link, "share", below(0.2, -3, LINK_READ)),
    _tuning("throughput.expected", given(_busy_alone, number("throughput.expected_times")), "times",
        above(1.3, 2, "assumed: one device that is busy, where others on the same are done sooner"),
        variant="kernels"),
    _tuning("profile.achieved_of_peak", given(_busy_alone, reading("profile.achieved_of_peak")),
          "share", below(0.15, 2, MFU), variant="kernels"),
    _tuning("experiments.doubled_batch", given(_far_from_peak, doubled_batch), "times",
          above(1.9, 3, "assumed: a device that more samples do not fill more, far from its peak"),
          variant="kernels"),
)  # fmt: skip
SCHEDULING = (
    _scheduling("host.runnable_threads",
          given(at_least(0.25, number("host.throttled_periods")),
                ratio("host.runnable_threads", "host.run_cores")), "times",
          above(2, 2, "assumed: twice as many threads want a core as the quota lets run"),
          variant="quota"),
)  # fmt: skip
