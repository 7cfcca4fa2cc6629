"""What is short where no computer within the budget does the work, and the cheapest ways out."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

from trainwright.advise.relax import fewer_bits, smaller_tasks
from trainwright.build.answer import Builds, Candidate
from trainwright.build.money import amount
from trainwright.build.offers import Market
from trainwright.build.request import Request, Wishes
from trainwright.build.speeds import COUNTS, Cards
from trainwright.build.tracing import Trace, at_hand
from trainwright.build.works import Works
from trainwright.messages import Message

Lowest = Callable[[Request], Candidate | None]
"""Returns the cheapest computer for another request, whatever the budget."""
_FREE = Wishes()
_WISHES = ("quiet", "form", "power_w", "gpus", "circuit")
"""That rule computers out."""


def shortfall(
    found: Builds,
    request: Request,
    market: Market,
    works: Works,
    lowest: Lowest,
    trace: Trace | None,
) -> Iterator[Message]:
    """Yield how much is missing and why, and what each wish given up would save."""
    least, budget = found.cheapest, request.budget
    if least is not None and budget is not None and least.total.expected is not None:
        cards = sum(
            part.price.expected * (part.count - part.owned)
            for part in least.parts
            if part.kind == "gpu" and part.price is not None
        )
        yield Message.of(
            "planner.short.money",
            more=amount(found.currency, least.total.expected - budget.amount),
            cards=amount(found.currency, cards),
            rest=amount(found.currency, least.total.expected - cards),
            **_named(least),
        )
    if least is None:
        yield from _too_large(request, market, works)
    limit = least.total.expected if least is not None else None
    for way, values, asked in _ways(request):
        if asked.plan is not request.plan and not at_hand(asked.plan, trace):
            yield Message.of(f"planner.untraced.{way}", **values)
            continue
        yield from _cheaper(way, values, lowest(asked), limit)
    yield from _in_fewer_bits(request, lowest, trace, limit)


def without_a_wish(request: Request, found: Builds, lowest: Lowest) -> Iterator[Message]:
    """Yield what each wish given up would save where only complete computers do the work."""
    if any(one.build.board is not None for one in found.builds):
        return
    limit = found.budget.amount if found.budget is not None else None
    for way, values, asked in _ways(request):
        if asked.plan is request.plan:
            yield from _cheaper(way, values, lowest(asked), limit)


def _cheaper(
    way: str, values: dict[str, object], one: Candidate | None, limit: float | None
) -> Iterator[Message]:
    """Yield what a computer costs that does something else, where that is less."""
    cost = one.total.expected if one is not None else None
    if one is not None and cost is not None and cost < (limit or math.inf):
        price = amount(one.total.currency, cost)
        yield Message.of(f"planner.way.{way}", price=price, **values, **_named(one))


def _in_fewer_bits(
    request: Request, lowest: Lowest, trace: Trace | None, limit: float | None
) -> Iterator[Message]:
    """Yield what serving costs with as many bits a weight as the budget reaches, else the least."""
    budget = request.budget.amount if request.budget is not None else math.inf
    best: Candidate | None = None
    for plan in fewer_bits(request.plan):
        one = lowest(replace(request, plan=plan)) if at_hand(plan, trace) else None
        cost = one.total.expected if one is not None else None
        if cost is not None and (best is None or cost < (best.total.expected or math.inf)):
            best = one
        if cost is not None and cost <= budget:
            break
    if best is not None:
        values: dict[str, object] = {"value": best.settings.quantization}
        yield from _cheaper("bits", values, best, limit)


def surer(found: Builds, request: Request, lowest: Lowest) -> Iterator[Message]:
    """Yield what is next to cards or parts of which less is known: used ones, or more money."""
    least, budget = found.cheapest, found.budget
    if not request.wishes.used:
        used = lowest(replace(request, wishes=replace(request.wishes, used=True)))
        cost = used.total.expected if used is not None else None
        if used is not None and cost is not None and (budget is None or cost <= budget.amount):
            yield Message.of("planner.way.used", price=amount(found.currency, cost), **_named(used))
    if least is not None and budget is not None and least.total.expected is not None:
        price, more = least.total.expected, least.total.expected - budget.amount
        yield Message.of(
            "planner.note.surer",
            price=amount(found.currency, price),
            more=amount(found.currency, more),
            **_named(least),
        )


def _ways(request: Request) -> Iterator[tuple[str, dict[str, object], Request]]:
    """Yield requests that cost less: used parts, no more of a wish, less trained at once."""
    wishes = request.wishes
    if not wishes.used:
        yield "used", {}, replace(request, wishes=replace(wishes, used=True))
    for name in _WISHES:
        free = getattr(_FREE, name)
        if getattr(wishes, name) != free:
            yield name, {}, replace(request, wishes=replace(wishes, **{name: free}))
    for plan in list(smaller_tasks(request.plan))[-1:]:  # the cheapest to run
        yield "task", {"task": plan.workload.task}, replace(request, plan=plan)


def _too_large(request: Request, market: Market, works: Works) -> Iterator[Message]:
    """Yield how much memory the largest cards lack."""
    largest = max(market.cards(), key=lambda one: one.memory_bytes.value, default=None)
    if largest is None:
        return
    cards = Cards(largest, request.wishes.gpus or COUNTS[-1])
    for speeds, _, _ in works.each:
        if speeds.quick(cards) is not None:
            continue
        short, shared = speeds.shortage(cards)
        if short:
            id = "planner.short.memory" if shared or cards.count == 1 else "planner.short.copies"
            yield Message.of(id, gpu=largest.name, count=cards.count, short=short)


def _named(one: Candidate) -> dict[str, object]:
    return {"gpu": one.build.gpus[0].record.name, "count": one.build.gpu_count}
