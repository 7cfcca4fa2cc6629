"""Runs of known cause beside what the diagnosis says of them.

python tests/accuracy/situationrows.py             # those that may guide thresholds
python tests/accuracy/situationrows.py --held-out  # those that may not
python tests/accuracy/situationrows.py --second    # a later batch, by its number in words
"""

import csv
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from trainwright.diagnose import decide, record
from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.verdict import Confidence, Verdict

FOLDER = Path(__file__).parent / "situations"


@dataclass(frozen=True, slots=True)
class Situation:
    """A line of the index."""

    id: str
    origin: str
    source: str
    cause: str
    sub_cause: str
    also_right: str
    known_by: str
    held_out: bool
    dropped: str
    also_because: str = ""

    @property
    def path(self) -> Path:
        """Where the record of the run is, if it has one."""
        return FOLDER / "records" / f"{self.id}.record.json"

    @property
    def evidence(self) -> Evidence:
        """What was seen of the run."""
        return record.read(self.path)


@dataclass(frozen=True, slots=True)
class Judged:
    """A situation and the first verdict on it."""

    situation: Situation
    verdict: Verdict

    @property
    def right(self) -> bool:
        """Whether the cause is named, or the one that is as right."""
        return self.verdict.cause in (self.situation.cause, self.situation.also_right)

    @property
    def confidently_wrong(self) -> bool:
        """Whether a wrong cause is named with high confidence."""
        return not self.right and self.verdict.confidence is Confidence.HIGH


BATCHES = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth",
    "eleventh", "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth",
    "eighteenth", "nineteenth", "twentieth", "twenty-first", "twenty-second", "twenty-third",
    "twenty-fourth", "twenty-fifth", "twenty-sixth", "twenty-seventh",
)  # fmt: skip
"""The batches of situations, numbered from 1; all of them are held out whole but the first, which
is in part, and the fourth, which is not."""
FIRST, FOURTH = 1, 4


def situations(batch: int = FIRST) -> list[Situation]:
    """Return every situation of a batch that was named, the dropped ones too."""
    index = FOLDER / ("index.csv" if batch == FIRST else f"index{batch}.csv")
    with index.open(encoding="utf-8", newline="") as file:
        return [
            Situation(**(row | {"held_out": row["held_out"] == "yes"}))
            for row in csv.DictReader(file)
        ]


def kept(*, held_out: bool, batch: int = FIRST) -> list[Situation]:
    """Return the situations of one part of a batch that were not dropped."""
    return [each for each in situations(batch) if each.held_out is held_out and not each.dropped]


def set_apart(batch: int) -> list[Situation]:
    """Return the public ones that a reader of their records dropped: no share counts them."""
    dropped = [each for each in situations(batch) if each.dropped and each.origin == "public"]
    return [each for each in dropped if each.path.exists()]


def judged(chosen: Iterable[Situation]) -> list[Judged]:
    """Return the first verdict on each."""
    return [Judged(each, decide.judge(each.evidence).first) for each in chosen]


def table(rows: Iterable[Judged]) -> str:
    """Return the verdicts as text, and a last line that counts them."""
    rows = sorted(rows, key=lambda row: (row.situation.origin, row.situation.cause))
    lines = [line(row.situation, row.verdict, right=row.right) for row in rows]
    head = f"{'situation':27} {'truth':34} {'first verdict':34} {'sure':6}"
    right, wrong = sum(row.right for row in rows), sum(row.confidently_wrong for row in rows)
    share = f"{right} of {len(rows)} right ({right / len(rows):.0%}), {wrong} confidently wrong"
    parts = [
        f"{origin}: {sum(each.right for each in of)} of {len(of)}"
        for origin in ("real-run", "public")
        if (of := [each for each in rows if each.situation.origin == origin])
    ]
    return "\n".join([head, *lines, f"{share}; {', '.join(parts)}"])


def line(situation: Situation, verdict: Verdict, *, right: bool) -> str:
    """Return a situation and what was said of it, on one line."""
    truth = _words(situation.cause, situation.sub_cause)
    said = _words(verdict.cause, verdict.variant)
    mark = "right" if right else "WRONG"
    return f"{situation.id:27} {truth:34} {said:34} {verdict.confidence:6} {mark}"


def _words(cause: str, finer: str) -> str:
    return f"{cause} ({finer})" if finer else cause


if __name__ == "__main__":
    asked = [n for n, name in enumerate(BATCHES, 1) if f"--{name}" in sys.argv]
    batch = asked[0] if asked else FIRST
    held_out = "--held-out" in sys.argv or batch not in (FIRST, FOURTH)
    print(table(judged(kept(held_out=held_out, batch=batch))))
    if batch >= 6 and (apart := set_apart(batch)):
        print("\nset apart, as their records do not carry their causes:\n" + table(judged(apart)))
