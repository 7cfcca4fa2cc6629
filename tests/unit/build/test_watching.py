"""A search that takes long says which card it is at, on a terminal and nowhere else."""

import io
import sys

import pytest

from trainwright.build import Request, money, search
from trainwright.cli import build
from trainwright.cli.terminal import Terminal
from trainwright.data import resources
from trainwright.messages import Message, render
from trainwright.plan import file
from trainwright.plan.schema import Plan


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def request_() -> Request:
    plan = file.read(resources("examples", "resnet50-rtx3060.plan.yaml"))
    return Request(plan, money("3000USD"))


def test_each_card_is_told_once_in_its_turn(request_: Request) -> None:
    told: list[tuple[float, Message]] = []
    search(request_, watch=lambda share, what: told.append((share, what)))
    looked = [(share, what.values) for share, what in told if what.id == "planner.looking"]
    count = looked[0][1]["count"]
    assert [values["number"] for _, values in looked] == list(range(1, count + 1))
    assert [share for share, _ in looked] == sorted(share for share, _ in looked)
    around = [render(what, "en") for _, what in told if what.id == "planner.choosing"]
    assert around
    assert all("×" in one for one in around)


def test_a_terminal_sees_it_after_two_seconds_and_a_file_never(
    request_: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = {}
    for name, stream, silent in (("late", Screen(), 0.0), ("soon", Screen(), 60.0)):
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.setattr(build, "SILENT_S", silent)
        build.found_for(request_, Terminal("ko", lambda _path: 0))
        shown[name] = stream.getvalue()
    assert "컴퓨터 찾는 중" in shown["late"]
    assert "카드" in shown["late"]
    assert "찾는 중" not in shown["soon"]
    monkeypatch.setattr(sys, "stderr", pipe := io.StringIO())
    monkeypatch.setattr(build, "SILENT_S", 0.0)
    build.found_for(request_, Terminal("ko", lambda _path: 0))
    assert pipe.getvalue() == ""


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
