"""What an expert says of the first choice for plans and budgets; the table is printed."""

from typing import Any

import buildrows
import pytest


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
    assert not objections
