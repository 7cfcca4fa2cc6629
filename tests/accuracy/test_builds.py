"""What an expert says of the first choice for plans and budgets; the table is printed."""

from typing import Any

import buildrows
import pytest

MISSED = {
    "QLoRA in Korea, little money, used": (
        "10 GB are enough in 95 of 100 cases with the loss in chunks, on a card that is twice as"
        " fast for the same money; headroom of a tenth would not rule it out"
    ),
}
"""Rows whose first choice an expert sends back, with the cause."""


@pytest.mark.slow
@pytest.mark.parametrize("row", buildrows.ROWS, ids=lambda row: row.name)
def test_an_expert_signs_the_first_choice(row: buildrows.Row, capsys: Any) -> None:
    found = row.answer()
    objections = buildrows.objections(row, found)
    with capsys.disabled():
        print(f"\n{row.name}, {row.budget}: {'; '.join(objections) or 'signed'}")
        for one in found.builds[:1]:
            parts = ", ".join(f"{part.count} × {part.name}" for part in one.parts)
            print(f"    {one.total.expected:,.0f} {one.total.currency}: {parts}")
    assert bool(objections) == (row.name in MISSED), objections
