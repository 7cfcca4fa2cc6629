"""``trainwright catalog prices``: what a person knows parts to cost, and what is counted by it."""

from datetime import date
from typing import TYPE_CHECKING, Any, get_args

import click

from trainwright.catalog import PartKind, find_part
from trainwright.cli import options
from trainwright.cli.answer import Answer, Exit
from trainwright.cli.parsing import Command, Group, option
from trainwright.messages import Message, UserError, render
from trainwright.messages.units import FORMATS
from trainwright.prices import (
    Asked,
    Condition,
    Currency,
    Freshness,
    Observation,
    Price,
    PriceKind,
    Rate,
    abroad,
    exchange,
    freshness_of_own,
    own_prices,
    part_kind,
    price_book,
    price_of,
)
from trainwright.prices.imports import (
    Preview,
    Previewed,
    Refused,
    parse,
    preview,
    read_file,
    waiting,
)
from trainwright.prices.imports.matching import matcher
from trainwright.prices.shipped import Part

if TYPE_CHECKING:
    from trainwright.cli.screen import Screen

SHOWN = 200
"""Rows that are printed; ``--json`` holds them all. Assumed, what a person reads."""


_CURRENCIES = click.Choice(get_args(Asked), case_sensitive=False)
_CONDITIONS = click.Choice(get_args(Condition))


@click.group("prices", cls=Group, invoke_without_command=True, help="cli.catalog.prices")
@options.common
@click.pass_context
def prices_command(context: click.Context) -> Answer | None:
    """List the prices kept where no sub-command is named."""
    return None if context.invoked_subcommand else _listed(())


@prices_command.command("list", cls=Command, help="cli.prices.list")
@click.argument("words", nargs=-1, metavar="[WORDS]...")
@options.common
def list_command(words: tuple[str, ...]) -> Answer:
    """List the prices kept whose part, seller or name holds every word."""
    return _listed(words)


@prices_command.command("show", cls=Command, help="cli.prices.show")
@click.argument("name", metavar="PART")
@option("--kind", "of", type=click.Choice(get_args(PartKind)), help="cli.prices.of")
@option("--accept-expired", is_flag=True, help="cli.prices.accept-expired")
@options.common
def show_command(name: str, of: PartKind | None, accept_expired: bool) -> Answer:
    """Show what a part is taken to cost, new and used, in both currencies."""
    part = _part(name, of)
    book = price_book(accept_expired=accept_expired)
    found = [
        price
        for used in (False, True)
        for currency in get_args(Currency)
        if (price := price_of(part, book, currency, used=used)) is not None
    ]

    def show(screen: "Screen") -> None:
        screen.line(f"{part.name} ({part.id})", "bold")
        screen.table(
            [_price_row(price, screen) for price in found],
            headings=_headings("condition", "expected", "interval", "known", "date", "source"),
            numbers=(1, 2),
        )
        if not found:
            screen.say("prices.none", part=part.name)

    document = {"part": part.id, "kind": part_kind(part), "prices": [price_json(p) for p in found]}
    return Answer(document, show, Exit.DONE if found else Exit.NO)


@prices_command.command("add", cls=Command, help="cli.prices.add")
@click.argument("name", metavar="PART")
@click.argument("amount", metavar="AMOUNT")
@option(
    "--currency",
    type=_CURRENCIES,
    help="cli.prices.currency",
)
@option(
    "--condition",
    "state",
    type=click.Choice(get_args(Condition)),
    default="new",
    help="cli.prices.state",
)
@option("--kind", type=click.Choice(get_args(PriceKind)), help="cli.prices.kind")
@option("--part-kind", "of", type=click.Choice(get_args(PartKind)), help="cli.prices.of")
@option("--date", "day", metavar="DATE", default="", help="cli.prices.day")
@option("--valid-until", metavar="DATE", default="", help="cli.prices.valid-until")
@option("--region", metavar="US|KR", default="", help="cli.prices.region")
@option("--seller", metavar="NAME", default="", help="cli.prices.seller")
@option("--tax-included/--tax-excluded", "taxed", default=None, help="cli.prices.tax")
@option("--shipping", metavar="AMOUNT", default="", help="cli.prices.shipping")
@options.common
def add_command(name: str, amount: str, of: PartKind | None, **given: Any) -> Answer:
    """Keep one price that the person saw."""
    part = _part(name, of)
    seen = _observation(part, amount, given, date.today())
    note = own_prices.add([seen]).note

    def show(screen: "Screen") -> None:
        if note is not None:
            screen.line(note)
        screen.say(
            "prices.added",
            part=part.name,
            price=money(seen.amount, seen.currency),
            file=str(own_prices.path()),
        )

    return Answer({"added": own_prices.as_json([seen])[0]}, show)


@prices_command.command("import", cls=Command, help="cli.prices.import")
@click.argument("file", metavar="FILE")
@option("--keep", is_flag=True, help="cli.prices.keep")
@option("--choose", "choices", multiple=True, metavar="LINE=ID", help="cli.prices.choose")
@options.common
def import_command(file: str, keep: bool, choices: tuple[str, ...]) -> Answer:
    """Show what a list would add; keep it where that is asked for."""
    found = preview(read_file(file, date.today()))
    found = found.chosen(dict(choice_of(found, text) for text in choices))
    observations = found.observations()
    before = len(own_prices.load().observations)
    added = len(own_prices.add(observations).observations) - before if keep else 0
    unplaced = found.unplaced()
    if keep:
        waiting.add(unplaced)

    def show(screen: "Screen") -> None:
        show_rows(screen, found)
        screen.line(Message("prices.counts", {str(state): n for state, n in found.counts.items()}))
        if found.older:
            screen.say("prices.older", count=found.older)
        if keep:
            screen.say("prices.kept", count=added, known=len(observations) - added)
            if unplaced:
                screen.say("prices.waiting.added", count=len(unplaced))
        elif observations:
            screen.say("prices.keep-them", count=len(observations))

    document = {
        "file": found.name,
        "counts": found.counts,
        "rows": [row_json(row) for row in found.rows],
        "older": found.older,
        "kept": added,
        "waiting": len(unplaced) if keep else 0,
    }
    return Answer(document, show, Exit.DONE if observations else Exit.NO)


def show_rows(screen: "Screen", found: Preview) -> None:
    """Print the rows of a list with their states."""
    names = ("line", "name", "price", "row-state", "part")
    screen.table(
        [_preview_row(row, screen) for row in found.rows[:SHOWN]],
        headings=[Message.of(f"cli.prices.{name}") for name in names],
        numbers=(0, 2),
    )
    if len(found.rows) > SHOWN:
        screen.say("prices.more-rows", count=len(found.rows) - SHOWN)


@prices_command.command("withdraw", cls=Command, help="cli.prices.withdraw")
@click.argument("name", metavar="PART")
@option("--kind", "of", type=click.Choice(get_args(PartKind)), help="cli.prices.of")
@option("--date", "day", metavar="DATE", default="", help="cli.prices.withdraw-day")
@options.common
def withdraw_command(name: str, of: PartKind | None, day: str) -> Answer:
    """Take back prices of a part, those of one day or all."""
    part, on = _part(name, of), parse.day(day)
    gone = [
        one
        for one in own_prices.load().observations
        if (one.part_kind, one.part) == (part_kind(part), part.id) and on in (None, one.observed)
    ]
    own_prices.withdraw(gone)

    def show(screen: "Screen") -> None:
        screen.say("prices.withdrawn", count=len(gone), part=part.name)

    return Answer({"withdrawn": own_prices.as_json(gone)}, show, Exit.DONE if gone else Exit.NO)


@prices_command.command("fx", cls=Command, help="cli.prices.fx")
@click.argument("rate", type=float, required=False, metavar="[KRW_PER_USD]")
@option("--date", "day", metavar="DATE", default="", help="cli.prices.day")
@option("--forget", is_flag=True, help="cli.prices.forget")
@options.common
def fx_command(rate: float | None, day: str, forget: bool) -> Answer:
    """Set, forget or show what a US dollar costs in won."""
    today = date.today()
    if forget:
        exchange.forget()
    elif rate is not None:
        exchange.keep(Rate(rate, parse.day(day, before=today) or today), today)
    known, wrong = exchange.load()

    def show(screen: "Screen") -> None:
        if wrong is not None:
            screen.line(wrong)
        screen.line(rate_line(known))

    return Answer({"rate": rate_json(known)}, show)


def money(amount: float, currency: Asked) -> str:
    """Return an amount with its currency: won and yen without decimals, others with any cents."""
    if currency in ("KRW", "JPY") or float(amount).is_integer():
        return f"{FORMATS['num'](round(amount), 'en')}\u00a0{currency}"
    return f"{amount:,.2f}\u00a0{currency}"


def rate_line(rate: Rate | None) -> Message:
    """Return the sentence that says which rate converts prices, if any does."""
    if rate is None:
        return Message.of("prices.no-rate")
    return Message.of("prices.rate", rate=rate.krw_per_usd, date=rate.observed.isoformat())


def rate_json(rate: Rate | None) -> dict[str, Any] | None:
    """Return a rate as plain data."""
    if rate is None:
        return None
    return {"krw_per_usd": rate.krw_per_usd, "date": rate.observed.isoformat()}


def price_json(price: Price) -> dict[str, Any]:
    """Return a price as plain data."""
    return {
        "low": price.low,
        "expected": price.expected,
        "high": price.high,
        "currency": price.currency,
        "kind": price.kind,
        "condition": price.condition,
        "date": price.observed.isoformat() if price.observed else None,
        "freshness": price.freshness,
        "region": price.region,
        "tax": price.tax,
        "n": price.n,
        "source": price.source,
        "basis": price.basis,
        "rate": rate_json(price.rate),
        "asked_in": price.asked_in,
    }


def _listed(words: tuple[str, ...]) -> Answer:
    book = price_book()
    states = freshness_of_own(book)
    found = [one for one in states if all(word.casefold() in _searched(one) for word in words)]
    found.sort(key=lambda one: (one.part_kind, one.part, one.observed))

    def show(screen: "Screen") -> None:
        for note in book.notes:
            screen.line(note)
        if found:
            screen.table(
                [_listed_row(one, states[one]) for one in found[:SHOWN]],
                headings=[
                    Message.of(f"cli.prices.{name}")
                    for name in (
                        "part",
                        "price",
                        "condition",
                        "known",
                        "date",
                        "age",
                        "seller-heading",
                    )
                ],
                numbers=(1,),
            )
        if len(found) > SHOWN:
            screen.say("prices.more-rows", count=len(found) - SHOWN)
        screen.say("prices.listed", count=len(found))
        screen.line(rate_line(book.rate))

    document = {
        "prices": [
            entry | {"freshness": states[one]}
            for one, entry in zip(found, own_prices.as_json(found), strict=True)
        ],
        "rate": rate_json(book.rate),
        "file": str(own_prices.path()),
        "notes": [render(note, "en") for note in book.notes],
    }
    return Answer(document, show)


def _searched(one: Observation) -> str:
    return (
        f"{one.part_kind} {one.part} {one.seller} {one.name} {one.kind} {one.condition}".casefold()
    )


def _listed_row(one: Observation, freshness: Freshness) -> tuple[str | Message, ...]:
    return (
        one.part,
        money(one.amount, one.currency),
        Message.of(f"prices.condition.{one.condition}"),
        Message.of(f"prices.kind.{one.kind}"),
        one.observed.isoformat(),
        Message.of(f"prices.freshness.{freshness}"),
        one.seller or "–",
    )


def _headings(*names: str) -> list[Message]:
    return [Message.of(f"cli.prices.{name}") for name in names]


def _price_row(price: Price, screen: "Screen") -> tuple[str | Message, ...]:
    known = screen.text(Message.of(f"prices.kind.{price.kind}"))
    if price.rate is not None:
        known += ", " + screen.text(Message.of("prices.converted"))
    if price.asked_in is not None:
        market = abroad.MARKETS[price.asked_in]
        values = {"currency": price.asked_in, "usd": market.usd, "date": abroad.ASSUMED.isoformat()}
        known += ", " + screen.text(Message.of("prices.abroad", **values))
    return (
        Message.of(f"prices.condition.{price.condition}"),
        money(price.expected, price.currency),
        f"{money(price.low, price.currency)} – {money(price.high, price.currency)}",
        known,
        price.observed.isoformat() if price.observed else "–",
        price.source or "–",
    )


def _preview_row(row: Previewed, screen: "Screen") -> tuple[str | Message, ...]:
    if isinstance(row.read, Refused):
        return str(row.line), row.read.text, "–", _state(row), row.read.reason
    verdict = row.verdict
    part = verdict.part.id if verdict.part else ", ".join(one.id for one in verdict.candidates)
    return (
        str(row.line),
        row.read.name,
        money(row.read.amount, row.read.currency),
        _state(row),
        part or "–",
    )


def _state(row: Previewed) -> Message:
    by_words = row.state == "matched" and row.verdict.how == "words"
    return Message.of("prices.state.by-words" if by_words else f"prices.state.{row.state}")


def row_json(row: Previewed) -> dict[str, Any]:
    """Return a row of a list as plain data."""
    verdict, seen = row.verdict, row.observation("import")
    document: dict[str, Any] = {"line": row.line, "state": row.state}
    if isinstance(row.read, Refused):
        return document | {"text": row.read.text, "reason": render(row.read.reason, "en")}
    return document | {
        "name": row.read.name,
        "amount": row.read.amount,
        "currency": row.read.currency,
        "quantity": row.read.quantity,
        "part": verdict.part.id if verdict.part else None,
        "how": verdict.how,
        "candidates": [one.id for one in verdict.candidates],
        "price": own_prices.as_json([seen])[0] if seen else None,
    }


def _part(name: str, of: PartKind | None) -> Part:
    """Return the part of a name, of a kind where it is told.

    Raises:
        UserError: none, or several.
    """
    if of is not None:
        return find_part(of, name)
    verdict = matcher().match(name)
    if verdict.part is not None:
        return verdict.part
    if verdict.candidates:
        raise UserError.of(
            "prices.several", name=name, parts=[one.id for one in verdict.candidates]
        )
    raise UserError.of("prices.no-such-part", name=name)


def _observation(part: Part, amount: str, given: dict[str, Any], today: date) -> Observation:
    paid, told = parse.money(amount)
    currency: Asked | None = given["currency"] or told
    if currency is None or (told and told != currency):
        raise UserError.of("prices.which-currency", text=amount)
    condition: Condition = given["state"]
    used = condition in ("used", "refurbished")
    tax = {True: "included", False: "excluded", None: "unknown"}[given["taxed"]]
    return parse.observation(
        part_kind=part_kind(part),
        part=part.id,
        amount=paid,
        currency=currency,
        kind=given["kind"] or ("used" if used else "new"),
        observed=parse.day(given["day"], before=today) or today,
        condition=condition,
        region=given["region"].upper(),
        tax=tax,
        shipping=parse.money(given["shipping"])[0] if given["shipping"] else None,
        seller=given["seller"],
        valid_until=parse.day(given["valid_until"]),
        source="by hand",
    )


def choice_of(found: Preview, text: str) -> tuple[int, Part]:
    """Return which row is meant, and the part that its person chose for it.

    Raises:
        UserError: no such line, or no such part.
    """
    line, _, id = text.partition("=")
    at = [index for index, row in enumerate(found.rows) if str(row.line) == line.strip()]
    if not at or isinstance(found.rows[at[0]].read, Refused):
        raise UserError.of("prices.no-such-line", text=text)
    if len(at) > 1:
        raise UserError.of("prices.several-on-line", line=line)
    return at[0], _part(id.strip(), None)
