"""Diagnoses and explained errors as plain data, for ``--json``."""

from typing import Any

from trainwright.advise.report import CLASSES
from trainwright.diagnose import record
from trainwright.diagnose.budget import Budget
from trainwright.diagnose.deciding import Deciding, deciding
from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.memory_remedies import Help
from trainwright.diagnose.outofmemory import Explanation
from trainwright.diagnose.outofmemory.timeline import Timeline
from trainwright.diagnose.predicted import Comparison
from trainwright.diagnose.readers.files import FileRead
from trainwright.diagnose.verdict import Diagnosis, Fix, Reliability, Signal, Verdict
from trainwright.messages import Message, render


def as_json(
    diagnosis: Diagnosis,
    evidence: Evidence,
    budget: Budget | None = None,
    files: tuple[FileRead, ...] = (),
    predicted: Comparison | None = None,
) -> dict[str, Any]:
    """Return a diagnosis with the evidence that it was made from."""
    return {
        "verdict": _verdict(diagnosis.first),
        "reliability": _reliability(diagnosis.reliability),
        "others": [_verdict(each) for each in diagnosis.verdicts[1:]],
        "deciding": _deciding(deciding(diagnosis, evidence)),
        "ruled_out": [
            {
                "cause": each.cause.value,
                "because": _said(each.because),
                "signals": [_signal(signal) for signal in each.signals],
            }
            for each in diagnosis.ruled_out
        ],
        "unseen": [
            {
                "what": _said(each.what),
                "because": _said(each.because),
                "remedy": _said(each.remedy) if each.remedy is not None else None,
            }
            for each in diagnosis.unseen
        ],
        "budget": _budget(budget) if budget is not None else None,
        "predicted": _predicted(predicted) if predicted is not None else None,
        "evidence": record.document(evidence),
    } | ({"files": [_file(each) for each in files]} if files else {})


def _budget(budget: Budget) -> dict[str, Any]:
    return {
        "seconds": budget.seconds,
        "of_step": budget.of_step,
        "shares": [{"use": each.use, "seconds": each.seconds} for each in budget.shares],
        "source": _said(budget.source),
    }


def _deciding(trial: Deciding | None) -> dict[str, Any] | None:
    if trial is None:
        return None
    return {
        "changed": trial.changed,
        "says": f"{_said(trial.how)} {_said(trial.outcome)}",
        "if_faster": trial.verdict.cause.value,
        "if_not": trial.other.cause.value if trial.other is not None else None,
    }


def _predicted(comparison: Comparison) -> dict[str, Any]:
    return {
        "parts": [
            {
                "part": each.part,
                "measured_seconds": each.measured,
                "predicted_seconds": each.predicted,
                "times": each.times,
            }
            for each in comparison.parts
        ],
        "notes": [_said(each) for each in comparison.notes],
    }


def _file(file: FileRead) -> dict[str, Any]:
    return {
        "file": file.name,
        "formats": [_said(each) for each in file.formats],
        "took": [_said(each) for each in file.took],
        "missing": [_said(each) for each in file.missed],
    }


def explanation_as_json(explanation: Explanation, found: Help) -> dict[str, Any]:
    """Return an explained out-of-memory error, and what would help."""
    account = explanation.account
    names = ("asked", "total", "free", "process", "others", "allocated", "unused", "allowed")
    return {
        "differs": [_said(each) for each in found.differs],
        "kind": explanation.kind,
        "says": _said(explanation.says),
        "missing_bytes": explanation.missing,
        "account": {f"{name}_bytes": getattr(account, name) for name in names},
        "fixes": [_fix(each) for each in found.fixes],
        "remedies": [
            {
                "says": [_said(each) for each in one.says],
                "set": one.patch,
                "saves_bytes": round(one.saved),
                "slower": one.slower,
                "class": CLASSES[one.effect],
            }
            for one in found.remedies
        ],
        "remedies_enough": bool(found.remedies) and found.enough,
        "needs": [_said(each) for each in found.needs],
        "notes": [_said(each) for each in found.notes],
        "timeline": _timeline(explanation.timeline) if explanation.timeline is not None else None,
    }


def _timeline(timeline: Timeline) -> dict[str, Any]:
    return {
        "device": timeline.device,
        "events": timeline.events,
        "seconds": timeline.seconds,
        "peak_bytes": timeline.peak_bytes,
        "peak_seconds": timeline.peak_seconds,
        "reserved_bytes": timeline.reserved_bytes,
        "allocated_bytes": list(timeline.curve),
        "owners": [
            {"place": each.place or None, "bytes": each.bytes, "allocations": each.count}
            for each in timeline.owners
        ],
    }


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return {
        "cause": verdict.cause.value,
        "variant": verdict.variant or None,
        "says": _said(verdict.says),
        "confidence": verdict.confidence.value,
        "suspected": verdict.suspected,
        "gain_at_most": verdict.gain,
        "times_as_fast_at_most": verdict.faster,
        "signals": [_signal(each) for each in verdict.signals],
        "against": [_signal(each) for each in verdict.against],
        "fixes": [_fix(each) for each in verdict.fixes],
    }


def _reliability(before: Reliability | None) -> dict[str, Any] | None:
    if before is None:
        return None
    return {"kind": before.kind, "right": before.right, "of": before.of, "says": _said(before.says)}


def _signal(signal: Signal) -> dict[str, Any]:
    return {
        "reading": signal.reading,
        "says": f"{_said(signal.name)}: {_said(signal.shown)}",
        "value": signal.value,
        "limit": signal.limit,
        "above": signal.above if signal.limit is not None else None,
        "weight": signal.weight,
        "from": _said(signal.origin),
        "source": signal.source,
    }


def _fix(fix: Fix) -> dict[str, Any]:
    return {"says": _said(fix.says), "set": fix.patch}


def _said(message: Message) -> str:
    return render(message, "en")
