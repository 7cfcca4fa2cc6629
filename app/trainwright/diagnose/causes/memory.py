"""Signs of memory that is managed badly, on the device or in the computer."""

from trainwright.diagnose.causes.rules import above, any_of, below, no, rules_of, yes
from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.measures.cost import (
    beyond_memory,
    memory_share,
    mostly_takes_pages,
    page_faults,
    recomputes,
    step_seconds,
    system_for_pages,
    unused_memory,
)
from trainwright.diagnose.measures.figures import (
    MIB,
    at_least,
    each_step,
    failed_for_memory,
    given,
    gpu_ratio,
    less_than,
    number,
    on_cpu,
    on_gpu,
    processes,
    ratio,
    reading,
    reserved_unused,
    time_share,
    uneven,
)
from trainwright.diagnose.measures.names import functions_of
from trainwright.diagnose.measures.trials import saved_by_smaller
from trainwright.diagnose.measures.work import achieved_of_matrix_rate, writes_much
from trainwright.diagnose.verdict import Cause

RETRIES = "PyTorch: num_alloc_retries counts calls that had to empty the cache"
FAIRSEQ = "fairseq: emptying the cache every 64 updates costs below 0.2 %"
TB = "torch-tb-profiler: peak above 90 % of the memory"
ASSUMED = "assumed"
PAGES = "assumed: half a microsecond for each page of 4 KiB that Linux gives anew"
PAGES_ALONE = "assumed: what the system does for a run that computes and reads nothing is pages"
LINK = "assumed: 25 GB/s over PCIe 4.0 x16, 50 GB/s over PCIe 5.0"
AGAIN = "assumed: Chen et al. 2016, keeping fewer activations costs one more forward pass"
SPARE = "assumed: activations that a step keeps would fit into what is left"
MID_STEP = "assumed: what is saved between a batch and its update is the step's own state"


_rule = rules_of(Cause.MEMORY)


def _caches(evidence: Evidence) -> float | None:
    """Return whether the run's device has a caching allocator."""
    setup = evidence.setup
    return None if setup is None or setup.device is None else float(setup.device != "cpu")


def _long_step(evidence: Evidence) -> float | None:
    """Return the seconds of a step on one GPU that passes on what it computes to no other."""
    return step_seconds(evidence) if processes(evidence) == 1 else None


def _may_keep(evidence: Evidence) -> bool:
    """Whether memory is not known to be so full that it must be computed again."""
    unused = unused_memory(evidence)
    return unused is None or unused >= 0.5


_again = given(_may_keep, time_share("recomputation_seconds"))


def _computes_again(evidence: Evidence) -> bool:
    """Whether a share of the step that matters goes into activations that could be kept."""
    counted, seen = time_share("recomputation_seconds"), functions_of("recomputation")
    found = (counted(evidence) or 0, seen(evidence) or 0)
    return _may_keep(evidence) and max(found) >= 0.08


def _reads_pages_back(evidence: Evidence) -> bool:
    """Whether pages are read back in every second, and the system takes most of the run's time."""
    busy = at_least(0.5, number("host.main_system_share"))(evidence)
    return busy and at_least(1, number("host.major_faults_s"))(evidence)


def _killed(evidence: Evidence) -> float | None:
    failure = evidence.failure
    if failure is None:
        return None
    return float(any(word in f"{failure.kind} {failure.text}" for word in ("signal 9", "SIGKILL")))


def _writes_pages(evidence: Evidence) -> bool:
    """Whether pages are taken again for large tensors that are written, not multiplied."""
    taken = (page_faults(evidence) or 0) >= 0.1 and not mostly_takes_pages(evidence)
    return taken and writes_much(evidence)


RULES = (
    _rule("counters.alloc_retries",
          given(at_least(0.02, each_step("alloc_retries")), reading("counters.alloc_retries")),
          "number", above(1, 3, RETRIES), variant="fragmentation"),
    _rule("counters.alloc_retries", reading("counters.alloc_retries"), "number",
          above(1, 1, RETRIES), below(1, -1, RETRIES), variant="fragmentation"),
    _rule("gpus.memory_used",
          given(lambda evidence: (number("counters.alloc_retries")(evidence) or 0) >= 1,
                memory_share), "share", above(0.9, 1, TB), variant="fragmentation"),
    _rule("counters.device_allocations", each_step("device_allocations"), "number",
          above(0.5, 2, "assumed: a steady step takes all memory from the cache"),
          above(4, 3, "assumed: a steady step takes all memory from the cache")),
    _rule("profile.allocation_calls", reading("profile.allocation_calls"), "number",
          above(0.5, 2, "assumed: a steady step takes all memory from the cache"),
          above(4, 3, "assumed: a steady step takes all memory from the cache")),
    _rule("counters.empty_cache", each_step("empty_cache"), "number", above(1 / 8, 2, FAIRSEQ),
          above(0.5, 3, FAIRSEQ), variant="empty-cache"),
    _rule("setup.device",
          given(lambda evidence: (each_step("empty_cache")(evidence) or 0) >= 1 / 8, _caches),
          "yes-no",
          yes(1, "PyTorch: freed device memory is kept, and taking it anew makes the device wait"),
          no(-3, "PyTorch: the processor's memory is not cached"), variant="empty-cache"),
    _rule("counters.garbage_collections", each_step("garbage_collections"), "number",
          above(0.1, 2, "assumed: Python collects garbage by itself, and all of it takes 0.1 s"),
          above(0.5, 3, "assumed: Python collects garbage by itself, and all of it takes 0.1 s"),
          variant="garbage"),
    _rule("counters.garbage_seconds", time_share("garbage_seconds"), "share",
          above(0.05, 2, ASSUMED), above(0.15, 3, ASSUMED), above(0.3, 4, ASSUMED),
          variant="garbage"),
    _rule("steps.uneven", given(at_least(0.1, time_share("garbage_seconds")), uneven), "times",
          above(2, 2, "assumed: a step in which Python looks at all it has is a long one"),
          variant="garbage"),
    _rule("counters.recomputation_seconds", _again, "share", above(0.08, 2, AGAIN),
          above(0.15, 3, AGAIN), variant="recomputation"),
    _rule("profile.host_recomputation", given(_may_keep, functions_of("recomputation")), "share",
          above(0.08, 2, AGAIN), above(0.15, 3, AGAIN), variant="recomputation"),
    _rule("host.memory_available",
          given(lambda evidence: on_cpu(evidence) and _computes_again(evidence), unused_memory),
          "share", above(0.5, 2, SPARE), above(0.75, 3, SPARE), variant="recomputation"),
    _rule("counters.reserved_unused",
          given(lambda evidence: not less_than(0.5, memory_share)(evidence), reserved_unused),
          "times", above(1.3, 2, "assumed: 1.3 times, and 2 GiB more than is in use"),
          above(1.8, 3, "assumed: 1.8 times, and 2 GiB more than is in use"),
          variant="fragmentation"),
    _rule("gpus.memory_used", given(on_gpu, gpu_ratio("memory_used_bytes", "memory_total_bytes")),
          "share", above(0.9, 1, TB), variant="full"),
    _rule("steps.seconds",
          given(lambda evidence: (memory_share(evidence) or 0) >= 0.99, _long_step), "seconds",
          above(20, 2,
                "assumed: a step that lasts while nothing is left has spilt into the computer's"),
          variant="full"),
    _rule("failure.memory", failed_for_memory, "yes-no", yes(4, "the run's own error"),
          variant="full"),
    _rule("failure.killed", _killed, "yes-no",
          yes(2, "Linux ends the largest process when memory runs out"), variant="full"),
    _rule("counters.out_of_memory", reading("counters.out_of_memory"), "number",
          above(1, 3, "PyTorch: num_ooms"), variant="full"),
    _rule("counters.out_of_memory",
          given(lambda evidence: (number("counters.alloc_retries")(evidence) or 0) >= 1,
                reading("counters.out_of_memory")), "number",
          above(1, 1, "PyTorch: num_ooms; the cache was emptied, and there was still no room"),
          variant="fragmentation"),
    _rule("host.swapped_bytes_s", reading("host.swapped_bytes_s"), "bytes",
          above(MIB, 3, "assumed: a run that is read back from swap does not fit into memory"),
          above(16 * MIB, 4, "assumed: a run that is read back from swap does not fit into memory"),
          variant="swapping"),
    _rule("host.memory_available", ratio("host.memory_available_bytes", "host.memory_total_bytes"),
          "share", below(0.05, 2, ASSUMED), variant="swapping"),
    _rule("profile.host_allocation", functions_of("allocation"), "share",
          above(0.1, 2, "assumed: a steady step takes all memory from the cache"),
          above(0.25, 3, "assumed: a steady step takes all memory from the cache")),
    _rule("host.system_share", given(_reads_pages_back, number("host.main_system_share")), "share",
          above(0.5, 3, "assumed: a system that reads pages back does little else for a run"),
          variant="swapping"),
    _rule("throughput.expected", given(_reads_pages_back, number("throughput.expected_times")),
          "times", above(1.5, 2, "assumed: a run that waits for its pages is as much slower"),
          variant="swapping"),
    _rule("profile.host_garbage", functions_of("garbage"), "share",
          above(0.04, 2, "assumed: Python collects garbage by itself"),
          above(0.1, 3, "assumed: Python collects garbage by itself"), variant="garbage"),
    _rule("host.page_faults", page_faults, "share", above(0.1, 2, PAGES), above(0.15, 3, PAGES),
          above(0.3, 4, PAGES), variant="heap"),
    _rule("experiments.smaller_batch", saved_by_smaller, "share",
          above(0.25, 3, "assumed: smaller batches fill a GPU less, and leave it room"),
          above(0.5, 4, "assumed: smaller batches fill a GPU less, and leave it room"),
          variant="full"),
    _rule("gpus.memory_used", given(lambda evidence: processes(evidence) == 1, beyond_memory),
          "share", above(1.02, 4, "assumed: what no device memory holds is lent over the link"),
          variant="full"),
    _rule("throughput.expected",
          given(at_least(0.97, memory_share), number("throughput.expected_times")), "times",
          above(1.5, 2, "assumed: what the same card does faster elsewhere has room there"),
          variant="full"),
    _rule("gpus.memory_shared", number("gpus.memory_shared_bytes"), "bytes",
        above(0.5e9, 2, "assumed: what the driver lends of the computer's memory is over the link"),
        above(2e9, 3, "assumed: what the driver lends of the computer's memory is over the link"),
        variant="full"),
    _rule("host.system_share",
          given(lambda evidence: (page_faults(evidence) or 0) >= 0.05,
                number("host.main_system_share")), "share",
          above(0.3, 1, "assumed: what the system does for a run that computes is little else"),
          variant="heap"),
    _rule("host.system_share", system_for_pages, "share", above(0.3, 2, PAGES_ALONE),
          above(0.45, 3, PAGES_ALONE), variant="heap"),
    _rule("setup.checkpointing", recomputes, "word", any_of(1, AGAIN), variant="recomputation"),
    _rule("gpus.memory_used",
          given(lambda evidence: recomputes(evidence) is not None, memory_share), "share",
          below(0.6, 2, SPARE), variant="recomputation"),
    _rule("profile.achieved_of_matrix_rate", given(_writes_pages, achieved_of_matrix_rate), "share",
          above(0, -2, "assumed: large tensors that are written, not multiplied, need pages anew"),
          variant="heap"),
)  # fmt: skip
