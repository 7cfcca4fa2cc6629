"""Quantities as people read them: value and unit apart, and a sentence for screen readers."""

from dataclasses import dataclass

from trainwright.explain import Kind, Quantity, Unit
from trainwright.explain.figures import source
from trainwright.messages.units import count, duration, durations, memory_units, number, percent
from trainwright.ui.i18n import language, say, tr


@dataclass(frozen=True, slots=True)
class Figure:
    """A value and its unit; the unit is painted lighter."""

    value: str
    unit: str = ""

    def __str__(self) -> str:
        return f"{self.value} {self.unit}" if self.unit else self.value


_RATES = {
    Unit.REQUESTS_PER_SECOND: "ui.unit.requests-per-second",
    Unit.SAMPLES_PER_SECOND: "ui.unit.samples-per-second",
    Unit.TOKENS_PER_SECOND: "ui.unit.tokens-per-second",
}


def figure(quantity: Quantity) -> Figure:
    """Return a quantity's figure; an estimate leads with a tilde, an assumption with ≈."""
    plain = bare(quantity.value, quantity.unit)
    lead = {Kind.ESTIMATED: "~", Kind.ASSUMED: "≈"}.get(quantity.kind, "")
    return Figure(lead + plain.value, plain.unit)


def bare(value: float, unit: Unit) -> Figure:
    """Return a figure without a sign of how it is known."""
    match unit:
        case Unit.BYTES:
            return memory(value)
        case Unit.SECONDS:
            return Figure(duration(value, language()))
        case Unit.RATIO:
            return Figure(percent(value))
        case Unit.COUNT:
            return Figure(number(value) if abs(value) < 1e7 else count(value, language()))
        case Unit.WATTS:
            return Figure(number(round(value)), "W")
        case Unit.BYTES_PER_SECOND:
            return bytes_per_second(value)
        case Unit.FLOP_PER_SECOND:
            if 0 < abs(value) < 1e11:
                return Figure(three(value / 1e9), "GFLOP/s")
            return Figure(three(value / 1e12), "TFLOP/s")
        case Unit.FLOP:
            giga = abs(value) < 1e11
            return Figure(f"{value / (1e9 if giga else 1e12):.3g}", "GFLOP" if giga else "TFLOP")
    return Figure(three(value), tr(_RATES[unit]))


def memory(value: float) -> Figure:
    """Return bytes in GiB, or in a smaller unit where GiB would say nothing."""
    (giga, name), (mega, small), (kilo, least) = memory_units()
    size = abs(value)
    sign = "−" if value < 0 else ""
    if 0 < size < mega:
        return Figure(f"{sign}{size / kilo:.3g}", least)
    if 0 < size < giga / 20:
        return Figure(f"{sign}{size / mega:.3g}", small)
    digits = 1 if size >= 10 * giga else 2
    return Figure(f"{sign}{size / giga:.{digits}f}", name)


def bytes_per_second(value: float) -> Figure:
    """Return a rate as data sheets have it, in MB/s where GB/s would say little."""
    if abs(value) < 1e9:
        return Figure(f"{value / 1e6:.3g}", "MB/s")
    giga = value / 1e9
    return Figure(number(round(giga)) if giga >= 10 else f"{giga:.3g}", "GB/s")


def giga() -> float:
    """Return the bytes of the unit in which charts show memory."""
    return memory_units()[0][0]


def unit_of_memory() -> str:
    """Return the name of that unit: GiB, or GB where a person set it."""
    return memory_units()[0][1]


def gib(value: float) -> str:
    """Return bytes as a number of GiB, for charts whose unit stands in the heading."""
    size = abs(value) / giga()
    digits = 1 if size >= 10 else 2
    return f"{'−' if value < 0 else ''}{size:.{digits}f}"


def three(value: float) -> str:
    """Return three figures, thousands apart."""
    return number(value) if abs(value) >= 1000 else f"{value:#.3g}".rstrip(".")


def signed(value: float) -> str:
    """Return a change of memory with its sign."""
    return ("+" if value >= 0 else "−") + str(memory(abs(value)))


def span(low: float, high: float, unit: Unit) -> str:
    """Return an interval; the unit stands once where both ends share it."""
    if unit is Unit.SECONDS:
        return " – ".join(durations(low, high, language()))
    first, last = bare(low, unit), bare(high, unit)
    if first.unit and first.unit == last.unit:
        return f"{first.value} – {last}"
    return f"{first} – {last}"


def sourced(quantity: Quantity) -> str:
    """Return where a figure comes from; empty where nobody says."""
    return source(quantity.source, language())


def sentence(quantity: Quantity) -> str:
    """Return what a screen reader says: name, how it is known, value."""
    return tr(
        "ui.figure.spoken",
        name=say(quantity.name),
        kind=tr(f"ui.kind.{quantity.kind.value}"),
        value=str(bare(quantity.value, quantity.unit)),
    )
