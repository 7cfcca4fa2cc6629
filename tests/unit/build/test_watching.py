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
