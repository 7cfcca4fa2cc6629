"""What sharing out weights and gradients costs a step: bytes that pass round, and their seconds."""

from dataclasses import dataclass
from functools import lru_cache

from trainwright.estimate.parallel.communication import (
    NOTHING,
    Exchange,
    Link,
    load,
    ring,
    straggling,
)
from trainwright.profile.memo import KEPT
from trainwright.profile.profile import SCALE, Floats, Profile, monomials
from trainwright.workload import FullSettings

JOINS = {"trainwright.all_reduce.default": 2, "trainwright.all_gather.default": 1}
"""Operators of a trace that are collectives (``worker/programs/tensorparallel.py``) -> how often
they pass their bytes round."""


@dataclass(frozen=True, slots=True)
class Volume:
    """Bytes that a sharded step passes round, whole: each GPU sends (n - 1) / n of them."""

    gathered: float
    """Weights, each time that they are gathered."""
    reduced: float
    """Gradients, each time that they are reduced."""
    updated: float = 0.0
    """Weights that the update sends to all."""
    groups: int = 1
    """Parts that travel one by one: the blocks."""
    gathers_forward: bool = False
    gathers_backward: bool = False
    reduces_each: bool = True
    """Whether every micro-batch reduces its gradients, or only the last of a step."""
    stored: float = 0.0
    """Weights as system memory holds them, where each gathering fetches a share of them."""

    def bytes_of(self, micro_batches: int) -> float:
        """Return the bytes of a step."""
        gathers = self.gathers_forward + self.gathers_backward
        reductions = micro_batches if self.reduces_each else 1
        return self.gathered * gathers * micro_batches + self.reduced * reductions + self.updated


@dataclass(frozen=True, slots=True)
class Mesh:
    """How many GPUs share one copy, how many copies there are, and what joins each."""

    shards: int
    link: Link
    copies: int = 1
    between: Link | None = None
    """What joins the copies; None where there is one."""


def joining(
    profile: Profile, counts: Floats, batch: int, sequence: int, degree: int, link: Link
) -> tuple[float, float]:
    """Return the bytes of an optimizer step that split layers join, and their seconds.

    ``counts`` is how often each row of the profile's operators runs. An all-reduce sums the parts
    of a result, an all-gather puts its columns side by side; the next layer waits for either.
    """
    passed, written = ring(degree, link), profile.ops.bytes_written @ monomials(batch, sequence)
    nbytes = seconds = 0.0
    for row, passes in _joins(profile):
        size = float(written[row]) / SCALE
        nbytes += counts[row] * size
        seconds += counts[row] * passed.seconds(size) * passes / 2
    return float(nbytes), float(seconds)


@lru_cache(maxsize=KEPT)
def _joins(profile: Profile) -> tuple[tuple[int, int], ...]:
    """Return the rows of collectives, with how often each passes its bytes round."""
    names = enumerate(profile.ops.name)
    return tuple((row, JOINS[name]) for row, name in names if name in JOINS)


@dataclass(frozen=True, slots=True)
class Passes:
    """Seconds that a step's passes take on one GPU alone."""

    step: float
    """All of the optimizer step."""
    forward: float
    """Of one micro-batch, as ``backward``."""
    backward: float


def volume_of(profile: Profile, settings: FullSettings, *, adapts: bool) -> Volume:
    """Return what a sharded step passes round.

    fsdp2 gathers in the type that computes and reduces in fp32 (the exports' policy), DeepSpeed
    does both in the type that computes.
    """
    model = profile.model
    whole = float(model.get("parameters", 0))
    trained = float(model.get("trainable", whole))
    frozen = float(model.get("frozen_bytes", 0)) if adapts else 0.0
    size = settings.itemsize
    weights = frozen + trained * size
    groups = profile.blocks + 1
    wide = 4 if settings.precision.endswith("-mixed") else size
    match settings.strategy:
        case "fsdp2":
            gathers_again = settings.reshard_after_forward
            stored = frozen + trained * wide if settings.shard_offload else 0.0
            return Volume(weights, trained * wide, 0.0, groups, True, gathers_again, stored=stored)
        case "zero3":
            return Volume(weights, trained * size, 0.0, groups, True, True)
        case "zero2":
            return Volume(0.0, trained * size, trained * size, groups)
        case _:
            return Volume(0.0, trained * size, trained * size, groups, reduces_each=False)


def sharing(
    volume: Volume,
    mesh: Mesh,
    settings: FullSettings,
    passes: Passes,
    bandwidth: float,
    bus: float,
) -> Exchange:
    """Return what an optimizer step waits for where weights or gradients are shared out.

    A group's weights are gathered while the group before it computes, and its gradients are
    reduced while the next one does. Nothing hides the first gathering, the last reduction, nor
    what the update sends. ``bandwidth`` is the GPU's DRAM in bytes/s, ``bus`` its way to system
    memory. A share in system memory is fetched before it is gathered, by the same stream;
    gradients go back behind their reduction, but the CPU waits for each copy once it adds to
    earlier ones. Copies add up their shares of gradients once a step, each group's behind its
    reduction and by a stream of its own. Sources:
    ``torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py`` (torch 2.13), and
    ``deepspeed/runtime/zero/stage_1_and_2.py`` (0.19.8).
    """
    count, link = mesh.shards, mesh.link
    if count < 2:
        return NOTHING
    constants, passed = load(), ring(count, link)
    micro_batches = settings.accumulation

    def half(nbytes: float) -> float:
        """Return the seconds of an all-gather or a reduce-scatter: half an all-reduce."""
        return passed.seconds(nbytes) / 2 if nbytes else 0.0

    groups = max(volume.groups, 1)
    fetched, returned = volume.stored / count / bus, 0.0
    if volume.stored:
        returned = volume.reduced / count / bus
    gather = half(volume.gathered / groups) + fetched / groups
    reduce = half(volume.reduced / groups) + returned / groups
    ahead = groups * gather if volume.gathers_forward else 0.0
    back = groups * gather if volume.gathers_backward else 0.0
    every = ahead + back + (groups * reduce if volume.reduces_each else 0.0)
    once = half(volume.updated) + (0.0 if volume.reduces_each else groups * reduce)
    hidden = min(max(ahead - gather, 0.0), passes.forward) * micro_batches
    behind = max(every - ahead - reduce, 0.0)
    waited = returned * (micro_batches - 1) / micro_batches
    hidden += min(max(behind - waited, 0.0), passes.backward) * micro_batches
    if not volume.reduces_each:
        hidden += min(max(groups * reduce - reduce, 0.0), passes.backward)
    moved = volume.gathered * (volume.gathers_forward + volume.gathers_backward)
    copies = 2 * (moved + volume.reduced) * micro_batches / (bandwidth * constants.copy_share.value)
    between, beside = _among_copies(volume, mesh, passes.backward, behind)
    wire = every * micro_batches + once + between
    fetches = fetched * (volume.gathers_forward + volume.gathers_backward) + returned
    ours = 1 - fetches / every if every else 1.0  # copy engines take nothing from kernels
    slowed = constants.contention[link.path].value * hidden * ours
    if mesh.between is not None:
        slowed += constants.contention[mesh.between.path].value * beside
    waits = straggling(count * mesh.copies) * passes.step
    return Exchange(wire, min(hidden + beside, wire), slowed, copies, 0.0, waits, between)


def _among_copies(
    volume: Volume, mesh: Mesh, backward: float, behind: float
) -> tuple[float, float]:
    """Return the seconds in which copies add up their gradients, and how many backward hides.

    ``behind`` is what the last backward pass has to hide already, on the same link.
    """
    if mesh.between is None:
        return 0.0, 0.0
    groups = max(volume.groups, 1)
    one = ring(mesh.copies, mesh.between).seconds(volume.reduced / mesh.shards / groups)
    room = backward if mesh.between.path != mesh.link.path else max(backward - behind, 0.0)
    return groups * one, min((groups - 1) * one, room)
