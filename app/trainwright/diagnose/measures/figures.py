"""Figures that rules look at, made of the evidence; None where a part of one is absent."""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from trainwright.catalog.query import find_gpu
from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.evidence_readings import GpuReadings, Spread
from trainwright.messages import UserError

Measure = Callable[[Evidence], float | str | None]
Condition = Callable[[Evidence], bool]
MIB = 1 << 20
GIB = 1 << 30
UNEVEN = 0.3
"""Busiest less idlest GPU's utilisation, from which they do not work alike; assumed."""


def reading(path: str) -> Measure:
    """Return the measure that reads ``part.key``; of several GPUs, the mean; of spreads too."""
    part, _, key = path.partition(".")

    def read(evidence: Evidence) -> float | str | None:
        if part == "gpus":
            return over_gpus(evidence, lambda gpu: _number(getattr(gpu, key)))
        holder = getattr(evidence, part)
        return None if holder is None else _number(getattr(holder, key))

    return read


def _number(value: Any) -> Any:
    if isinstance(value, Spread):
        return value.mean
    return float(value) if isinstance(value, (bool, int)) else value


def over_gpus(evidence: Evidence, read: Callable[[GpuReadings], float | None]) -> float | None:
    """Return the mean of a reading over the GPUs that have it."""
    found = [value for gpu in evidence.gpus or () if (value := read(gpu)) is not None]
    return sum(found) / len(found) if found else None


def number(path: str) -> Callable[[Evidence], float | None]:
    """Return the measure of a reading that is a number."""
    read = reading(path)

    def as_number(evidence: Evidence) -> float | None:
        value = read(evidence)
        return value if isinstance(value, float) else None

    return as_number


def step_share(part: str) -> Callable[[Evidence], float | None]:
    """Return the measure of a part's share of the step."""

    def share(evidence: Evidence) -> float | None:
        steps = evidence.steps
        value = getattr(steps, part) if steps is not None else None
        whole = step_and_after(evidence)
        return None if not whole or value is None else min(1.0, value / whole)

    return share


def step_and_after(evidence: Evidence) -> float | None:
    """Return the time of a step with its part of what lies outside the timed ones."""
    seconds, outside = step_time(evidence), outside_steps(evidence)
    return None if seconds is None else seconds / max(0.01, 1 - (outside or 0))


def uneven(evidence: Evidence) -> float | None:
    """Return the 95th percentile of the steps' times over their mean."""
    steps = evidence.steps
    if steps is None or steps.p95_seconds is None:
        return None
    return steps.p95_seconds / steps.seconds


def step_time(evidence: Evidence) -> float | None:
    """Return the seconds of a step: timed, or by the rate at which steps or samples pass."""
    steps, rate, setup = evidence.steps, evidence.throughput, evidence.setup
    if steps is not None:
        return steps.seconds
    if rate is not None and rate.steps_s:
        return 1 / rate.steps_s
    if rate is None or not rate.samples_s or setup is None or setup.batch is None:
        return None
    return setup.batch * (setup.accumulation or 1) / rate.samples_s


def each_step(counter: str) -> Callable[[Evidence], float | None]:
    """Return the measure of a counter a step."""

    def rate(evidence: Evidence) -> float | None:
        counters = evidence.counters
        value = getattr(counters, counter) if counters is not None else None
        return None if counters is None or value is None else float(value) / counters.steps

    return rate


def time_share(counter: str) -> Callable[[Evidence], float | None]:
    """Return the measure of the share of the time that counted calls took."""

    def share(evidence: Evidence) -> float | None:
        seconds, whole = each_step(counter)(evidence), step_and_after(evidence)
        return None if seconds is None or not whole else min(1.0, seconds / whole)

    return share


def ratio(above: str, below: str) -> Callable[[Evidence], float | None]:
    """Return the measure of one reading over another."""
    upper, lower = number(above), number(below)

    def divided(evidence: Evidence) -> float | None:
        over, under = upper(evidence), lower(evidence)
        return None if over is None or not under else over / under

    return divided


def gpu_ratio(above: str, below: str) -> Callable[[Evidence], float | None]:
    """Return the measure of one reading of a GPU over another, mean of the GPUs."""

    def divided(gpu: GpuReadings) -> float | None:
        over, under = _number(getattr(gpu, above)), _number(getattr(gpu, below))
        return None if over is None or not under else float(over / under)

    return lambda evidence: over_gpus(evidence, divided)


def is_word(path: str, *words: str) -> Measure:
    """Return the measure of a word that is one of those given; others are None."""
    read = reading(path)
    return lambda evidence: value if (value := read(evidence)) in words else None


def given(condition: Callable[[Evidence], bool], measure: Measure) -> Measure:
    """Return the measure where the condition holds, else None."""
    return lambda evidence: measure(evidence) if condition(evidence) else None


def on_gpu(evidence: Evidence) -> bool:
    """Whether the run is on a GPU, as far as it is known."""
    if evidence.setup is not None and evidence.setup.device is not None:
        return evidence.setup.device != "cpu"
    return bool(evidence.gpus)


def on_cpu(evidence: Evidence) -> bool:
    """Whether the run is known to be on the processor alone."""
    return evidence.setup is not None and evidence.setup.device == "cpu"


LOADER_OVERHEAD_S = 5e-4
"""What DataLoader itself takes for a batch that is ready: 0.05 to 0.3 ms, measured with torch 2.13
on two cores. A wait below this is not a stall, however short the step is."""


def data_wait(evidence: Evidence) -> float | None:
    """Return the share of the step that waits for a batch; DataLoader's own is at most 10 %.

    None of a GPU that is traced to work all the time: it makes the batches, as of its own worlds.
    """
    share, steps = step_share("data_wait")(evidence), evidence.steps
    if share is None or steps is None or steps.data_wait is None:
        return None
    if share >= 0.15 and _never_rests(evidence):
        return None
    return min(share, 0.1) if steps.data_wait < LOADER_OVERHEAD_S else share


def _never_rests(evidence: Evidence) -> bool:
    idle, active = number("profile.idle")(evidence), number("gpus.sm_active")(evidence)
    busy = (idle if idle is not None else 1.0) < 0.1 or (active or 0.0) >= 0.8
    return busy and on_gpu(evidence) and processes(evidence) == 1


utilisation = number("gpus.utilisation")


def input_keeps_up(evidence: Evidence) -> bool:
    """Whether nothing says that the step waits for batches."""
    waits = [data_wait(evidence), number("profile.data_loader")(evidence)]
    return all(wait is None or wait < 0.15 for wait in waits)  # the limit of causes/input_pipeline


def steady(evidence: Evidence) -> float | None:
    """Return utilisation that is low but never away: small kernels, and no stalls between them."""
    spreads = [gpu.utilisation for gpu in evidence.gpus or () if gpu.utilisation is not None]
    known = [each for each in spreads if each.low is not None and each.high is not None]
    calm = [each for each in known if (each.low or 0) >= 0.05 and (each.high or 0) < 0.6]
    return sum(each.mean for each in calm) / len(calm) if calm and calm == known else None


def swing(evidence: Evidence) -> float | None:
    """Return the largest less the least utilisation of GPUs that are fully idle now and then."""
    found = [
        spread.high - spread.low
        for gpu in evidence.gpus or ()
        if (spread := gpu.utilisation) is not None
        and spread.low is not None
        and spread.high is not None
        and spread.low < 0.1
    ]
    return max(found) if found else None


def outside_steps(evidence: Evidence) -> float | None:
    """Return the share of the time watched that lies between the timed steps: evaluation, say."""
    steps = evidence.steps
    timed_alone = evidence.recorded  # others watched for longer
    if steps is None or not evidence.watched_seconds or not timed_alone or accumulates(evidence):
        return None
    return max(0.0, 1 - steps.steps * steps.seconds / evidence.watched_seconds)


def accumulates(evidence: Evidence) -> bool:
    """Whether an update follows several batches.

    Records from before 2026-11-22, 16:00 UTC, leave those before an epoch's first update untimed.
    """
    return evidence.setup is not None and (evidence.setup.accumulation or 1) > 1


def ranks(evidence: Evidence) -> int:
    """Return the processes of the run, which look like other programs to each other."""
    return (evidence.setup.world_size if evidence.setup is not None else None) or 1


def ranks_here(evidence: Evidence) -> float:
    """Return the processes of the run on this computer, where its nodes have as many each."""
    nodes = (evidence.setup.nodes if evidence.setup is not None else None) or 1
    return max(1.0, ranks(evidence) / nodes)


def processes(evidence: Evidence) -> int:
    """Return the run's training processes: one a GPU where nothing else is said."""
    return max(ranks(evidence), len(evidence.gpus or ()))


def slice_used(evidence: Evidence) -> float | None:
    """Return the memory in use over that of the MIG slice: the GB in its name."""
    counters = evidence.counters
    held = None if counters is None else counters.reserved_bytes or counters.allocated_bytes
    for gpu in evidence.gpus or ():
        size = re.search(r"\.([0-9]+)gb", gpu.mig_profile or "")
        if size is not None:
            used = held or gpu.memory_used_bytes
            return used / (int(size[1]) * 1e9) if used else None
    return None


def exposed_communication(evidence: Evidence) -> float | None:
    """Return the share of the step in which collectives ran and nothing else."""
    profile = evidence.profile
    if profile is None or profile.communication is None:
        return None
    return profile.communication * (1 - (profile.communication_hidden or 0))


def tensor_cores_of_eligible(evidence: Evidence) -> float | None:
    """Return tensor cores' share of the time that could be theirs."""
    profile = evidence.profile
    if profile is None or profile.tensor_core is None or not profile.tensor_core_eligible:
        return None
    if (capability := lowest_capability(evidence)) is not None and capability < 7.0:
        return None  # no tensor cores before Volta
    return min(1.0, profile.tensor_core / profile.tensor_core_eligible)


def lowest_capability(evidence: Evidence) -> float | None:
    """Return the compute capability of the oldest GPU."""
    known = [gpu.compute_capability for gpu in evidence.gpus or () if gpu.compute_capability]
    return min(map(float, known)) if known else None


def odd_dims(evidence: Evidence) -> float | None:
    """Return the share of large widths that are not a multiple of 8.

    Small ones (below 64: classes, channels of an image) are left out: their matrices are small.
    """
    dims = [each for each in evidence.setup.dims if each >= 64] if evidence.setup else []
    return sum(each % 8 != 0 for each in dims) / len(dims) if dims else None


def throttled(*reasons: str) -> Callable[[Evidence], float | None]:
    """Return the measure of the largest share of samples with one of the clock reasons."""

    def share(gpu: GpuReadings) -> float | None:
        if gpu.throttled is None:
            return None
        return max((seen for reason, seen in gpu.throttled.items() if reason in reasons), default=0)

    def worst(evidence: Evidence) -> float | None:
        found = [value for gpu in evidence.gpus or () if (value := share(gpu)) is not None]
        return max(found) if found else None

    return worst


def least_busy(evidence: Evidence) -> float | None:
    """Return the utilisation of the idlest GPU of the run."""
    return min(_used(evidence), default=None)


def imbalance(evidence: Evidence) -> float | None:
    """Return the utilisation of the busiest GPU of the run less that of the idlest."""
    used = _used(evidence)
    return max(used) - min(used) if len(used) > 1 else None


def _used(evidence: Evidence) -> list[float]:
    return [gpu.utilisation.mean for gpu in evidence.gpus or () if gpu.utilisation is not None]


def waiting_threads(evidence: Evidence) -> float:
    """Return how many of the run's threads the step's time hangs on, at least 1."""
    setup = evidence.setup
    if setup is None:
        return 1
    if (data_wait(evidence) or 0) >= 0.3 and setup.num_workers:
        return setup.num_workers
    return max(1, setup.torch_threads or 1) if on_cpu(evidence) else 1


def starved(evidence: Evidence) -> float | None:
    """Return the share of the time that the run lost while ready to work but without a core.

    run_cores x starved / (1 - starved) is how many of its threads waited for a core on average.
    """
    host = evidence.host
    if host is None or host.starved_share is None:
        return None
    if host.run_cores is None or host.starved_share >= 1:
        return host.starved_share
    waited = host.run_cores * host.starved_share / (1 - host.starved_share)
    return min(host.starved_share, waited / waiting_threads(evidence))


def foreign_share(evidence: Evidence) -> float | None:
    """Return other programs' share of the computer's cores.

    Of several ranks on it each takes the others for foreign: those want as much as this one.
    """
    host = evidence.host
    if host is None or host.foreign_cores is None or not host.cores:
        return None
    wanted = (host.run_cores or 0) / max(0.1, 1 - (host.starved_share or 0))
    siblings = (ranks_here(evidence) - 1) * wanted
    return min(1.0, max(0.0, host.foreign_cores - siblings) / host.cores)


def affinity(evidence: Evidence) -> float | None:
    """Return the cores that the run may use over all, where no quota but its mask limits them."""
    host = evidence.host
    if host is None or host.quota_cores is not None or not host.usable_cores or not host.cores:
        return None
    return host.usable_cores / host.cores


def threads_of_cores(evidence: Evidence) -> float | None:
    """Return torch's threads, of all training processes, over the cores that the run may use."""
    setup, host = evidence.setup, evidence.host
    if setup is None or setup.torch_threads is None or host is None:
        return None
    usable = host.usable_cores or host.quota_cores or host.cores
    return setup.torch_threads * processes(evidence) / usable if usable else None


def physical_cores(evidence: Evidence) -> float | None:
    """Return the physical cores that the run may use; a part of one where a quota says so.

    A thread on each of them computes as much as two do that share one, nearly, so that torch
    starts no more (MKL's default).
    """
    host = evidence.host
    usable = (host.usable_cores or host.cores) if host is not None else None
    if host is None or not usable:
        return None
    return max(min(usable, 1.0), usable / (host.threads_per_core or 1))


def too_few_threads(evidence: Evidence) -> float | None:
    """Return torch's threads, of all training processes, over the physical cores for them."""
    setup, cores = evidence.setup, physical_cores(evidence)
    if setup is None or setup.torch_threads is None or not cores:
        return None
    return setup.torch_threads * processes(evidence) / cores


def cores_of_usable(evidence: Evidence) -> float | None:
    """Return the cores that the run kept busy over the physical ones that it may use."""
    host, cores = evidence.host, physical_cores(evidence)
    if host is None or host.run_cores is None or not cores:
        return None
    return host.run_cores / cores


def reserved_unused(evidence: Evidence) -> float | None:
    """Return reserved over allocated bytes, where the difference is worth a look."""
    counters = evidence.counters
    if counters is None or not counters.allocated_bytes or counters.reserved_bytes is None:
        return None
    if counters.reserved_bytes - counters.allocated_bytes <= 2 * GIB:
        return 1.0
    return counters.reserved_bytes / counters.allocated_bytes


def numa_mismatch(evidence: Evidence) -> float | None:
    """Return 1 where the run's cores are on other nodes than its GPU, 0 where they are near."""
    host = evidence.host
    if host is None or (host.numa_nodes or 1) < 2 or not host.run_numa_nodes:
        return None
    nodes = [gpu.numa_node for gpu in evidence.gpus or () if gpu.numa_node is not None]
    return float(not set(nodes) & set(host.run_numa_nodes)) if nodes else None


@lru_cache(maxsize=64)
def sold_generation(name: str) -> int | None:
    """Return the PCIe generation that a GPU of the catalog has."""
    try:
        return find_gpu(name).record.pcie_generation
    except UserError:
        return None


def link_share(evidence: Evidence) -> float | None:
    """Return the negotiated PCIe rate over the largest: a generation doubles the rate."""

    def share(gpu: GpuReadings) -> float | None:
        generation = generations = 0
        width = widths = 1
        newest = gpu.link_generation_max or (sold_generation(gpu.name) if gpu.name else None)
        if gpu.link_generation and newest:
            generation, generations = gpu.link_generation, newest
        if gpu.link_width and gpu.link_width_max:
            width, widths = gpu.link_width, gpu.link_width_max
        if not generations and widths == 1:
            return None
        return min(1.0, 2.0 ** (generation - generations) * width / widths)

    return over_gpus(evidence, share)


def failed_for(*words: str) -> Callable[[Evidence], float | None]:
    """Return the measure that is 1 where the run's own error has one of the words."""

    def failed(evidence: Evidence) -> float | None:
        if evidence.failure is None:
            return None
        text = f"{evidence.failure.kind} {evidence.failure.text}".lower()
        return float(any(word in text for word in words))

    return failed


failed_for_memory = failed_for(
    "out of memory", "outofmemoryerror", "alloc_failed", "can't allocate memory"
)


def host_thread_full(evidence: Evidence) -> float | None:
    """Return the training process's cores on a GPU run: near 1, its one thread is the limit."""
    return number("host.main_process_cores")(evidence) if on_gpu(evidence) else None


def at_least(limit: float, measure: Measure) -> Condition:
    """Return the condition that a figure is known, and this or more."""

    def holds(evidence: Evidence) -> bool:
        value = measure(evidence)
        return value is not None and (isinstance(value, str) or value >= limit)

    return holds


def less_than(limit: float, measure: Measure) -> Condition:
    """Return the condition that a figure is known, and less than this: 0 is known as well."""

    def holds(evidence: Evidence) -> bool:
        value = measure(evidence)
        return value is not None and (isinstance(value, str) or value < limit)

    return holds
