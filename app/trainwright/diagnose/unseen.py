"""What a diagnosis could not look at, why, and how to see it next time."""

from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.measures.figures import on_cpu
from trainwright.diagnose.verdict import Unseen
from trainwright.messages import Message


def unseen(evidence: Evidence) -> tuple[Unseen, ...]:
    """Return the absent parts and readings, the most telling first."""
    return (*_parts(evidence), *_readings(evidence))


def _parts(evidence: Evidence) -> list[Unseen]:
    run = "loop" if evidence.command else "run"  # the command was run, and no step was seen
    absent = [
        ("steps", evidence.steps is None, run),
        ("counters", evidence.counters is None, run),
        ("host", evidence.host is None, "live"),
        ("gpus", evidence.gpus is None and not on_cpu(evidence) and not _told(evidence), "live"),
        ("profile", evidence.profile is None, "profile"),
    ]
    return [
        Unseen(
            Message.of(f"diagnose.origin.{part}"),
            Message.of("diagnose.unseen.absent"),
            Message.of(f"diagnose.remedy.{remedy}"),
        )
        for part, is_absent, remedy in absent
        if is_absent
    ]


def _readings(evidence: Evidence) -> list[Unseen]:
    return [Unseen(_named(key), _reason(reason)) for key, reason in evidence.unavailable.items()]


def _told(evidence: Evidence) -> bool:
    """Whether it is known why there are no readings of GPUs."""
    return "gpus" in evidence.unavailable


def _named(key: str) -> Message:
    """Return the reading's name; keys that records bring along stand as they are."""
    if key in _NAMES:
        return Message.of(f"diagnose.{_NAMES[key]}")
    return Message.of("diagnose.unseen.key", key=key)


_NAMES = {
    "gpus": "origin.gpus",
    "gpus.utilisation": "reading.gpus.utilisation",
    "gpus.sm_active": "reading.gpus.sm-active",
    "gpus.tensor_active": "reading.gpus.tensor-active",
    "gpus.power_w": "reading.gpus.power",
    "gpus.throttle": "reading.gpus.throttled",
    "gpus.processes": "reading.gpus.foreign-processes",
    "gpus.sm_clock_mhz": "reading.gpus.clock",
    "steps": "origin.steps",
    "counters": "origin.counters",
    "profile": "origin.profile",
    "host": "origin.host",
}


def _reason(reason: str) -> Message:
    """Return the reason: one of our messages by its id, or a text as it stands."""
    if reason.startswith(("probe.", "diagnose.")) and " " not in reason:
        return Message.of(reason)
    return Message.of("diagnose.unseen.text", text=reason)
