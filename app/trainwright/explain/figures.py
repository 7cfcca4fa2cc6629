"""Quantities as text: a readable unit, and a mark that says how the value is known."""

from trainwright.explain.quantity import Kind, Quantity, Unit
from trainwright.messages import Language, Message, render
from trainwright.messages.units import FORMATS, MIB, durations

_MARKED = {
    Kind.ESTIMATED: "~{}",
    Kind.MEASURED: "● {}",
    Kind.QUOTED: "“{}”",
    Kind.YOURS: "{}",
    Kind.ASSUMED: "≈{}",
}
_SPEC = {
    Unit.BYTES: "gib",
    Unit.SECONDS: "duration",
    Unit.RATIO: "percent",
    Unit.COUNT: "num",
    Unit.FLOP: "si",
    Unit.FLOP_PER_SECOND: "si",
    Unit.BYTES_PER_SECOND: "si",
    Unit.REQUESTS_PER_SECOND: "num",
    Unit.SAMPLES_PER_SECOND: "num",
    Unit.TOKENS_PER_SECOND: "num",
    Unit.WATTS: "num",
}
_WITH_UNIT = {
    Unit.FLOP: "cli.unit.flop",
    Unit.FLOP_PER_SECOND: "cli.unit.flop-per-second",
    Unit.BYTES_PER_SECOND: "cli.unit.bytes-per-second",
    Unit.REQUESTS_PER_SECOND: "cli.unit.requests-per-second",
    Unit.SAMPLES_PER_SECOND: "cli.unit.samples-per-second",
    Unit.TOKENS_PER_SECOND: "cli.unit.tokens-per-second",
    Unit.WATTS: "cli.unit.watts",
}


def plain(value: float, unit: Unit, language: Language) -> str:
    """Return a value in a readable unit."""
    if unit is Unit.BYTES and 0 < value < MIB:
        return "<1 MiB"
    text = FORMATS[_SPEC[unit]](value, language)
    if unit in _WITH_UNIT:
        return render(Message.of(_WITH_UNIT[unit], value=text), language)
    return text


def figure(quantity: Quantity, language: Language) -> str:
    """Return the value, marked: ``~`` estimated, ``●`` measured, quotes quoted, ``≈`` assumed."""
    return _MARKED[quantity.kind].format(plain(quantity.value, quantity.unit, language))


def interval(quantity: Quantity, language: Language) -> str:
    """Return ``low – high`` of the interval, or nothing where there is none."""
    if quantity.interval is None:
        return ""
    bounds = quantity.interval.low, quantity.interval.high
    if quantity.unit is Unit.SECONDS:
        low, high = durations(*bounds, language)
    elif quantity.unit in _WITH_UNIT:
        low, high = (FORMATS[_SPEC[quantity.unit]](bound, language) for bound in bounds)
        return render(Message.of(_WITH_UNIT[quantity.unit], value=f"{low} – {high}"), language)
    else:
        low, high = (plain(bound, quantity.unit, language) for bound in bounds)
    return f"{low} – {high}"


_IN_WORDS = {
    "trace": "cli.source.trace",
    "spread of the whole": "cli.source.spread",
    "fitted on 53 public readings of 25 GPUs": "cli.source.context",
    "assumed: display server and a desktop; 0 when headless": "cli.source.desktop",
    "replay of torch": "cli.source.replay",
    "assumed: the smallest configuration that is sold": "cli.source.smallest",
    "as the drives of that kind in the catalog": "cli.source.drives",
}
"""How sources begin that are words of ours; all others name a file, a paper or a product."""


def source(text: str, language: Language) -> str:
    """Return a source in a language: our words are translated, names stay."""
    for start, id in _IN_WORDS.items():
        if text == start or text.startswith((f"{start}:", f"{start} (")):
            names = text.partition(": ")[2] if start == "replay of torch" else ""
            return render(Message.of(id, names=names), language)
    return text
