"""Readings of the hardware under a run: its GPUs, and the computer around them.

Seconds and bytes throughout, shares from 0 to 1; what is absent was not read.
"""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from trainwright.workload.settings import Frozen

Share = Annotated[float, Field(ge=0, le=1)]
Amount = Annotated[float, Field(ge=0)]
"""Seconds, bytes, watts or a rate."""
Whole = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
Link = Annotated[int, Field(ge=1, le=32)]
"""Generation or lanes of PCIe; its specifications end at 7 and 32."""
Word = Annotated[str, Field(max_length=200)]

Throttle = Literal["power-cap", "hardware-slowdown", "thermal", "hardware-thermal", "power-brake"]
"""What takes speed from running work: NVML's clock event reasons 4h, 8h, 20h, 40h and 80h, in the
words of ``probe.sample``."""


class Spread(Frozen):
    """One reading over the time that was watched."""

    mean: float
    low: float | None = None
    """The least value seen."""
    high: float | None = None
    """The largest value seen."""


def _of_one(spread: Spread) -> Spread:
    """Refuse what is not a share: 35 where 0.35 is meant."""
    for value in (spread.mean, spread.low, spread.high):
        if value is not None and not 0 <= value <= ROUNDED:
            raise PydanticCustomError("diagnose.problem.no-share", "no share")
    return spread


ROUNDED = 1.001
"""What a share of all may come to by rounding; assumed."""
Shares = Annotated[Spread, AfterValidator(_of_one)]
"""A share over the time that was watched."""


class GpuReadings(Frozen):
    """A GPU while the run was on it."""

    name: Word | None = None
    compute_capability: Annotated[str, Field(pattern=r"^[0-9]{1,2}\.[0-9]$")] | None = None
    """Such as ``8.9``."""
    utilisation: Shares | None = None
    """Share of the time in which a kernel ran, as NVML and nvidia-smi say it; not how full the
    GPU was."""
    idle_share: Share | None = None
    """Share of the samples whose utilisation was below 0.1: what a saw-tooth shows."""
    sm_active: Shares | None = None
    """Share of multiprocessors with work (GPM, DCGM)."""
    sm_occupancy: Shares | None = None
    tensor_active: Shares | None = None
    """Share of the time in which tensor cores worked (GPM, DCGM)."""
    dram_active: Shares | None = None
    """Share of the memory's bandwidth in use (GPM, DCGM)."""
    memory_utilisation: Shares | None = None
    """Share of the time in which memory was read or written, as NVML says it."""
    power_w: Spread | None = None
    power_limit_w: Amount | None = None
    power_limit_default_w: Amount | None = None
    temperature_c: Spread | None = None
    sm_clock_mhz: Spread | None = None
    sm_clock_max_mhz: Amount | None = None
    performance_state: Annotated[int, Field(ge=0, le=15)] | None = None
    """While it worked: 0 is the fastest, 8 and above are for rest."""
    throttled: dict[Throttle, Share] | None = None
    """Share of the samples with each clock event reason; an empty mapping: none was seen."""
    memory_used_bytes: Amount | None = None
    """The most that was held, by everybody."""
    memory_shared_bytes: Amount | None = None
    """Of the computer's memory, lent to this GPU by its driver (Windows: shared GPU memory)."""
    memory_free_bytes: Amount | None = None
    """The least that was left, where that is what was read."""
    memory_total_bytes: Amount | None = None
    foreign_processes: Whole | None = None
    """Processes on this GPU that are not of the run."""
    foreign_memory_bytes: Amount | None = None
    foreign_utilisation: Share | None = None
    """What the others' kernels took, where the driver tells by process."""
    mig_profile: Word | None = None
    """Such as ``1g.10gb``, where the run has a slice; absent does not say that it has none."""
    mps_share: Share | None = None
    """CUDA_MPS_ACTIVE_THREAD_PERCENTAGE / 100."""
    link_generation: Link | None = None
    """PCIe, as negotiated while the GPU worked (it drops at idle)."""
    link_generation_max: Link | None = None
    link_width: Link | None = None
    link_width_max: Link | None = None
    received_bytes_s: Amount | None = None
    """PCIe traffic to the GPU."""
    sent_bytes_s: Amount | None = None
    copy_bytes_s: Amount | None = None
    """Host to device, measured by a copy of pinned memory."""
    copy_expected_bytes_s: Amount | None = None
    """What the link's largest generation and width give."""
    numa_node: Whole | None = None


class OtherProgram(Frozen):
    """A program that is not a part of the run, on the same computer."""

    name: Word | None = None
    trains: bool | None = None
    """Whether it is a training, or as hungry."""
    cores: Amount | None = None
    """Cores that it kept busy."""
    gpu: Literal["same", "other", "none"] | None = None
    """Whether it is on a GPU of the run, on another one of the computer, or on none."""
    utilisation: Share | None = None
    """What its kernels took of its GPU."""
    memory_bytes: Amount | None = None
    """Of the GPU's memory."""
    read_bytes_s: Amount | None = None
    """From drives or the network."""


class HostReadings(Frozen):
    """The computer around the GPUs while the run was on it."""

    cores: Positive | None = None
    """Logical cores of the computer."""
    threads_per_core: Positive | None = None
    """Logical cores of each physical one: 2 with hyper-threading."""
    usable_cores: Annotated[float, Field(gt=0)] | None = None
    """What the run may use of them: affinity and container quota (which may be a fraction)."""
    quota_cores: Annotated[float, Field(gt=0)] | None = None
    """The container's quota alone; absent does not say that there is none."""
    utilisation: Shares | None = None
    """Share of all cores that were busy."""
    run_cores: Amount | None = None
    """Cores that the run with its workers kept busy on average."""
    main_process_cores: Amount | None = None
    """Cores that the training process itself, without its workers, kept busy."""
    foreign_cores: Amount | None = None
    """Cores that other programs kept busy on average."""
    foreign_top: tuple[Word, ...] = ()
    """Names of the busiest other programs."""
    other_programs: Annotated[tuple[OtherProgram, ...], Field(max_length=64)] = ()
    """What is known of them one by one."""
    load_average: Amount | None = None
    """Threads that work or wait for a core or a drive, of everybody: ``uptime``'s, of a minute."""
    run_threads: Whole | None = None
    """Threads that the run has, its workers' with them, whether they work or sleep."""
    throttled_periods: Share | None = None
    """nr_throttled / nr_periods of the cgroup's cpu.stat, over the time watched."""
    throttled_seconds: Amount | None = None
    starved_share: Share | None = None
    """Of the time that the run's threads could have worked, the share that they waited for a core:
    run delay / (run delay + time on a core) of /proc/PID/task/*/schedstat."""
    runnable_threads: Amount | None = None
    """Threads of the run, with its workers and all that their libraries start, that worked or
    waited for a core, on average."""
    pressure_cpu: Share | None = None
    """Share of the time in which something waited for a core (/proc/pressure/cpu, some)."""
    pressure_io: Share | None = None
    """Share of the time in which something waited for a drive (/proc/pressure/io, some)."""
    pressure_memory: Share | None = None
    io_wait: Share | None = None
    """Share of the cores' time that was spent waiting for drives."""
    read_bytes_s: Amount | None = None
    """From the drives."""
    run_read_bytes_s: Amount | None = None
    """From the drives, by the run itself and its workers."""
    main_read_bytes_s: Amount | None = None
    """Asked for with read calls by the training process alone, whether a drive or the page cache
    gave it; files mapped into memory are left out."""
    main_written_bytes_s: Amount | None = None
    """Given to write calls by the training process alone, whether or not a drive has it yet."""
    main_system_share: Share | None = None
    """Of the training process's time on cores, what the operating system worked for it: pages,
    files, sockets."""
    main_minor_faults_s: Amount | None = None
    """Pages of memory that the training process was given again, a second (Linux: minor faults)."""
    network_bytes_s: Amount | None = None
    """Received and sent, all together."""
    network_max_bytes_s: Amount | None = None
    """What the network gives at best."""
    drive_max_bytes_s: Amount | None = None
    """What the drive of the data gives at best, measured or by its data sheet."""
    drive_busy: Share | None = None
    """Share of the time in which the busiest drive had work."""
    swapped_bytes_s: Amount | None = None
    """Into memory from swap."""
    major_faults_s: Amount | None = None
    memory_available_bytes: Amount | None = None
    """The least that was left."""
    memory_total_bytes: Amount | None = None
    shared_memory_bytes: Amount | None = None
    """Size of /dev/shm."""
    numa_nodes: Positive | None = None
    run_numa_nodes: tuple[Whole, ...] = ()
    """Nodes whose cores the run used."""
    on_battery: bool | None = None
    power_saving: bool | None = None
    """A power plan or governor that holds the clocks down."""
