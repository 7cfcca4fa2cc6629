"""From the files of another trainer to a plan of the window, with what the review says of them."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from trainwright.messages import Message, UserError
from trainwright.plan import file
from trainwright.plan.saying import model_name
from trainwright.plan.schema import Plan
from trainwright.review import Review, review, sources
from trainwright.review.finding import Finding
from trainwright.ui import plans

_MODELS = {"model-config", "generation-config"}
"""Kinds that say only what the model is: those open as a model."""


def read(paths: Sequence[Path], present: Plan | None) -> Review | None:
    """Return the review of files that are no plan; None where they are not of another trainer.

    What they do not say of the model is taken from the plan that is open, or from a new one.
    Nothing is traced: the plan's own screen makes the estimate.
    """
    if any(path.name.endswith(file.SUFFIX) or path.is_dir() for path in paths):
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


def lines(found: Review) -> tuple[Message, ...]:
    """Return what the review says, a sentence each: findings, then what else to know."""
    return (
        *(
            Message.of("ui.review.finding", where=_where(one), text=one.message)
            if one.file
            else one.message
            for one in found.findings
        ),
        *found.planned.not_planned,
        *found.run.absent,
        *(
            Message.of("ui.review.asked", key=one.key, value=str(one.taken or "?"))
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


def _where(one: Finding) -> str:
    name = Path(one.file).name
    return f"{name}:{one.line}" if one.line else name
