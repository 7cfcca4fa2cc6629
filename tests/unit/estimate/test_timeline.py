"""What a person sees on the lanes: nothing overlaps on the GPU, and every wait is shown."""

from itertools import pairwise
from typing import Any

import pytest

from trainwright.estimate.time.stepterms import Bottleneck
from trainwright.estimate.time.steptime import Stage, TimeEstimate
from trainwright.estimate.time.timeline import timeline
from trainwright.explain import Kind, Quantity, Unit
from trainwright.messages import Message


def stage(name: str, seconds: float, *, hidden: bool = False, **more: Any) -> Stage:
    quantity = Quantity(Message.of(f"time.stage.{name}"), seconds, Unit.SECONDS, Kind.ESTIMATED)
    return Stage(name, quantity, hidden, **more)


def step(*stages: Stage, bottleneck: Bottleneck = "gpu") -> TimeEstimate:
    seconds = sum(each.seconds.value for each in stages if not each.hidden)
    whole = Quantity(Message.of("time.step"), seconds, Unit.SECONDS, Kind.ESTIMATED)
    return TimeEstimate(whole, whole, None, None, bottleneck, stages)


def test_stages_of_the_gpu_follow_each_other_and_fill_the_step() -> None:
    line = timeline(
        step(
            *(stage("forward", 2), stage("backward", 4), stage("optimizer", 1)),
            stage("load", 3, hidden=True),
        )
    )
    on_gpu = [bar for bar in line.bars if bar.lane == "gpu"]
    assert [bar.stage.name for bar in on_gpu] == ["forward", "backward", "optimizer"]
    assert all(one.end == other.start for one, other in pairwise(on_gpu))
    assert (on_gpu[0].start, on_gpu[-1].end, line.step) == (0, 7, 7)
    assert line.idle is None
    assert line.lanes == ("storage", "gpu")


def test_what_is_hidden_runs_beside_and_adds_nothing() -> None:
    line = timeline(step(stage("forward", 5), stage("decode", 4, hidden=True)))
    (decode,) = [bar for bar in line.bars if bar.lane == "cpu"]
    assert decode.beside
    assert (decode.start, decode.end, line.step) == (0, 4, 5)


def test_slow_decoding_shows_as_idle_of_the_gpu_before_it_starts() -> None:
    line = timeline(step(stage("forward", 3), stage("decode", 7, busy=10), bottleneck="decode"))
    bars = {bar.stage.name: bar for bar in line.bars}
    assert (bars["decode"].start, bars["decode"].end) == (0, 10)
    assert (bars["forward"].start, bars["forward"].end) == (7, 10)
    (wait,) = line.waits
    assert (wait.stage.name, wait.start, wait.end) == ("decode", 0, 7)
    assert line.idle is not None
    assert line.idle.value == 7
    assert line.limiting == ("cpu", "decode")


def test_without_workers_each_stage_of_the_input_waits_for_the_one_before() -> None:
    line = timeline(
        step(stage("forward", 3), stage("load", 1), stage("decode", 5), stage("transfer", 0.5))
    )
    spans = {bar.stage.name: (bar.start, bar.end) for bar in line.bars}
    assert spans == {"load": (0, 1), "decode": (1, 6), "transfer": (6, 6.5), "forward": (6.5, 9.5)}
    assert not any(bar.beside for bar in line.bars)
    assert line.idle is not None
    assert line.idle.value == pytest.approx(6.5)


def test_gradients_travel_beside_backward_and_end_before_the_update() -> None:
    line = timeline(
        step(
            *(stage("forward", 2), stage("backward", 4), stage("optimizer", 1)),
            stage("communication", 1, busy=3),
        )
    )
    spans = {bar.stage.name: (bar.start, bar.end) for bar in line.bars}
    assert spans["communication"] == (4, 7)
    assert spans["optimizer"] == (7, 8)
    assert line.waits[0].end == 7


def test_an_optimizer_on_the_cpu_leaves_the_gpu_idle() -> None:
    line = timeline(step(stage("forward", 2), stage("optimizer", 5, lane="cpu")))
    assert line.idle is not None
    assert line.idle.value == 5
    assert {bar.lane for bar in line.bars} == {"gpu", "cpu"}


@pytest.mark.parametrize("bottleneck", ["gpu", "launch", "storage", "decode"])
def test_the_bottleneck_is_one_of_the_stages_shown(bottleneck: Bottleneck) -> None:
    names = {"gpu": "backward", "launch": "launch", "storage": "load", "decode": "decode"}
    stages = [stage(name, 2) for name in ("forward", "optimizer", "launch", "load", "decode")]
    line = timeline(step(*stages, stage("backward", 3), bottleneck=bottleneck))
    assert line.limiting is not None
    assert line.limiting[1] == names[bottleneck]
