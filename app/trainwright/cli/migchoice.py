"""Which GPU ``trainwright mig`` is about: one of the catalog's, or one of this computer's."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trainwright.catalog import GpuRecord
from trainwright.catalog.mig import MigTable, find_mig_table
from trainwright.catalog.names import name_key
from trainwright.messages import Message, UserError, render
from trainwright.mig.layout import Layout
from trainwright.mig.live import Live, live, now
from trainwright.probe import nvml
from trainwright.probe.reading import Missing

LOCAL = "local"
"""Names this computer's first GPU that can be cut; ``local:1`` the one of index 1."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The GPU that is meant, with the table that holds for it."""

    gpu: GpuRecord
    table: MigTable
    lives: tuple[Live, ...] = ()
    """This computer's GPUs of its kind, the one that is meant first."""
    local: bool = False
    """Whether this computer's own are meant, as they are cut now."""

    @property
    def driver(self) -> str | None:
        """The driver's version, where it told the table."""
        return self.table.told_by

    @property
    def like(self) -> str:
        """Id by which plans are looked up."""
        return self.lives[0].like if self.lives else self.gpu.id

    @property
    def nowhere(self) -> Message:
        """Why nobody knows where its instances may lie, of a table without places."""
        if self.lives:
            return self.lives[0].origin
        return Message.of("mig.placements-unknown", gpu=self.table.name)

    def indices(self, count: int) -> list[int]:
        """Return what ``nvidia-smi -i`` calls the first GPUs."""
        return [each.index for each in self.lives[:count]] if self.local else list(range(count))

    def on(self, number: int) -> bool:
        """Return whether a GPU is in MIG mode already."""
        return self.local and self.lives[number].on

    def current(self, count: int) -> list[Layout]:
        """Return what the first GPUs are cut into now, places assumed where none were told."""
        return [now(each)[0] for each in self.lives[:count]] if self.local else []

    def notes(self, count: int = 1) -> tuple[Message, ...]:
        """Return where the table comes from, and how current layouts were found."""
        if not self.lives:
            return ()
        first = self.lives[0]
        layouts = [now(each)[1] for each in self.lives[:count]] if self.local else []
        told = (first.origin, *first.differences, *layouts)
        return tuple(dict.fromkeys(note for note in told if note is not None))


def choose(text: str) -> Choice:
    """Return the GPU that a text names; a driver that is here is asked for its table.

    Raises:
        UserError: nobody knows the GPU, or it cannot be cut into instances.
    """
    found = nvml.read(anew=False)
    here = live(found)
    if text.casefold().partition(":")[0] == LOCAL:
        return _local(text, here, found)
    try:
        table, record = find_mig_table(text)
    except UserError:
        named = [each for each in here if name_key(text) in _names(each.gpu)]
        if not named:
            raise
        return Choice(named[0].gpu, named[0].table, tuple(named))
    alike = tuple(each for each in here if each.gpu.id == record.id)
    return Choice(record, alike[0].table if alike else table, alike)


def _names(gpu: GpuRecord) -> set[str]:
    return {name_key(name) for name in (gpu.id, gpu.name, *gpu.aliases)}


def _local(text: str, here: Sequence[Live], found: object) -> Choice:
    """Return this computer's first GPU, or the one of an index, before others of its kind."""
    if not here:
        reason = found.reason if isinstance(found, Missing) else Message.of("mig.live.none-here")
        raise UserError.of("mig.live.no-local", reason=reason)
    wanted = text.partition(":")[2].strip()
    meant = [each for each in here if wanted in ("", str(each.index))]
    if not meant:
        there = ", ".join(f"{LOCAL}:{each.index} ({each.gpu.name})" for each in here)
        raise UserError.of("mig.live.no-index", text=text[:60], there=there)
    first = meant[0]
    others = [each for each in here if each.gpu.id == first.gpu.id and each.index != first.index]
    return Choice(first.gpu, first.table, (first, *others), local=True)


def document(choice: Choice, count: int = 1) -> dict[str, Any]:
    """Return what JSON says of the table: where it comes from, and what it has otherwise."""
    first = choice.lives[0] if choice.lives else None
    return {
        "source": choice.table.source,
        "driver": choice.table.told_by,
        "because": render(first.because, "en") if first and first.because else None,
        "differences": [render(each, "en") for each in first.differences] if first else [],
        "notes": [render(each, "en") for each in choice.notes(count)],
    }
