"""``trainwright catalog``: what the hardware catalog holds."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, get_args

import click

from trainwright.catalog import find_gpu, list_gpus
from trainwright.catalog.check import check, facts
from trainwright.catalog.query import SortKey
from trainwright.catalog.records import Fact, GpuRecord, Segment, Vendor
from trainwright.cli import options
from trainwright.cli.answer import Answer, Exit
from trainwright.cli.parsing import Command, Group, option
from trainwright.cli.prices import prices_command
from trainwright.messages import Message, render
from trainwright.messages.units import GIB

if TYPE_CHECKING:
    from trainwright.cli.screen import Screen


@click.group("catalog", cls=Group, help="cli.catalog.summary")
def command() -> None:
    """Group the questions to the catalog."""


command.add_command(prices_command)


@command.command("list", cls=Command, help="cli.catalog.list")
@click.argument("words", nargs=-1, metavar="[WORDS]...")
@option(
    "--vendor", type=click.Choice(get_args(Vendor), case_sensitive=False), help="cli.catalog.vendor"
)
@option("--segment", type=click.Choice(get_args(Segment)), help="cli.catalog.segment")
@option(
    "--min-memory-gib", type=click.FloatRange(min=0), default=0.0, help="cli.catalog.min-memory"
)
@option("--sort", type=click.Choice(get_args(SortKey)), default="name", help="cli.catalog.sort")
@options.common
def list_command(
    words: tuple[str, ...],
    vendor: str | None,
    segment: str | None,
    min_memory_gib: float,
    sort: SortKey,
) -> Answer:
    """List the GPUs that match every word."""
    records = list_gpus(
        " ".join(words),
        vendor=vendor,
        segment=segment,
        min_memory_bytes=min_memory_gib * GIB,
        sort=sort,
    )

    def show(screen: "Screen") -> None:
        headings = ("id", "name", "memory", "bandwidth", "power", "launch")
        screen.table(
            [_row(record) for record in records],
            headings=[Message.of(f"cli.catalog.{name}") for name in headings],
            numbers=(2, 3, 4),
        )
        screen.say("cli.catalog.found", count=len(records))

    return Answer({"gpus": [_document(record) for record in records]}, show)


@command.command("show", cls=Command, help="cli.catalog.show")
@click.argument("name", metavar="NAME")
@options.common
def show_command(name: str) -> Answer:
    """Show one GPU with the source of every value."""
    match = find_gpu(name)
    record = match.record

    def show(screen: "Screen") -> None:
        screen.line(f"{record.name} ({record.id})", "bold")
        if match.note is not None:
            screen.line(match.note)
        screen.table(
            [
                (key, _readable(key, fact.value), fact.confidence, fact.source)
                for key, fact in facts(record)
            ],
            headings=[
                Message.of(f"cli.catalog.{name}")
                for name in ("value-of", "value", "confidence", "source")
            ],
            numbers=(1,),
        )
        screen.table([(key, screen.value(value)) for key, value in _plain(record)])

    return Answer({"gpu": _document(record)}, show)


@command.command("check", cls=Command, help="cli.catalog.check")
@options.common
def check_command() -> Answer:
    """Check the shipped records and the user's own; exit 1 where something is wrong."""
    found = check()

    def show(screen: "Screen") -> None:
        for message in found.messages:
            screen.line(message)

    document = {
        "ok": found.ok,
        "records": found.records,
        "values": found.values,
        "by_confidence": found.by_confidence,
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
        f"{_spaced(record.bandwidth_bytes_per_s.value / 1e9, 0)} GB/s",
        f"{tdp.value:g} W" if tdp else "–",
        record.launch or "–",
    )


def _document(record: GpuRecord) -> dict[str, Any]:
    return record.model_dump(mode="json", exclude_none=True)


def _plain(record: GpuRecord) -> Iterator[tuple[str, object]]:
    for key, value in record:
        if isinstance(value, Fact) or key == "flops" or value in (None, (), ""):
            continue
        if isinstance(value, tuple):
            value = (".", ", ")[key != "compute_capability"].join(map(str, value))
        yield key, value


def _readable(key: str, value: float) -> str:
    """Return a value in the unit that its key says, scaled for reading."""
    if key.endswith("_bytes"):
        return f"{value / GIB:g} GiB" if value >= GIB / 2 else f"{value / (1 << 20):g} MiB"
    if key.endswith("_bytes_per_s"):
        return f"{_spaced(value / 1e9, 1)} GB/s"
    if key.startswith("flops"):
        return f"{_spaced(value / 1e12, 1)} TFLOP/s"
    if key.endswith("_bits_per_s"):
        return f"{value / 1e9:g} Gbit/s"
    if key.endswith("_hz"):
        return f"{value / 1e6:g} MHz"
    if key.endswith("_w"):
        return f"{value:g} W"
    if key.endswith("_usd"):
        return f"{value:g} USD"
    return f"{value:g}"


def _spaced(value: float, digits: int) -> str:
    """Return a number with thousands apart as in every other figure."""
    return f"{value:,.{digits}f}".replace(",", "\u202f")
