"""``trainwright catalog``: what the hardware catalog holds."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast, get_args

import click

from trainwright.catalog import PartKind, find_gpu, find_part, list_gpus, list_parts
from trainwright.catalog.cells import Cell, Part, Plain, cells, unknown, values
from trainwright.catalog.check import check
from trainwright.catalog.part_kinds import KINDS, NAMES
from trainwright.catalog.parts import nearest
from trainwright.catalog.query import SortKey
from trainwright.catalog.records import GpuRecord, Segment, Vendor
from trainwright.catalog.table import Found, parsed, table
from trainwright.cli import options
from trainwright.cli.answer import Answer, Exit
from trainwright.cli.parsing import Command, Fraction, Group, option
from trainwright.cli.prices import prices_command
from trainwright.cli.waiting import waiting_command
from trainwright.messages import Message, UserError, render
from trainwright.messages.units import GIB

if TYPE_CHECKING:
    from trainwright.cli.screen import Screen


@click.group("catalog", cls=Group, help="cli.catalog.summary")
def command() -> None:
    """Group the questions to the catalog."""


command.add_command(prices_command)
prices_command.add_command(waiting_command)


@command.command("list", cls=Command, help="cli.catalog.list")
@click.argument("words", nargs=-1, metavar="[KIND] [WORDS]...")
@option(
    "--vendor", type=click.Choice(get_args(Vendor), case_sensitive=False), help="cli.catalog.vendor"
)
@option("--segment", type=click.Choice(get_args(Segment)), help="cli.catalog.segment")
@option("--min-memory-gib", type=Fraction(min=0), default=0.0, help="cli.catalog.min-memory")
@option("--filter", "filters", multiple=True, metavar="FIELD>=VALUE", help="cli.catalog.filter")
@option("--sort", default="", metavar="FIELD", help="cli.catalog.sort")
@option("--ascending/--descending", default=None, help="cli.catalog.ascending")
@options.common
def list_command(
    words: tuple[str, ...],
    vendor: str | None,
    segment: str | None,
    min_memory_gib: float,
    filters: tuple[str, ...],
    sort: str,
    ascending: bool | None,
) -> Answer:
    """List the parts of a kind that match every word and filter; without a kind, GPUs."""
    kind, text = _kind_and_words(words)
    asked = [parsed(each) for each in filters]
    if kind != "gpu":
        _refuse_gpu_options(kind, vendor=vendor, segment=segment, memory=min_memory_gib)
        found = table(list_parts(kind)).find(text, asked, sort, descending=ascending is False)
        return _parts_answer(kind, found, [each.field for each in asked], sort)
    by_key = sort in get_args(SortKey)
    records = list_gpus(
        text,
        vendor=vendor,
        segment=segment,
        min_memory_bytes=min_memory_gib * GIB,
        sort=cast("SortKey", sort) if by_key else "name",
    )
    if by_key and ascending is (sort != "name"):
        records = records[::-1]
    if not asked and (by_key or not sort):
        return _gpus_answer(records, 0)
    found = table(records).find("", asked, "" if by_key else sort, descending=ascending is False)
    gpus = [part for part in found.parts if isinstance(part, GpuRecord)]
    return _gpus_answer(gpus, found.unknown)


def _kind_and_words(words: tuple[str, ...]) -> tuple[PartKind, str]:
    """Return the kind that the first word names, GPUs where it names none, and the other words."""
    kind = next((kind for kind in NAMES if words and words[0].casefold() == kind), None)
    return (kind, " ".join(words[1:])) if kind else ("gpu", " ".join(words))


def _refuse_gpu_options(kind: PartKind, **given: object) -> None:
    if any(given.values()):
        raise UserError.of("cli.catalog.only-gpus", kind=kind)


def _gpus_answer(records: Sequence[GpuRecord], left_out: int) -> Answer:
    def show(screen: "Screen") -> None:
        if not records:
            screen.say("cli.catalog.none", kinds=", ".join(NAMES))
            _say_left_out(screen, left_out)
            return
        headings = ("id", "name", "memory", "bandwidth", "power", "launch")
        screen.table(
            [_row(record) for record in records],
            headings=[Message.of(f"cli.catalog.{name}") for name in headings],
            numbers=(2, 3, 4),
        )
        screen.say("cli.catalog.found", count=len(records))
        _say_left_out(screen, left_out)

    document = {"gpus": [_document(record) for record in records], "unknown": left_out}
    return Answer(document, show)


COLUMNS: dict[PartKind, tuple[str, ...]] = {
    "cpu": ("cores", "threads", "boost_ghz", "socket", "slot_lanes", "max_power_w"),
    "board": ("socket", "chipset", "form_factor", "memory_type", "memory_slots", "sata_ports"),
    "memory": ("type", "module", "modules", "module_gib", "mts", "cas"),
    "storage": ("interface", "capacity_gb", "pcie_generation", "read_mb_s", "endurance_tb", "dram"),
    "psu": ("watts", "efficiency", "atx_version", "connectors.pcie_16", "connectors.pcie_8"),
    "case": ("boards", "slots", "gpu_length_mm", "cooler_height_mm", "bays_35"),
    "cooler": ("type", "height_mm", "radiator_mm", "rated_w", "sockets"),
}
"""What a list shows of each kind, beside what was filtered and sorted by."""


def _parts_answer(kind: PartKind, found: Found, asked: list[str], sort: str) -> Answer:
    columns = tuple(dict.fromkeys((*COLUMNS[kind], *asked, *filter(None, [sort]))))
    columns = tuple(name for name in columns if name not in ("id", "name"))
    rows = [(part, dict(values(part))) for part in found.parts]

    def show(screen: "Screen") -> None:
        if not rows:
            screen.say("cli.catalog.none", kinds=", ".join(NAMES))
            _say_left_out(screen, found.unknown)
            return
        numbers = [
            number
            for number, name in enumerate(columns, start=1)
            if all(isinstance(row.get(name), int | float | None) for _, row in rows)
        ]
        screen.table(
            [(part.id, *(_shown(row.get(name)) for name in columns)) for part, row in rows],
            headings=[Message.of("cli.catalog.id"), *columns],
            numbers=numbers,
        )
        screen.say("cli.catalog.found-parts", count=len(rows))
        _say_left_out(screen, found.unknown)

    parts = [_document(part) for part in found.parts]
    return Answer({"kind": kind, "parts": parts, "unknown": found.unknown}, show)


def _say_left_out(screen: "Screen", count: int) -> None:
    if count:
        screen.say("cli.catalog.unknown", count=count)


@command.command("show", cls=Command, help="cli.catalog.show")
@click.argument("name", metavar="NAME")
@option("--kind", type=click.Choice(list(NAMES)), help="cli.catalog.kind-option")
@options.common
def show_command(name: str, kind: PartKind | None) -> Answer:
    """Show one part with the source of every value."""
    found, note = _part(name, kind)
    known = cells(found)

    def show(screen: "Screen") -> None:
        screen.line(f"{found.name} ({found.id})", "bold")
        if note is not None:
            screen.line(note)
        screen.table(
            [
                (cell.field, _shown(cell.value), cell.confidence, cell.source)
                for cell in known
                if cell.source is not None and cell.confidence is not None
            ],
            headings=[
                Message.of(f"cli.catalog.{name}")
                for name in ("value-of", "value", "confidence", "source")
            ],
            numbers=(1,),
        )
        screen.table([(key, screen.value(value)) for key, value in _plain(found, known)])
        if missing := _unknown_fields(found):
            screen.say("cli.catalog.not-known", fields=missing)

    key = "gpu" if isinstance(found, GpuRecord) else "part"
    cell_documents = [
        {"field": c.field, "value": c.value, "source": c.source, "confidence": c.confidence}
        for c in known
    ]
    document = {key: _document(found), "values": cell_documents, "unknown": _unknown_fields(found)}
    return Answer(document, show)


def _part(name: str, kind: PartKind | None) -> tuple[Part, Message | None]:
    """Return the part that a name means, of a kind or of the first that has it.

    Raises:
        UserError: none has it; says what is nearest.
    """
    if kind == "gpu":
        return _gpu(name)
    if kind is not None:
        return find_part(kind, name), None
    try:
        return _gpu(name)
    except UserError:
        pass
    for other in KINDS:
        try:
            return find_part(other, name), None
        except UserError:
            continue
    near = [id for each in NAMES for id in nearest(each, name)[:2]]
    if near:
        raise UserError.of("cli.catalog.no-part", name=name[:60], near=near)
    raise UserError.of("cli.catalog.no-part-near", name=name[:60])


def _gpu(name: str) -> tuple[Part, Message | None]:
    match = find_gpu(name)
    return match.record, match.note


def _unknown_fields(part: Part) -> list[str]:
    return [] if isinstance(part, GpuRecord) else list(unknown(part))


@command.command("check", cls=Command, help="cli.catalog.check")
@options.common
def check_command() -> Answer:
    """Check the shipped records and the user's own; exit 1 where something is wrong."""
    found = check()

    def show(screen: "Screen") -> None:
        total, *others = found.messages
        screen.line(total)
        headings = ("kind", "parts", "values", "high", "medium", "low")
        screen.table(
            [
                (NAMES[kind], *map(screen.count, (each.records, each.values, *counts)))
                for kind, each in found.by_kind.items()
                for counts in [each.by_confidence.values()]
            ],
            headings=[Message.of(f"cli.catalog.{name}") for name in headings],
            numbers=(1, 2, 3, 4, 5),
        )
        for message in others:
            screen.line(message)

    document = {
        "ok": found.ok,
        "records": found.records,
        "values": found.values,
        "by_confidence": found.by_confidence,
        "by_kind": {
            kind: {"records": each.records, "by_confidence": each.by_confidence}
            for kind, each in found.by_kind.items()
        },
        "problems": [render(message, "en") for message in found.problems],
        "implausible": [render(message, "en") for message in found.implausible],
    }
    return Answer(document, show, Exit.DONE if found.ok else Exit.NO)


def _row(record: GpuRecord) -> tuple[str, ...]:
    tdp = record.tdp_w
    return (
        record.id,
        record.name,
        f"{record.memory_bytes.value / GIB:g} GiB",
        f"{_grouped(record.bandwidth_bytes_per_s.value / 1e9, 0)} GB/s",
        f"{tdp.value:g} W" if tdp else "–",
        record.launch or "–",
    )


def _document(part: Part) -> dict[str, Any]:
    return part.model_dump(mode="json", exclude_none=True)


def _plain(part: Part, known: Sequence[Cell]) -> Iterator[tuple[str, object]]:
    """Yield what has no source of its own: names, what the part is, notes."""
    for key in ("aliases", "shared_names"):
        if names := getattr(part, key, ()):
            yield key, ", ".join(names)
    for cell in known:
        if cell.source is None:
            yield cell.field, _shown(cell.value)
    if part.notes:
        yield "notes", part.notes


def _shown(value: Plain | None) -> str:
    """Return a value as a list or a sheet shows it; the field says its unit."""
    match value:
        case None:
            return "–"
        case bool():
            return str(value).lower()
        case tuple():
            return "; ".join(_shown(each) for each in value)
        case int() | float():
            return _grouped(value)
        case _:
            return value


def _grouped(value: float, digits: int | None = None) -> str:
    """Return a number with thousands apart as in every other figure."""
    return f"{value:,.{digits}f}" if digits is not None else f"{value:,.10g}"
