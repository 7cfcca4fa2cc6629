"""Runs of known cause, and what the diagnosis says of them.

python tests/accuracy/situationrows.py            # the ten newest batches
python tests/accuracy/situationrows.py --batch 4  # one batch, with each verdict
"""

import argparse
import json
import lzma
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from trainwright.diagnose import decide
from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.verdict import Confidence, Verdict

RECORDS = Path(__file__).parent / "situations" / "situations.jsonl.xz"
"""One run a line: its record with cause, source and batch. See the README next to it."""
SEEN, HELD_OUT = range(1, 18), range(18, 28)
"""Older batches, and the ten newest: those were scored once before any rule saw them."""


@dataclass(frozen=True, slots=True)
class Situation:
    """A run of known cause."""

    id: str
    batch: int
    origin: str
    cause: str
    record: dict[str, Any] = field(repr=False)
    source: str = ""
    sub_cause: str = ""
    also_right: str = ""
    also_because: str = ""
    known_by: str = ""
    dropped: str = ""
    """Why no score counts it."""
    held_out: bool = False
    times_faster: float | None = None
    """Of a real run: how much faster it is without its fault."""

    @property
    def evidence(self) -> Evidence:
        """What was seen of the run."""
        return Evidence.model_validate(self.record)


@dataclass(frozen=True, slots=True)
class Judged:
    """A situation and the verdicts on it."""

    situation: Situation
    verdicts: tuple[Verdict, ...]

    @property
    def rights(self) -> list[bool]:
        """Whether each verdict names the cause, or the one that is as right."""
        truths = (self.situation.cause, self.situation.also_right)
        return [verdict.cause in truths for verdict in self.verdicts]

    @property
    def right(self) -> bool:
        """Whether the first verdict is right."""
        return self.rights[0]

    @property
    def sure(self) -> bool:
        """Whether the first verdict has high confidence."""
        return self.verdicts[0].confidence is Confidence.HIGH


@cache
def situations() -> tuple[Situation, ...]:
    """Return every run, those that were dropped too."""
    with lzma.open(RECORDS, "rt", encoding="utf-8") as lines:
        return tuple(Situation(**json.loads(line)) for line in lines)


def kept(batches: Iterable[int]) -> list[Situation]:
    """Return the runs of some batches that were not dropped."""
    chosen = frozenset(batches)
    return [each for each in situations() if each.batch in chosen and not each.dropped]


def judged(chosen: Iterable[Situation]) -> list[Judged]:
    """Return the verdicts on each."""
    return [Judged(each, decide.judge(each.evidence).verdicts) for each in chosen]


def figures(rows: Sequence[Judged]) -> str:
    """Return how many verdicts are right, by origin, and how many of the sure ones are wrong."""
    parts = [
        f"first cause, {origin}: {sum(row.right for row in of)} of {len(of)}"
        for origin in ("real-run", "public")
        if (of := [row for row in rows if row.situation.origin == origin])
    ]
    two = sum(any(row.rights[:2]) for row in rows)
    sure = [row for row in rows if row.sure]
    wrong = sum(not row.right for row in sure)
    return "\n".join(
        [
            *parts,
            f"among the first two causes: {two} of {len(rows)} ({two / len(rows):.1%})",
            f"sure: {len(sure)}, of them wrong: {wrong}",
        ]
    )


def table(rows: Iterable[Judged]) -> str:
    """Return the verdicts as text, a line each."""
    rows = sorted(rows, key=lambda row: (row.situation.origin, row.situation.cause))
    return "\n".join(map(_line, rows))


def _line(row: Judged) -> str:
    situation, first = row.situation, row.verdicts[0]
    truth, said = (
        f"{cause} ({finer})" if finer else cause
        for cause, finer in ((situation.cause, situation.sub_cause), (first.cause, first.variant))
    )
    mark = "right" if row.right else "WRONG"
    return f"{situation.id:36} {truth:34} {said:34} {first.confidence:6} {mark}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int)
    options = parser.parse_args()
    rows = judged(kept(HELD_OUT if options.batch is None else [options.batch]))
    if options.batch is not None:
        print(table(rows))
    print(figures(rows))


if __name__ == "__main__":
    main()
