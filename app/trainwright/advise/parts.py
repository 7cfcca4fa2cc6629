"""Other parts of the machine that are worth a look; there are no prices yet: speed alone speaks."""

from collections.abc import Iterator

from trainwright.advise.variations import BUYABLE, Patch, Variation
from trainwright.catalog import DriveRecord, GpuRecord, find_drive
from trainwright.catalog.precision import peak_flops
from trainwright.catalog.query import list_gpus
from trainwright.messages import Message
from trainwright.plan.evaluate import Facts
from trainwright.plan.report import Report
from trainwright.plan.schema import Plan
from trainwright.workload import Dataset
from trainwright.workload.defaults import largest_divisor

_FASTER = 1.2
"""Times the arithmetic from which another GPU is worth a word; assumed."""
_FASTER_DRIVES = {
    "hdd": ("samsung-870-evo-2tb", "samsung-990-pro-2tb"),
    "sata": ("samsung-990-pro-2tb",),
    "nvme": ("wd-black-sn8100-2tb",),
}
"""Interface of a drive -> drives of the faster kinds, one that is widely sold for each."""


def part_variations(plan: Plan, facts: Facts, report: Report) -> Iterator[Variation]:
    """Yield other hardware that a person may want to buy."""
    if plan.machine.fixed or len(plan.machine.gpus) != 1:
        return
    idle = facts.settings.strategy == "single" and facts.machine.gpu_count > 1
    if plan.workload.trains and not idle:
        yield from _more_gpus(plan, facts)
    faster = next_gpu(facts.machine.gpu.record)
    if faster is not None:
        patch: Patch = {"machine.gpus[0].id": faster.id, "machine.gpus[0].power_limit_w": None}
        yield _part("gpu", patch, gpu=faster.name.removeprefix("GeForce "))
    if isinstance(plan.workload.dataset, Dataset) and plan.workload.dataset.layout != "memory":
        yield from _drives(facts)
        yield from _memory(facts, report)


def _part(name: str, patch: Patch, /, **values: object) -> Variation:
    return Variation(Message.of(f"advise.whatif.{name}", **values), patch, "part", name)


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
    """Return the next faster GPU of the kind's newest generation, with no less memory.

    A module does not go into a card's slot: it would take another computer.
    """
    if own.segment not in BUYABLE:
        return None
    least, memory = _FASTER * _speed(own), own.memory_bytes.value
    known = list_gpus(vendor=own.vendor, segment=own.segment)
    kind = [one for one in known if one.launch and one.form == own.form]
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


def _drives(facts: Facts) -> Iterator[Variation]:
    """Yield the drive of the data set replaced by one of the next faster kind."""
    now = facts.machine.storage[0] if facts.machine.storage else None
    if now is None:
        return
    for id in _FASTER_DRIVES[now.interface]:
        other = find_drive(id)
        if other is not None and other.read_mb_s > now.read_mb_s:
            patch: Patch = {"machine.drives[0].id": id}
            yield _part("drive", patch, new=kind_of(other), old=kind_of(now))


def kind_of(drive: DriveRecord) -> Message:
    """Return what a drive is called by its interface."""
    if drive.interface == "nvme" and drive.pcie_generation is not None:
        return Message.of("advise.whatif.drive.nvme-of", generation=drive.pcie_generation)
    return Message.of(f"advise.whatif.drive.{drive.interface}")


def _memory(facts: Facts, report: Report) -> Iterator[Variation]:
    """Yield twice the memory where it holds more of the data set than now."""
    pipeline, now = report.time.pipeline, facts.machine.memory_bytes
    size = pipeline.feeding.dataset_bytes if pipeline is not None else None
    if now is None or size is None or size <= now:
        return
    more = 2 * now / (1 << 30)
    yield _part("memory", {"machine.memory_gib": more}, gib=f"{more:g}")
