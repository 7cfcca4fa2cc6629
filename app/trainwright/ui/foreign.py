"""From the files of another trainer to a plan of the window, with what the review says of them."""

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from trainwright.advise import near
from trainwright.advise.whatif import WhatIf, whatifs
from trainwright.messages import Message, UserError
from trainwright.plan import file
from trainwright.plan.evaluate import Facts, evaluate
from trainwright.plan.limits import with_limits
from trainwright.plan.report import Report
from trainwright.plan.schema import Plan
from trainwright.plan.sentences import model_name
from trainwright.review import Review, review, sources
from trainwright.review.finding import Finding
from trainwright.ui import plans

_SECONDS = 2.0
"""Of computing for ways out and gains, which the window shows when they come; assumed."""
_MODELS = {"model-config", "generation-config"}
"""Kinds that say only what the model is: those open as a model."""


def read(paths: Sequence[Path], present: Plan | None) -> Review | None:
    """Return the review of files that are not a plan; None where they are not of another trainer.

    What they do not say of the model is taken from the plan that is open, or from a new one.
    Nothing is traced: the plan's own screen makes the estimate.
    """
    if any(path.name.endswith(file.SUFFIX) for path in paths):
        return None
    try:
        run = sources([str(path) for path in paths])
    except UserError:
        return None
    if {source.kind.name for source in run.sources} <= _MODELS:
        return None
    base = present or plans.starting_plan()
    machine = base.machine.model_dump(mode="json", exclude_unset=True)
    found = review(run, machine, _unasked)
    if found.planned.plan is None and found.planned.refused is None:
        model = json.dumps(base.model.model_dump(mode="json", exclude_unset=True))
        again = review(run, machine, _unasked, changes=(f"model={model}",))
        asked = tuple(
            replace(one, taken=model_name(base))
            for one in found.planned.asked
            if one.key == "model"
        )
        made = replace(again.planned, asked=(*asked, *again.planned.asked))
        return replace(again, planned=made)
    return found


def _unasked(_plan: Plan) -> NoReturn:
    raise UserError.of("review.no-model")


def completed(found: Review) -> Review:
    """Return a review with its figures, ways out and gains.

    It takes seconds, and traces nothing: figures that are not stored are a nearby step's.
    """
    plan = found.planned.plan
    if plan is None:
        return found
    machine = plan.machine.model_dump(mode="json", exclude_unset=True)
    model = json.dumps(plan.model.model_dump(mode="json", exclude_unset=True))
    again = review(found.run, machine, _answer, changes=(f"model={model}",), whatifs=_trying)
    return replace(again, planned=found.planned)


def _trying(plan: Plan, facts: Facts, report: Report) -> tuple[tuple[WhatIf, ...], bool]:
    until = time.thread_time() + _SECONDS

    def wanted() -> bool:
        return time.thread_time() < until

    answer, ways = near.answered, near.ways
    return whatifs(plan, facts, report, answer=answer, ways=ways, wanted=wanted), wanted()


def _answer(plan: Plan) -> tuple[Facts, Report]:
    facts = near.resolved(plan)
    if not isinstance(facts, Facts):
        raise UserError.of("review.no-model")
    return facts, with_limits(plan, facts, evaluate(plan, facts))


def notes(found: Review) -> tuple[Message, ...]:
    """Return what else there is to know: what is left out, and what was taken for granted."""
    return (
        *found.planned.not_planned,
        *found.run.absent,
        *(
            Message.of(
                f"ui.review.asked-{one.why}" if one.why else "ui.review.asked",
                key=one.key,
                value=str(one.taken or "?"),
            )
            for one in found.planned.asked
        ),
        *(
            Message.of("ui.review.computed", file=Path(one.source.name).name, key=one.key)
            for one in found.computed
        ),
        *_own(found),
    )


def _own(found: Review) -> tuple[Message, ...]:
    """Return the line about options that are the script's own; nothing where it has none."""
    keys = [one.key for one in found.own]
    return (Message.of("cli.review.own", count=len(keys), keys=keys),) if keys else ()


def where(one: Finding) -> str:
    """Return file and line of a finding, without the folder."""
    name = Path(one.file).name
    return f"{name}:{one.line}" if one.line else name
