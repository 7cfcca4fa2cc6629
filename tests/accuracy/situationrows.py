"""Runs of known cause beside what the diagnosis says of them.

python tests/accuracy/situationrows.py             # those that may guide thresholds
python tests/accuracy/situationrows.py --held-out  # those that may not
python tests/accuracy/situationrows.py --second    # the second batch, held out whole
python tests/accuracy/situationrows.py --third     # the third batch, held out whole
python tests/accuracy/situationrows.py --fourth    # the fourth round, which guides the rules
python tests/accuracy/situationrows.py --fifth     # the fifth batch, held out whole
python tests/accuracy/situationrows.py --sixth     # the sixth batch, held out whole
python tests/accuracy/situationrows.py --seventh   # the seventh batch, held out whole
python tests/accuracy/situationrows.py --eighth    # the eighth batch, held out whole
python tests/accuracy/situationrows.py --ninth     # the ninth batch, held out whole
python tests/accuracy/situationrows.py --tenth     # the tenth batch, held out whole
python tests/accuracy/situationrows.py --eleventh  # the eleventh batch, held out whole
python tests/accuracy/situationrows.py --twelfth   # the twelfth batch, held out whole
python tests/accuracy/situationrows.py --thirteenth # the thirteenth batch, held out whole
python tests/accuracy/situationrows.py --fourteenth # the fourteenth batch, held out whole
python tests/accuracy/situationrows.py --fifteenth # the fifteenth batch, held out whole
python tests/accuracy/situationrows.py --sixteenth # the sixteenth batch, held out whole
python tests/accuracy/situationrows.py --seventeenth # the seventeenth batch, held out whole
python tests/accuracy/situationrows.py --eighteenth # the eighteenth batch, held out whole
python tests/accuracy/situationrows.py --nineteenth # the nineteenth batch, held out whole
python tests/accuracy/situationrows.py --twentieth # the twentieth batch, held out whole
python tests/accuracy/situationrows.py --twenty-first # the twenty-first batch, held out whole
python tests/accuracy/situationrows.py --twenty-second # the twenty-second batch, held out whole
python tests/accuracy/situationrows.py --twenty-third # the twenty-third batch, held out whole
python tests/accuracy/situationrows.py --twenty-fourth # the twenty-fourth batch, held out whole
python tests/accuracy/situationrows.py --twenty-fifth # the twenty-fifth batch, held out whole
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


FIRST, SECOND, THIRD = "index.csv", "index2.csv", "index3.csv"
FOURTH, FIFTH, SIXTH = "index4.csv", "index5.csv", "index6.csv"
SEVENTH, EIGHTH, NINTH = "index7.csv", "index8.csv", "index9.csv"
TENTH, ELEVENTH, TWELFTH = "index10.csv", "index11.csv", "index12.csv"
THIRTEENTH, FOURTEENTH, FIFTEENTH = "index13.csv", "index14.csv", "index15.csv"
SIXTEENTH, SEVENTEENTH = "index16.csv", "index17.csv"
EIGHTEENTH, NINETEENTH, TWENTIETH = "index18.csv", "index19.csv", "index20.csv"
TWENTY_FIRST, TWENTY_SECOND, TWENTY_THIRD = "index21.csv", "index22.csv", "index23.csv"
TWENTY_FOURTH, TWENTY_FIFTH = "index24.csv", "index25.csv"
"""The batches of situations; all of them are held out whole but the first, which is in part, and
the fourth, which is not."""


def situations(batch: str = FIRST) -> list[Situation]:
    """Return every situation of a batch that was named, the dropped ones too."""
    with (FOLDER / batch).open(encoding="utf-8", newline="") as file:
        return [
            Situation(**(row | {"held_out": row["held_out"] == "yes"}))
            for row in csv.DictReader(file)
        ]


def kept(*, held_out: bool, batch: str = FIRST) -> list[Situation]:
    """Return the situations of one part of a batch that were not dropped."""
    return [each for each in situations(batch) if each.held_out is held_out and not each.dropped]


def set_apart(batch: str) -> list[Situation]:
    """Return the public ones that a reader of their records dropped: no share counts them."""
    dropped = [each for each in situations(batch) if each.dropped and each.origin == "public"]
    return [each for each in dropped if each.path.exists()]


def judged(chosen: Iterable[Situation]) -> list[Judged]:
    """Return the first verdict on each."""
    return [Judged(each, decide.judge(each.evidence).first) for each in chosen]


def table(rows: Iterable[Judged]) -> str:
    """Return the verdicts as text, and a last line that counts them."""
    rows = sorted(rows, key=lambda row: (row.situation.origin, row.situation.cause))
    lines = [
        f"{row.situation.id:27} {_words(row.situation.cause, row.situation.sub_cause):34} "
        f"{_words(row.verdict.cause, row.verdict.variant):34} {row.verdict.confidence:6} "
        f"{'right' if row.right else 'WRONG'}"
        for row in rows
    ]
    head = f"{'situation':27} {'truth':34} {'first verdict':34} {'sure':6}"
    right, wrong = sum(row.right for row in rows), sum(row.confidently_wrong for row in rows)
    share = f"{right} of {len(rows)} right ({right / len(rows):.0%}), {wrong} confidently wrong"
    parts = [
        f"{origin}: {sum(each.right for each in of)} of {len(of)}"
        for origin in ("real-run", "public")
        if (of := [each for each in rows if each.situation.origin == origin])
    ]
    return "\n".join([head, *lines, f"{share}; {', '.join(parts)}"])


def _words(cause: str, finer: str) -> str:
    return f"{cause} ({finer})" if finer else cause


if __name__ == "__main__":
    whole = {
        "--second": (SECOND, True),
        "--third": (THIRD, True),
        "--fourth": (FOURTH, False),
        "--fifth": (FIFTH, True),
        "--sixth": (SIXTH, True),
        "--seventh": (SEVENTH, True),
        "--eighth": (EIGHTH, True),
        "--ninth": (NINTH, True),
        "--tenth": (TENTH, True),
        "--eleventh": (ELEVENTH, True),
        "--twelfth": (TWELFTH, True),
        "--thirteenth": (THIRTEENTH, True),
        "--fourteenth": (FOURTEENTH, True),
        "--fifteenth": (FIFTEENTH, True),
        "--sixteenth": (SIXTEENTH, True),
        "--seventeenth": (SEVENTEENTH, True),
        "--eighteenth": (EIGHTEENTH, True),
        "--nineteenth": (NINETEENTH, True),
        "--twentieth": (TWENTIETH, True),
        "--twenty-first": (TWENTY_FIRST, True),
        "--twenty-second": (TWENTY_SECOND, True),
        "--twenty-third": (TWENTY_THIRD, True),
        "--twenty-fourth": (TWENTY_FOURTH, True),
        "--twenty-fifth": (TWENTY_FIFTH, True),
    }
    batch, held_out = next(
        (whole[flag] for flag in sys.argv if flag in whole), (FIRST, "--held-out" in sys.argv)
    )
    print(table(judged(kept(held_out=held_out, batch=batch))))
    early = (FIRST, SECOND, THIRD, FOURTH, FIFTH)
    if batch not in early and (apart := set_apart(batch)):
        print("\nset apart, as their records do not carry their causes:\n" + table(judged(apart)))
