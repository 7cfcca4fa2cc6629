"""Parts that are there: a person names them as theirs, or a computer has them."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from trainwright.build.assemble import rows
from trainwright.build.request import Owned, Request, Wishes
from trainwright.catalog import GpuRecord, find_part
from trainwright.catalog.part_kinds import NAMES, PartKind
from trainwright.machine.build import Build, BuildGpu
from trainwright.machine.choice import MOST_PIECES
from trainwright.machine.machine import Machine
from trainwright.messages import UserError


def owned(texts: Iterable[str]) -> tuple[Owned, ...]:
    """Return the parts of texts such as ``rtx-3090``, ``2x rtx-3090`` or ``psu:corsair-rm850x``.

    Raises:
        UserError: no part has the name, several kinds have one, or there are none or too many.
    """
    counts: Counter[tuple[PartKind, str]] = Counter()
    for text in texts:
        count, name = counted(text)
        if not 1 <= count <= MOST_PIECES:
            raise UserError.of("planner.part-count", text=text.strip()[:60], most=MOST_PIECES)
        counts[_found(name)] += count
    return tuple(Owned(kind, id, count) for (kind, id), count in counts.items())


def counted(text: str) -> tuple[int, str]:
    """Return how many pieces a text means, and of what: ``2x rtx-3090``."""
    head, mark, rest = text.strip().partition("x ")
    return (int(head), rest.strip()) if mark and head.isdigit() else (1, text.strip())


def _found(name: str) -> tuple[PartKind, str]:
    kind, mark, rest = name.partition(":")
    named = next((one for one in NAMES if one == kind), None) if mark else None
    if named is not None:
        return named, find_part(named, rest).id
    found: list[tuple[PartKind, str]] = []
    for one in NAMES:
        try:
            record = find_part(one, name)
        except UserError:
            continue
        exact = isinstance(record, GpuRecord) or record.id == name
        found.insert(0 if exact else len(found), (one, record.id))
    if not found:
        raise UserError.of("planner.unknown-part", text=name[:60])
    return found[0]


def present(machine: Machine, wishes: Wishes) -> Build:
    """Return the computer that a plan names, or that was probed, as parts.

    Raises:
        UserError: it has no GPUs, or several kinds, or a cloud rents it out.
    """
    if machine.cloud is not None:
        raise UserError.of("planner.upgrade-cloud", name=machine.cloud.name)
    if len(machine.gpus) != 1:
        raise UserError.of("planner.upgrade-mixed", kinds=len(machine.gpus))
    if machine.parts is not None:
        parts = machine.parts
        return replace(parts, circuit=parts.circuit or wishes.circuit)
    gpu, memory = machine.gpu, machine.memory_bytes
    return Build(
        gpus=(BuildGpu(gpu.record, gpu.count, gpu.power_limit_w),),
        cpu=machine.processor,
        drives=tuple(drive for drive in machine.storage if drive is not None),
        stated_memory_gib=memory / (1 << 30) if memory is not None else None,
        circuit=wishes.circuit,
    )


def with_owned(request: Request, build: Build) -> Request:
    """Return the request with the computer's parts as those that are there."""
    owned = tuple(Owned(kind, record.id, count) for kind, record, count in rows(build))
    wishes: Wishes = replace(request.wishes, owned=(*request.wishes.owned, *owned))
    return replace(request, wishes=wishes)
