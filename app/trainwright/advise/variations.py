"""Changes of a plan that are worth a look: one setting, or one part, each."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from trainwright.catalog import GpuRecord
from trainwright.catalog.precision import peak_flops
from trainwright.catalog.query import list_gpus
from trainwright.messages import Message
from trainwright.plan.evaluate import Facts
from trainwright.plan.report import Report, Verdict
from trainwright.plan.schema import Plan
from trainwright.workload import Dataset
from trainwright.workload.defaults import largest_divisor

Patch = dict[str, Any]
"""Dotted keys of the plan -> what they are set to; None frees a key."""

_POWER_SHARE = 0.75
"""Of the board power: where a limit is usually set to save heat and noise; assumed."""
_FASTER = 1.2
"""Times the arithmetic from which another GPU is worth a word; assumed."""
_NVME = "samsung-990-pro-2tb"
"""What stands for an NVMe drive: PCIe 4.0, 7.45 GB/s."""
_BUYABLE = ("consumer", "workstation", "datacenter")


@dataclass(frozen=True, slots=True)
class Variation:
    """One change, before anybody has looked what it does."""

    change: Message
    patch: Patch
    kind: Literal["setting", "part"]
    subject: str
    """What is changed; of several values of one subject only the best is worth showing."""


def variations(plan: Plan, facts: Facts, report: Report) -> Iterator[Variation]:
    """Yield what a person may want to try; some of it the plan may refuse."""
    yield from _training(plan, facts, report) if plan.workload.trains else _serving(plan, facts)
    yield from _kernels(facts)
    if not plan.machine.local and len(plan.machine.gpus) == 1:
        yield from _parts(plan, facts)


def _setting(name: str, patch: Patch, /, *, subject: str = "", **values: object) -> Variation:
    change = Message.of(f"advise.whatif.{name}", **values)
    return Variation(change, patch, "setting", subject or name)


def _part(name: str, patch: Patch, /, **values: object) -> Variation:
    return Variation(Message.of(f"advise.whatif.{name}", **values), patch, "part", name)


def _training(plan: Plan, facts: Facts, report: Report) -> Iterator[Variation]:
    settings = facts.settings
    gpus = facts.machine.gpu_count if settings.strategy == "ddp" else 1
    for factor in (2, 4, 8, 0.5):
        micro = int(settings.micro_batch * factor)
        if micro and settings.accumulation >= factor and not settings.accumulation % factor:
            patch = batch_patch(plan, micro, gpus)
            yield _setting("micro", patch, micro=micro)
    checkpointed = settings.checkpointing != "none"
    off, on = {"settings.checkpointing": "none"}, {"settings.checkpointing": "full"}
    if checkpointed:
        yield _setting("checkpointing-off", off, subject="checkpointing")
    else:
        yield _setting("checkpointing-on", on, subject="checkpointing")
    if plan.workload.task == "lora":
        yield _setting("qlora", {"workload.task": "qlora"})
    whole = settings.optimizer == "adamw" and not plan.workload.adapts
    if whole and report.verdict is not Verdict.FITS:
        yield _setting("optimizer", {"settings.optimizer": "adamw-8bit"}, value="adamw-8bit")
    yield from _input(plan, facts, report)


def batch_patch(plan: Plan, micro: int, gpus: int) -> Patch:
    """Return the keys that set a micro-batch and keep the effective batch."""
    patch: Patch = {"settings.micro_batch": micro}
    if plan.settings.accumulation is not None and plan.workload.effective_batch is not None:
        patch["settings.accumulation"] = plan.workload.effective_batch // (micro * gpus)
    return patch


def _input(plan: Plan, facts: Facts, report: Report) -> Iterator[Variation]:
    """Yield remedies of a slow input; while something else limits they say nothing."""
    dataset, limits = plan.workload.dataset, report.time.bottleneck
    if not isinstance(dataset, Dataset) or limits not in ("storage", "decode"):
        return
    workers, pipeline = facts.settings.num_workers, report.time.pipeline
    choice = pipeline.recommended if pipeline is not None else None
    more = choice.num_workers if choice is not None else 2 * workers or 4
    if limits == "decode" and more > workers:
        yield _setting("workers", {"settings.loader.num_workers": more}, workers=more)
    if limits == "decode" and dataset.decode not in ("none", "tokenise"):
        yield _setting("decoded", {"workload.dataset.decode": "none"})
    if limits == "storage" and dataset.layout == "files":
        yield _setting("shards", {"workload.dataset.layout": "shards"})


def _serving(plan: Plan, facts: Facts) -> Iterator[Variation]:
    key = "settings.micro_batch" if plan.settings.micro_batch else "workload.inputs.concurrent"
    for factor in (2, 4, 0.5):
        requests = int(facts.settings.micro_batch * factor)
        if requests:
            yield _setting("concurrent", {key: requests}, requests=requests)
    for value in ("fp8", "int8", "int4"):
        if facts.settings.quantization == "none":
            patch = {"settings.quantization": value}
            yield _setting("quantization", patch, value=value)
    if facts.settings.kv_cache in ("bf16", "fp16"):
        yield _setting("kv-cache", {"settings.kv_cache": "fp8"}, value="fp8")


def _kernels(facts: Facts) -> Iterator[Variation]:
    """Yield what makes other kernels of the same work."""
    settings = facts.settings
    if settings.precision == "fp32":
        yield _setting("precision", {"settings.precision": "bf16-mixed"}, value="bf16-mixed")
        yield _setting("precision", {"settings.precision": "tf32"}, value="tf32")
    if settings.attention == "eager" and facts.profile.kernels:
        yield _setting("attention", {"settings.attention": "sdpa"}, value="sdpa")
    if not settings.compile:
        yield _setting("compile", {"settings.compile": True})
    if not settings.channels_last and _convolves(facts):
        yield _setting("channels-last", {"settings.channels_last": True})


def _convolves(facts: Facts) -> bool:
    return any("convolution" in name for name in facts.profile.ops.name)


def _parts(plan: Plan, facts: Facts) -> Iterator[Variation]:
    """Yield other hardware; the catalog has no prices yet, so that speed alone speaks."""
    record = facts.machine.gpu.record
    idle = facts.settings.strategy == "single" and facts.machine.gpu_count > 1
    if plan.workload.trains and not idle:
        yield from _more_gpus(plan, facts)
    limit = round(_POWER_SHARE * record.tdp_w.value / 10) * 10 if record.tdp_w else 0
    if limit and facts.machine.gpu.power_limit_w is None and record.segment in _BUYABLE:
        patch: Patch = {"machine.gpus[0].power_limit_w": limit}
        yield _setting("power", patch, limit=limit)
    faster = next_gpu(record)
    if faster is not None:
        patch = {"machine.gpus[0].id": faster.id, "machine.gpus[0].power_limit_w": None}
        yield _part("gpu", patch, gpu=faster.name.removeprefix("GeForce "))
    yield from _drive(plan, facts)


def _drive(plan: Plan, facts: Facts) -> Iterator[Variation]:
    """Yield an NVMe drive for the data set, where it is on a slower one."""
    reads = isinstance(plan.workload.dataset, Dataset) and plan.workload.dataset.layout != "memory"
    own = facts.machine.storage[0] if facts.machine.storage else None
    if not reads or own is None or own.interface == "nvme":
        return
    patch: Patch = {
        "machine.drives": [{"id": _NVME}, *({"id": id} for id in facts.machine.drives[1:])]
    }
    yield _part("drive", patch, drive=own.name)


def _more_gpus(plan: Plan, facts: Facts) -> Iterator[Variation]:
    count = 2 * plan.machine.gpus[0].count
    batch = plan.workload.effective_batch
    if batch is None or batch % count:
        return
    share = batch // count
    micro = largest_divisor(share, facts.settings.micro_batch)
    patch: Patch = {"machine.gpus[0].count": count, "settings.strategy": None}
    if plan.settings.micro_batch is not None:
        patch["settings.micro_batch"] = micro
    if plan.settings.accumulation is not None:
        patch["settings.accumulation"] = share // micro
    if count == 2:
        yield _part("second-gpu", patch)
    else:
        yield _part("more-gpus", patch, gpus=count)


def next_gpu(own: GpuRecord) -> GpuRecord | None:
    """Return the next faster GPU of the kind's newest generation, with no less memory."""
    if own.segment not in _BUYABLE:
        return None
    least, memory = _FASTER * _speed(own), own.memory_bytes.value
    kind = [one for one in list_gpus(vendor=own.vendor, segment=own.segment) if one.launch]
    newest = max(kind, key=lambda one: one.launch or "", default=None)
    if newest is None or not least:
        return None
    faster = [
        one
        for one in kind
        if one.architecture == newest.architecture
        and _speed(one) >= least
        and one.memory_bytes.value >= memory
        and one.bandwidth_bytes_per_s.value > own.bandwidth_bytes_per_s.value
    ]
    return min(faster, key=lambda one: (_speed(one), one.id), default=None)


def _speed(record: GpuRecord) -> float:
    """Return the dense FLOP/s of 16-bit training; 0 where nobody published it."""
    fact = peak_flops(record, "bf16-mixed") or peak_flops(record, "fp16-mixed")
    return fact.value if fact is not None else 0.0
