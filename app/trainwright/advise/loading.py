"""Loader settings of advice: the search never waits for workers that could be added, and what it
chooses gets no more of them than its GPUs need.
"""

import math
from dataclasses import replace

from trainwright.advise.search import Search
from trainwright.advise.walk import Timed
from trainwright.estimate.input.pipeline import LoaderChoice, recommended
from trainwright.estimate.input.pipeline_calibration import load
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
