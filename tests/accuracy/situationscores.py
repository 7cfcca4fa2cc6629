"""What the diagnosis said of each batch of held-out situations on the day it was scored.

python tests/accuracy/situationscores.py                  # by batch, by origin and by confidence
python tests/accuracy/situationscores.py --twenty-fourth  # a batch's verdicts, by its number

Each batch was scored once, by rules whose authors had seen none of it. Those verdicts are kept in
``situations/scores.csv`` and never made anew: today's rules have seen all of them.
"""

import csv
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from situationrows import BATCHES, FOLDER, Situation, line, situations

from trainwright.diagnose.verdict import Cause, Confidence, Verdict

NEWEST = 10
"""Batches that tell how good the rules are now: those before were scored by other rules."""


@dataclass(frozen=True, slots=True)
class Score:
    """A situation, the first verdict on it when its batch was scored, and whether it was right."""

    batch: int
    situation: Situation
    verdict: Verdict
    right: bool

    @property
    def sure(self) -> str:
        """How sure the verdict was; ``unknown`` is not sure of anything."""
        unknown = self.verdict.cause is Cause.UNKNOWN
        return "unknown" if unknown else self.verdict.confidence.value


@cache
def scores() -> tuple[Score, ...]:
    """Return the verdicts on all batches, in the order in which they were scored."""
    named = {row.id: row for batch in range(1, len(BATCHES) + 1) for row in situations(batch)}
    with (FOLDER / "scores.csv").open(encoding="utf-8", newline="") as file:
        return tuple(
            Score(
                int(row["batch"]),
                named[row["situation"]],
                Verdict(Cause(row["cause"]), row["variant"], Confidence(row["confidence"])),
                row["right"] == "yes",
            )
            for row in csv.DictReader(file)
        )


def scored() -> tuple[int, ...]:
    """Return the numbers of the batches that were scored."""
    return tuple(dict.fromkeys(each.batch for each in scores()))


def of(batches: Iterable[int]) -> list[Score]:
    """Return the verdicts on some batches."""
    chosen = frozenset(batches)
    return [each for each in scores() if each.batch in chosen]


def share(rows: Sequence[Score]) -> str:
    """Return how many are right: ``54 of 64 (84 %)``."""
    if not rows:
        return "-"
    right = sum(each.right for each in rows)
    hundredths = int(100 * right / len(rows) + 0.5)
    if right < len(rows):  # 211 of 212 are not all
        hundredths = min(hundredths, 99)
    return f"{right} of {len(rows)} ({hundredths} %)"


def by_batch() -> str:
    """Return how many verdicts on each batch were right, and how many of those were sure."""
    newest = scored()[-NEWEST:]
    lines = [
        f"{'batch':16} {'all':16} {'real runs':16} {'public':16} confidently wrong",
        *(_line(BATCHES[batch - 1], of([batch])) for batch in scored()),
        _line("the newest four", of(newest[-4:])),
        _line("the newest ten", of(newest)),
    ]
    return "\n".join(lines)


def by_confidence() -> str:
    """Return how many verdicts of each confidence were right, in the newest batches."""
    newest = of(scored()[-NEWEST:])
    lines = [f"{'the newest ten':16} {'all':16} {'real runs':16} {'public':16}"]
    for sure in (*Confidence, "unknown"):
        rows = [each for each in newest if each.sure == sure]
        lines.append(f"{sure:16} {_by_origin(rows)}".rstrip())
    return "\n".join(lines)


def _line(name: str, rows: Sequence[Score]) -> str:
    wrong = sum(not each.right and each.verdict.confidence is Confidence.HIGH for each in rows)
    return f"{name:16} {_by_origin(rows)} {wrong}"


def _by_origin(rows: Sequence[Score]) -> str:
    runs = [each for each in rows if each.situation.origin == "real-run"]
    public = [each for each in rows if each.situation.origin == "public"]
    return " ".join(f"{share(part):16}" for part in (rows, runs, public))


def verdicts(batch: int) -> str:
    """Return the verdicts on a batch, as they were said."""
    return "\n".join(line(each.situation, each.verdict, right=each.right) for each in of([batch]))


if __name__ == "__main__":
    asked = [n for n, name in enumerate(BATCHES, 1) if f"--{name}" in sys.argv]
    print("\n\n".join([verdicts(batch) for batch in asked] or [by_batch(), by_confidence()]))
