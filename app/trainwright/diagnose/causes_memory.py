"""Signs of memory that is managed badly, on the device or in the computer."""

from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.measures import (
    MIB,
    data_wait,
    each_step,
    failed_for_memory,
    foreign_share,
    given,
    gpu_ratio,
    number,
    on_gpu,
    ratio,
    reading,
    reserved_unused,
    saved_by,
    split_share,
    step_share,
    time_share,
)
from trainwright.diagnose.measures_work import device_of_compute, read_a_step
from trainwright.diagnose.rules import above, below, no, rules_of, yes
from trainwright.diagnose.verdict import Cause

RETRIES = "PyTorch: num_alloc_retries counts calls that had to empty the cache"
FAIRSEQ = "fairseq: emptying the cache every 64 updates costs below 0.2 %"
TB = "torch-tb-profiler: peak above 90 % of the memory"
ASSUMED = "assumed"


_rule = rules_of(Cause.MEMORY)


def _offloads(evidence: Evidence) -> bool:
    setup, counters = evidence.setup, evidence.counters
    moved = counters.offloaded_bytes if counters is not None else None
    return bool(setup is not None and setup.offload) or bool(moved)


def _caches(evidence: Evidence) -> float | None:
    """Return whether the run's device has a caching allocator."""
    setup = evidence.setup
    return None if setup is None or setup.device is None else float(setup.device != "cpu")


def _reads_elsewhere(evidence: Evidence) -> bool:
    """Whether drives work though the loader keeps up: what is read is no data set."""
    wait = data_wait(evidence)
    return wait is not None and wait < 0.05


def _read(evidence: Evidence) -> float | None:
    """Return what the run reads from drives a second; all that is read where nobody else works."""
    host = evidence.host
    if host is None or host.run_read_bytes_s is not None:
        return None if host is None else host.run_read_bytes_s
    return host.read_bytes_s if (foreign_share(evidence) or 0) < 0.25 else None


def _killed(evidence: Evidence) -> float | None:
    failure = evidence.failure
    if failure is None:
        return None
    return float(any(word in f"{failure.kind} {failure.text}" for word in ("signal 9", "SIGKILL")))


RULES = (
    _rule(
        "counters.alloc_retries",
        reading("counters.alloc_retries"),
        "number",
        above(1, 4, RETRIES),
        below(1, -1, RETRIES),
        variant="fragmentation",
    ),
    _rule(
        "counters.device_allocations",
        each_step("device_allocations"),
        "number",
        above(0.5, 2, "assumed: a steady step takes all memory from the cache"),
        above(4, 3, "assumed: a steady step takes all memory from the cache"),
    ),
    _rule(
        "profile.allocation_calls",
        reading("profile.allocation_calls"),
        "number",
        above(0.5, 2, "assumed: a steady step takes all memory from the cache"),
        above(4, 3, "assumed: a steady step takes all memory from the cache"),
    ),
    _rule(
        "counters.empty_cache",
        each_step("empty_cache"),
        "number",
        above(1 / 8, 2, FAIRSEQ),
        above(0.5, 3, FAIRSEQ),
        variant="empty-cache",
    ),
    _rule(
        "setup.device",
        given(lambda evidence: (each_step("empty_cache")(evidence) or 0) >= 1 / 8, _caches),
        "yes-no",
        yes(1, "PyTorch: freed device memory is kept, and taking it anew makes the device wait"),
        no(-3, "PyTorch: the processor's memory is not cached"),
        variant="empty-cache",
    ),
    _rule(
        "counters.empty_cache_seconds",
        time_share("empty_cache_seconds"),
        "share",
        above(0.05, 3, ASSUMED),
        variant="empty-cache",
    ),
    _rule(
        "experiments.without_empty_cache",
        saved_by("without_empty_cache"),
        "share",
        below(0.02, -3, ASSUMED),
        above(0.05, 3, ASSUMED),
        above(0.2, 4, ASSUMED),
        variant="empty-cache",
    ),
    _rule(
        "counters.garbage_collections",
        each_step("garbage_collections"),
        "number",
        above(0.5, 2, "assumed: Python collects garbage by itself"),
        variant="garbage",
    ),
    _rule(
        "counters.garbage_seconds",
        time_share("garbage_seconds"),
        "share",
        above(0.05, 2, ASSUMED),
        above(0.15, 3, ASSUMED),
        above(0.3, 4, ASSUMED),
        variant="garbage",
    ),
    _rule(
        "counters.reserved_unused",
        reserved_unused,
        "times",
        above(1.3, 2, "assumed: 1.3 times, and 2 GiB more than is in use"),
        variant="fragmentation",
    ),
    _rule(
        "counters.inactive_split",
        split_share,
        "share",
        above(0.15, 2, ASSUMED),
        variant="fragmentation",
    ),
    _rule(
        "gpus.memory_used",
        given(on_gpu, gpu_ratio("memory_used_bytes", "memory_total_bytes")),
        "share",
        above(0.9, 1, TB),
        variant="full",
    ),
    _rule(
        "failure.memory",
        failed_for_memory,
        "yes-no",
        yes(4, "the run's own error"),
        variant="full",
    ),
    _rule(
        "failure.killed",
        _killed,
        "yes-no",
        yes(2, "Linux ends the largest process when memory runs out"),
        variant="full",
    ),
    _rule(
        "counters.out_of_memory",
        reading("counters.out_of_memory"),
        "number",
        above(1, 3, "PyTorch: num_ooms"),
        variant="full",
    ),
    _rule("setup.offload", reading("setup.offload"), "yes-no", yes(1, ASSUMED), variant="offload"),
    _rule(
        "counters.offloaded_bytes",
        number("counters.offloaded_bytes"),
        "bytes",
        above(256 * MIB, 2, ASSUMED),
        variant="offload",
    ),
    _rule(
        "steps.transfer",
        given(_offloads, step_share("transfer")),
        "share",
        above(0.1, 2, ASSUMED),
        above(0.3, 3, ASSUMED),
        variant="offload",
    ),
    _rule(
        "profile.copies",
        given(_offloads, reading("profile.copies")),
        "share",
        above(0.1, 2, ASSUMED),
        above(0.3, 3, ASSUMED),
        variant="offload",
    ),
    _rule(
        "steps.device_seconds",
        given(_offloads, device_of_compute),
        "share",
        below(0.5, 2, "assumed: the device waits for what is computed or kept elsewhere"),
        below(0.2, 3, ASSUMED),
        variant="offload",
    ),
    _rule(
        "host.read_a_step",
        given(_reads_elsewhere, read_a_step),
        "times",
        above(0.5, 3, "assumed: no log or program is read anew each step; kept state is"),
        variant="offload",
    ),
    _rule(
        "host.read_bytes_s",
        given(_reads_elsewhere, _read),
        "bytes",
        above(50e6, 2, "assumed: a run whose loader keeps up reads little else"),
        variant="offload",
    ),
    _rule(
        "steps.other",
        given(
            lambda evidence: _reads_elsewhere(evidence) and (_read(evidence) or 0) >= 50e6,
            step_share("other"),
        ),
        "share",
        above(0.25, 2, "assumed: state that is read from a drive between the steps"),
        variant="offload",
    ),
    _rule(
        "host.swapped_bytes_s",
        reading("host.swapped_bytes_s"),
        "bytes",
        above(MIB, 3, "assumed: a run that is read back from swap does not fit into memory"),
        variant="swapping",
    ),
    _rule(
        "host.pressure_memory",
        reading("host.pressure_memory"),
        "share",
        above(0.05, 2, ASSUMED),
        above(0.2, 3, ASSUMED),
        variant="swapping",
    ),
    _rule(
        "host.memory_available",
        ratio("host.memory_available_bytes", "host.memory_total_bytes"),
        "share",
        below(0.05, 2, ASSUMED),
        variant="swapping",
    ),
)
