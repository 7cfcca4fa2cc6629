"""A plan's deadline: what keeps it comes first, and it is said where nothing does."""

import pytest

from trainwright.build import Request, money, search
from trainwright.data import resources
from trainwright.messages.catalogue import render
from trainwright.plan import file
from trainwright.plan.schema import Plan


def asked(deadline_h: float | None, **workload: object) -> Plan:
    plan = file.read(resources("examples", "gpt2-rtx4070.plan.yaml"))
    limits = plan.limits.model_copy(update={"deadline_h": deadline_h})
    changed = plan.workload.model_copy(update=workload)
    return plan.model_copy(update={"limits": limits, "workload": changed})


@pytest.fixture(scope="module")
def free() -> list[float]:
    """Return the hours of the computers that are shown without a deadline."""
    found = search(Request(asked(None), money("3000000KRW")))
    return sorted((one.seconds or 0.0) / 3600 for one in found.builds)


def test_only_computers_that_end_in_time_are_shown(free: list[float]) -> None:
    between = (free[0] + free[1]) / 2
    found = search(Request(asked(between), money("3000000KRW")))
    assert found.builds
    assert all((one.seconds or 0.0) / 3600 <= between for one in found.builds)
    assert not any("deadline" in note.id or "late" in note.id for note in found.notes)


def test_where_none_ends_in_time_it_says_so_and_what_would(free: list[float]) -> None:
    found = search(Request(asked(free[0] * 0.8), money("3000000KRW")))
    assert found.builds, "what there is for the money is still told"
    said = [render(note, "en") for note in found.notes]
    assert any("None within this budget ends the run in" in one for one in said)
    assert any("cheapest one that does" in one and "₩" in one for one in said)


def test_without_a_number_of_samples_nobody_can_tell() -> None:
    found = search(Request(asked(10.0, samples=None), money("3000000KRW")))
    assert any(note.id == "planner.note.deadline-unknown" for note in found.notes)
