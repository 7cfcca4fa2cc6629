"""Diagnoses and explained errors, printed for people."""

from collections.abc import Iterable, Sequence
from typing import Any

from trainwright.cli.screen import Cell, Screen
from trainwright.diagnose.budget import Budget
from trainwright.diagnose.deciding import deciding
from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.memory_remedies import Help, Remedy
from trainwright.diagnose.outofmemory import Explanation
from trainwright.diagnose.outofmemory.timeline import Timeline
from trainwright.diagnose.predicted import Comparison
from trainwright.diagnose.readers.files import FileRead
from trainwright.diagnose.verdict import Cause, Diagnosis, Fix, RuledOut, Signal, Verdict
from trainwright.messages import Message

_HEADINGS = tuple(
    Message.of(f"diagnose.heading.{name}") for name in ("seen", "value", "limit", "from", "source")
)
_STYLES = {Cause.NONE: "bold green", Cause.UNKNOWN: "bold yellow"}


def show(
    screen: Screen,
    diagnosis: Diagnosis,
    evidence: Evidence,
    ending: Message | None = None,
    files: Sequence[FileRead] = (),
    budget: Budget | None = None,
    predicted: Comparison | None = None,
) -> None:
    """Print the verdict, what it stands on, what to do, and what it is not."""
    if ending is not None:
        screen.line(ending, "dim")
    _files(screen, files)
    if budget is not None:
        _budget(screen, budget)
    if predicted is not None:
        _predicted(screen, predicted)
    first = diagnosis.first
    screen.line(_title(first), _STYLES.get(first.cause, "bold"))
    screen.line(first.says)
    _gain(screen, first)
    if diagnosis.reliability is not None:
        screen.line(diagnosis.reliability.says, "dim")
    _signals(screen, first.signals, "diagnose.evidence")
    _signals(screen, first.against, "diagnose.against")
    _fixes(screen, first.fixes)
    _others(screen, diagnosis)
    if (trial := deciding(diagnosis, evidence)) is not None:
        screen.line()
        screen.say("diagnose.deciding", "bold")
        screen.bullets([trial.how])
        screen.indented(trial.outcome)
    denied = [each for each in diagnosis.ruled_out if each.signals and each.signals[0].weight < 0]
    _causes(screen, denied, "diagnose.ruled-out")
    undenied = [each for each in diagnosis.ruled_out if each not in denied]
    _causes(screen, undenied, "diagnose.undenied")
    if diagnosis.unseen:
        screen.line()
        screen.say("diagnose.unseen", "bold")
        screen.bullets(
            Message.of("diagnose.pair-remedy", name=each.what, value=each.because,
                       remedy=each.remedy)
            if each.remedy is not None
            else Message.of("diagnose.pair", name=each.what, value=each.because)
            for each in diagnosis.unseen
        )  # fmt: skip


def _files(screen: Screen, files: Sequence[FileRead]) -> None:
    """Print what was taken from each file, and what is not in it."""
    if not files:
        return
    screen.say("diagnose.files", "bold")
    for file in files:
        screen.bullets([Message.of("diagnose.file-line", file=file.name, formats=file.formats)])
        for took in file.took:
            screen.indented(took)
        for missed in file.missed:
            screen.indented(Message.of("diagnose.file-missing", what=missed), "dim")
    screen.line()


_BAR = 40
"""Columns of a bar that stands for the whole step."""


def _budget(screen: Screen, budget: Budget) -> None:
    """Print where the time of a step goes, as bars that add up to it."""
    rows: list[tuple[Cell, ...]] = [
        (
            Message.of(f"diagnose.use.{each.use}"),
            Message.of("diagnose.budget.seconds", seconds=each.seconds),
            Message.of("diagnose.budget.share", share=each.seconds / budget.seconds),
            "█" * round(_BAR * each.seconds / budget.seconds),
        )
        for each in budget.shares
    ]
    title = "diagnose.budget" if budget.of_step else "diagnose.budget-whole"
    screen.table(rows, title=Message.of(title, seconds=budget.seconds), numbers=(1, 2))
    screen.line(budget.source, "dim")
    screen.line()


_COMPARED = tuple(
    Message.of(f"diagnose.heading.{name}") for name in ("part", "measured", "predicted", "times")
)


def _predicted(screen: Screen, comparison: Comparison) -> None:
    """Print the parts of a step that was measured, each with what the plan predicts for it."""
    rows: list[tuple[Cell, ...]] = [(each.name, *each.shown) for each in comparison.parts]
    if rows:
        title = Message.of("diagnose.predicted")
        screen.table(rows, _COMPARED, title=title, numbers=(1, 2, 3))
    for note in comparison.notes:
        screen.line(note, "dim")
    screen.line()


def _causes(screen: Screen, causes: Sequence[RuledOut], heading: str) -> None:
    if not causes:
        return
    screen.line()
    screen.say(heading, "bold")
    screen.bullets(
        Message.of("diagnose.pair", name=Message.of(f"diagnose.cause.{each.cause}"),
                   value=each.because)
        for each in causes
    )  # fmt: skip


def _title(verdict: Verdict) -> Message:
    title = verdict.title
    if verdict.cause is Cause.UNKNOWN:
        return title
    return Message.of("diagnose.title", cause=title, confidence=verdict.sure)


def _gain(screen: Screen, verdict: Verdict) -> None:
    if verdict.gain is not None and verdict.faster is not None:
        screen.say("diagnose.gain", share=verdict.gain, faster=verdict.faster)


def _signals(screen: Screen, signals: Sequence[Signal], heading: str) -> None:
    if not signals:
        return
    screen.line()
    rows: list[tuple[Cell, ...]] = [
        (each.name, each.shown, each.held_against or "", each.origin, each.sourced)
        for each in signals
    ]
    screen.table(rows, _HEADINGS, title=Message.of(heading), numbers=(1,))


def _fixes(screen: Screen, fixes: Iterable[Fix]) -> None:
    fixes = tuple(fixes)
    if not fixes:
        return
    screen.line()
    screen.say("diagnose.what-to-do", "bold")
    for fix in fixes:
        screen.bullets([fix.says])
        if fix.patch:
            changes = " ".join(f"--set {key}={_plain(value)}" for key, value in fix.patch.items())
            screen.indented(changes, "dim")


def _plain(value: Any) -> str:
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _others(screen: Screen, diagnosis: Diagnosis) -> None:
    others = diagnosis.verdicts[1:]
    if not others:
        return
    screen.line()
    screen.say("diagnose.suspected" if diagnosis.undecided else "diagnose.also", "bold")
    for each in others:
        screen.bullets([Message.of("diagnose.pair", name=_title(each), value=each.says)])
        if each.fixes:
            screen.indented(each.fixes[0].says)


def show_explanation(screen: Screen, explanation: Explanation, found: Help) -> None:
    """Print what an out-of-memory error means, and what would help."""
    if found.differs:
        screen.say("diagnose.differs", "bold")
        screen.bullets(found.differs)
        screen.line()
    screen.line(explanation.says, "bold" if explanation.kind != "none" else "")
    rows = account_rows(explanation)
    if rows:
        screen.line()
        screen.table(rows, numbers=(1,))
    if explanation.timeline is not None:
        _timeline(screen, explanation.timeline)
    _fixes(screen, found.fixes)
    if found.remedies:
        screen.line()
        screen.line(found.title, "bold")
        screen.bullets(_remedy(one) for one in found.remedies)
    for title, messages in (("needs", found.needs), ("notes", found.notes)):
        if messages:
            screen.line()
            screen.say(f"diagnose.{title}", "bold")
            screen.bullets(messages)


_HEIGHTS = " ▁▂▃▄▅▆▇█"


def _timeline(screen: Screen, timeline: Timeline) -> None:
    """Print what was allocated over the recorded time, and who held the peak."""
    screen.line()
    screen.line(timeline.says)
    if timeline.events:
        last = len(_HEIGHTS) - 1
        heights = (last * each / max(1, timeline.peak_bytes) for each in timeline.curve)
        screen.line("".join(_HEIGHTS[round(each)] for each in heights))
    rows: list[tuple[Cell, ...]] = [
        (each.named, Message.of("diagnose.value.bytes", value=each.bytes), each.counted)
        for each in timeline.owners
    ]
    screen.line()
    screen.table(rows, title=Message.of("diagnose.timeline.owners"), numbers=(1,))


def _remedy(one: Remedy) -> Message:
    """Return a remedy with what it does, and the option that makes the change."""
    values = {key: "null" if value is None else _plain(value) for key, value in one.patch.items()}
    options = " ".join(f"--set {key}={value}" for key, value in values.items())
    return Message.of("diagnose.remedy-options", remedy=one.sentence, options=options)


def account_rows(explanation: Explanation) -> list[tuple[Message, Message]]:
    """Return what the message tells of the memory, by name."""
    names = ("asked", "free", "total", "process", "allocated", "unused", "others", "allowed")
    return [
        (Message.of(f"diagnose.account.{name}"), Message.of("diagnose.value.bytes", value=value))
        for name in names
        if (value := getattr(explanation.account, name)) is not None
    ]
