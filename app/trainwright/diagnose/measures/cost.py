"""What something costs at least, by what the hardware can do, beside what a step takes."""

import re
from functools import lru_cache

from trainwright.catalog.query import find_gpu
from trainwright.diagnose.evidence import Evidence, Setup
from trainwright.diagnose.evidence_readings import GpuReadings
from trainwright.diagnose.measures.figures import (
    each_step,
    lowest_capability,
    number,
    on_cpu,
    on_gpu,
    over_gpus,
    processes,
    ranks,
    ratio,
    step_share,
    step_time,
    time_share,
    utilisation,
)
from trainwright.diagnose.measures.names import inserts_rows
from trainwright.messages import UserError

LINK_BYTES_S = 25e9
"""Of pinned memory over PCIe 4.0 x16, each way; nvbandwidth shows 24 to 26 GB/s."""
LINK_BYTES_S_5 = 50e9
"""Over PCIe 5.0 x16, which GPUs of compute capability 9.0 and above have."""
PCIE_BYTES_S = 10e9
"""Between two GPUs over PCIe 3.0 x16 and the host; nccl-tests show 8 to 12 GB/s."""
NVLINK_BYTES_S = 50e9
"""Between GPUs over NVLink; nccl-tests show 120 GB/s and more on a DGX-1, less with few links."""
SHORT_S = 0.035
"""A processor's step below which an update and what each operator costs may be seen; assumed."""
HOST_UPDATE_S = 0.5e-9
"""Of Adam on the processor, a parameter: DeepSpeed reports 0.25 to 0.6 s for 1e9 of them."""
MOVED_BYTES = 4.0
"""A parameter's gradient to the host and its new value back, two bytes each."""
GRADIENT_BYTES = 4.0
"""Of a parameter in fp32, as data parallel training sums them."""
LAUNCH_WAITS_S = 50e-6
"""Of a launch's 5 to 10 µs: one that takes longer waits for room in the queue; HTA's cutoff."""


FLOPS_A_TOKEN = 6.0
"""Of a parameter and a token, forward and backward: Kaplan et al. (arXiv 2001.08361)."""


@lru_cache(maxsize=64)
def peaks_of(name: str) -> dict[str, float]:
    """Return the FLOP/s of a GPU of the catalog by its units; empty where it is not there."""
    try:
        return {key: fact.value for key, fact in find_gpu(name).record.flops.items()}
    except UserError:
        return {}


def _peak(evidence: Evidence) -> float | None:
    """Return the FLOP/s of the GPU in the run's precision; in 16 bits where none is known."""
    named = next((gpu.name for gpu in evidence.gpus or () if gpu.name), None)
    peaks, setup = peaks_of(named) if named else {}, evidence.setup
    precision = (setup.precision if setup is not None else None) or "bf16"
    if precision in ("fp32", "tf32"):
        tensor = precision == "tf32" or (setup is not None and setup.tf32_allowed)
        return peaks.get("tf32_fp32" if tensor else "fp32")
    if precision in ("fp64", "fp8"):
        return None
    return peaks.get("fp16_fp32")


def achieved_by_rate(evidence: Evidence) -> float | None:
    """Return the arithmetic of a transformer's tokens over the GPU's peak in its precision (MFU).

    Of models of 100 million parameters and more; smaller ones do much besides products.
    Where nobody counted it better, and no stages or shards of layers share the tokens.
    """
    counted = evidence.profile is not None and evidence.profile.achieved_of_peak is not None
    if counted or (evidence.setup is not None and evidence.setup.strategy in ("pp", "tp")):
        return None
    setup, peak, tokens = evidence.setup, _peak(evidence), _tokens_a_second(evidence)
    if setup is None or setup.model_kind != "transformer" or not tokens or not peak:
        return None
    if (setup.parameters or 0) < 1e8:
        return None
    return FLOPS_A_TOKEN * (setup.parameters or 0) * tokens / peak


def _tokens_a_second(evidence: Evidence) -> float | None:
    """Return the tokens that each device takes a second: stated, or by batch and length."""
    rate, setup, seconds = evidence.throughput, evidence.setup, step_seconds(evidence)
    if rate is not None and rate.tokens_s:
        return rate.tokens_s
    if setup is None or not setup.sequence_length or not setup.batch or not seconds:
        return None
    if evidence.steps is not None and evidence.steps.unit != "step":
        return None
    return setup.batch * (setup.accumulation or 1) * setup.sequence_length / seconds


@lru_cache(maxsize=64)
def _known(name: str) -> tuple[float | None, float | None]:
    """Return the memory in bytes and the power in watts of a GPU of the catalog."""
    try:
        record = find_gpu(name).record
    except UserError:
        return None, None
    power = record.tdp_w.value if record.tdp_w is not None else None
    return record.memory_bytes.value, power


def _memory_of(gpu: GpuReadings) -> float | None:
    """Return a GPU's memory in bytes, by its driver or by its name."""
    return gpu.memory_total_bytes or (_known(gpu.name)[0] if gpu.name else None)


def memory_share(evidence: Evidence) -> float | None:
    """Return the memory in use over all that the GPU has, by its driver or by its name."""

    def share(gpu: GpuReadings) -> float | None:
        total = _memory_of(gpu)
        used = gpu.memory_used_bytes
        if used is None and total and gpu.memory_free_bytes is not None:
            used = total - gpu.memory_free_bytes
        if used is None and evidence.counters is not None:
            used = evidence.counters.reserved_bytes or evidence.counters.allocated_bytes
        return min(1.0, used / total) if used is not None and total else None

    return over_gpus(evidence, share)


def recomputes(evidence: Evidence) -> str | None:
    """Return the setting of a GPU run that computes activations again beside free memory."""
    setup = evidence.setup
    if setup is None or setup.checkpointing in (None, "none") or not on_gpu(evidence):
        return None
    share = memory_share(evidence)
    return setup.checkpointing if share is not None and share < 0.6 else None


def beyond_memory(evidence: Evidence) -> float | None:
    """Return what the run has allocated over the memory of its one GPU, which may be above 1."""
    counters, gpus = evidence.counters, evidence.gpus or ()
    if counters is None or len(gpus) != 1 or not on_gpu(evidence):
        return None
    total = _memory_of(gpus[0])
    return counters.allocated_bytes / total if counters.allocated_bytes and total else None


def unused_memory(evidence: Evidence) -> float | None:
    """Return the share of the memory that nobody uses: the GPU's, or else the computer's."""
    if on_cpu(evidence):
        return ratio("host.memory_available_bytes", "host.memory_total_bytes")(evidence)
    used = memory_share(evidence)
    return None if used is None else 1 - used


def power_share(evidence: Evidence) -> float | None:
    """Return the power over its limit; where none is read, over what the GPU is sold for."""

    def share(gpu: GpuReadings) -> float | None:
        limit = gpu.power_limit_w or (_known(gpu.name)[1] if gpu.name else None)
        return gpu.power_w.mean / limit if gpu.power_w is not None and limit else None

    return over_gpus(evidence, share)


def link_rate(evidence: Evidence) -> float:
    """Return the bytes a second that a GPU's link to the host carries, measured or assumed."""
    measured = over_gpus(evidence, lambda gpu: gpu.copy_bytes_s)
    if measured:
        return measured
    newest = (lowest_capability(evidence) or 0) >= 9.0
    return LINK_BYTES_S_5 if newest else LINK_BYTES_S


def offloading(evidence: Evidence) -> float | None:
    """Return the share of the step that moving what is offloaded takes at the link's rate."""
    counters, seconds = evidence.counters, step_seconds(evidence)
    if counters is None or not counters.offloaded_bytes or not seconds:
        return None
    return min(1.0, counters.offloaded_bytes / link_rate(evidence) / seconds)


def update_elsewhere(evidence: Evidence) -> float | None:
    """Return the share of the step that an optimizer on the processor needs at least.

    Of GPU runs whose optimizer is known, or assumed where only "offloaded" is said, to be there.
    """
    setup, seconds = evidence.setup, step_seconds(evidence)
    if setup is None or not setup.parameters or not seconds or not offloads(evidence):
        return None
    if setup.offloaded and "optimizer" not in setup.offloaded:
        return None
    shared = ranks(evidence) if setup.strategy in ("zero", "fsdp") else 1
    each = MOVED_BYTES / link_rate(evidence) + HOST_UPDATE_S
    return min(1.0, setup.parameters * each / shared / seconds)


def offloads(evidence: Evidence) -> bool:
    """Whether the settings or a counter say that something waits elsewhere than on the device."""
    setup, counters = evidence.setup, evidence.counters
    told = setup is not None and (setup.offload or setup.offloaded or _updates_on_host(setup))
    rows = evidence.functions
    seen = any(_CPU_ADAM.search(row.name.lower()) and row.share >= 0.2 for row in rows)
    counted = bool(counters is not None and counters.offloaded_bytes)
    return bool(told) or counted or (seen and on_gpu(evidence))


_CPU_ADAM = re.compile(r"cpu_?adam")
"""DeepSpeed's optimizer for states that lie on the host."""


def late_batch(evidence: Evidence) -> float | None:
    """Return the time between two batches where that is long for a GPU as busy as this one."""
    busy, seconds = utilisation(evidence), _untimed_batch(evidence) or 0
    return (
        seconds
        if (seconds >= 1 and (busy or 0) < 0.5) or (seconds >= 0.2 and (busy or 1) < 0.3)
        else None
    )


def _untimed_batch(evidence: Evidence) -> float | None:
    """Return the time between two batches for a device of which no step was timed."""
    loading, setup = evidence.loading, evidence.setup
    if loading is None or not loading.batch_seconds or on_cpu(evidence):
        return None
    workers = max(1, setup.num_workers or 0) if setup is not None else 1
    return loading.batch_seconds / workers if evidence.steps is None else None


def copies_slowly(evidence: Evidence) -> bool:
    """Whether a step is known to wait for what is copied to the device, and keeps all there."""
    known = (step_share("transfer")(evidence), number("profile.copies")(evidence))
    return not offloads(evidence) and max(share or 0 for share in known) >= 0.15


def _updates_on_host(setup: Setup) -> bool:
    """Whether the optimizer of a GPU run is one for the processor: DeepSpeedCPUAdam."""
    return setup.device == "cuda" and "cpu" in (setup.optimizer or "").lower()


def keeps_all_alone(evidence: Evidence) -> bool:
    """Whether one process computes all of a batch, and keeps all that it works on."""
    return processes(evidence) == 1 and not offloads(evidence)


def short_steps_alone(evidence: Evidence) -> bool:
    """Whether a processor trains by short steps, with all that it updates in its memory."""
    steps = evidence.steps
    short = steps is not None and (steps.unit or "step") == "step" and steps.seconds < SHORT_S
    return short and on_cpu(evidence) and keeps_all_alone(evidence)


def step_seconds(evidence: Evidence) -> float | None:
    """Return the time of a step, or of the one in the profiler where no other was timed."""
    profile, steps = evidence.profile, evidence.steps
    if profile is not None and profile.step_seconds is not None:
        return profile.step_seconds
    return None if steps is not None and steps.unit == "epoch" else step_time(evidence)


def launching(evidence: Evidence) -> float | None:
    """Return the share of the step that the host spends launching: in all, or by each launch."""
    profile, seconds = evidence.profile, step_seconds(evidence)
    if profile is None or not seconds:
        return None
    spent, calls = profile.launch_seconds, profile.launches_a_step or profile.kernels_a_step
    if spent is None and calls is not None and profile.launch_median_seconds is not None:
        spent = calls * profile.launch_median_seconds
    if spent is None or (calls and spent / calls > LAUNCH_WAITS_S):
        return None
    return min(1.0, spent / seconds)


def kernel_spacing(evidence: Evidence) -> float | None:
    """Return the time from one kernel's begin to the next's, mean over the step."""
    kernels, seconds = launches(evidence), step_seconds(evidence)
    return seconds / kernels if kernels and seconds else None


def launches(evidence: Evidence) -> float | None:
    """Return the kernels of a step, or the calls that launch some where those were counted."""
    profile = evidence.profile
    return None if profile is None else profile.kernels_a_step or profile.launches_a_step


def close_launches(evidence: Evidence) -> float | None:
    """Return a step's launches where they may be a twentieth of it, at 10 µs each."""
    return launches(evidence) if (kernel_spacing(evidence) or 0) < 200e-6 else None


def gradients_on_link(evidence: Evidence) -> float | None:
    """Return the share of the step that a ring all-reduce of fp32 gradients takes on the link."""
    setup, seconds = evidence.setup, step_seconds(evidence)
    rate = setup.link_bytes_s if setup is not None else None
    if setup is not None and rate is None and (setup.nodes or 1) == 1:
        rate = {"pcie": PCIE_BYTES_S, "nvlink": NVLINK_BYTES_S}.get(setup.link or "")
    if setup is None or not setup.parameters or not rate or not seconds:
        return None
    devices = ranks(evidence)
    if devices < 2 or setup.strategy not in (None, "ddp", "dp", "other"):
        return None
    sent = 2 * (devices - 1) / devices * GRADIENT_BYTES * setup.parameters
    return min(1.0, sent / rate / (setup.accumulation or 1) / seconds)


def in_stages(evidence: Evidence) -> bool:
    """Whether devices hold a model's layers one after the other, and parts of a batch fill them."""
    return evidence.setup is not None and evidence.setup.strategy == "pp"


def bubble(evidence: Evidence) -> float | None:
    """Return the share of the step in which a pipeline's stage waits: traced, or by its depth."""
    profile, setup = evidence.profile, evidence.setup
    if profile is not None and profile.bubble is not None:
        return profile.bubble
    if setup is None or not setup.pipeline_stages or not setup.accumulation:
        return None
    waiting = setup.pipeline_stages - 1
    return waiting / (waiting + setup.accumulation)


def takes_pages(evidence: Evidence) -> bool:
    """Whether much of a run's time is the system's, which gives it pages."""
    system = evidence.host.main_system_share if evidence.host is not None else None
    much = (page_faults(evidence) or 0) >= 0.15 and (system or 0) >= 0.3
    return much or mostly_takes_pages(evidence)


def mostly_takes_pages(evidence: Evidence) -> bool:
    """Whether nothing else takes as much of a run's time as the pages that the system gives it."""
    return (system_for_pages(evidence) or 0) >= ALMOST_HALF


def swapped_files(evidence: Evidence) -> float | None:
    """Return the bytes that a training process writes and reads back a second.

    The lesser of both, where they are of one size: what is written and read is state, no data and
    no log. Of single processes whose steps do not wait for batches, and that are not known to save
    checkpoints or rows of a database, which may be read again too.
    """
    host = evidence.host
    saves = (time_share("checkpoint_seconds")(evidence) or 0) >= 0.05 or inserts_rows(evidence)
    if host is None or ranks(evidence) > 1 or saves:
        return None
    read, written = host.main_read_bytes_s, host.main_written_bytes_s
    if not read or not written or (step_share("data_wait")(evidence) or 0) > 0.15:
        return None
    less, more = min(read, written), max(read, written)
    return less if less >= 0.3 * more else None


PAGE_S = 0.5e-6
"""Of a page that the system gives again, cleared: 0.25 to 1 µs on Linux; assumed."""


def page_faults(evidence: Evidence) -> float | None:
    """Return the share of the time that the training process takes pages of memory again in."""
    host = evidence.host
    if host is None or host.main_minor_faults_s is None:
        return None
    pages = host.main_minor_faults_s
    system = _system_of_quiet(evidence) or 0.0
    slow = pages >= MANY_PAGES_S and system >= max(MOSTLY_PAGES, pages * SLOW_PAGE_S)
    return system if slow else min(1.0, pages * PAGE_S)


ALMOST_HALF = 0.43
"""Share of the time from which a system gives pages to a quiet run and little is beside; assumed,
of ten such runs."""
QUIET_BYTES_S = 1e6
"""Read and written by the training process: less is not work for the system; assumed."""
MANY_PAGES_S, MOSTLY_PAGES = 2e3, 0.3
"""Pages again, and the system's share, from which that share is theirs; assumed: one of 2 MiB takes
0.1 ms and more to clear."""
SLOW_PAGE_S = 2e-6
"""Of a page on a computer that gives them slowly; assumed: virtual ones take 2.2 to 9 µs."""


def _system_of_quiet(evidence: Evidence) -> float | None:
    """Return the system's share of the time on cores, of one process that moves few bytes."""
    host = evidence.host
    if host is None or ranks(evidence) > 1:
        return None
    if host.main_read_bytes_s is None or host.main_written_bytes_s is None:
        return None
    moved = host.main_read_bytes_s + host.main_written_bytes_s
    return host.main_system_share if moved < QUIET_BYTES_S else None


def system_for_pages(evidence: Evidence) -> float | None:
    """Return what the system takes of a processor run's time on cores, if it only gives pages.

    Of runs that take many, read and write next to nothing and do not switch between ranks.
    """
    return _system_of_quiet(evidence) if (page_faults(evidence) or 0) >= 0.1 else None


def loads_in_each_step(evidence: Evidence) -> bool:
    """Whether what is loaded, if that is counted, is loaded in every step: a step's own state.

    What is loaded now and then is a checkpoint that somebody looks at again.
    """
    loads = each_step("loads")(evidence)
    return not loads or loads >= 0.9


CACHED = 1e5
"""Bytes of weights that stay in a core's own cache; assumed."""
OWN_READS_S = 1e5
"""Bytes a second: twice what the recorder itself reads of the system's tables in training,
20 to 50 kB/s in its records."""


def main_read_a_step(evidence: Evidence) -> float | None:
    """Return what the training process reads a step over its parameters, four bytes each.

    Where the loader keeps up: it is not the data set then; and of more than the recorder reads. A
    model that fits a core's cache has nothing that anybody would put away.
    """
    host, steps, setup = evidence.host, evidence.steps, evidence.setup
    if host is None or steps is None or setup is None:
        return None
    weights = 4.0 * (setup.parameters or 0)
    if host.main_read_bytes_s is None or ranks(evidence) > 1 or weights < CACHED:
        return None
    if host.main_read_bytes_s < OWN_READS_S or (step_share("data_wait")(evidence) or 0) > 0.15:
        return None
    if not loads_in_each_step(evidence):
        return None
    return host.main_read_bytes_s * steps.seconds / weights


def written_a_step(evidence: Evidence) -> float | None:
    """Return what the training process writes a step over its parameters, four bytes each."""
    host, steps, setup = evidence.host, evidence.steps, evidence.setup
    if host is None or steps is None or setup is None or not setup.parameters:
        return None
    if host.main_written_bytes_s is None or ranks(evidence) > 1:
        return None
    return host.main_written_bytes_s * steps.seconds / (4.0 * setup.parameters)


def loader_alone(evidence: Evidence) -> float | None:
    """Return what the loader alone gives over what the run uses: at 1 it has nothing to spare."""
    loading, used = evidence.loading, samples_a_second(evidence)
    if loading is None or loading.samples_s is None or not used:
        return None
    return loading.samples_s / (used * ranks(evidence))


def samples_a_second(evidence: Evidence) -> float | None:
    """Return the samples that each device of the run uses a second."""
    if evidence.throughput is not None and evidence.throughput.samples_s:
        return evidence.throughput.samples_s
    steps = evidence.steps
    return steps.samples / steps.seconds if steps is not None and steps.samples else None
