"""Loader settings of advice: the search never waits for workers that could be added, and what it
chooses gets no more of them than its GPUs need.
"""

import math
from collections.abc import Iterator
from dataclasses import replace

from trainwright.advise.advice import Reason, reason
from trainwright.advise.search import Search
from trainwright.advise.walk import Timed
from trainwright.estimate.input.pipeline import LoaderChoice, recommended
from trainwright.estimate.input.pipeline_calibration import load
from trainwright.messages import Message
from trainwright.plan.evaluate import Facts, evaluate, time_of
from trainwright.plan.report import Report
from trainwright.plan.schema import Plan
from trainwright.workload import Dataset, FullSettings


def with_most_workers(plan: Plan, facts: Facts) -> Facts:
    """Return the facts with as many workers as this computer makes use of.

    The facts themselves where the plan fixes the workers, or nothing is known of data or cores.
    """
    fixed = plan.settings.loader.num_workers is not None
    if fixed or not isinstance(plan.workload.dataset, Dataset) or facts.machine.cores is None:
        return facts
    pipeline = time_of(plan, facts).pipeline
    choice = recommended(pipeline.feeding, math.inf, load()) if pipeline is not None else None
    return replace(facts, settings=_with(facts.settings, choice)) if choice is not None else facts


def settled(search: Search, timed: Timed, report: Report) -> Report:
    """Return the report of a choice with the workers that its GPUs need."""
    choice = report.time.pipeline.recommended if report.time.pipeline is not None else None
    if choice is None or search.plan.settings.loader.num_workers is not None:
        return report
    settings = _with(report.settings, choice)
    if settings == report.settings:
        return report
    profile = search.profile(timed.candidate)
    assert profile is not None, "only candidates with a profile are timed"
    return evaluate(search.plan, replace(search.facts, settings=settings, profile=profile))


def _with(settings: FullSettings, choice: LoaderChoice) -> FullSettings:
    changed = {"num_workers": choice.num_workers}
    if choice.num_workers == 0:
        changed["persistent_workers"] = False
    return settings.model_copy(update=changed)


def reasons(search: Search, report: Report) -> Iterator[Reason]:
    """Yield why the loader's settings are what they are, of those that the plan leaves free."""
    base, given = report.settings, search.plan.settings.loader
    if given.num_workers is None:
        yield _workers(search, report)
    if given.prefetch_factor is None:
        yield reason(
            "loader.prefetch_factor", base.prefetch_factor, "advise.prefetch", "torch default", None
        )
    if given.pin_memory is None:
        source = "stas00: 0.46 s pinned against 0.65 s pageable on A100"
        id = "advise.pin" if base.pin_memory else "advise.pin-off"
        if not base.pin_memory:
            source = "torch: utils/data/dataloader.py, which warns that mps has none"
        yield reason("loader.pin_memory", base.pin_memory, id, source, None)
    if given.persistent_workers is None and base.num_workers > 0:
        source = "torch: DataLoader"
        yield reason(
            "loader.persistent_workers", base.persistent_workers, "advise.persistent", source, None
        )


def _workers(search: Search, report: Report) -> Reason:
    """Return why there are so many workers: by what they pass on, or by rule."""
    count, cores = report.settings.num_workers, search.facts.machine.cores
    flips = Message.of("advise.flip.workers")
    pipeline = report.time.pipeline
    if pipeline is None or pipeline.recommended is None:
        id = "advise.workers.unknown" if cores is None else "advise.workers.rule"
        source = "stas00, DataLoader; torch warns above the cores of the process"
        return reason(
            "loader.num_workers", count, id, source, flips, workers=count, cores=cores or 0
        )
    rates = {name: rate.value for name, rate in pipeline.stages if rate is not None}
    demand = rates["gpu"]
    rate = min(rates.get(name, math.inf) for name in ("decode", "handover"))
    id = "advise.workers.model" if rate >= demand else "advise.workers.limited"
    return reason(
        *("loader.num_workers", count, id, "estimate", flips),
        workers=count,
        rate=rate,
        demand=demand,
    )
