"""Builds as plain data: the contract of ``build --json``."""

from typing import Any

from trainwright.build.answer import Builds, Candidate, Done, Part
from trainwright.build.cost import RunCost, break_even_hours, run_cost
from trainwright.build.upgrades import Upgrades
from trainwright.messages import Language, Message, render
from trainwright.plan import report
from trainwright.prices import Currency, Price


def as_json(found: Builds, language: Language = "en") -> dict[str, Any]:
    """Return the answer as plain data; a price that is not known is None, never 0."""
    return {
        "builds": [candidate_as_json(one, language) for one in found.builds],
        "cheapest": candidate_as_json(found.cheapest, language) if found.cheapest else None,
        "budget": (
            {"amount": found.budget.amount, "currency": found.budget.currency}
            if found.budget
            else None
        ),
        "front": [
            {
                "gpu": point.gpu,
                "count": point.count,
                "price": point.price,
                "seconds": point.seconds,
                "watts": point.watts,
                "within_budget": point.within,
            }
            for point in found.front
        ],
        "considered": found.considered,
        "notes": [render(note, language) for note in found.notes],
    }


def candidate_as_json(one: Candidate, language: Language = "en") -> dict[str, Any]:
    """Return one computer as plain data."""
    step = one.next_step
    several = {"workloads": [_done(done) for done in one.works]} if one.others else {}
    return several | {
        "parts": [_part(part) | {"why": _said(part.why, language)} for part in one.parts],
        "total": one.total.expected,
        "total_interval": [one.total.low, one.total.high],
        "currency": one.total.currency,
        "unpriced": list(one.total.unpriced),
        "estimate": report.as_json(one.report),
        "settings": one.settings.model_dump(mode="json"),
        "checks": [
            {
                "rule": check.rule,
                "verdict": check.verdict,
                "because": render(check.message, language),
                "remedy": render(check.remedy, language) if check.remedy else None,
                "source": check.source,
                "missing": list(check.missing),
            }
            for check in one.checks
        ],
        "watts": {"dc": one.dc_watts, "wall": one.wall_watts},
        "bottleneck": render(one.bottleneck, language),
        "next_step": (
            {
                "change": render(step.change, language),
                "more": step.more,
                "price": step.price,
                "gain": step.gain,
                "worth": step.worth,
            }
            if step
            else None
        ),
        "doubt": _said(one.doubt, language),
        "thrift": _said(one.thrift, language),
        "run": run_as_json(cost_of(one)),
    }


def _said(message: Message | None, language: Language) -> str | None:
    return None if message is None else render(message, language)


def _done(done: Done) -> dict[str, Any]:
    run = done.run
    return {
        "name": done.plan.name,
        "times": done.times,
        "runs_seconds": run.value if run is not None else None,
        "settings": done.report.settings.model_dump(mode="json"),
        "estimate": report.as_json(done.report),
    }


def cost_of(one: Candidate, **rates: float) -> RunCost | None:
    """Return what all runs cost; None where nobody says how long they are."""
    run = one.run
    currency: Currency = one.total.currency
    return None if run is None else run_cost(one.wall_watts, run.value / 3600, currency, **rates)


def run_as_json(cost: RunCost | None, cloud: float | None = None, capital: float = 0.0) -> Any:
    """Return the cost of a run as plain data, with the break-even against a cloud's rate."""
    if cost is None:
        return None
    found: dict[str, Any] = {
        "hours": cost.hours,
        "kwh": cost.kwh,
        "energy": cost.energy,
        "currency": cost.currency,
    }
    if cloud is not None:
        found["cloud"] = cloud * cost.hours
        found["break_even_hours"] = break_even_hours(capital, cloud, cost.per_hour)
    return found


def _part(part: Part) -> dict[str, Any]:
    return {
        "kind": part.kind,
        "id": part.id,
        "name": part.name,
        "count": part.count,
        "price": part.price.expected if part.price else None,
        "price_details": price_as_json(part.price),
        "owned": part.owned,
    }


def price_as_json(price: Price | None) -> dict[str, Any] | None:
    """Return the price of one piece with everything that it holds for."""
    if price is None:
        return None
    return {
        "low": price.low,
        "expected": price.expected,
        "high": price.high,
        "currency": price.currency,
        "kind": price.kind,
        "condition": price.condition,
        "observed": price.observed.isoformat() if price.observed else None,
        "source": price.source,
    }


def upgrades_as_json(found: Upgrades, language: Language = "en") -> dict[str, Any]:
    """Return upgrades as plain data; ``do_nothing`` where the work runs and nothing pays."""
    return {
        "upgrades": [
            {
                "kind": one.kind,
                "kinds": list(one.kinds),
                "change": render(one.change, language),
                "parts": [_part(part) for part in one.parts],
                "along": list(one.along),
                "freed": [_part(part) for part in one.freed],
                "replaced": render(one.replaced, language) if one.replaced else None,
                "idle": render(one.idle, language) if one.idle else None,
                "resale": one.resale.low if one.resale else None,
                "total": one.total.expected,
                "total_interval": [one.total.low, one.total.high],
                "currency": one.total.currency,
                "gain": one.gain,
                "newly_fits": one.gain is None,
                "estimate": report.as_json(one.report),
                "checks": [
                    {
                        "rule": check.rule,
                        "verdict": check.verdict,
                        "because": render(check.message, language),
                    }
                    for check in one.checks
                ],
            }
            for one in found.upgrades
        ],
        "do_nothing": found.before is not None and not found.upgrades,
        "declined": [
            {"kind": one.kind, "because": render(one.reason, language)} for one in found.declined
        ],
        "before": report.as_json(found.before) if found.before is not None else None,
        "notes": [render(note, language) for note in found.notes],
    }
