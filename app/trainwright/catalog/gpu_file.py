"""What a ``hardware_db/gpu/*.yaml`` file may hold, and how it becomes records.

A maintainer writes units as data sheets do; here they become base units, every value
gets its source, and what follows from a formula is computed rather than typed.
"""

from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    StringConstraints,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from trainwright.catalog.records import (
    Capacity,
    Confidence,
    Cooling,
    Fact,
    FlopKey,
    Form,
    GpuRecord,
    Plug,
    Segment,
    Vendor,
)

GIB = 1 << 30
MIB = 1 << 20
_ORDER: dict[Confidence, int] = {"low": 0, "medium": 1, "high": 2}

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=300)]
Number = Annotated[float, Field(gt=0, le=1e7, strict=True)]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Provenance(_Model):
    """Where values come from and how far they are trusted."""

    source: Text
    """Key of ``hardware_db/SOURCES.md``, with more words where they help."""
    confidence: Confidence
    """high: the vendor's own document; medium: two secondary sources agree, or a stated
    formula; low: one scraped database, or recall."""


class Stated(_Model):
    """A value: a plain number, or a mapping where its source is not the record's."""

    value: Number
    source: Text | None = None
    confidence: Confidence | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_number(cls, given: Any) -> Any:
        return given if isinstance(given, dict) else {"value": given}

    @model_validator(mode="after")
    def _source_and_confidence_together(self) -> Self:
        if (self.source is None) != (self.confidence is None):
            raise ValueError("source and confidence stand together")
        return self

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        schema = handler(core_schema)
        target = handler.resolve_ref_schema(schema)
        mapping = dict(target)
        target.clear()
        target["description"] = mapping.pop("description", "")
        target["anyOf"] = [mapping["properties"]["value"], mapping]
        return schema


class Reading(_Model):
    """What ``torch.cuda.get_device_properties(0).total_memory`` was on one computer."""

    mib: Number
    seen: Annotated[str, BeforeValidator(str), Field(pattern=r"^\d{4}-\d\d$")]
    """Month of the newest software that the reading names."""
    source: Text
    system: Literal["linux", "windows"] = "linux"
    ecc: bool | None = None
    """Where somebody had changed it from what the card comes with."""

    def capacity(self) -> Capacity:
        """Return the reading in base units."""
        return Capacity(
            bytes=_exact(self.mib * MIB),
            source=self.source,
            seen=self.seen,
            system=self.system,
            ecc=self.ecc,
        )


class Values(_Model):
    """What may stand in a file's ``defaults`` as well as in a record."""

    vendor: Vendor | None = None
    segment: Segment | None = None
    architecture: Text | None = None
    chip: Text | None = None
    compute_capability: Annotated[str, Field(pattern=r"^\d{1,2}\.\d$")] | None = None
    """Quoted: "8.9"."""
    unified_memory: bool | None = None
    memory_bus_bits: Stated | None = None
    memory_gbps: Stated | None = None
    """Data rate of one pin, Gbit/s."""
    l2_mib: Stated | None = None
    per_clock: dict[FlopKey, Stated] = {}
    """Dense FLOP of one SM (compute unit, Xe core) in one clock; with ``sm`` and
    ``boost_mhz`` it gives the TFLOPS that ``tflops`` does not state."""
    pcie_generation: Annotated[int, Field(ge=1, le=8)] | None = None
    pcie_lanes: Literal[1, 4, 8, 16] | None = None
    nvlink_gb_s: Stated | None = None
    """Both directions together, decimal GB/s."""
    ecc: bool | None = None
    mig: bool | None = None
    form: Form | None = None
    length_mm: Stated | None = None
    """Of the maker's own card."""
    shortest_mm: Stated | None = None
    longest_mm: Stated | None = None
    """Of all makers' cards."""
    height_mm: Stated | None = None
    slot_width: Stated | None = None
    """In slots of 20.32 mm: the maker's own card."""
    thinnest_slots: Stated | None = None
    widest_slots: Stated | None = None
    """Of all makers' cards."""
    cooling: Cooling | None = None
    plugs: dict[Plug, Annotated[int, Field(ge=1, le=8)]] | None = None
    """For power, of the maker's own card; ``{}``: the slot is enough."""
    recommended_psu_w: Stated | None = None
    """By the maker, for a computer with one of them; nobody's formula."""
    nvlink_bridge_slots: tuple[Annotated[int, Field(ge=1, le=8)], ...] | None = None
    """Distances of two cards, slot to slot, that bridges are made for."""
    source: Text | None = None
    """Of every value that states none; with ``confidence``."""
    confidence: Confidence | None = None
    sources: dict[str, Provenance] = {}
    """Of one key: ``l2_mib: {source: ..., confidence: ...}``."""


class Entry(Values):
    """One GPU."""

    id: Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9.]+)*$", max_length=60)]
    name: Text
    aliases: tuple[Text, ...] = ()
    shared_names: tuple[Text, ...] = ()
    memory_gib: Stated
    memory_sizes_gib: tuple[Number, ...] = ()
    """Memory that computers with shared memory are sold with, smallest first."""
    free_at_boot_gib: Stated | None = None
    """Of shared memory: what CUDA showed as free on a freshly started system."""
    nvml_total_mib: Stated | None = None
    capacities: tuple[Reading, ...] = ()
    """Readings of what CUDA offers; drivers differ, the newest one counts."""
    bandwidth_gb_s: Stated | None = None
    """Decimal GB/s; where absent, bus width x data rate."""
    sm: Stated | None = None
    cores: Stated | None = None
    boost_mhz: Stated | None = None
    tflops: dict[FlopKey, Stated] = {}
    """Dense; where a vendor prints the sparse figure only, half of it, and say so."""
    tdp_w: Stated | None = None
    launch: (
        Annotated[str, BeforeValidator(str), Field(pattern=r"^\d{4}(-\d\d(-\d\d)?)?$")] | None
    ) = None
    msrp_usd: Stated | None = None
    notes: Annotated[str, Field(max_length=500)] = ""

    @model_validator(mode="after")
    def _sizes_in_order(self) -> Self:
        sizes = list(self.memory_sizes_gib)
        if sizes and (sizes != sorted(set(sizes)) or sizes[-1] != self.memory_gib.value):
            raise ValueError("memory_sizes_gib: smallest first, and the last one is memory_gib")
        return self


class GpuFile(_Model):
    """One file: a generation or a family."""

    version: Annotated[Literal[1], Field(alias="schema")]
    defaults: Values = Values()
    gpus: Annotated[tuple[Entry, ...], Field(min_length=1)]


class IncompleteError(ValueError):
    """An entry from which no record can be made: ``key`` is what it lacks."""

    def __init__(self, id: str, key: str) -> None:
        super().__init__(f"{id}: {key}")
        self.id = id
        self.key = key


def records(file: GpuFile) -> Iterator[GpuRecord]:
    """Yield the file's records.

    Raises:
        IncompleteError: a key that every record needs stands neither in the entry nor in
            the defaults, or a value has no source.
    """
    for entry in file.gpus:
        yield _Builder(file.defaults, entry).record()


class _Builder:
    """Makes one record; holds the entry and the defaults that it falls back on."""

    def __init__(self, defaults: Values, entry: Entry) -> None:
        self._defaults = defaults
        self._entry = entry

    def record(self) -> GpuRecord:
        entry = self._entry
        sm, boost = self._fact("sm"), self._fact("boost_mhz", 1e6)
        bus, rate = self._fact("memory_bus_bits"), self._fact("memory_gbps", 1e9)
        capability = self._plain("compute_capability")
        return GpuRecord(
            id=entry.id,
            name=entry.name,
            vendor=self._needed("vendor"),
            segment=self._needed("segment"),
            architecture=self._needed("architecture"),
            chip=self._plain("chip"),
            aliases=entry.aliases,
            shared_names=entry.shared_names,
            compute_capability=capability and tuple(map(int, capability.split("."))),
            memory_bytes=self._stated("memory_gib", entry.memory_gib, GIB),
            nvml_total_bytes=self._fact("nvml_total_mib", MIB),
            capacities=tuple(reading.capacity() for reading in entry.capacities),
            unified_memory=bool(self._plain("unified_memory")),
            memory_sizes=tuple(_exact(size * GIB) for size in entry.memory_sizes_gib),
            free_at_boot_bytes=self._fact("free_at_boot_gib", GIB),
            bandwidth_bytes_per_s=self._bandwidth(bus, rate),
            memory_bus_bits=bus,
            memory_bits_per_s=rate,
            l2_bytes=self._fact("l2_mib", MIB),
            sm_count=sm,
            cores=self._fact("cores"),
            boost_hz=boost,
            flops=self._flops(sm, boost),
            tdp_w=self._fact("tdp_w"),
            pcie_generation=self._plain("pcie_generation"),
            pcie_lanes=self._plain("pcie_lanes"),
            nvlink_bytes_per_s=self._fact("nvlink_gb_s", 1e9),
            ecc=self._plain("ecc"),
            mig=bool(self._plain("mig")),
            form=self._plain("form"),
            length_mm=self._fact("length_mm"),
            shortest_mm=self._fact("shortest_mm"),
            longest_mm=self._fact("longest_mm"),
            height_mm=self._fact("height_mm"),
            slot_width=self._fact("slot_width"),
            thinnest_slots=self._fact("thinnest_slots"),
            widest_slots=self._fact("widest_slots"),
            cooling=self._plain("cooling"),
            plugs=self._plain("plugs"),
            recommended_psu_w=self._fact("recommended_psu_w"),
            nvlink_bridge_slots=self._plain("nvlink_bridge_slots"),
            launch=entry.launch,
            msrp_usd=self._fact("msrp_usd"),
            notes=entry.notes,
        )

    def _plain(self, key: str) -> Any:
        value = getattr(self._entry, key, None)
        return getattr(self._defaults, key, None) if value is None else value

    def _needed(self, key: str) -> Any:
        value = self._plain(key)
        if value is None:
            raise IncompleteError(self._entry.id, key)
        return value

    def _fact(self, key: str, unit: float = 1) -> Fact | None:
        stated = self._plain(key)
        return None if stated is None else self._stated(key, stated, unit)

    def _stated(self, key: str, stated: Stated, unit: float) -> Fact:
        source, confidence = self._provenance(key, stated)
        return Fact(value=_exact(stated.value * unit), source=source, confidence=confidence)

    def _provenance(self, key: str, stated: Stated) -> tuple[str, Confidence]:
        """The nearest statement wins: the value's own, then the record's, then the file's.

        A value that stands in the defaults is the file's, whatever a record says of its own.
        """
        if stated.source is not None and stated.confidence is not None:
            return stated.source, stated.confidence
        holders: tuple[Values, ...] = (self._entry, self._defaults)
        for holder in holders[self._is_default(key, stated) :]:
            if key in holder.sources:
                return holder.sources[key].source, holder.sources[key].confidence
            if holder.source is not None and holder.confidence is not None:
                return holder.source, holder.confidence
        raise IncompleteError(self._entry.id, f"{key}: source, confidence")

    def _is_default(self, key: str, stated: Stated) -> bool:
        default = getattr(self._defaults, key, None)
        return stated is default or (
            isinstance(default, dict) and any(stated is value for value in default.values())
        )

    def _bandwidth(self, bus: Fact | None, rate: Fact | None) -> Fact:
        stated = self._fact("bandwidth_gb_s", 1e9)
        if stated is not None:
            return stated
        if bus is None or rate is None:
            raise IncompleteError(self._entry.id, "bandwidth_gb_s")
        return Fact(
            value=bus.value * rate.value / 8,
            source=f"formula: {bus.value:g} bit x {rate.value / 1e9:g} Gbit/s / 8",
            confidence=weakest("medium", bus.confidence, rate.confidence),
        )

    def _flops(self, sm: Fact | None, boost: Fact | None) -> dict[FlopKey, Fact]:
        stated = {
            key: self._stated("tflops", value, 1e12) for key, value in self._entry.tflops.items()
        }
        if sm is None or boost is None:
            return stated
        rates = self._entry.per_clock or self._defaults.per_clock  # those of a family, or its own
        computed = {key: self._computed(rate, sm, boost) for key, rate in rates.items()}
        return computed | stated

    def _computed(self, rate: Stated, sm: Fact, boost: Fact) -> Fact:
        source, confidence = self._provenance("per_clock", rate)
        formula = f"{sm.value:g} SM x {rate.value:g} FLOP/clock x {boost.value / 1e6:g} MHz"
        return Fact(
            value=sm.value * rate.value * boost.value,
            source=f"formula: {formula}; FLOP/clock: {source}",
            confidence=weakest("medium", confidence, sm.confidence, boost.confidence),
        )


def weakest(*confidences: Confidence) -> Confidence:
    """Return the lowest of the confidences: a result is as well known as its worst part."""
    return min(confidences, key=_ORDER.__getitem__)


def _exact(value: float) -> float:
    """Undo the last-digit noise of unit conversion: 82.6e12, not 82.59999999999999e12."""
    return float(f"{value:.12g}")
