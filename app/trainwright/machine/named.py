"""From the ids in a plan to a build whose parts rules can look at."""

from collections.abc import Iterator
from dataclasses import replace

from trainwright.catalog.part_kinds import PartKind
from trainwright.catalog.part_records import CpuRecord
from trainwright.catalog.parts import find_part
from trainwright.machine.build import Build, BuildGpu
from trainwright.machine.choice import MachineChoice
from trainwright.machine.parts import build_of
from trainwright.machine.placement import place
from trainwright.machine.wiring import Lanes
from trainwright.messages import Message, UserError

AROUND: tuple[PartKind, ...] = ("board", "psu", "case", "cooler")
"""Keys of a plan's machine, any of which makes it a build."""


def named(choice: MachineChoice, gpus: tuple[BuildGpu, ...], cpu: CpuRecord | None) -> Build | None:
    """Return the build that a plan names; None where it names GPUs, processor and drives alone.

    Parts that the catalog does not have are left out; ``questions`` asks what they are.
    """
    if not any(getattr(choice, key) for key in AROUND):
        return None
    return replace(build_of(choice), gpus=gpus, cpu=cpu)


def questions(choice: MachineChoice) -> tuple[Message, ...]:
    """Return what to ask of parts that the catalog does not have: which of the nearest is meant."""
    return tuple(
        Message.of("machine.which-part", key=f"machine.{key}", problem=problem)
        for key, kind, text in _named(choice)
        if (problem := _unknown(kind, text)) is not None
    )


def _named(choice: MachineChoice) -> Iterator[tuple[str, PartKind, str]]:
    """Yield (key, kind, text) of each part but the GPUs that a plan names."""
    kinds: tuple[PartKind, ...] = ("cpu", *AROUND)
    yield from ((kind, kind, text) for kind in kinds if (text := getattr(choice, kind)))
    yield from (("memory", "memory", kit.id) for kit in choice.memory)
    yield from (("drives", "storage", drive.id) for drive in choice.drives)


def _unknown(kind: PartKind, text: str) -> Message | None:
    try:
        find_part(kind, text)
    except UserError as error:
        return error.message
    return None


def slots_of(build: Build, gpu: BuildGpu) -> tuple[Lanes, ...]:
    """Return what the slowest of so many cards gets: with one card in the board, with two, ...

    The cards of ``gpu`` come first. Empty where the board does not say all.
    """
    if build.board is None or not build.board.lanes_complete:
        return ()
    others = tuple(other for other in build.gpus if other is not gpu)
    cards = [BuildGpu(one.record) for one in (gpu, *others) for _ in range(one.count)]
    found = []
    for number in range(1, len(cards) + 1):
        some = Build(
            gpus=tuple(cards[:number]),
            cpu=build.cpu,
            board=build.board,
            drives=build.drives,
            bridge_slots=build.bridge_slots,
        )
        slowest = place(some).slowest
        if slowest is None or slowest.gb_s is None:
            break
        found.append(Lanes(slowest.generation, slowest.lanes, slowest.source, slowest.gb_s))
    return tuple(found)
