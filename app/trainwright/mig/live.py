"""This computer's GPUs that can be cut: the table that their driver tells, and how they are cut.

A driver knows better than any published table. It tells profiles to everybody and places to
administrators only: then the published places stand, where there are some.
"""

import re
from dataclasses import dataclass

from trainwright.catalog import GpuRecord
from trainwright.catalog.mig import MigTable, mig_table
from trainwright.messages import Message, UserError
from trainwright.mig.board import from_names
from trainwright.mig.driver_table import differences, table_of
from trainwright.mig.layout import Instance, Layout
from trainwright.probe.nvml import GpuReading, Mig, Nvidia
from trainwright.probe.reading import Missing
from trainwright.probe.records import read_record, relative
from trainwright.probe.snapshot import gpu_record


@dataclass(frozen=True, slots=True)
class Live:
    """A GPU of this computer."""

    index: int
    """As ``nvidia-smi -i`` counts."""
    gpu: GpuRecord
    table: MigTable
    """The driver's own, as far as it told one."""
    on: bool
    """Whether it is in MIG mode."""
    layout: Layout | None = ()
    """Its instances and where they lie; None where nobody may know."""
    hidden: Message | None = None
    """Why ``layout`` is None."""
    names: tuple[str, ...] = ()
    """Profiles of its instances that programs see; all that is known where ``layout`` is None."""
    because: Message | None = None
    """Why the table, or the places in it, are not the driver's."""
    differences: tuple[Message, ...] = ()
    """What the driver tells otherwise than the published table."""
    like: str = ""
    """Catalogued GPU that stands for it where a plan asks for an id: itself, or a relative of one
    that the catalog does not know."""

    @property
    def origin(self) -> Message:
        """Where the table comes from."""
        driver, reason = self.table.told_by, self.because
        if reason is None:
            return Message.of("mig.live.read", driver=driver)
        if driver is None:
            return Message.of("mig.live.not", reason=reason)
        id = "mig.live.partly" if self.table.units is not None else "mig.live.nowhere"
        return Message.of(id, driver=driver, reason=reason)


def live(nvidia: Nvidia | Missing) -> tuple[Live, ...]:
    """Return this computer's GPUs that can be cut, in the driver's order."""
    if isinstance(nvidia, Missing):
        return ()
    driver = nvidia.driver if isinstance(nvidia.driver, str) else "?"
    found = (_live(reading, driver) for reading in nvidia.gpus)
    return tuple(each for each in found if each is not None)


def _live(reading: GpuReading, driver: str) -> Live | None:
    if not isinstance(reading.name, str) or not isinstance(reading.mig, Mig):
        return None
    record, mig, like = _record(reading), reading.mig, relative(reading)
    if record is None:
        return None
    ours = mig_table(record)
    table, because = table_of(mig, driver, record, ours)
    if table is None:
        return None
    layout = _layout(mig, table)
    return Live(
        index=reading.index,
        gpu=record,
        table=table,
        on=mig.on,
        layout=None if isinstance(layout, Missing) else layout,
        hidden=layout.reason if isinstance(layout, Missing) else None,
        names=_names(mig),
        because=because,
        differences=differences(table, ours) if ours is not None else (),
        like=like.id if ours is None and like is not None else record.id,
    )


def _record(reading: GpuReading) -> GpuRecord | None:
    """Return the catalog's record; of a GPU that it does not know, one made of what was read."""
    try:
        return gpu_record(str(reading.name), reading.memory)
    except UserError:
        return read_record(reading)


def _names(mig: Mig) -> tuple[str, ...]:
    """Return the profile of each instance, once: ``1c.3g.40gb`` is a part of one."""
    names = {
        number if isinstance(each.gpu_instance, Missing) else -1 - each.gpu_instance: each.name
        for number, each in enumerate(mig.instances)
    }
    told = (name.rpartition("MIG ")[2] for name in names.values() if isinstance(name, str))
    return tuple(re.sub(r"^\d+c\.", "", name) for name in told)


def _layout(mig: Mig, table: MigTable) -> Layout | Missing:
    """Return where the instances lie, or why that is not known."""
    if isinstance(mig.placed, Missing):
        return () if not mig.on else mig.placed
    by_id = {each.id: each for each in table.profiles}
    found = []
    for each in mig.placed:
        kind = by_id.get(each.profile)
        if kind is None or kind.size != each.size or each.start not in kind.starts:
            return Missing(Message.of("mig.live.elsewhere", gpu=table.name))
        found.append(Instance(kind.name, each.start))
    return tuple(sorted(found, key=lambda each: (each.start or 0, each.profile)))


def now(found: Live) -> tuple[Layout, Message | None]:
    """Return what a GPU is cut into, and how that is known; nothing is said of an empty one.

    Where places were not told, they are those that a driver would take, said to be assumed.

    Raises:
        UserError: ``mig.live.unknown-current``: its instances do not go with its table.
    """
    if found.layout is not None:
        names = ", ".join(each.shown for each in found.layout)
        told = Message.of("mig.live.current", index=found.index, names=names)
        return found.layout, told if names else None
    values = {"index": found.index, "names": ", ".join(found.names)}
    try:
        assumed = from_names(found.table, found.names)
    except UserError:
        assumed = None
    if assumed is None:
        raise UserError.of("mig.live.unknown-current", **values)
    told = Message.of("mig.live.assumed", **values, reason=found.hidden)
    return assumed, told if assumed else None
