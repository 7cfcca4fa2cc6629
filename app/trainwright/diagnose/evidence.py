"""What a verdict may look at, and the shape of the record file that holds it.

A record is one JSON document of this shape; the only key that it must have is
``"trainwright_record": 1``. Every other part may be absent, and absent is not zero: a counter of
0 says that somebody counted. Seconds and bytes throughout, shares from 0 to 1.

``trainwright diagnose --record FILE`` reads it; the callback, ``trainwright diagnose -- COMMAND``
and people write it.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from trainwright.diagnose.evidence_readings import (
    Amount,
    GpuReadings,
    HostReadings,
    Positive,
    Share,
    Whole,
    Word,
)
from trainwright.diagnose.trials import Trial
from trainwright.workload.settings import Frozen

RECORD: Literal[1] = 1
"""Version of the record file."""


class StepTimes(Frozen):
    """Where a step's time goes: means over the timed steps, warm-up left out.

    The parts do not overlap: what is hidden behind something else is in none of them. They may
    sum to less than the step; the rest belongs to nobody.
    """

    steps: Positive
    """Timed steps."""
    seconds: Annotated[float, Field(gt=0)]
    """Mean of a step, from one to the next."""
    unit: Literal["step", "epoch", "part"] = "step"
    """What ``seconds`` is the time of: an optimizer's step, an epoch, or a part of a step (a
    forward pass, say). Shares of it can be told for all of them."""
    p95_seconds: Amount | None = None
    data_wait: Amount | None = None
    """Waited for the next batch."""
    data_wait_p95: Amount | None = None
    transfer: Amount | None = None
    """Copies to the device that the step waited for."""
    compute: Amount | None = None
    """Forward, backward and optimizer."""
    forward: Amount | None = None
    """Of ``compute``."""
    backward: Amount | None = None
    """Of ``compute``."""
    optimizer: Amount | None = None
    """Of ``compute``: the optimizer's step."""
    blocked: Amount | None = None
    """Of ``compute``, of a run on the processor: the training thread neither worked nor waited
    for a core, but for a drive, a network, a lock or another process."""
    communication: Amount | None = None
    """Collectives that were not hidden behind computing."""
    other: Amount | None = None
    """Known, and none of these: logging, checkpoints, evaluation, Python between the steps."""
    device_seconds: Amount | None = None
    """Kernels' time a step, by CUDA events; less than ``compute`` where the host is slower."""
    synchronised: bool | None = None
    """Whether the device was waited for at each part's end. False: on a GPU, ``compute`` is only
    the time to queue the work, and waiting shows up where the script synchronises."""
    slowest_rank: Annotated[float, Field(ge=1)] | None = None
    """The slowest rank's own work (data wait + transfer + compute) / the mean of all ranks."""
    samples: Annotated[float, Field(gt=0)] | None = None
    """Samples a step, on this rank."""

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        """Refuse a part that is longer than the step, but for what rounding does."""
        for part in STEP_PARTS:
            if (getattr(self, part) or 0) > ROOM * self.seconds:
                raise PydanticCustomError(
                    "diagnose.problem.long-part", "longer than the step", {"part": part}
                )
        return self


STEP_PARTS = (
    "data_wait", "transfer", "compute", "forward", "backward", "optimizer", "communication",
)  # fmt: skip
"""None of which is longer than the step."""
ROOM = 1.05
"""Times a step that a part of it may come to by rounding; assumed."""


class Throughput(Frozen):
    """How much the run does, where no step was timed or besides."""

    samples_s: Amount | None = None
    """On each device."""
    tokens_s: Amount | None = None
    """On each device."""
    steps_s: Amount | None = None
    expected_times: Annotated[float, Field(gt=0)] | None = None
    """What others reach with the same model and hardware, over what this run does: 3 is three
    times as fast."""


class Loading(Frozen):
    """How batches are made, in the workers or, without them, in the training process."""

    cpu_share: Share | None = None
    """Of the time that it takes to make a batch, the share on a core; the rest waits for drives,
    a network or sleep. Where a quota or other programs take the cores away, waiting for a core
    counts as waiting too."""
    drive_wait_share: Share | None = None
    """Share of the samples in which a worker waited for a drive (state D)."""
    batch_seconds: Amount | None = None
    """One worker's time for one batch."""
    workers_cpu: Share | None = None
    """Share of a core that a worker kept busy, mean of all."""
    samples_s: Amount | None = None
    """What the loader with all its workers gives where nobody trains."""
    queue_empty: Share | None = None
    """Share of the steps that found no batch ready."""
    data_on: Literal["memory", "nvme", "ssd", "hdd", "network", "object-store"] | None = None
    """Where the data lie."""


class Counters(Frozen):
    """What was counted over ``steps`` timed steps; sizes are peaks, or as noted."""

    steps: Positive
    alloc_retries: Whole | None = None
    """num_alloc_retries of torch.cuda.memory_stats: the cache was emptied to find room."""
    out_of_memory: Whole | None = None
    """num_ooms."""
    device_allocations: Whole | None = None
    """cudaMalloc and cudaFree calls after warm-up (num_device_alloc + num_device_free)."""
    empty_cache: Whole | None = None
    """Calls of torch.cuda.empty_cache, or of another device's."""
    empty_cache_seconds: Amount | None = None
    """Spent in them, all together."""
    garbage_collections: Whole | None = None
    """Calls of gc.collect by the script."""
    garbage_seconds: Amount | None = None
    synchronisations: Whole | None = None
    """Explicit: torch.cuda.synchronize, stream and event synchronize."""
    item_reads: Whole | None = None
    """Implicit: .item(), .tolist(), .cpu(), .numpy(), float(), bool() of device tensors; on a CPU
    run, of any tensor."""
    synchronisation_seconds: Amount | None = None
    """Spent in both kinds, all together."""
    allocated_bytes: Amount | None = None
    reserved_bytes: Amount | None = None
    inactive_split_bytes: Amount | None = None
    """Free parts of blocks that are partly in use."""
    offloaded_bytes: Amount | None = None
    """Moved between device and host each step, for offloading or paging."""
    checkpoints: Whole | None = None
    checkpoint_seconds: Amount | None = None
    """Spent saving them, all together."""
    loads: Whole | None = None
    """Calls of torch.load by the training process."""
    load_seconds: Amount | None = None
    """Spent in them, all together."""
    mid_step_seconds: Amount | None = None
    """Spent in torch.save and torch.load between a batch and the optimizer's end, all together:
    what is saved or read there is no checkpoint, but the step's own state."""
    log_seconds: Amount | None = None
    """Spent writing logs, all together."""
    evaluations: Whole | None = None
    """Blocks without gradients beside the steps, in which models computed."""
    evaluation_seconds: Amount | None = None
    """Spent in evaluation, all together; on a GPU, by the host's clock."""
    recomputations: Whole | None = None
    """Parts of the model that backward computed again (activation checkpointing)."""
    recomputation_seconds: Amount | None = None
    """Spent in them, all together; on a GPU, by the host's clock."""


class Setup(Frozen):
    """How the run is set up; words are the plan's where it has one for it."""

    device: Literal["cuda", "rocm", "xpu", "mps", "cpu"] | None = None
    torch: Word | None = None
    precision: (
        Literal["fp64", "fp32", "tf32", "fp16-mixed", "bf16-mixed", "bf16", "fp16", "fp8"] | None
    ) = None
    tf32_allowed: bool | None = None
    batch: Positive | None = None
    """Samples a forward pass on one device."""
    accumulation: Positive | None = None
    num_workers: Whole | None = None
    prefetch_factor: Whole | None = None
    pin_memory: bool | None = None
    persistent_workers: bool | None = None
    non_blocking: bool | None = None
    torch_threads: Positive | None = None
    """torch.get_num_threads()."""
    omp_num_threads: Positive | None = None
    """The variable OMP_NUM_THREADS, where it is set."""
    channels_last: bool | None = None
    model_kind: Literal["convolution", "transformer", "recurrent", "mlp", "other"] | None = None
    parameters: Whole | None = None
    attention: Literal["eager", "sdpa", "flash"] | None = None
    compile: bool | None = None
    cudnn_benchmark: bool | None = None
    checkpointing: Word | None = None
    """``none``, ``full``, ``selective``, ``every-2``."""
    optimizer: Word | None = None
    optimizer_foreach: bool | None = None
    """False: one kernel for each parameter (neither foreach nor fused)."""
    allocator: Literal["native", "expandable"] | None = None
    offload: bool | None = None
    """Whether parameters, optimizer state or activations wait in system memory."""
    offloaded: tuple[Literal["parameters", "gradients", "optimizer", "activations"], ...] = ()
    """Which of them."""
    offloaded_to: Literal["host", "drive"] | None = None
    world_size: Positive | None = None
    nodes: Positive | None = None
    strategy: Literal["single", "dp", "ddp", "fsdp", "zero", "pp", "tp", "other"] | None = None
    """``dp``: torch.nn.DataParallel."""
    backend: Literal["nccl", "rccl", "gloo", "mpi", "xccl", "ucc"] | None = None
    link: Literal["nvlink", "pcie", "network"] | None = None
    """The slowest between the GPUs."""
    link_bytes_s: Annotated[float, Field(gt=0)] | None = None
    """What that one carries in one direction, measured or by its data sheet."""
    pipeline_stages: Positive | None = None
    find_unused_parameters: bool | None = None
    dims: tuple[Positive, ...] = ()
    """Widths of the matrix products: hidden sizes, vocabulary, channels."""
    anomaly_detection: bool | None = None
    """torch.autograd.set_detect_anomaly."""
    profiler_on: bool | None = None
    """A profiler ran during all timed steps."""
    deterministic: bool | None = None
    onednn: bool | None = None
    """Whether torch may use oneDNN on the processor: torch.backends.mkldnn.enabled."""
    sequence_padding: Share | None = None
    """Share of the tokens that are padding."""
    ignored_targets: Share | None = None
    """Share of the targets that the loss leaves out though all of their scores were computed."""
    sequence_length: Positive | None = None
    dynamic_shapes: bool | None = None
    """Whether inputs change their shape from step to step."""
    log_every: Positive | None = None
    """Steps between two lines of a log."""
    checkpoint_every: Positive | None = None
    """Steps between two checkpoints."""
    evaluate_every: Positive | None = None
    """Steps between two evaluations."""


class Operator(Frozen):
    """A row of a profiler's table."""

    name: Annotated[str, Field(max_length=500)]
    share: Share
    """Of the device's busy time; of a CPU run, of the step."""
    calls: Amount | None = None
    """A step."""
    seconds: Amount | None = None
    """Of one call, mean."""


class HostFunction(Frozen):
    """A row of a profiler of the host program: py-spy, cProfile, a trace's CPU side."""

    name: Annotated[str, Field(max_length=500)]
    share: Share
    """Of the training thread's time, what it calls included."""
    calls: Amount | None = None
    """A step."""


class Profile(Frozen):
    """What a profiler's trace says of steady steps."""

    kernels_a_step: Amount | None = None
    """Of a run on the processor, operators that call no other."""
    launches_a_step: Amount | None = None
    """Calls that launch a kernel or a copy; a captured graph is one."""
    launch_seconds: Amount | None = None
    """The host's time in those calls, a step."""
    step_seconds: Annotated[float, Field(gt=0)] | None = None
    """Of the profiled step, where it is not ``steps.seconds``."""
    recompilations: Amount | None = None
    """Of torch.compile, a step, in steady steps."""
    bubble: Share | None = None
    """Share of the step in which a pipeline's stage had nothing to do."""
    kernel_median_seconds: Amount | None = None
    short_kernels: Share | None = None
    """Share of kernels that were shorter than the call that launched them."""
    launch_median_seconds: Amount | None = None
    idle: Share | None = None
    """Share of the step in which no kernel ran."""
    host_wait: Share | None = None
    """Share of the step in which the device was idle for want of launches (HTA: host wait)."""
    kernel_wait: Share | None = None
    """Share of the step in the short gaps between queued kernels (HTA: kernel wait)."""
    copies: Share | None = None
    """Share of the step in which only copies to or from the device ran."""
    data_loader: Share | None = None
    """Share of the step inside the DataLoader's next."""
    tensor_core: Share | None = None
    """Share of the device's busy time in kernels that use tensor cores."""
    tensor_core_eligible: Share | None = None
    """Share of the device's busy time in operators that could use them (matrix products,
    convolutions, attention)."""
    layout: Share | None = None
    """Share of the device's busy time that converts layouts (nchwToNhwc and the like) or types."""
    elementwise: Share | None = None
    """Share of the device's busy time in element-wise kernels."""
    attention_eager: Share | None = None
    """Share of the device's busy time in softmax and masking of unfused attention."""
    communication: Share | None = None
    """Share of the step in which a collective ran."""
    communication_hidden: Share | None = None
    """Share of that in which something was computed meanwhile (HTA: overlap)."""
    allocation_calls: Amount | None = None
    """cudaMalloc and cudaFree calls a step."""
    synchronise_calls: Amount | None = None
    """cudaStreamSynchronize, cudaDeviceSynchronize and copies that wait, a step."""
    grouped_convolutions: Share | None = None
    """Share of the step in convolutions of many groups, which read more than they multiply."""
    grown: Share | None = None
    """Share of the step in concatenations to what one before has given: each copies all of it."""
    flops_a_step: Amount | None = None
    """Of matrix products, convolutions and attention, by their shapes: a lower bound."""
    matrix_flops_s: Annotated[float, Field(gt=0)] | None = None
    """What a plain matrix product in fp32 reached on this processor beside the run."""
    empty_call_seconds: Annotated[float, Field(gt=0)] | None = None
    """What an operator took there that computes next to nothing, called from Python."""
    achieved_of_peak: Share | None = None
    """FLOP/s over the peak of the precision in use (MFU)."""
    top: Annotated[tuple[Operator, ...], Field(max_length=50)] = ()
    """Operators or kernels by the device's time, under the profiler's own names."""
    host_top: Annotated[tuple[HostFunction, ...], Field(max_length=50)] = ()
    """Functions of the host program by their time, under the profiler's own names."""


class Experiments(Frozen):
    """Mean seconds of a step when one thing was changed and nothing else."""

    synthetic_batch: Amount | None = None
    """The same batch, already on the device, again and again."""
    cached_data: Amount | None = None
    """Files read from the page cache, decoded as ever."""
    doubled_batch: Amount | None = None
    """Twice the samples."""
    other_precision: Amount | None = None
    """bf16-mixed or fp16-mixed in place of fp32."""
    channels_last: Amount | None = None
    compiled: Amount | None = None
    fused_attention: Amount | None = None
    more_workers: Amount | None = None
    """Twice the workers."""
    all_threads: Amount | None = None
    """torch.set_num_threads(usable cores)."""
    without_empty_cache: Amount | None = None
    without_synchronisation: Amount | None = None
    single_device: Amount | None = None
    """One device, the same samples a device."""
    alone: Amount | None = None
    """With the other programs stopped."""


class Failure(Frozen):
    """How the run ended, where it did not end well."""

    kind: Word
    """The exception's type, or ``signal 9``."""
    text: Annotated[str, Field(max_length=20_000)] = ""
    """The message or the end of the traceback."""


class Evidence(Frozen):
    """One run as far as it was seen."""

    trainwright_record: Literal[1]
    """Version of this format."""
    made_by: Word = ""
    """``callback``, ``diagnose``, ``readings``; ``hand``, or nothing: a person wrote it."""
    source: Annotated[str, Field(max_length=2000)] = ""
    """Where the figures come from, if not from this computer: a link."""
    note: Annotated[str, Field(max_length=2000)] = ""
    command: Annotated[str, Field(max_length=2000)] = ""
    watched_seconds: Amount | None = None
    """How long readings were taken."""
    readings: Whole | None = None
    """How many samples the readings sum up."""
    gpus: Annotated[tuple[GpuReadings, ...], Field(max_length=64)] | None = None
    """GPUs of the run; an empty list: it has none."""
    host: HostReadings | None = None
    steps: StepTimes | None = None
    loading: Loading | None = None
    counters: Counters | None = None
    setup: Setup | None = None
    profile: Profile | None = None
    experiments: Experiments | None = None
    trials: Annotated[tuple[Trial, ...], Field(max_length=64)] = ()
    """Further experiments, of any kind."""
    throughput: Throughput | None = None
    failure: Failure | None = None
    unavailable: Annotated[dict[Word, Word], Field(max_length=200)] = Field(default_factory=dict)
    """Reading -> why there is none: ``{"gpus.utilisation": "probe.not-supported"}``; the reason is
    the id of one of our messages, or plain text."""

    @property
    def operators(self) -> tuple[Operator, ...]:
        """The rows of a profiler's table of operators; none where nobody profiled."""
        return self.profile.top if self.profile is not None else ()

    @property
    def functions(self) -> tuple[HostFunction, ...]:
        """The rows of the host program's profile, each with what it calls; none without one."""
        return self.profile.host_top if self.profile is not None else ()

    @property
    def recorded(self) -> bool:
        """Whether the product's recorder was in the run, and timed its steps."""
        return self.made_by in ("callback", "diagnose")

    @property
    def by_hand(self) -> bool:
        """Whether a person wrote the record: our programs say which of them made it."""
        return self.made_by in ("", "hand")
