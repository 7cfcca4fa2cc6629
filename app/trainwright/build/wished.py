"""A plan's wishes, owned parts and rates, in the planner's terms.

What is said beside the plan, as on a command line, counts in place of what the plan says.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from trainwright.build.owning import owned
from trainwright.build.request import Owned, Wishes, Work
from trainwright.catalog import PartKind
from trainwright.machine.choice import MachineChoice
from trainwright.messages import UserError
from trainwright.plan import file
from trainwright.plan.schema import Plan, PlannedRates
from trainwright.prices import Currency, exchange

MAKERS = ("NVIDIA", "AMD", "Intel")
_TIMES = re.compile(r"((?P<times>\d{1,6}(\.\d{1,3})?)x +)?(?P<path>.+)")
_TAKEN = ("used", "form", "quiet", "gpus", "circuit", "expired")


def wishes_of(
    plan: Plan,
    own: Iterable[str] = (),
    only: Iterable[str] = (),
    without: Iterable[str] = (),
    **said: Any,
) -> Wishes:
    """Return the wishes of a plan; those of ``said`` that are not None stand in their place.

    Raises:
        UserError: the catalog has no part of a name that is owned.
    """
    planned = plan.limits.wishes
    found = {name: getattr(planned, name) for name in _TAKEN} | {"power_w": plan.limits.power_w}
    found |= {name: value for name, value in said.items() if value is not None}
    return Wishes(
        owned=_together(owned(own), owned(planned.owned), _of_machine(plan.machine)),
        only=owned((*planned.only, *only)),
        without=frozenset(map(_left_out, (*planned.without, *without))),
        system=plan.machine.system,
        **{name: value for name, value in found.items() if value is not None},
    )


def _left_out(text: str) -> str:
    """Return the maker, or the id of the part, that a text names."""
    maker = next((one for one in MAKERS if one.casefold() == text.strip().casefold()), None)
    return maker or owned([text])[0].id


def _of_machine(machine: MachineChoice) -> tuple[Owned, ...]:
    """Return the machine's owned parts, as many of each as it has; unknown names are left out."""
    counts: Counter[str] = Counter()
    counts.update({gpu.id: gpu.count for gpu in machine.gpus})
    counts.update({kit.id: kit.count for kit in machine.memory})
    counts.update(drive.id for drive in machine.drives)
    return tuple(_known(machine.owned, counts))


def _known(names: Iterable[str], counts: Counter[str]) -> Iterator[Owned]:
    for name in names:
        with suppress(UserError):  # a probed computer has parts that no catalog knows
            yield from owned([f"{counts[name] or 1}x {name}"])


def _together(*lists: Iterable[Owned]) -> tuple[Owned, ...]:
    """Return the parts of all lists; one that several name is the same part."""
    most: dict[tuple[PartKind, str], int] = {}
    for part in (part for one in lists for part in one):
        key = part.kind, part.id
        most[key] = max(most.get(key, 0), part.count)
    return tuple(Owned(kind, id, count) for (kind, id), count in most.items())


def others(plan: Plan, said: Iterable[str] = ()) -> tuple[Work, ...]:
    """Return the other workloads of a plan; those that are said stand in their place.

    ``2x PATH`` says that the run of a plan is done twice.

    Raises:
        UserError: a file is not a plan, or the text is not a number and a path.
    """
    asked = tuple(_said(text) for text in said)
    asked = asked or tuple((one.times, one.plan) for one in plan.limits.also)
    return tuple(Work(file.read(path), times) for times, path in asked)


def _said(text: str) -> tuple[float, str]:
    found = _TIMES.fullmatch(text.strip())
    if found is None:
        raise UserError.of("planner.also-unread", text=text[:60])
    return float(found["times"] or 1), found["path"]


def cloud_rate(rates: PlannedRates, currency: Currency, gpus: int) -> float | None:
    """Return what an hour of a computer with so many GPUs costs in a cloud.

    None where nobody said, or no exchange rate is set.
    """
    if rates.cloud is None:
        return None
    hour, mark, _ = rates.cloud.partition("/")
    given: Currency = "KRW" if hour.endswith("KRW") else "USD"
    amount = float(hour[:-3]) * (gpus if mark else 1)
    if given == currency:
        return amount
    rate, _ = exchange.load()
    return amount * rate.factor(given, currency) if rate is not None else None


def energy_rates(rates: PlannedRates) -> dict[str, float]:
    """Return the rates of ``cost.run_cost`` that the plan gives."""
    found = {"usd_per_kwh": rates.usd_per_kwh, "household_kwh": rates.household_kwh}
    return {name: value for name, value in found.items() if value is not None}
