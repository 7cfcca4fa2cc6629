"""Advice as plain data: the contract of ``advise --json``."""

from typing import Any

from trainwright.advise.advice import Advice, Choice, Point, Reason, Relaxation
from trainwright.messages import Language, Message, render
from trainwright.plan import report
from trainwright.workload.settings import Effect

CLASSES = {
    Effect.SAME: "same result",
    Effect.NEARLY: "nearly the same",
    Effect.DIFFERENT: "trains differently",
}
"""What scripts read."""


def as_json(advice: Advice, language: Language = "en") -> dict[str, Any]:
    """Return the advice as plain data; sentences in the given language."""
    return {
        "choices": [_choice(choice, language) for choice in advice.choices],
        "pareto": [_point(point) for point in advice.pareto],
        "nothing_fits": [_relaxation(change, language) for change in advice.nothing_fits],
        "ways": [_way(way, language) for way in advice.nothing_fits],
        "short_by_bytes": advice.short_by_bytes,
        "considered": advice.considered,
        "notes": [render(note, language) for note in (*advice.unplanned, *advice.notes)],
    }


def _choice(choice: Choice, language: Language) -> dict[str, Any]:
    return {
        "settings": choice.settings.model_dump(mode="json"),
        "estimate": report.as_json(choice.estimate),
        "class": CLASSES[choice.effect],
        "reasons": [_reason(reason, language) for reason in choice.reasons],
    }


def _reason(reason: Reason, language: Language) -> dict[str, Any]:
    return {
        "setting": reason.setting,
        "value": reason.value,
        "because": render(reason.because, language),
        "source": reason.source,
        "flips": _optional(reason.flips, language),
    }


def _optional(message: Message | None, language: Language) -> str | None:
    return None if message is None else render(message, language)


def _point(point: Point) -> dict[str, Any]:
    return {
        "settings": point.settings.model_dump(mode="json"),
        "step_seconds": point.step_seconds,
        "allocated_bytes": point.allocated_bytes,
        "fits": point.fits,
    }


def _way(way: Relaxation, language: Language) -> dict[str, Any]:
    return {
        "changes": dict(way.changes),
        "class": CLASSES[way.effect],
        "estimate": report.as_json(way.estimate) if way.estimate is not None else None,
        "change": render(way.change, language),
    }


def _relaxation(change: Relaxation, language: Language) -> dict[str, Any]:
    plan = change.plan.model_dump(mode="json", exclude_none=True)
    return {"change": render(change.change, language), "plan": plan}
