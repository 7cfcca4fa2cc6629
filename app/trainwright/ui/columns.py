"""What the catalog's table shows of each kind of part, and everything that is known of one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from trainwright.catalog import GpuRecord, PartRecord, peak_flops
from trainwright.catalog.part_kinds import PartKind
from trainwright.catalog.part_records import Provenance
from trainwright.catalog.records import Capacity, Confidence, Fact
from trainwright.messages.units import GIB, number
from trainwright.ui.i18n import tr

Record = GpuRecord | PartRecord
Value = str | float | bool | tuple[Any, ...] | dict[str, Any] | None

_NUMBERS = frozenset(
    ("pcie_generation", "cores", "threads", "slot_lanes", "memory_channels", "memory_slots",
     "fast_slots", "m2", "sata_ports", "modules", "cas", "connectors.pcie_16",
     "connectors.pcie_8", "connectors.eps_8", "slots", "bays_35")
)  # fmt: skip

ICONS: dict[PartKind, str] = {
    "gpu": "cpu",
    "cpu": "gauge",
    "board": "circles-four",
    "memory": "rows",
    "storage": "hard-drive",
    "psu": "lightning",
    "case": "package",
    "cooler": "wind",
}


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the table."""

    field: str
    """Of the record; ``connectors.pcie_16`` names one within."""
    width: int
    unit: str = ""
    scale: float = 1.0
    """What a number is divided by before it is shown."""
    read: Callable[[Any], Any] | None = None
    """For what is not a plain field: returns the value, or a fact."""

    @property
    def title(self) -> str:
        """Its heading, without the unit."""
        return field_name(self.field)

    def fact(self, record: Record) -> Any:
        """Return the value with what the record says of it; None where it is unknown."""
        if self.read is not None:
            return self.read(record)
        found: Any = record
        for name in self.field.split("."):
            found = getattr(found, name)
        return found

    def value(self, record: Record) -> Any:
        """Return the value for sorting; None where it is unknown."""
        found = self.fact(record)
        found = found.value if isinstance(found, Fact) else found
        if isinstance(found, bool | str) or found is None:
            return found
        if isinstance(found, tuple | dict):
            return shown(found)
        return found / self.scale

    def text(self, record: Record) -> str:
        """Return the value as the table writes it; empty where it is unknown."""
        return shown(self.value(record))

    @property
    def number(self) -> bool:
        """Whether its values are numbers: those stand at the right."""
        return bool(self.unit) or self.field in _NUMBERS

    def provenance(self, record: Record) -> Provenance | None:
        """Return where the value comes from; None where it is unknown or no source is stated."""
        return provenance(record, self.field, self.fact(record))


def provenance(record: Record, field: str, found: Any) -> Provenance | None:
    """Return where a field's value comes from; None where it is unknown or nothing states it."""
    if found is None:
        return None
    if isinstance(found, Fact):
        return Provenance(source=found.source, confidence=found.confidence)
    if isinstance(record, PartRecord) and field != "name":
        return record.provenance(field)
    return None


def field_name(field: str) -> str:
    """Return what a field is called."""
    return tr(f"pc.field.{field.replace('.', '-').replace('_', '-')}")


def shown(value: Value) -> str:
    """Return a value as people read it; empty where it is unknown."""
    match value:
        case None:
            return ""
        case bool():
            return tr("pc.yes" if value else "pc.no")
        case str():
            return _word(value)
        case dict():
            return ", ".join(f"{_word(key)} {shown(inner)}" for key, inner in value.items())
        case tuple():
            return ", ".join(shown(inner) for inner in value)
    return number(round(value, 2))


def _word(key: str) -> str:
    """Return a value of a fixed vocabulary in words; anything else is a name."""
    return tr(f"pc.word.{key}") if key in _TRANSLATED else _WORDS.get(key, key)


_TRANSLATED = frozenset(
    ("consumer", "workstation", "datacenter", "laptop", "integrated", "air", "liquid", "card",
     "soldered", "open-air", "blower", "passive", "required", "board", "yes", "no",
     "add-in", "full-tower", "mid-tower", "small", "cube",
     "rack", "open-frame", "module")
)  # fmt: skip


_WORDS = {
    "nvme": "NVMe", "sata": "SATA", "hdd": "HDD", "ddr4": "DDR4", "ddr5": "DDR5",
    "udimm": "UDIMM", "rdimm": "RDIMM", "cudimm": "CUDIMM", "mini-itx": "Mini-ITX",
    "micro-atx": "Micro-ATX", "atx": "ATX", "e-atx": "E-ATX", "xl-atx": "XL-ATX", "ceb": "SSI CEB",
    "eeb": "SSI EEB", "sfx": "SFX", "sfx-l": "SFX-L", "crps": "CRPS", "bronze": "Bronze",
    "silver": "Silver", "gold": "Gold", "platinum": "Platinum", "titanium": "Titanium",
    "slc": "SLC", "mlc": "MLC", "tlc": "TLC", "qlc": "QLC", "m.2": "M.2", "2.5": "2.5″",
    "3.5": "3.5″", "u.2": "U.2", "u.3": "U.3", "pcie_6": "6-pin", "pcie_8": "8-pin",
    "pcie_12": "12-pin", "pcie_16": "16-pin", "eps_8": "EPS",
}  # fmt: skip
"""Names of formats and standards: the same in every language."""


def _compute(record: GpuRecord) -> Fact | None:
    return peak_flops(record, "bf16-mixed") or peak_flops(record, "fp16-mixed")


def _fast_slots(record: Any) -> int | None:
    """Return how many slots the processor feeds with eight lanes or more."""
    if not record.lanes_complete:
        return None
    fed = [slot for slot in record.slots if slot.source == "cpu" and (slot.lanes or 0) >= 8]
    return len(fed)


def _sockets(record: Any) -> int | None:
    return None if record.m2 is None else len(tuple(record.m2))


def _price(record: Record) -> Any:
    return record.msrp_usd


NAME = Column("name", 250)
LAUNCH = Column("launch", 92)
MSRP = Column("msrp_usd", 84, "$", read=_price)

COLUMNS: dict[PartKind, tuple[Column, ...]] = {
    "gpu": (
        NAME,
        Column("memory_bytes", 86, "GiB", GIB),
        Column("bandwidth_bytes_per_s", 92, "GB/s", 1e9),
        Column("flops", 104, "TFLOPS", 1e12, read=_compute),
        Column("tdp_w", 72, "W"),
        Column("pcie_generation", 64),
        Column("nvlink_bytes_per_s", 82, "GB/s", 1e9),
        Column("architecture", 110),
        Column("segment", 104),
        LAUNCH,
        MSRP,
    ),
    "cpu": (
        NAME,
        Column("socket", 86),
        Column("cores", 64),
        Column("threads", 76),
        Column("boost_ghz", 84, "GHz"),
        Column("slot_lanes", 84),
        Column("pcie_generation", 64),
        Column("memory_channels", 88),
        Column("memory_max_gib", 92, "GiB"),
        Column("max_power_w", 90, "W"),
        LAUNCH,
        MSRP,
    ),
    "board": (
        NAME,
        Column("socket", 86),
        Column("chipset", 80),
        Column("form_factor", 88),
        Column("memory_type", 76),
        Column("memory_slots", 76),
        Column("memory_max_gib", 92, "GiB"),
        Column("fast_slots", 96, read=_fast_slots),
        Column("m2", 60, read=_sockets),
        Column("sata_ports", 60),
        Column("lanes_complete", 92),
        LAUNCH,
        MSRP,
    ),
    "memory": (
        NAME,
        Column("type", 68),
        Column("module", 80),
        Column("gib", 72, "GiB"),
        Column("modules", 78),
        Column("module_gib", 92, "GiB"),
        Column("mts", 72, "MT/s"),
        Column("cas", 56),
        Column("ecc", 60),
        Column("height_mm", 76, "mm"),
        MSRP,
    ),
    "storage": (
        NAME,
        Column("interface", 80),
        Column("form", 64),
        Column("capacity_gb", 92, "GB"),
        Column("read_mb_s", 80, "MB/s"),
        Column("write_mb_s", 80, "MB/s"),
        Column("written_after_cache_mb_s", 104, "MB/s"),
        Column("random_read_kiops", 98, "kIOPS"),
        Column("endurance_tb", 88, "TB"),
        Column("dram", 64),
        Column("nand", 60),
        LAUNCH,
        MSRP,
    ),
    "psu": (
        NAME,
        Column("watts", 72, "W"),
        Column("efficiency", 84),
        Column("atx_version", 60),
        Column("form", 64),
        Column("connectors.pcie_16", 72),
        Column("connectors.pcie_8", 66),
        Column("connectors.eps_8", 60),
        Column("length_mm", 76, "mm"),
        Column("modular", 76),
        LAUNCH,
        MSRP,
    ),
    "case": (
        NAME,
        Column("boards", 190),
        Column("slots", 76),
        Column("gpu_length_mm", 96, "mm"),
        Column("cooler_height_mm", 96, "mm"),
        Column("psu_length_mm", 88, "mm"),
        Column("bays_35", 72),
        Column("radiators_mm", 120, "mm"),
        LAUNCH,
        MSRP,
    ),
    "cooler": (
        NAME,
        Column("type", 76),
        Column("height_mm", 76, "mm"),
        Column("radiator_mm", 84, "mm"),
        Column("rated_w", 76, "W"),
        Column("noise_db", 72, "dB"),
        Column("sockets", 240),
        LAUNCH,
        MSRP,
    ),
}
"""Every column sorts; those after the name in the order in which people ask."""

HIDDEN = frozenset(
    ("id", "name", "aliases", "source", "confidence", "sources", "notes", "shared_names", "vendor")
)
"""Fields that the detail pane does not list as facts: its heading says them."""


@dataclass(frozen=True, slots=True)
class Line:
    """One fact of a part, as the detail pane lists it."""

    field: str
    value: str
    """Empty where it is unknown."""
    origin: Provenance | None


def lines(record: Record) -> tuple[Line, ...]:
    """Return every field of a part, known ones first, in the record's order."""
    found = [
        _line(record, field, getattr(record, field))
        for field in type(record).model_fields
        if field not in HIDDEN
    ]
    return tuple(sorted(found, key=lambda line: not line.value))


def _line(record: Record, field: str, found: Any) -> Line:
    if field == "flops":
        found = _compute(record) if isinstance(record, GpuRecord) else None
    value = found.value if isinstance(found, Fact) else found
    if field.endswith("_usd") and isinstance(value, int | float):
        return Line(field, f"${number(value)}", provenance(record, field, found))
    for ending, size, unit in _UNITS:
        if field.endswith(ending) and isinstance(value, int | float):
            text = f"{number(round(value / size, 2))} {unit}"
            return Line(field, text.strip(), provenance(record, field, found))
    return Line(field, _plain(field, value), provenance(record, field, found))


_UNITS = (
    ("_bytes_per_s", 1e9, "GB/s"), ("_bits_per_s", 1e9, "Gbit/s"), ("l2_bytes", 1 << 20, "MiB"),
    ("_bytes", GIB, "GiB"), ("_hz", 1e9, "GHz"), ("flops", 1e12, "TFLOPS"), ("_w", 1, "W"),
    ("watts", 1, "W"), ("_ghz", 1, "GHz"), ("_gib", 1, "GiB"), ("_mm", 1, "mm"),
    ("_mb_s", 1, "MB/s"), ("_gb", 1, "GB"), ("_tb", 1, "TB"), ("_kiops", 1, "kIOPS"),
    ("_db", 1, "dB"), ("volts", 1, "V"),
    ("_tb_per_year", 1, "TB"), ("mts", 1, "MT/s"), ("_bits", 1, "bit"),
)  # fmt: skip


def _plain(field: str, value: Any) -> str:
    """Return a value in words: slots and sockets by what they offer, others as they are."""
    match field:
        case "slots" if isinstance(value, tuple):
            return "\n".join(map(_slot, value))
        case "m2" if isinstance(value, tuple):
            return "\n".join(map(_slot, value))
        case "memory_sizes":
            return ", ".join(f"{number(round(size / GIB, 1))} GiB" for size in value)
        case "capacities":
            return "\n".join(dict.fromkeys(map(_reading, value)))
        case "slot_modes":
            return "\n".join(shown(dict(mode)) for mode in value)
        case "conflicts":
            return "\n".join(f"{one.when} → {one.then} ×{one.lanes}" for one in value)
        case "uplink" if value is not None:
            return f"PCIe {value.generation}.0 ×{value.lanes}"
        case "connectors":
            named = {
                name: count
                for name, count in value.model_dump(exclude_none=True).items()
                if name != "pcie_16_w"
            }
            return shown({_word(name): count for name, count in named.items()})
        case "compute_capability" if value is not None:
            return ".".join(map(str, value))
    return shown(value)


def _reading(seen: Capacity) -> str:
    """Return what CUDA offered somebody: the size, the system, and the month of the software."""
    size = f"{number(round(seen.bytes / GIB, 2))} GiB"
    parts = (size, seen.system.capitalize(), "ECC" if seen.ecc else "", seen.seen)
    return " · ".join(part for part in parts if part)


def _slot(slot: Any) -> str:
    known = [f"PCIe {slot.generation}.0" if slot.generation else "", _lanes(slot.lanes)]
    source = tr(f"pc.lanes.{slot.source}") if slot.source else ""
    return f"{slot.id}: {' '.join(part for part in (*known, source) if part)}"


def _lanes(lanes: int | None) -> str:
    return f"×{lanes}" if lanes else ""


def brief(record: Record) -> str:
    """Return what matters most of a part, in a line."""
    kind = kind_of(record)
    shown_columns = (column for column in COLUMNS[kind] if column.field in _BRIEF[kind])
    parts = [(column.text(record), column) for column in shown_columns]
    return " · ".join(_with_unit(text, column) for text, column in parts if text)


def _with_unit(text: str, column: Column) -> str:
    said = column.field in _SAID
    text = f"{column.title} {text}" if said else text
    return f"{text} {column.unit}" if column.unit else text


_BRIEF: dict[PartKind, frozenset[str]] = {
    "gpu": frozenset(("memory_bytes", "bandwidth_bytes_per_s", "tdp_w")),
    "cpu": frozenset(("socket", "cores", "slot_lanes", "max_power_w")),
    "board": frozenset(("socket", "chipset", "form_factor", "memory_type")),
    "memory": frozenset(("type", "module", "gib", "mts")),
    "storage": frozenset(("interface", "capacity_gb", "read_mb_s")),
    "psu": frozenset(("watts", "efficiency", "connectors.pcie_16")),
    "case": frozenset(("gpu_length_mm", "slots")),
    "cooler": frozenset(("type", "height_mm", "radiator_mm", "rated_w")),
}
_SAID = frozenset(("cores", "slot_lanes", "connectors.pcie_16", "slots", "gpu_length_mm"))
"""Fields whose number says nothing without their name."""


def kind_of(record: Record) -> PartKind:
    """Return the kind that a record is of."""
    if isinstance(record, GpuRecord):
        return "gpu"
    return _kinds()[type(record)]


@cache
def _kinds() -> dict[type[PartRecord], PartKind]:
    from trainwright.catalog.part_kinds import KINDS

    return {kind.record: kind.folder for kind in KINDS.values()}


def least_confidence(record: Record) -> Confidence | None:
    """Return how sure the least certain value of the table's columns is."""
    found = [column.provenance(record) for column in COLUMNS[kind_of(record)]]
    known = {origin.confidence for origin in found if origin is not None}
    ranked: tuple[Confidence, ...] = ("low", "medium", "high")
    return next((one for one in ranked if one in known), None)


def searched(record: Record) -> str:
    """Return everything that a filter may be typed for, folded."""
    names = " ".join((record.name, record.id, *record.aliases)).casefold()
    parts = (column.text(record) for column in COLUMNS[kind_of(record)][1:])
    plain = " ".join((names, record.vendor or "", *parts)).casefold()
    return f"{plain} {names.translate(_JOINED)}"


_JOINED = str.maketrans("", "", " -")
"""So that ``rtx4090`` finds the RTX 4090."""


class Shelf:
    """All parts of a kind, ready to be filtered and sorted while somebody types."""

    def __init__(self, kind: PartKind, records: Sequence[Record]) -> None:
        self.kind = kind
        self.records = tuple(records)
        self.columns = COLUMNS[kind]
        self._searched = [searched(record) for record in self.records]
        self._orders: dict[tuple[int, bool], list[int]] = {}

    def find(self, text: str, column: int, *, descending: bool = False) -> list[int]:
        """Return the indexes of the records that have every word, sorted by a column.

        Unknown values come last either way.
        """
        order = self._order(column, descending)
        words = text.casefold().split()
        if not words:
            return order
        searched = self._searched
        for word in words:
            order = [index for index in order if word in searched[index]]
        return order

    def _order(self, column: int, descending: bool) -> list[int]:
        key = (column, descending)
        if key not in self._orders:
            self._orders[key] = self._sorted(self.columns[column], descending)
        return self._orders[key]

    def _sorted(self, column: Column, descending: bool) -> list[int]:
        values = [column.value(record) for record in self.records]
        known = [index for index, value in enumerate(values) if value is not None]
        unknown = [index for index, value in enumerate(values) if value is None]
        known.sort(key=partial(_comparable, values), reverse=descending)
        return known + unknown


def _comparable(values: Sequence[Any], index: int) -> Any:
    value = values[index]
    return value.casefold() if isinstance(value, str) else value
