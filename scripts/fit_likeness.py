"""Fits the weights of ``diagnose/likeness.py`` to the situations whose causes are known.

    python scripts/fit_likeness.py           # write resources/calibration/likeness.csv
    python scripts/fit_likeness.py --check   # say how far the shipped weights are from the fit
    python scripts/fit_likeness.py --score   # fit to batches 1 to 17 alone, judge 18 to 27

To be run after a rule was changed, as the rules' signals are among the traits. Only situations that
have been seen are fitted to: a batch that is held out is left out until it has been scored.
"""

import csv
import io
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path

import torch

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "accuracy"))

import situationrows  # noqa: E402
from situationrows import Situation, kept  # noqa: E402

from trainwright.data import resources  # noqa: E402
from trainwright.diagnose import decide, likeness  # noqa: E402
from trainwright.diagnose.causes import nothing_wrong  # noqa: E402
from trainwright.diagnose.causes.rules import signals  # noqa: E402
from trainwright.diagnose.traits import traits  # noqa: E402
from trainwright.diagnose.verdict import Cause  # noqa: E402
from trainwright.saving import write  # noqa: E402

SEEN = range(1, 28)
"""Batches that have been scored, or guide the rules."""
LEAST = 2
"""Runs that must have a trait for it to be fitted: what one run has alone tells nothing."""
MADE = 0.2
"""Weight of a run that a test made, against one that people report: it has ten times the readings,
and rules tell it by themselves; assumed."""
PENALTY = 1 / 0.15
"""Of the squared weights. Chosen by batches 14 to 19, each told by the weights of those before and
the rules of its day: from 1 / 0.2 to 1 / 0.05 as many first verdicts are right, within two."""
DIGITS = 3


def seen(batches: Iterable[int] = SEEN) -> list[Situation]:
    """Return the situations of the batches, those that were dropped left out."""
    return kept(batches)


def traits_of(row: Situation) -> frozenset[str]:
    """Return the traits of a situation."""
    evidence = row.evidence
    rules = (*chain.from_iterable(decide.RULES.values()), *nothing_wrong.RULES)
    return traits(evidence, signals(rules, evidence))


def fitted(
    rows: Sequence[Situation], had: Sequence[frozenset[str]]
) -> dict[str, dict[Cause, float]]:
    """Return the weights: trait -> cause -> weight."""
    counts = Counter(name for each in had for name in each)
    names = sorted(name for name in counts if counts[name] >= LEAST)
    causes = sorted({Cause(row.cause) for row in rows})
    at = {name: number for number, name in enumerate(names)}
    matrix = torch.zeros(len(rows), len(names), dtype=torch.float64)
    for line, each in enumerate(had):
        for name in each & at.keys():
            matrix[line, at[name]] = 1.0
    truths = torch.tensor([causes.index(Cause(row.cause)) for row in rows])
    worth = torch.tensor([1.0 if row.origin == "public" else MADE for row in rows]).double()
    found, always = _minimised(matrix, truths, worth, len(causes))
    table = {likeness.ALWAYS: always, **{name: found[at[name]] for name in names}}
    return {
        name: {cause: round(float(each), DIGITS) for cause, each in zip(causes, line, strict=True)}
        for name, line in table.items()
    }


def _minimised(
    matrix: torch.Tensor, truths: torch.Tensor, worth: torch.Tensor, causes: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the weights and the frequencies' that a penalised logistic regression has."""
    weights = torch.zeros(matrix.shape[1], causes, dtype=torch.float64, requires_grad=True)
    always = torch.zeros(causes, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS(
        [weights, always],
        max_iter=300,
        tolerance_grad=1e-5,
        tolerance_change=1e-10,
        history_size=20,
        line_search_fn="strong_wolfe",
    )

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        each = torch.nn.functional.cross_entropy(
            matrix @ weights + always, truths, reduction="none"
        )
        total = (worth * each).sum() + PENALTY / 2 * weights.square().sum()
        total.backward()
        return total

    optimizer.step(loss)
    return weights.detach(), (always - always.mean()).detach()


def text_of(table: Mapping[str, Mapping[Cause, float]]) -> str:
    """Return the weights as a file's text."""
    causes = list(table[likeness.ALWAYS])
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["trait", *causes])
    for name, line in table.items():
        writer.writerow([name, *(f"{line[cause]:.{DIGITS}f}" for cause in causes)])
    return out.getvalue()


def fitted_to(rows: Sequence[Situation]) -> dict[str, dict[Cause, float]]:
    """Return the weights that these situations give."""
    return fitted(rows, [traits_of(row) for row in rows])


def score() -> str:
    """Return how a fit that has not seen the ten newest batches judges them."""
    table = fitted_to(kept(situationrows.SEEN))
    likeness.weights = lambda: table  # type: ignore[assignment]
    return situationrows.figures(situationrows.judged(kept(situationrows.HELD_OUT)))


def main() -> int:
    if "--score" in sys.argv[1:]:
        print(score())
        return 0
    rows = seen()
    table = fitted_to(rows)
    path = resources("calibration", "likeness.csv")
    if "--check" not in sys.argv[1:]:
        write(path, text_of(table))
        print(f"{len(table)} traits of {len(rows)} runs")
        return 0
    shipped = likeness.weights()
    if shipped.keys() != table.keys():
        print("other traits: run scripts/fit_likeness.py")
        return 1
    apart = max(
        abs(table[name][cause] - shipped[name][cause]) for name in table for cause in table[name]
    )
    print(f"largest difference of a weight: {apart:.3f}")
    return int(apart > 0.02)


if __name__ == "__main__":
    sys.exit(main())
