"""The scaling curve that a report shows, and its sentences."""

from dataclasses import replace
from typing import Any

import pytest
from handmade import (
    full_settings,
    gpu,
    product,
    profile_of,
    record,
    timed,
    workload,
)

from trainwright.catalog import GpuRecord, find_cpu
from trainwright.catalog.query import find_gpu
from trainwright.estimate.time.clock import Clock
from trainwright.estimate.time.operator_clock import Situation
from trainwright.estimate.time.steptime import TimeEstimate
from trainwright.messages import LANGUAGES, render
from trainwright.profile.profile import Profile
from trainwright.workload import Inputs, Workload


def model(trainable: int, repeat: int = 400) -> Profile:
    layer = product(2048, 4096, 4096), product(2048, 4096, 4096, "backward")
    return profile_of(*layer, repeat=repeat, trainable=trainable)


def said(estimate: TimeEstimate) -> dict[str, dict[str, Any]]:
    return {note.id: dict(note.values) for note in estimate.notes}


def test_the_curve_starts_at_one_gpu_and_ends_with_the_plan() -> None:
    estimate = timed(model(10**7), gpu_count=4, accumulation=2)
    assert [point.gpus for point in estimate.scaling] == [1, 2, 3, 4]
    first, *_, last = estimate.scaling
    assert first.efficiency.value == 1
    assert last.samples_per_second.value == pytest.approx(estimate.samples_per_second.value)
    # The same training run: the effective batch stays what the plan says, or comes next above.
    assert [point.effective_batch for point in estimate.scaling] == [8, 8, 9, 8]
    rates = [point.samples_per_second.value for point in estimate.scaling]
    assert rates == sorted(rates)
    assert all(0 < point.efficiency.value <= 1 for point in estimate.scaling)
    for point in estimate.scaling[1:]:
        interval = point.efficiency.interval
        assert interval is not None
        assert interval.low < point.efficiency.value < interval.high <= 1


def test_fewer_gpus_are_named_only_where_they_take_the_same_batch() -> None:
    """Three of four GPUs would take a larger effective batch, and exchange less often for it."""
    estimate = timed(model(2 * 10**9), gpu_count=4)
    alike = {point.gpus: point for point in estimate.scaling if point.effective_batch == 4}
    assert set(alike) == {1, 2, 4}
    fastest = max(alike.values(), key=lambda point: point.samples_per_second.value)
    named = said(estimate).get("time.note.scaling-too-many", {}).get("best")
    assert named in (None, fastest.gpus)


def test_many_gpus_are_not_all_worked_out() -> None:
    counts = [point.gpus for point in timed(model(10**7), gpu_count=48).scaling]
    assert counts == [1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 48]


def test_a_second_gpu_that_makes_it_slower_is_said_with_its_bytes() -> None:
    estimate = timed(model(3 * 10**9, repeat=1), gpu_count=2)
    assert estimate.scaling[-1].gain < 0
    note = said(estimate)["time.note.scaling-slower"]
    assert note["bytes"] == pytest.approx(12e9)
    changes = {
        each.id: each.values["then"].values["gain"]
        for each in said(estimate)["time.note.scaling-changes"]["changes"]
    }
    assert changes["time.change.accumulation"] > estimate.scaling[-1].gain
    assert changes["time.change.compressed"] > estimate.scaling[-1].gain
    assert changes["time.change.half-slots"] < estimate.scaling[-1].gain
    assert "time.change.bridge" not in changes  # the RTX 4090 takes none


def test_a_bridge_is_offered_to_cards_that_take_one() -> None:
    a6000: GpuRecord = find_gpu("rtx-a6000").record
    estimate = timed(model(10**9, repeat=2), gpu(a6000), gpu_count=2)
    changes = {
        each.id: each.values["then"].values["gain"]
        for each in said(estimate)["time.note.scaling-changes"]["changes"]
    }
    assert changes["time.change.bridge"] > estimate.scaling[-1].gain
    assert "time.note.slots-and-bridges" in said(estimate)


def test_adapters_scale_where_the_whole_model_does_not() -> None:
    whole = timed(model(10**9), gpu_count=2).scaling[-1]
    adapters = timed(model(10**7), gpu_count=2).scaling[-1]
    assert whole.efficiency.value < 0.7
    assert adapters.efficiency.value > 0.95


def test_gradients_are_exchanged_once_for_all_micro_batches() -> None:
    profile = model(10**9)
    often, rarely = (timed(profile, gpu_count=2, accumulation=n) for n in (1, 8))
    exposed = [
        next(stage.seconds.value for stage in each.stages if stage.name == "communication")
        for each in (often, rarely)
    ]
    assert exposed[1] < 2 * exposed[0]
    assert rarely.scaling[-1].efficiency.value > often.scaling[-1].efficiency.value + 0.1


def test_the_exchange_opens_to_bytes_and_bandwidth() -> None:
    estimate = timed(model(10**9), gpu_count=2)
    stage = next(stage for stage in estimate.stages if stage.name == "communication")
    parts = {part.name.id: part for part in stage.seconds.parts}
    assert sum(part.value for part in parts.values()) == pytest.approx(stage.seconds.value)
    after = parts["time.exchange.after"]
    whole, hidden = after.parts
    assert after.value == pytest.approx(whole.value - hidden.value)
    wire = {part.name.id: part.value for part in whole.parts}
    assert wire["time.gradients"] == 4e9
    assert wire["time.link.host"] == pytest.approx(31.5e9 / 2, rel=0.01)


@pytest.mark.parametrize("gpus", [2, 8])
def test_no_duration_of_an_exchange_is_negative(gpus: int) -> None:
    """Hidden time once stood among the parts as -9 ms."""
    for trainable in (10**7, 10**9):
        for stage in timed(model(trainable), gpu_count=gpus).stages:
            assert all(part.value >= 0 for _, part in stage.seconds.walk())


def test_slots_are_what_the_processor_leaves_to_each_card() -> None:
    """A desktop's 16 lanes are 8 and 8; a Threadripper PRO has 16 for either."""
    said_by = {}
    for name in ("ryzen-9-7950x", "ryzen-threadripper-pro-7955wx"):
        situation = Situation(gpu(), 2, workload(), 0, cpu=find_cpu(name))
        estimate = timed(model(10**9), gpu_count=2, clock=Clock(situation))
        assert "time.note.slots" not in said(estimate)
        said_by[name] = estimate
    desktop, station = said_by.values()
    assert station.scaling[-1].gain > desktop.scaling[-1].gain + 0.1
    changes = {each.id: each for each in said(desktop)["time.note.scaling-changes"]["changes"]}
    assert changes["time.change.wider-slots"].values["lanes"] == 16
    then = changes["time.change.wider-slots"].values["then"].values["gain"]
    assert then == pytest.approx(station.scaling[-1].gain, abs=0.01)
    unknown = said(timed(model(10**9), gpu_count=2))["time.note.slots"]
    assert unknown["lanes"] == 8


def test_what_is_said_of_a_second_gpu_follows_the_range() -> None:
    verdicts = {}
    for millions in (5000, 1000, 420, 230, 10):
        last = timed(model(millions * 10**6), gpu_count=2).scaling[-1]
        low, high = last.gains
        expected = (
            ("slower" if high <= 0 else "probably-slower")
            if last.gain <= 0
            else ("either" if low <= 0 else "gain")
        )
        verdicts[last.verdict] = expected
    assert all(said == expected for said, expected in verdicts.items())
    assert {"slower", "either", "gain"} <= set(verdicts)


def test_one_gpu_hears_what_a_second_would_do() -> None:
    estimate = timed(model(10**7))
    assert [point.gpus for point in estimate.scaling] == [1, 2]
    assert said(estimate)["time.note.scaling-offer-gain"]["gain"] > 0.9
    slow = timed(model(3 * 10**9, repeat=1))
    assert "time.note.scaling-offer-slower" in said(slow)


def test_a_laptop_gets_no_second_gpu() -> None:
    laptop = find_gpu("rtx-4090-laptop").record
    assert not timed(model(10**7), gpu(laptop)).scaling


def test_nothing_is_offered_where_gpus_cannot_share_the_work() -> None:
    profile = model(10**7)
    assert not timed(profile, optimizer_in_backward=True).scaling
    reading = profile.segments["micro"]
    serving = replace(profile, segments={"prefill": reading, "decode": reading})
    job = Workload(task="infer", inputs=Inputs(prompt_tokens=100, new_tokens=11))
    assert not timed(serving, workload=job, sequence=100).scaling
    unknown = record("unknown", 1e12)
    assert not timed(profile, gpu(unknown)).scaling  # its time is only a bound


def test_clocks_of_other_numbers_share_what_operators_take() -> None:
    clock = Clock(Situation(gpu(), 2, workload(), 0))
    profile, one = model(10**8), clock.of(1)
    shared = full_settings(strategy="ddp")
    both = clock.terms(profile, shared, 1), one.terms(profile, shared, 1)
    assert both[0].gpu == both[1].gpu
    assert both[1].communication == 0 < both[0].communication
    assert clock.of(2) is clock
    assert clock.of(1) is one


def test_every_sentence_exists_in_both_languages() -> None:
    estimates = [
        timed(model(3 * 10**9, repeat=1), gpu_count=2),
        timed(model(10**7), gpu_count=4),
        timed(model(3 * 10**9, repeat=1)),
        timed(model(10**7)),
        timed(model(10**9), gpu(find_gpu("rtx-a6000").record), gpu_count=2),
        timed(model(10**9), gpu(find_gpu("h100-80gb-sxm").record), gpu_count=8),
    ]
    names = [
        message
        for estimate in estimates
        for quantity in (
            estimate.step_seconds,
            *(figure for point in estimate.scaling for figure in (point.efficiency,)),
        )
        for message in (*(each.name for _, each in quantity.walk()), *estimate.notes)
    ]
    for message in names:
        for language in LANGUAGES:
            assert "time." not in render(message, language), message.id
