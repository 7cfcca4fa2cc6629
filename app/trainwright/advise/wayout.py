"""One way out: the plan that it leads to, and all that it changes of the one before."""

from typing import Any

from trainwright.advise.advice import Relaxation
from trainwright.advise.reasons import reasons
from trainwright.advise.search import Search
from trainwright.advise.space import SAVERS
from trainwright.advise.taking import with_settings
from trainwright.advise.walk import Timed
from trainwright.messages import Message
from trainwright.plan.report import Report
from trainwright.plan.schema import Plan
from trainwright.workload import FullSettings
from trainwright.workload.meaning import meaningful
from trainwright.workload.settings import Effect, Loader

Answer = tuple[Search, Timed, Report]
OPENED = ("micro_batch", "accumulation", *SAVERS)
"""What is left open where nothing fits as it is fixed."""


def way_out(
    change: Message,
    asked: Plan,
    before: Search,
    answer: Answer,
    effect: Effect,
    *,
    buys: bool = False,
) -> Relaxation:
    """Return a way out, with all that it changes."""
    search, timed, report = answer
    asked = _fixed_still(asked, before.plan, report.settings)
    plan = with_settings(asked, report.settings, reasons(search, timed, report))
    return Relaxation(
        change=change,
        plan=plan,
        changes=changes(before.plan, before.facts.settings, plan, report.settings),
        effect=max(effect, timed.candidate.effect),
        estimate=report,
        buys=buys,
    )


def changes(plan: Plan, settings: FullSettings, after: Plan, taken: FullSettings) -> dict[str, Any]:
    """Return every dotted key that becomes different, with its new value."""
    found: dict[str, Any] = {}
    for section in ("model", "workload", "machine"):
        old, new = (getattr(one, section).model_dump(mode="json") for one in (plan, after))
        found |= _different(section, old, new)
    old, new = (_by_key(meaningful(one, after.workload)) for one in (settings, taken))
    fixed = plan.settings.model_dump(exclude_none=True)
    known = {key: value for key, value in new.items() if value is not None or key in fixed}
    return found | _different("settings", {key: old.get(key) for key in known}, known)


def _by_key(values: dict[str, Any]) -> dict[str, Any]:
    """Return settings under the keys that a plan file has for them."""
    return {
        f"loader.{name}" if name in Loader.model_fields else name: v for name, v in values.items()
    }


def _different(name: str, old: Any, new: Any) -> dict[str, Any]:
    old = {} if old is None and isinstance(new, dict) else old
    if isinstance(old, dict) and isinstance(new, dict):
        keys = dict.fromkeys((*old, *new))
        each = (_different(f"{name}.{key}", old.get(key), new.get(key)) for key in keys)
        return {key: value for found in each for key, value in found.items()}
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = enumerate(zip(old, new, strict=True))
        each = (_different(f"{name}[{at}]", *pair) for at, pair in pairs)
        return {key: value for found in each for key, value in found.items()}
    return {} if old == new else {name: new}


def _fixed_still(opened: Plan, before: Plan, taken: FullSettings) -> Plan:
    """Return an opened plan with those keys fixed again that have the same value as before."""
    given = before.settings.model_dump(include=set(OPENED), exclude_none=True)
    same = {key: value for key, value in given.items() if getattr(taken, key) == value}
    return opened.model_copy(update={"settings": opened.settings.model_copy(update=same)})


def used(report: Report) -> dict[str, float]:
    """Return the bytes of the GPU's memory that are used at p95, and all there are."""
    memory = report.memory
    return {"used": memory.device_used_p95.value, "total": memory.device_total.value}
