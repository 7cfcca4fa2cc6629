"""How often the likeness to known runs names the cause of runs that it was not fitted to."""

import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

import fit_likeness
from situationrows import (
    BATCHES,
    Situation,
    kept,
)

from trainwright.diagnose.likeness import ALWAYS, weights
from trainwright.diagnose.verdict import Cause

LEFT_OUT = fit_likeness.SEEN[-4:]
"""The newest: each is fitted without for 6 seconds."""
GUESS = 0.5
"""Less than this would be no help; a guess among nine causes is right for a ninth."""


@pytest.fixture(scope="module")
def had() -> dict[str, frozenset[str]]:
    return {row.id: fit_likeness.traits_of(row) for row in fit_likeness.seen()}


def told(row: Situation, traits: frozenset[str], table: dict[str, dict[Cause, float]]) -> bool:
    """Return whether the likeliest cause by a table is the true one."""
    known = [table[name] for name in traits & table.keys()]
    scores = {each: table[ALWAYS][each] + sum(of[each] for of in known) for each in table[ALWAYS]}
    return max(scores, key=lambda each: scores[each]) in (row.cause, row.also_right)


def test_the_shipped_weights_are_those_that_the_situations_give(
    had: dict[str, frozenset[str]],
) -> None:
    rows = fit_likeness.seen()
    table = fit_likeness.fitted(rows, [had[row.id] for row in rows])
    shipped = weights()
    assert table.keys() == shipped.keys(), "run scripts/fit_likeness.py: a rule was changed"
    apart = (abs(of[each] - shipped[name][each]) for name, of in table.items() for each in of)
    assert max(apart) <= 0.02


def test_runs_of_a_batch_are_told_by_those_of_the_others(had: dict[str, frozenset[str]]) -> None:
    print("\nThe cause that is likeliest by known runs alone, of batches that were not fitted to")
    print("(the rules, whose signals are among the traits, have seen all of them)")
    rights = [_of_batch(batch, had) for batch in LEFT_OUT]
    right, all_of_them = (sum(column) for column in zip(*rights, strict=True))
    print(f"{'together':14} {right:3} of {all_of_them} ({right / all_of_them:.0%})")
    assert right / all_of_them >= GUESS


def test_more_known_runs_tell_more(had: dict[str, frozenset[str]]) -> None:
    """The newest batches by fewer and more of the runs before them, without the rules' signals."""
    print(
        "\nThe same by a part of the runs before these batches, and without what rules say of them"
    )
    plain = {name: frozenset(filter(_is_plain, traits)) for name, traits in had.items()}
    before = sorted(fit_likeness.seen(range(1, LEFT_OUT[0])), key=lambda row: _digest(row.id))
    rows = [row for batch in LEFT_OUT for row in kept(held_out=True, batch=batch)]
    shares = []
    for part in (8, 4, 2, 1):
        known = before[: len(before) // part]
        table = fit_likeness.fitted(known, [plain[row.id] for row in known])
        rights = {row.id: told(row, plain[row.id], table) for row in rows}
        shares.append(sum(rights.values()) / len(rows))
        by_origin = (
            [rights[row.id] for row in rows if row.origin == origin]
            for origin in ("real-run", "public")
        )
        runs, public = (f"{sum(each)} of {len(each)}" for each in by_origin)
        print(f"{len(known):5} runs known: {shares[-1]:.0%} (real runs {runs}, public {public})")
    assert shares[-1] > shares[0]


def _is_plain(trait: str) -> bool:
    return not trait.startswith("rule ")


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def _of_batch(batch: int, had: dict[str, frozenset[str]]) -> tuple[int, int]:
    others = fit_likeness.seen(tuple(each for each in fit_likeness.SEEN if each != batch))
    table = fit_likeness.fitted(others, [had[row.id] for row in others])
    rows: Sequence[Situation] = kept(held_out=True, batch=batch)
    right = sum(told(row, had[row.id], table) for row in rows)
    print(f"{BATCHES[batch - 1]:14} {right:3} of {len(rows)} ({right / len(rows):.0%})")
    return right, len(rows)
