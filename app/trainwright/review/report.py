"""A review as plain data, for ``--json``."""

from typing import Any

from trainwright.messages import Message, render
from trainwright.plan.file import text_data
from trainwright.plan.report import as_json as report_as_json
from trainwright.quoting import dotted
from trainwright.review.finding import Change, Finding, Removed, Renamed
from trainwright.review.interpret import Unread
from trainwright.review.reviewing import Review


def as_json(review: Review) -> dict[str, Any]:
    """Return the review as JSON's own types, sentences in English."""
    return {
        "files": [
            {"file": one.name, "kind": one.kind.name, "tool": one.tool}
            for one in review.run.sources
        ],
        "plan": text_data(review.planned.plan) if review.planned.plan is not None else None,
        "estimate": report_as_json(review.report) if review.report is not None else None,
        "not_estimated": _said(review.unestimated),
        "asked": [
            {"key": one.key, "taken": one.taken, "default_of": one.default_of}
            for one in review.planned.asked
        ],
        "no_way": _said(review.no_way),
        "not_planned": [render(one, "en") for one in review.planned.not_planned],
        "absent_files": [render(one, "en") for one in review.run.absent],
        "findings": [_finding(one) for one in review.findings],
        "facts": [
            {
                **{"name": fact.name, "value": fact.value, "file": fact.file, "key": fact.key},
                **{"line": fact.line, "given": fact.given},
            }
            for fact in review.facts.all
        ],
        "not_understood": [_unread(one) for one in review.not_understood],
        "own": [_unread(one) for one in review.own],
        "no_part": [_unread(one) for one in review.no_part],
    }


def _said(message: Message | None) -> str | None:
    return None if message is None else render(message, "en")


def _finding(one: Finding) -> dict[str, Any]:
    return {
        "rule": one.rule,
        "level": one.level,
        "message": render(one.message, "en"),
        "file": one.file or None,
        "line": one.line,
        "key": one.key or None,
        "changes": [_change(change) for change in one.changes],
        "effect": one.effect.name.lower(),
        "gain": one.gain,
        "memory_bytes": one.memory_bytes,
        "beyond": list(one.beyond),
    }


def _change(change: Change) -> dict[str, Any]:
    renamed = change.value.name if isinstance(change.value, Renamed) else None
    gone = change.value is Removed.KEY
    return {
        "file": change.file,
        "key": dotted(change.place),
        "value": None if gone or renamed else change.value,
        "removed": gone,
        "renamed": renamed,
    }


def _unread(one: Unread) -> dict[str, Any]:
    return {
        "file": one.source.name,
        "line": one.line,
        "key": one.key,
        "why": one.why,
        "instead": one.instead,
    }
