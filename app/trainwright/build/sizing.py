"""What the workload asks of the computer around the cards: cores, memory, drive."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from trainwright.build.speeds import Cards, Speed
from trainwright.machine.build import Use
from trainwright.machine.rules_memory import OFFLOADED
from trainwright.plan.evaluate import Facts
from trainwright.plan.schema import Plan
from trainwright.workload import Dataset, FullSettings

GB, GIB = 1e9, 1 << 30

CORES_A_GPU = 4
"""Source: Puget Systems, hardware recommendations for machine learning workstations."""
SYSTEM_GIB = 4.0
"""Of memory for the operating system, Python and its libraries; assumed."""
LEAST_GIB = 16.0
"""Of memory in any new computer; assumed: less is hardly sold."""
SYSTEM_GB = 150.0
"""On the drive for the operating system, CUDA, Python environments and a cache; assumed."""
LEAST_GB = 500.0
"""Of a drive in any new computer: the system, environments of 10 to 20 GB each, and caches of
models and data that grow; assumed."""
APART_GB = 2000.0
"""Of data from which they have drives of their own: usual system drives hold less; assumed."""
LARGE_GIB = 32.0
"""Of all cards' memory, from which processor and board are of the cards' PCIe generation: so much
money is not put on a platform that takes no later processor; assumed."""
AMPLE_CORES, AMPLE_GB = 8, 1000.0
MOST_CORES = 32
TWICE_GIB = 128.0
"""What experts take where money is left: eight cores a card up to 32, a drive of 1 TB, and twice
the memory of all cards up to 128 GiB. Source: Puget Systems, as above, which call 16 cores the
least of workstations for several cards; the sizes are assumed."""
GIB_A_DRIVE, MOST_DRIVES = 48.0, 4
"""Memory of all cards for each ``AMPLE_GB`` of drive, up to so many: larger models have larger
checkpoints and caches. Assumed."""
CHECKPOINTS_KEPT = 3
CHECKPOINTS_A_DAY = 4
"""Assumed: what training scripts are usually set to, when runs last days."""
FREE = 0.2
"""Share of a drive that stays free, for its cells to be levelled; assumed, as makers advise."""
YEARS = 3
"""For which a drive's endurance must last; assumed, the least of usual warranties."""


@dataclass(frozen=True, slots=True)
class Needs:
    """The least that the computer around some cards must have."""

    cores: int
    memory_gib: float
    """For the cards' memory, the loader and what is offloaded."""
    drive_gb: float
    """Decimal, what stays free included."""
    endurance_tb: float
    """Terabytes written within ``YEARS``."""
    checkpoint_bytes: float
    dataset_bytes: float | None
    """None: not known, or none."""
    generation: int = 0
    """Of PCIe, that the processor has at least."""
    at_rate: bool = False
    """Whether all channels are filled at full rate; otherwise what is cheapest may do neither."""

    @property
    def apart_gb(self) -> float:
        """Of drives for data alone, what stays free included; 0 where the system's hold them."""
        return data_gb(self.dataset_bytes)

    @property
    def written_gb_a_day(self) -> float:
        """What checkpoints write."""
        return self.checkpoint_bytes * CHECKPOINTS_A_DAY / GB


def needs(plan: Plan, facts: Facts, cards: Cards, speed: Speed) -> Needs:
    """Return what the work on some cards asks of the computer around them.

    Memory holds at least what all cards do, and the system beside one of them: models pass through
    it on their way to the card. Tim Dettmers' full hardware guide to deep learning asks for the
    largest card's, Puget Systems' recommendations for machine learning for twice that of all.
    """
    model, trains = facts.profile.model, plan.workload.trains
    parameters = float(model.get("parameters", 0))
    checkpoint = checkpoint_bytes(facts, speed.settings) if trains else 0.0
    dataset = dataset_bytes(plan)
    card_gib = cards.record.memory_bytes.value / GIB
    use = _offloads(speed.settings)
    beside = cards.count * card_gib * (OFFLOADED if use else 1)
    memory = max(LEAST_GIB, beside, beside / cards.count + SYSTEM_GIB)
    stored = (dataset or 0.0) + 2 * parameters + CHECKPOINTS_KEPT * checkpoint
    drive_gb = max(LEAST_GB, (SYSTEM_GB + stored / GB) / (1 - FREE))
    return Needs(
        cores=CORES_A_GPU * cards.count,
        memory_gib=memory,
        drive_gb=max(drive_gb, data_gb(dataset) + LEAST_GB),
        endurance_tb=checkpoint * CHECKPOINTS_A_DAY * 365 * YEARS / 1e12,
        checkpoint_bytes=checkpoint,
        dataset_bytes=dataset,
        generation=_generation(cards),
    )


def steps(least: Needs, cards: Cards) -> Iterator[Callable[[Needs], Needs]]:
    """Yield what experts take around the cards where money is left, what is missed first first."""
    all_gib = cards.count * cards.record.memory_bytes.value / GIB
    memory_gib = max(least.memory_gib, min(2 * all_gib, TWICE_GIB))
    drive_gb = max(least.drive_gb, AMPLE_GB * _terabytes(all_gib) + least.apart_gb)
    ample = min(AMPLE_CORES * cards.count, MOST_CORES)
    cores, generation = max(least.cores, ample), cards.record.pcie_generation or 0
    yield lambda now: replace(now, memory_gib=memory_gib)
    yield lambda now: replace(now, drive_gb=drive_gb)
    yield lambda now: replace(now, cores=cores, generation=generation)
    yield lambda now: replace(now, at_rate=True)


def _terabytes(all_gib: float) -> int:
    """Return how many times ``AMPLE_GB`` the drive holds for cards of so much memory."""
    return min(max(round(all_gib / GIB_A_DRIVE), 1), MOST_DRIVES)


def _generation(cards: Cards) -> int:
    large = cards.count * cards.record.memory_bytes.value / GIB >= LARGE_GIB
    return (cards.record.pcie_generation or 0) if large else 0


def data_gb(dataset: float | None) -> float:
    """Return what drives for a data set of so many bytes hold; 0 where it needs none of its own."""
    data = (dataset or 0.0) / GB
    return data / (1 - FREE) if data > APART_GB else 0.0


def checkpoint_bytes(facts: Facts, settings: FullSettings) -> float:
    """Return the bytes of one checkpoint: trained weights and the optimizer's state of them."""
    model = facts.profile.model
    trained = float(model.get("trainable", model.get("parameters", 0)))
    weights = 2 if settings.precision in ("bf16", "fp16") else 4
    return trained * (weights + _STATE.get(settings.optimizer, 8))


_STATE = {
    "adamw": 8,
    "adamw-8bit": 2,
    "paged-adamw-8bit": 2,
    "paged-adamw": 8,
    "adamw-8bit-torchao": 2,
    "adamw-4bit": 1,
    "sgd": 4,
    "adafactor": 0,
    "lion": 2,
    "muon": 4,
}
"""Bytes a trained weight of the optimizer's state, as their libraries keep it."""


def dataset_bytes(plan: Plan) -> float | None:
    """Return the bytes of the data set; None where nobody says, or samples are synthetic."""
    data, samples = plan.workload.dataset, plan.workload.samples
    if not isinstance(data, Dataset) or data.sample_kib is None or samples is None:
        return None
    return data.sample_kib * 1024 * samples


def use_of(cards: Cards, speed: Speed, needed: Needs, plan: Plan) -> Use:
    """Return what the computer is for, as rules ask."""
    settings = speed.settings
    if not plan.workload.trains:
        served = speed.clock.situation.served
        turns = served is not None and served.split is not None and served.tensor is None
        way = "layer-split" if turns else "inference"
    elif settings.shards:
        way = "sharded"
    else:
        way = "data-parallel" if settings.several and cards.count > 1 else "single"
    return Use(
        way=way,  # type: ignore[arg-type]
        offloads=_offloads(settings),
        written_gb_a_day=needed.written_gb_a_day if plan.workload.trains else None,
        system=plan.machine.system,
    )


def _offloads(settings: FullSettings) -> bool:
    return settings.optimizer_offload == "cpu" or settings.activation_offload
