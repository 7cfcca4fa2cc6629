"""How the rate of training grows with the GPUs of one machine, and what would change it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from trainwright.catalog import GpuRecord
from trainwright.estimate.parallel.communication import (
    Exchange,
    Link,
    bus_bandwidth,
    gradient_bytes,
    link_between,
    load,
)
from trainwright.estimate.parallel.shardtime import volume_of
from trainwright.estimate.parallel.stagetime import handed_bytes, summed_bytes
from trainwright.estimate.time.clock import Clock
from trainwright.estimate.time.stepterms import StepTerms
from trainwright.explain import Quantity
from trainwright.explain.quantity import Interval, Kind, Unit
from trainwright.machine.peers import has_board_nvlink
from trainwright.messages import Message
from trainwright.profile.profile import Profile
from trainwright.workload import FullSettings

SOURCE = "resources/calibration/communication.json"
ALL_UP_TO = 8
"""GPUs; beyond, only powers of two and the plan's own number are worked out."""
WORTH = 0.03
"""Gain over one GPU, as a share of its rate, by which fewer GPUs must be ahead to be named;
assumed: runs differ as much."""
POOR = 0.9
"""Scaling efficiency below which the report says what would change it; assumed."""
FEWER_EXCHANGES = 4
"""Factor on the accumulation that is tried."""

_WHOLE = {"pipeline_stages": None, "strategy": "single"}

Verdict = Literal["slower", "probably-slower", "either", "gain"]
"""Slower than one GPU at both ends of the range, where it is expected, or at its lower end only."""


@dataclass(frozen=True, slots=True)
class ScalingPoint:
    """The plan on so many GPUs: the same micro-batch on each, the effective batch as near to the
    plan's as accumulation makes it, never below.
    """

    gpus: int
    accumulation: int
    effective_batch: int
    samples_per_second: Quantity
    efficiency: Quantity
    """Rate over so many times the rate of one GPU."""
    fits: bool = True
    """Whether the plan fits on so many; True until somebody asks, since each takes a replay."""

    @property
    def gain(self) -> float:
        """What the others add to one GPU, as a share of its rate."""
        return self.efficiency.value * self.gpus - 1

    @property
    def gains(self) -> tuple[float, float]:
        """The range of ``gain`` that the efficiency's interval gives."""
        around = self.efficiency.interval
        if around is None:
            return self.gain, self.gain
        return around.low * self.gpus - 1, around.high * self.gpus - 1

    @property
    def verdict(self) -> Verdict:
        """Whether the others pay: what the report's sentence says of this point."""
        low, high = self.gains
        if self.gain <= 0:
            return "slower" if high <= 0 else "probably-slower"
        return "either" if low <= 0 else "gain"


def scaling(
    profile: Profile, clock: Clock, settings: FullSettings, batch: int
) -> tuple[ScalingPoint, ...]:
    """Return the plan on 1 to all of its GPUs; of one GPU, what a second would do.

    Fewer GPUs than a pipeline has stages hold as many as they are. Empty where nothing is trained,
    where the update cannot wait for other GPUs, where layers are split, and where the answers are
    written first: fewer GPUs write more at once each.
    """
    situation, workload = clock.situation, clock.situation.workload
    alone = settings.optimizer_in_backward or settings.optimizer_offload == "cpu"
    whole = settings.tensor_degree is None and workload.writes is None
    if not workload.trains or alone or not whole:
        return ()
    if situation.gpu_count < 2 and not _takes_another(situation.gpu.record):
        return ()
    effective = batch * settings.accumulation * settings.ranks_of(situation.gpu_count)
    points: list[ScalingPoint] = []
    one: Quantity | None = None
    for count in _counts(max(situation.gpu_count, 2)):
        if count % min(count, settings.pipeline_stages or 1):
            continue  # no whole number of copies of the pipeline
        staged = on_gpus(settings, count)
        ranks = staged.ranks_of(count)
        accumulation = max(1, -(-effective // (batch * ranks)))
        shared = staged.model_copy(update={"accumulation": accumulation})
        terms = clock.of(count).terms(profile, shared, batch)
        rate = _rate(clock, terms, count, ranks, batch * accumulation)
        one = one or rate
        points.append(
            ScalingPoint(
                *(count, accumulation, batch * accumulation * ranks),
                *(rate, _efficiency(rate, one, count, measured=staged.pipeline_stages is None)),
            )
        )
    return tuple(points)


def on_gpus(settings: FullSettings, count: int) -> FullSettings:
    """Return the settings with as many pipeline stages as so many GPUs can hold."""
    if settings.pipeline_stages is None or settings.pipeline_stages <= count:
        return settings
    several = {"pipeline_stages": count} if count > 1 else _WHOLE
    return settings.model_copy(update=several)


def _takes_another(record: GpuRecord) -> bool:
    """Return whether a computer with such a GPU may get a second, and rows say what it does."""
    return record.vendor == "NVIDIA" and record.segment not in ("laptop", "integrated")


def _counts(most: int) -> list[int]:
    every = range(1, min(most, ALL_UP_TO) + 1)
    doubled = (2**power for power in range(4, 7) if 2**power < most)
    return sorted({*every, *doubled, most})


def _rate(clock: Clock, terms: StepTerms, count: int, ranks: int, share: int) -> Quantity:
    """Return the samples/s of ``count`` GPUs, of which ``ranks`` take ``share`` samples a step."""
    inputs = clock.situation.workload.inputs
    rows = inputs.samples_a_row if inputs.batching == "packed" else 1.0
    compute = Quantity(
        Message.of("time.scaling.compute"),
        terms.computing,
        Unit.SECONDS,
        Kind.ESTIMATED,
    )
    exposed = replace(
        compute, name=Message.of("time.stage.communication"), value=terms.exposed, source=SOURCE
    )
    waiting = replace(compute, name=Message.of("time.scaling.waiting"), value=terms.waiting)
    return Quantity(
        Message.of("time.scaling.rate", gpus=count),
        share * ranks * rows / terms.step,
        Unit.SAMPLES_PER_SECOND,
        Kind.ESTIMATED,
        formula=f"{share * rows:g} · {ranks} / (GPU + exchange + waiting)",
        parts=tuple(part for part in (compute, exposed, waiting) if part.value > 0),
    )


def _efficiency(rate: Quantity, one: Quantity, count: int, *, measured: bool) -> Quantity:
    """Return the rate against so many times that of one; a range where such were ``measured``."""
    share, spread = rate.value / (count * one.value), load().efficiency_spread.value
    known = count > 1 and measured
    interval = Interval(max(share - spread, 0.0), min(share + spread, 1.0)) if known else None
    return Quantity(
        Message.of("time.scaling.efficiency", gpus=count),
        share,
        Unit.RATIO,
        Kind.ESTIMATED,
        formula="samples/s(n) / (n · samples/s(1))",
        parts=(rate, one),
        source=SOURCE,
        interval=interval,
    )


def notes(
    points: tuple[ScalingPoint, ...],
    profile: Profile,
    clock: Clock,
    settings: FullSettings,
    batch: int,
) -> Iterator[Message]:
    """Yield what the GPUs gain, by how many bytes over which link, and what would change it."""
    if not points:
        return
    last, planned = points[-1], clock.situation.gpu_count
    clock = clock.of(last.gpus)
    record = clock.situation.gpu.record
    settings = settings.model_copy(update={"accumulation": last.accumulation})
    terms = clock.terms(profile, settings, batch)
    wires = _wires(profile, clock, settings, clock.exchange_of(profile, settings, terms))
    wire = max(wires, key=lambda one: one.seconds)
    low, high = last.gains
    values = {
        "gpus": last.gpus,
        "gpu": record.name,
        "gain": last.gain,
        "low": low,
        "high": high,
        "compared": _compared(last.gain, last.gpus),
        "efficiency": last.efficiency.value,
        "bytes": (wire.gpus - 1) / wire.gpus * wire.passes * wire.nbytes,
        "what": Message.of(f"time.sent.{wire.what}"),
        "link": Message.of(f"time.path.{wire.link.path}"),
        "rate": bus_bandwidth(wire.gpus, wire.link) / 1e9,
        "seconds": wire.seconds,
        "computing": terms.computing,
        "effective": last.effective_batch,
    }
    kind: str = last.verdict
    alike = [point for point in points if point.effective_batch == last.effective_batch]
    best = max(alike, key=lambda point: point.samples_per_second.value)
    if 1 < best.gpus < last.gpus and best.gain > max(last.gain, 0.0) + WORTH:
        kind, values["best"] = "too-many", best.gpus
    offered = "offer-" if planned < 2 else ""
    yield Message.of(f"time.note.scaling-{offered}{kind}", **values)
    if offered and kind in ("gain", "too-many"):
        return
    yield from _assumed(record, clock.link)
    if last.efficiency.value < POOR and not settings.shards and not settings.pipeline_stages:
        changes = list(_changes(profile, clock, settings, batch))
        if changes:
            now = _briefly(last.gain, last.gpus)
            yield Message.of("time.note.scaling-changes", now=now, changes=changes)


def _gradients(profile: Profile, clock: Clock, settings: FullSettings) -> float:
    return gradient_bytes(profile, settings, adapts=clock.situation.workload.adapts)


@dataclass(frozen=True, slots=True)
class _Wire:
    """What passes round a ring of GPUs in a step."""

    what: Literal["gradients", "shared", "parts", "handed"]
    nbytes: float
    passes: int
    """Times that the bytes go round: an all-reduce passes all gradients twice."""
    gpus: int
    link: Link
    seconds: float


def _wires(
    profile: Profile, clock: Clock, settings: FullSettings, cost: Exchange
) -> tuple[_Wire, ...]:
    """Return what each GPU sends: to those it shares a copy with, and to its peers of others."""
    if settings.pipeline_stages:
        return _handed(profile, clock, settings, cost)
    if not settings.shards:
        gradients = _gradients(profile, clock, settings)
        return (_Wire("gradients", gradients, 2, clock.situation.gpu_count, clock.link, cost.wire),)
    mesh = clock.mesh(settings)
    volume = volume_of(profile, settings, adapts=clock.situation.workload.adapts)
    nbytes = volume.bytes_of(settings.accumulation)
    rest = cost.wire - cost.between - cost.parts
    within = _Wire("shared", nbytes, 1, mesh.shards, mesh.link, rest)
    if (degree := settings.tensor_degree) is not None:
        nbytes, seconds = clock.joined(profile, settings)
        parts = _Wire("parts", nbytes, 2, degree, clock.inside, seconds)
        return (parts, within) if mesh.shards > 1 else (parts,)
    if mesh.between is None:
        return (within,)
    share = volume.reduced / mesh.shards
    return within, _Wire("gradients", share, 2, mesh.copies, mesh.between, cost.between)


def _handed(
    profile: Profile, clock: Clock, settings: FullSettings, cost: Exchange
) -> tuple[_Wire, ...]:
    """Return what pipeline stages send to each other, and their copies among themselves."""
    where, sequence = clock.chain(settings), clock.situation.sequence
    nbytes = 2 * settings.accumulation * handed_bytes(profile, settings.micro_batch, sequence)
    wire = _Wire("handed", nbytes, 2, 2, where.link, cost.wire - cost.between)
    if not cost.between:
        return (wire,)
    gradients = summed_bytes(profile, settings)
    return wire, _Wire("gradients", gradients, 2, where.copies, where.among, cost.between)


def _assumed(record: GpuRecord, link: Link) -> Iterator[Message]:
    """Yield what was assumed of slots and bridges, where the plan does not say."""
    if link.path not in ("peer", "host"):
        return
    bridges = "-and-bridges" if record.nvlink_bytes_per_s is not None else ""
    if link.assumed:
        rate = link.bytes_per_s / 1e9
        yield Message.of(f"time.note.slots{bridges}", rate=rate, lanes=link.lanes)
    elif bridges:
        yield Message.of("time.note.bridges")


def _changes(
    profile: Profile, clock: Clock, settings: FullSettings, batch: int
) -> Iterator[Message]:
    """Yield what each change would make of the gain over one GPU."""
    situation, link = clock.situation, clock.link
    count, record = situation.gpu_count, situation.gpu.record
    here = clock.terms(profile, settings, batch)
    one = clock.of(1).terms(profile, settings, batch)

    def with_(cost: Exchange) -> Message:
        step = replace(here, exposed=cost.exposed).step
        return _briefly(count * one.step / step - 1, count)

    def over(other: Link) -> Message:
        return with_(clock.exchange_of(profile, settings, here, link=other))

    more = settings.model_copy(update={"accumulation": settings.accumulation * FEWER_EXCHANGES})
    rarely = clock.terms(profile, more, batch).step
    often = clock.of(1).terms(profile, more, batch).step
    then = _briefly(count * often / rarely - 1, count)
    yield Message.of("time.change.accumulation", factor=FEWER_EXCHANGES, then=then)
    bridged = record.nvlink_bytes_per_s is not None and not has_board_nvlink(record)
    if bridged and count == 2 and link.path != "bridge":
        yield Message.of("time.change.bridge", then=over(link_between(record, count, bridged=True)))
    if link.path in ("peer", "host"):
        if link.lanes is not None and link.lanes < (record.pcie_lanes or 0):
            twice = replace(link, bytes_per_s=link.bytes_per_s * 2)
            lanes = link.lanes * 2
            yield Message.of("time.change.wider-slots", then=over(twice), lanes=lanes)
        half = replace(link, bytes_per_s=link.bytes_per_s / 2)
        yield Message.of("time.change.half-slots", then=over(half))
    if settings.precision not in ("bf16", "fp16") and not situation.workload.adapts:
        cost = clock.exchange_of(profile, settings, here, share=0.5)
        yield Message.of("time.change.compressed", then=with_(cost))


def _compared(gain: float, count: int) -> Message:
    """Return a gain over one GPU as a clause: 34 % faster; of many GPUs, 5.7 times as fast."""
    kind = "faster" if count == 2 else "times"
    return Message.of(f"time.gain.{kind}", gain=gain, factor=1 + gain)


def _briefly(gain: float, count: int) -> Message:
    kind = "change" if count == 2 else "factor"
    return Message.of(f"time.gain.{kind}", gain=gain, factor=1 + gain)


def exchange_quantity(
    profile: Profile, clock: Clock, settings: FullSettings, terms: StepTerms
) -> Quantity:
    """Return what the step waits for gradients of other GPUs, with what it was made from."""
    cost = clock.exchange_of(profile, settings, terms)
    found = (
        ("slowed", cost.slowed),
        ("copies", cost.copies),
        ("buffers", cost.buffers),
        ("straggling", cost.straggling),
        ("bubble", cost.bubble),
    )
    each = [_on_wire(wire) for wire in _wires(profile, clock, settings, cost)]
    waited = each[0] if len(each) == 1 else _seconds("time.wires", cost.wire, "Σ", *each)
    if cost.hidden:
        hidden = _seconds("time.exchange.hidden", cost.hidden)
        left = "all-reduce - beside the backward pass"
        waited = _seconds("time.exchange.after", cost.wire - cost.hidden, left, waited, hidden)
    return _seconds(
        "time.stage.communication",
        terms.exposed,
        "Σ",
        waited,
        *(_seconds(f"time.exchange.{name}", value) for name, value in found if value),
    )


_ROUND = "latency + 2 · (n - 1) / n · bytes / (link · share)"
_SENT = {
    "gradients": (
        "time.gradients",
        "parameters · bytes",
        "time.all-reduce",
        f"Σ buckets: {_ROUND}",
    ),
    "shared": (
        *("time.shared", "all-gather + reduce-scatter", "time.sharing"),
        "Σ groups: latency + (n - 1) / n · bytes / (link · share)",
    ),
    "parts": ("time.parts", "traced", "time.joining", f"Σ layers: {_ROUND}"),
    "handed": (
        *("time.handed", "2 · micro-batches · activation", "time.handing"),
        "2 · (micro-batches + stages - 1) · (latency + bytes / (link · share))",
    ),
}
"""What is sent -> its name, where its bytes are from, the name of its seconds, their formula."""


def _on_wire(wire: _Wire) -> Quantity:
    """Return the seconds on a link: bytes over what of it a collective reaches."""
    link = wire.link
    name, source, seconds, formula = _SENT[wire.what]
    sent = Quantity(Message.of(name), wire.nbytes, Unit.BYTES, Kind.ESTIMATED, formula=source)
    rate = Quantity(
        Message.of(f"time.link.{link.path}"),
        link.bytes_per_s,
        Unit.BYTES_PER_SECOND,
        Kind.ASSUMED if link.assumed else Kind.QUOTED,
    )
    share = Quantity(
        Message.of("time.link-share"),
        bus_bandwidth(wire.gpus, link) / link.bytes_per_s,
        Unit.RATIO,
        Kind.ESTIMATED,
        source=SOURCE,
    )
    return _seconds(seconds, wire.seconds, formula, sent, rate, share)


def _seconds(id: str, value: float, formula: str = "", *parts: Quantity) -> Quantity:
    return Quantity(
        Message.of(id), value, Unit.SECONDS, Kind.ESTIMATED, formula, parts, source=SOURCE
    )
