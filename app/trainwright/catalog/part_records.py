"""Records of the parts of a computer beside its GPUs: facts with a source and a confidence.

None is "unknown", on purpose: a rule that needs the value then says that it cannot check.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from trainwright.catalog.records import Confidence

Id = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9.]+)*$")]
Count = Annotated[int, Field(ge=0)]
AtLeastOne = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0)]

Interface = Literal["nvme", "sata", "hdd"]
MemoryType = Literal["ddr4", "ddr5"]
Module = Literal["udimm", "rdimm", "cudimm"]
FormFactor = Literal["mini-itx", "micro-atx", "atx", "e-atx", "xl-atx", "ceb", "eeb"]
"""``eeb`` and ``ceb`` are SSI's; ``e-atx`` is what makers call anything wider than ATX."""
LaneSource = Literal["cpu", "chipset"]
SlotLength = Literal["x1", "x4", "x8", "x16"]
Efficiency = Literal["bronze", "silver", "gold", "platinum", "titanium"]


class _Value(BaseModel):
    # Built when a record is first made: most runs ask for one kind, or for none.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)


class Provenance(_Value):
    """Where a value comes from."""

    source: str
    """Key into ``hardware_db/SOURCES.md``, or a page."""
    confidence: Confidence


class PartRecord(_Value):
    """What every part has."""

    id: Id
    name: str
    vendor: str | None = None
    """Of every shipped part; a person's own record may leave it out."""
    aliases: tuple[str, ...] = ()
    """What sellers, drivers and people call it, beyond its name."""
    source: str
    """Of every value that ``sources`` does not name."""
    confidence: Confidence
    sources: dict[str, Provenance] = {}
    """By field."""
    launch: (
        Annotated[str, BeforeValidator(str), Field(pattern=r"^\d{4}(-\d\d(-\d\d)?)?$")] | None
    ) = None
    """ISO date or year."""
    msrp_usd: Positive | None = None
    """The maker's price at launch, without sales tax; never a current one."""
    notes: str = ""

    def provenance(self, field: str) -> Provenance:
        """Return where a field's value comes from; ``connectors.pcie_16`` may have its own."""
        own = self.sources.get(field) or self.sources.get(field.split(".")[0])
        return own or Provenance(source=self.source, confidence=self.confidence)


class CpuRecord(PartRecord):
    """A processor."""

    vendor: Literal["AMD", "Intel"]
    architecture: str
    """Of its cores, of the fast ones where there are two kinds: Zen 5, Lion Cove."""
    cores: AtLeastOne
    """Physical, of both kinds."""
    threads: AtLeastOne
    efficient_cores: Count = 0
    """Of the cores, the slow ones."""
    base_ghz: Positive | None = None
    boost_ghz: Positive
    socket: str | None = None
    """AM4, AM5, LGA1700, LGA1851, sTR5, sWRX8, LGA4189, LGA4677, SP3, SP5, SP6."""
    chipsets: tuple[str, ...] | None = None
    """That it works with: B650, X870E."""
    needs_bios_update: tuple[str, ...] = ()
    """Of the chipsets, those whose first boards do not know it."""
    tdp_w: Positive | None = None
    max_power_w: Positive | None = None
    """What it may draw for long: AMD's PPT, Intel's maximum turbo power."""
    pcie_generation: AtLeastOne | None = None
    """Of the slots for cards."""
    slot_lanes: AtLeastOne | None = None
    """PCI Express lanes that the slots for cards share."""
    lanes_usable: AtLeastOne | None = None
    """For slots and drives together, the chipset's link not counted."""
    memory_types: tuple[MemoryType, ...] | None = None
    memory_modules: tuple[Module, ...] | None = None
    memory_channels: AtLeastOne | None = None
    memory_max_gib: Positive | None = None
    memory_mts: dict[MemoryType, AtLeastOne] = {}
    """Official rate with one module a channel."""
    ecc: Literal["required", "yes", "chipset", "board", "no"] | None = None
    """``chipset``: only with a workstation chipset; ``board``: where the board allows it."""


class Slot(_Value):
    """A slot for cards."""

    id: str
    """As the manual writes it: ``PCIEX16_1``."""
    length: SlotLength
    """Of the connector, which says nothing about the lanes."""
    source: LaneSource | None = None
    generation: AtLeastOne | None = None
    lanes: AtLeastOne | None = None
    """Wired, with nothing else in the way."""
    position: AtLeastOne | None = None
    """Which of the case's openings it meets, 1 at the processor; one every 20.32 mm. Its
    provenance is kept under ``position``: manuals seldom say, people look at pictures."""


class M2(_Value):
    """A socket for M.2 drives."""

    id: str
    source: LaneSource | None = None
    generation: AtLeastOne | None = None
    lanes: AtLeastOne | None = None
    lengths_mm: tuple[int, ...] = (80,)
    sata: bool | None = None
    """Whether it takes SATA drives too."""


class Conflict(_Value):
    """What is lost elsewhere once something is populated."""

    when: str
    """Id of a slot or an M.2 socket, or ``usb4`` or ``slimsas``."""
    then: str
    """Id of a slot or an M.2 socket, or ``sata`` followed by how many ports: ``sata:2``."""
    lanes: Count
    """That are left to it; 0: it is off."""
    source: str | None = None


class Uplink(_Value):
    """The link between chipset and processor, which everything on the chipset shares."""

    generation: AtLeastOne
    lanes: AtLeastOne


class BoardRecord(PartRecord):
    """A mainboard. With ``lanes_complete`` false, slots may be missing and widths are unknown."""

    socket: str
    chipset: str | None = None
    """SoC where everything hangs on the processor."""
    form_factor: FormFactor
    memory_type: MemoryType
    memory_modules: tuple[Module, ...] | None = None
    memory_slots: AtLeastOne
    memory_max_gib: Positive | None = None
    ecc: bool | None = None
    slots: tuple[Slot, ...] = ()
    slot_modes: tuple[dict[str, int], ...] = ()
    """Lanes of the slots that share them, by slot id, in each way that they may be split:
    ``[{PCIEX16_1: 16, PCIEX16_2: 0}, {PCIEX16_1: 8, PCIEX16_2: 8}]``."""
    m2: tuple[M2, ...] | None = None
    sata_ports: Count | None = None
    conflicts: tuple[Conflict, ...] = ()
    uplink: Uplink | None = None
    lanes_complete: bool = False
    """Whether slots, M.2 sockets, modes and conflicts are all known."""
    slimsas: Count | None = None
    """Connectors for U.2 and U.3 drives: SlimSAS, MCIO, OCuLink."""
    bios_flashback: bool | None = None
    display_outputs: bool | None = None
    ipmi: bool | None = None


class MemoryRecord(PartRecord):
    """A kit of memory modules."""

    type: MemoryType
    module: Module
    modules: AtLeastOne
    module_gib: Positive
    mts: AtLeastOne
    cas: AtLeastOne | None = None
    ecc: bool | None = None
    ranks: AtLeastOne | None = None
    """Of a module."""
    volts: Positive | None = None
    """At its rated speed; JEDEC's is 1.2 for DDR4 and 1.1 for DDR5."""
    height_mm: Positive | None = None

    @property
    def gib(self) -> float:
        """Of the whole kit."""
        return self.modules * self.module_gib


class DriveRecord(PartRecord):
    """A drive. Rates are for reading: an SLC cache makes writes fast, and no read."""

    interface: Interface
    form: Literal["m.2", "2.5", "3.5", "u.2", "u.3", "add-in"] | None = None
    length_mm: AtLeastOne | None = None
    """Of an M.2 drive."""
    capacity_gb: Positive | None = None
    """Decimal."""
    pcie_generation: AtLeastOne | None = None
    pcie_lanes: AtLeastOne | None = None
    read_mb_s: Positive
    """Sequential."""
    write_mb_s: Positive | None = None
    """Sequential, into the SLC cache where there is one."""
    written_after_cache_mb_s: Positive | None = None
    random_read_kiops: Positive | None = None
    """Reads of 4 KiB at a deep queue; makers of hard disks state none."""
    random_write_kiops: Positive | None = None
    endurance_tb: Positive | None = None
    """Terabytes that the warranty lets be written."""
    dram: bool | None = None
    nand: Literal["slc", "mlc", "tlc", "qlc"] | None = None
    shingled: bool | None = None
    """Of a hard disk."""
    power_loss_protection: bool | None = None
    workload_tb_per_year: Positive | None = None
    """Terabytes read and written a year that a hard disk is made for."""


class PowerConnectors(_Value):
    """What a power supply offers to cards and the board; None where nobody says."""

    pcie_8: Count | None = None
    """6+2-pin plugs."""
    pcie_16: Count | None = None
    """12VHPWR or 12V-2x6."""
    pcie_16_w: Positive | None = None
    """What one of them is rated for: 150 to 600 W."""
    pcie_16_plug: Literal["12vhpwr", "12v-2x6"] | None = None
    """Of the 16-pin ones: the later socket lets go of power when a plug is not seated."""
    eps_8: Count | None = None
    sata: Count | None = None


class PsuRecord(PartRecord):
    """A power supply."""

    watts: Positive
    efficiency: Efficiency | None = None
    atx_version: Literal["2.x", "3.0", "3.1"] | None = None
    form: Literal["atx", "sfx", "sfx-l", "crps"] = "atx"
    length_mm: Positive | None = None
    modular: bool | None = None
    connectors: PowerConnectors = PowerConnectors()
    needs_200v: bool | None = None
    """Whether it gives its watts from 200 to 240 V outlets only."""


class CaseRecord(PartRecord):
    """A case."""

    boards: tuple[FormFactor, ...] | None = None
    """That it takes."""
    slots: AtLeastOne | None = None
    """Openings for cards."""
    gpu_length_mm: Positive | None = None
    gpu_length_includes_radiator: bool | None = None
    """Whether a radiator in front was already taken off the length."""
    side_clearance_mm: Positive | None = None
    """From the board's surface to the side panel: a card's height and its cable's bend."""
    cooler_height_mm: Positive | None = None
    psu_length_mm: Positive | None = None
    psu_forms: tuple[Literal["atx", "sfx", "sfx-l"], ...] = ("atx",)
    bays_35: Count | None = None
    bays_25: Count | None = None
    radiators_mm: tuple[int, ...] | None = None
    """Sizes that fit somewhere."""
    kind: Literal["full-tower", "mid-tower", "small", "cube", "rack", "open-frame"] | None = None
    width_mm: Positive | None = None
    height_mm: Positive | None = None
    depth_mm: Positive | None = None


class CoolerRecord(PartRecord):
    """A cooler of a processor."""

    type: Literal["air", "liquid"]
    height_mm: Positive | None = None
    """Of an air cooler."""
    radiator_mm: AtLeastOne | None = None
    """Of a liquid one."""
    sockets: tuple[str, ...] | None = None
    rated_w: Positive | None = None
    noise_db: Positive | None = None
