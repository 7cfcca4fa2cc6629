"""Questions to the catalog: which GPU is meant, how fast it is, what it supports."""

from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

from trainwright.catalog.load import catalog
from trainwright.catalog.names import name_key
from trainwright.catalog.precision import peak_flops
from trainwright.catalog.records import Fact, GpuRecord
from trainwright.messages import Message, UserError
from trainwright.messages.units import GIB

SortKey = Literal["name", "memory", "bandwidth", "speed", "power", "launch"]


@dataclass(frozen=True, slots=True)
class Match:
    """The GPU that a text means."""

    record: GpuRecord
    note: Message | None = None
    """Says which one was taken where the text means several."""


def find_gpu(text: str, *, memory_bytes: float | None = None) -> Match:
    """Return the GPU of an id, an NVML name or what people type, in English or Korean.

    Args:
        text: the name.
        memory_bytes: total memory where it is known; it tells apart cards that one
            name stands for, such as the two sizes of the RTX 4060 Ti.

    Raises:
        UserError: ``catalog.unknown-gpu`` with the nearest names.
    """
    known = catalog()
    key = name_key(text)
    # A card with more memory than its maker gave it keeps the maker's name in its driver.
    sized = f"{key}{memory_bytes / GIB:.0f}gb" if memory_bytes else key
    ids = known.named(sized) or known.named(key)
    if not ids:
        raise UserError.of("catalog.unknown-gpu", text=brief(text), hint=_hint(text))
    records = [known.record(id) for id in ids]
    if len(records) == 1:
        return Match(records[0])
    if memory_bytes is not None:
        return Match(min(records, key=lambda record: _off(record, memory_bytes)))
    note = Message.of(
        "catalog.shared-name",
        text=brief(text),
        taken=records[0].id,
        others=[record.id for record in records[1:]],
    )
    return Match(records[0], note)


def _off(record: GpuRecord, memory_bytes: float) -> float:
    """Return how far the record's memory is from what the driver reports."""
    total = record.nvml_total_bytes or record.memory_bytes
    return abs(total.value - memory_bytes)


def brief(text: str) -> str:
    """Return what somebody typed as an error may quote it."""
    text = " ".join(text.split())
    return text if len(text) <= 60 else text[:59] + "…"


def _hint(text: str) -> Message:
    if near := nearest_gpus(text):
        return Message.of("catalog.hint-nearest", candidates=list(near))
    return Message.of("catalog.hint-list")


def nearest_gpus(text: str) -> tuple[str, ...]:
    """Return ids of the GPUs whose names are nearest to a text, best first."""
    known = catalog()
    keys = get_close_matches(name_key(text), known.keys, n=8, cutoff=0.6)
    return tuple(dict.fromkeys(id for key in keys for id in known.named(key)))[:4]


def list_gpus(
    text: str = "",
    *,
    vendor: str | None = None,
    segment: str | None = None,
    min_memory_bytes: float = 0,
    sort: SortKey = "name",
) -> tuple[GpuRecord, ...]:
    """Return the GPUs that match every word of the text, sorted.

    Words are matched against names, aliases, vendor, architecture and chip, in English or
    Korean. All keys but ``name`` put the largest, or newest, first; GPUs that lack the
    value come last.
    """
    known = catalog()
    words = [name_key(word) for word in text.split()]
    found = [
        record
        for record in map(known.record, known.ids)
        if (vendor is None or record.vendor == vendor)
        and (segment is None or record.segment == segment)
        and record.memory_bytes.value >= min_memory_bytes
        and all(word in _searched(record) for word in words)
    ]
    found.sort(key=_natural)
    if sort != "name":
        found.sort(key=lambda record: _sort_value(record, sort), reverse=True)
    return tuple(found)


def _searched(record: GpuRecord) -> str:
    names = (record.name, *record.aliases, *record.shared_names)
    plain = (record.vendor, record.architecture, record.chip or "", record.segment, record.id)
    keys = [name_key(name) for name in (*names, *plain)]
    return " ".join((*keys, *(text.casefold() for text in (*names, *plain))))


def _natural(record: GpuRecord) -> tuple[str, str]:
    return record.vendor, record.name.casefold()


def _sort_value(record: GpuRecord, sort: SortKey) -> tuple[bool, float | str]:
    fact: Fact | None
    match sort:
        case "launch":
            return record.launch is not None, record.launch or ""
        case "memory":
            fact = record.memory_bytes
        case "bandwidth":
            fact = record.bandwidth_bytes_per_s
        case "speed":
            fact = peak_flops(record, "bf16-mixed") or peak_flops(record, "fp16-mixed")
        case _:
            fact = record.tdp_w
    return fact is not None, fact.value if fact else 0.0
