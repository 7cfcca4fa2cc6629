"""What the exchange of gradients between the GPUs of one machine costs: link, time, overlap.

DistributedDataParallel sums gradients in buckets while the backward pass still runs. A bucket's
all-reduce goes round a ring; what of it the step waits for is what the backward pass does not
hide. Constants and their sources: ``resources/calibration/communication.json``.
"""

import json
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Literal

from trainwright.catalog import CpuRecord, GpuRecord
from trainwright.data import resources
from trainwright.estimate.calibration_file import Constant, Entry
from trainwright.estimate.cuda import BUCKET
from trainwright.machine.network import Cluster
from trainwright.machine.peers import fabric_link, has_board_nvlink, has_peer_access
from trainwright.machine.wiring import Lanes
from trainwright.profile.profile import Profile
from trainwright.workload import FullSettings

Path = Literal["nvlink", "fabric", "bridge", "peer", "host", "network"]
"""NVLink built into a server's board; Infinity Fabric between each two modules of AMD's; NVLink
bridges between pairs of cards; PCIe from GPU to GPU; PCIe by way of the system's memory; a network
between computers."""

PATHS: tuple[Path, ...] = ("nvlink", "fabric", "bridge", "peer", "host", "network")

FIRST_BUCKET = 1 << 20
"""``kDefaultFirstBucketBytes`` of torch/csrc/distributed/c10d/reducer.hpp."""


class Calibration(Entry):
    """Everything that the exchange of gradients assumes beside the data sheet."""

    version: int
    stated: str
    pcie_bytes_per_s_per_lane: dict[str, Constant]
    desktop_lanes: Constant
    """That the cards of a desktop share where nobody says which processor it has."""
    bus_share: dict[Path, Constant]
    """Of one direction of the link: what large all-reduces reach with two GPUs."""
    crowding: dict[Path, Constant]
    """By how much each GPU beyond two slows the link: bandwidth / (1 + crowding · (n - 2))."""
    latency_s: Constant
    """Of an all-reduce that uses the whole bandwidth (NCCL's Simple protocol)."""
    hop_s: Constant
    """More for each of the 2 (n - 1) hops of the ring."""
    network_hop_s: Constant
    """More for each of the 2 (computers - 1) hops from computer to computer."""
    low_latency_s: Constant
    """Of one that gives bandwidth for latency (NCCL's LL protocols)."""
    low_latency_share: Constant
    """Share of the bandwidth that such a one reaches."""
    contention: dict[Path, Constant]
    """Seconds by which the backward pass gets longer for each second of all-reduce beside it."""
    copy_share: Constant
    """Of the DRAM bandwidth: what copies of gradients into buckets and out of them reach."""
    straggler: Constant
    """Standard deviation of a GPU's step, relative to the step: all wait for the slowest."""
    straggler_varied: Constant
    """The same where the lengths of samples vary from batch to batch."""
    efficiency_spread: Constant
    """9 of 10 rows of the fit scale within this of what is estimated, in efficiency."""


@cache
def load() -> Calibration:
    """Return the shipped calibration."""
    text = resources("calibration", "communication.json").read_text(encoding="utf-8")
    return Calibration.model_validate(json.loads(text))


@dataclass(frozen=True, slots=True)
class Link:
    """What gradients travel over: the slowest hop of the ring."""

    path: Path
    bytes_per_s: float
    """One direction of the slowest hop, as the data sheet or the bus's standard says."""
    assumed: bool
    """Whether nobody says what the slots offer."""
    lanes: int | None = None
    """Of PCIe, for each card."""
    computers: int = 1

    @property
    def of_gpus(self) -> bool:
        """Whether it joins GPUs alone, beside PCIe and the network."""
        return self.path in ("nvlink", "fabric", "bridge")


def host_link(
    record: GpuRecord,
    count: int = 1,
    calibration: Calibration | None = None,
    *,
    processor: CpuRecord | None = None,
    read: bool = False,
    slots: tuple[Lanes, ...] = (),
) -> Link:
    """Return the PCIe link of each of ``count`` cards: bytes/s of generation and lanes, each way.

    A slot has what the processor's lanes leave to each card: 16 lanes of a desktop's processor
    are 8 and 8 for two. Where the processor is not known, two consumer cards are taken to be in
    such a desktop, and any others in slots as wide as they are. With ``read`` the record's link
    is the one that the computer gives the card, and nothing is left to share. ``slots`` is what
    the board gives the slowest of one card, of two, ...
    """
    if not read and len(slots) >= count and (lanes_there := slots[count - 1].lanes) is not None:
        rate = slots[count - 1].gb_s * 1e9
        return Link("host", rate, assumed=False, lanes=lanes_there)
    constants = calibration or load()
    generation, lanes = record.pcie_generation, record.pcie_lanes
    if read and generation is not None and lanes is not None:
        each = constants.pcie_bytes_per_s_per_lane[str(min(max(generation, 3), 5))].value
        return Link("host", each * lanes, assumed=False, lanes=lanes)
    shared: float | None = processor.slot_lanes if processor else None
    known = None not in (generation, lanes, shared)
    if shared is None and record.segment == "consumer" and count == 2:
        shared = constants.desktop_lanes.value
    if processor is not None and processor.pcie_generation is not None:
        generation = min(generation or 4, processor.pcie_generation)
    width = lanes or 16
    while shared is not None and width > 1 and width * count > shared:
        width //= 2
    each = constants.pcie_bytes_per_s_per_lane[str(min(max(generation or 4, 3), 5))].value
    return Link("host", each * width, assumed=not known, lanes=width)


def link_between(
    record: GpuRecord,
    count: int,
    calibration: Calibration | None = None,
    *,
    bridged: bool = False,
    processor: CpuRecord | None = None,
    read: bool = False,
    slots: tuple[Lanes, ...] = (),
) -> Link:
    """Return what joins ``count`` such GPUs.

    Bridges are there only where the caller says so. They join pairs: of more cards, the ring
    crosses PCIe between the pairs. Infinity Fabric is a mesh: each GPU has a link to every other.
    """
    if count > 1 and (mesh := fabric_link(record)) is not None:
        return Link("fabric", mesh * (count - 1), assumed=False)
    if record.nvlink_bytes_per_s is not None:
        each_way = record.nvlink_bytes_per_s.value / 2
        if has_board_nvlink(record):
            return Link("nvlink", each_way, assumed=False)
        if bridged and count == 2:
            return Link("bridge", each_way, assumed=False)
    link = host_link(record, count, calibration, processor=processor, read=read, slots=slots)
    return replace(link, path="peer") if has_peer_access(record) else link


def over_network(inside: Link, count: int, cluster: Cluster) -> Link:
    """Return the slowest hop of a ring through the computers that ``count`` GPUs take.

    ``inside`` joins the GPUs of one of them. NCCL's rings enter and leave each computer through
    all of its ports, so that one ring has what they have together.
    """
    computers = cluster.used(count)
    outside = Link("network", cluster.network.bytes_per_s, assumed=False, computers=computers)
    if computers < 2:
        return inside
    alone = min(count, cluster.each)
    slower = bus_bandwidth(alone, inside) < bus_bandwidth(count, outside) and alone > 1
    return replace(inside, computers=computers) if slower else outside


def between_copies(inside: Link, shards: int, copies: int, cluster: Cluster | None) -> Link:
    """Return the slowest hop of the rings in which ``copies`` add up the gradients of their shares.

    The GPUs of a copy lie side by side, ``shards`` of them. Each adds up its own share with its
    peers: all rings at once, so that the ports of a computer are shared by those that cross it.
    """
    if cluster is None or (nodes := cluster.used(shards * copies)) < 2:
        return inside
    rate = cluster.network.bytes_per_s / min(shards, cluster.each)
    outside = Link("network", rate, assumed=False, computers=min(nodes, copies))
    alone = copies // nodes  # peers in one computer
    if alone > 1 and bus_bandwidth(alone, inside) < bus_bandwidth(copies, outside):
        return replace(inside, computers=outside.computers)
    return outside


def gradient_bytes(profile: Profile, settings: FullSettings, *, adapts: bool) -> float:
    """Return the bytes of gradients that one GPU sends round.

    They have the type of the weights: fp32 under automatic mixed precision and of adapters,
    two bytes where the whole model is bf16.
    """
    size = 2 if settings.precision in ("bf16", "fp16") and not adapts else 4
    return float(profile.model.get("trainable", profile.model.get("parameters", 0)) * size)


@dataclass(frozen=True, slots=True)
class Exchange:
    """Seconds that one exchange of gradients takes, and what of them a step waits for."""

    wire: float
    """All buckets one after the other."""
    hidden: float
    """Of ``wire``: beside the backward pass."""
    slowed: float
    """By which the backward pass is longer, because the all-reduce runs beside it."""
    copies: float
    """Gradients into buckets and back."""
    buffers: float
    """Statistics of normalisation, which the first GPU sends to the others."""
    straggling: float
    """All GPUs wait for the slowest."""
    between: float = 0.0
    """Of ``wire``: among the copies of shared weights."""
    parts: float = 0.0
    """Of ``wire``: within split layers; nothing hides it."""
    bubble: float = 0.0
    """While a pipeline of stages fills and drains."""

    @property
    def works(self) -> float:
        """Seconds that the exchange takes in all."""
        return self.wire + self.copies + self.buffers + self.straggling + self.bubble

    @property
    def exposed(self) -> float:
        """Seconds by which the step is longer than on one GPU."""
        return self.works - self.hidden + self.slowed


NOTHING = Exchange(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
"""Of one GPU."""


def exchange(
    nbytes: float,
    count: int,
    link: Link,
    *,
    step: float,
    backward: float,
    bandwidth: float,
    buffers: float = 0.0,
    varied: bool = False,
    calibration: Calibration | None = None,
) -> Exchange:
    """Return what the exchange of ``nbytes`` of gradients costs an optimizer step.

    ``step`` is the seconds of the optimizer step on one GPU, ``backward`` those of the backward
    pass that runs beside the exchange, of the last micro-batch: with ``no_sync`` the others
    exchange nothing. ``bandwidth`` is the GPU's DRAM in bytes/s, ``buffers`` the bytes of the
    model's buffers, and ``varied`` says that samples differ in length.

    The last bucket is full when the backward pass ends, so nothing hides it. Source of the
    order: torch/csrc/distributed/c10d/reducer.cpp; with ``gradient_as_bucket_view`` off, each
    gradient is copied into its bucket and back.
    """
    if count < 2 or not nbytes:
        return NOTHING
    constants = calibration or load()
    sizes, passed = buckets(nbytes), ring(count, link, calibration)
    seconds = [passed.seconds(size) for size, _ in sizes]
    wire = sum(each * number for each, (_, number) in zip(seconds, sizes, strict=True))
    hidden = min(wire - seconds[-1], backward)
    copies = 4 * nbytes / (bandwidth * constants.copy_share.value)
    broadcast = passed.seconds(buffers) / 2 if buffers else 0.0
    slowed = constants.contention[link.path].value * hidden
    waits = straggling(count, varied=varied, calibration=constants) * step
    return Exchange(wire, hidden, slowed, copies, broadcast, waits)


def buckets(nbytes: float) -> list[tuple[float, int]]:
    """Return bytes and number of each size of bucket, in the order in which they fill."""
    if nbytes <= FIRST_BUCKET:
        return [(nbytes, 1)]
    full, rest = divmod(nbytes - FIRST_BUCKET, BUCKET)
    sizes = [(float(FIRST_BUCKET), 1), (float(BUCKET), int(full)), (rest, 1)]
    return [(size, number) for size, number in sizes if size and number]


@dataclass(frozen=True, slots=True)
class Ring:
    """GPUs that pass sums round: 2 (n - 1) / n of the bytes over each link.

    NCCL takes the faster of a protocol with little latency and one with the whole bandwidth.
    Source: NVIDIA/nccl-tests, doc/PERFORMANCE.md.
    """

    share: float
    """2 (n - 1) / n."""
    rate: float
    """Bytes/s of each link."""
    latency: float
    low_rate: float
    low_latency: float

    def seconds(self, nbytes: float) -> float:
        """Return the seconds of an all-reduce of ``nbytes`` on each GPU."""
        volume = self.share * nbytes
        simple = self.latency + volume / self.rate
        return min(self.low_latency + volume / self.low_rate, simple)


def ring(count: int, link: Link, calibration: Calibration | None = None) -> Ring:
    """Return the ring of ``count`` GPUs that the link joins."""
    return _shipped_ring(count, link) if calibration is None else _ring(count, link, calibration)


@lru_cache(maxsize=256)
def _shipped_ring(count: int, link: Link) -> Ring:
    return _ring(count, link, load())


def _ring(count: int, link: Link, constants: Calibration) -> Ring:
    rate = bus_bandwidth(count, link, constants)
    hops = 2 * (count - 1) * constants.hop_s.value
    hops += 2 * (link.computers - 1) * constants.network_hop_s.value
    return Ring(
        share=2 * (count - 1) / count,
        rate=rate,
        latency=constants.latency_s.value + hops,
        low_rate=rate * constants.low_latency_share.value,
        low_latency=constants.low_latency_s.value + hops,
    )


def bus_bandwidth(count: int, link: Link, calibration: Calibration | None = None) -> float:
    """Return the bytes/s that each link carries during a large all-reduce."""
    constants = calibration or load()
    crowd = 1 + constants.crowding[link.path].value * max(count - 2, 0)
    return link.bytes_per_s * constants.bus_share[link.path].value / crowd


_SLOWEST = {2: 0.564, 3: 0.846, 4: 1.029, 5: 1.163, 6: 1.267, 7: 1.352, 8: 1.424, 16: 1.766}
"""Standard deviations by which the largest of n normal values exceeds the mean, expected.
Source: tables of normal order statistics (Harter, 1961)."""


def straggling(
    count: int, *, varied: bool = False, calibration: Calibration | None = None
) -> float:
    """Return the share by which a step gets longer because all GPUs wait for the slowest."""
    if count < 2:
        return 0.0
    constants = calibration or load()
    deviation = constants.straggler_varied if varied else constants.straggler
    known = max(number for number in _SLOWEST if number <= count)
    return deviation.value * _SLOWEST[known]
