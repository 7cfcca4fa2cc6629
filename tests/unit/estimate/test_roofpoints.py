"""Operators against the roofs: nothing above them, nothing lost, numbers that give the time.

Curves of the calibration rise with the size, below the roof.
"""

from functools import cache
from itertools import pairwise

import pytest

from trainwright.data import resources
from trainwright.estimate.time.roofpoints import (
    MOST,
    Roofs,
    explained,
    explained_class,
    explained_stage,
)
from trainwright.explain import Quantity
from trainwright.messages import render
from trainwright.plan.evaluate import Facts, operators_of, resolve, time_of
from trainwright.plan.file import read
from trainwright.plan.schema import Plan

EXAMPLES = ("resnet50-rtx3060", "gpt2-rtx4070", "llama-8b-serve-rtx4090")
TRAINED = ("resnet50-rtx3060", "gpt2-rtx4070", "sdxl-lora-rtx4090")
KERNELS = ("forward", "recompute", "backward", "optimizer", "prefill", "generate")


@cache
def known(name: str) -> tuple[Plan, Facts, Roofs]:
    plan = read(resources("examples", f"{name}.plan.yaml"))
    facts = resolve(plan)
    assert isinstance(facts, Facts)
    return plan, facts, operators_of(plan, facts)


@pytest.mark.parametrize("name", EXAMPLES)
def test_no_operator_is_faster_than_the_data_sheet_allows(name: str) -> None:
    """Data sheets name the boost clock; cooled well, GPUs run up to 10 % above it."""
    _, _, roofs = known(name)
    assert any(point.flops for point in roofs.points)
    for point in roofs.points:
        assert point.traffic <= roofs.bandwidth.value * 1.001
        if point.dtype in roofs.peaks:
            assert point.rate <= 1.1 * roofs.peaks[point.dtype].fact.value


@pytest.mark.parametrize("name", EXAMPLES)
def test_operators_take_the_time_of_the_stages(name: str) -> None:
    plan, facts, roofs = known(name)
    stages = {stage.name: stage for stage in time_of(plan, facts).stages if stage.name in KERNELS}
    whole = sum(stage.seconds.value for stage in stages.values())
    assert roofs.seconds == pytest.approx(whole)
    assert sum(point.seconds for point in roofs.points) + roofs.rest == pytest.approx(whole)
    assert len(roofs.points) <= MOST
    assert {point.stage for point in roofs.points} <= set(stages)


def test_the_slowest_come_first() -> None:
    seconds = [point.seconds for point in known(EXAMPLES[0])[2].points]
    assert seconds == sorted(seconds, reverse=True)


def test_large_products_are_bound_by_arithmetic_and_small_kernels_by_their_launch() -> None:
    _, _, roofs = known(EXAMPLES[2])
    prompts = [p for p in roofs.points if p.group == "gemm" and p.stage == "prefill" and p.flops]
    tokens = [p for p in roofs.points if p.group == "gemm" and p.stage == "generate"]
    assert max(prompts, key=lambda point: point.seconds).bound == "compute"
    assert max(tokens, key=lambda point: point.seconds).bound == "memory"
    tiny = min(roofs.points, key=lambda point: point.bytes / point.runs)
    assert tiny.bound == "launch"
    assert 0.5 < tiny.seconds / (tiny.runs * roofs.floor) < 2


def test_the_peak_is_of_the_dtype_that_the_products_are_made_in() -> None:
    _, _, roofs = known(EXAMPLES[0])
    assert roofs.peaks["bfloat16"].name == "bf16"
    assert roofs.peaks["bfloat16"].fact.value == pytest.approx(25.5e12, rel=0.01)


def numbers(quantity: Quantity) -> dict[str, float]:
    return {part.name.id: part.value for _, part in quantity.walk()}


@pytest.mark.parametrize("bound", ["compute", "memory"])
def test_the_explained_numbers_give_the_time_again(bound: str) -> None:
    _, _, roofs = known(EXAMPLES[1])
    point = next(point for point in roofs.points if point.bound == bound)
    said = numbers(explained(roofs, point))
    if bound == "compute":
        alone = said["time.flop"] / (said["time.peak"] * said["time.of-peak"])
        assert said["time.arithmetic"] == pytest.approx(alone)
    else:
        alone = said["time.bytes"] / (said["time.bandwidth"] * said["time.of-bandwidth"])
        assert said["time.traffic"] == pytest.approx(alone)
    assert said["time.runs"] * said["time.a-run"] == pytest.approx(point.seconds)
    assert alone <= said["time.a-run"] * (1 + 1e-9)
    assert alone > 0.3 * said["time.a-run"]


def test_a_class_opens_to_all_its_operators() -> None:
    _, _, roofs = known(EXAMPLES[1])
    for group, seconds in roofs.classes.items():
        whole = explained_class(roofs, group)
        assert whole.value == seconds
        assert sum(part.value for part in whole.parts) == pytest.approx(seconds)


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_stage_opens_to_classes_that_sum_to_it(name: str) -> None:
    plan, facts, roofs = known(name)
    for stage in time_of(plan, facts).stages:
        classes = explained_stage(roofs, stage.name)
        if stage.name in KERNELS:
            assert sum(part.value for part in classes) == pytest.approx(stage.seconds.value)
        else:
            assert classes == ()
        for whole in classes:
            assert sum(part.value for part in whole.parts) == pytest.approx(whole.value)


@pytest.mark.parametrize("language", ["en", "ko"])
def test_every_sentence_is_written(language: str) -> None:
    _, _, roofs = known(EXAMPLES[1])
    for point in roofs.points:
        for _, part in explained(roofs, point).walk():
            for message in filter(None, (part.name, part.note)):
                assert not render(message, language).startswith("time."), message.id  # type: ignore[arg-type]


def test_products_are_told_apart_by_their_shape() -> None:
    """GPT-2's first layer of the feed-forward: 4 x 1024 tokens, 768 to 3072."""
    _, _, roofs = known(EXAMPLES[1])
    forward = [p for p in roofs.points if p.group == "gemm" and p.stage == "forward"]
    assert (4096, 3072, 768) in [point.shape for point in forward]
    for point in forward:
        m, n, k = point.shape
        assert point.flops / point.runs == pytest.approx(2 * m * n * k, rel=1e-6)
    assert any(p.short_name.endswith("bf16 4096×3072×768") for p in forward)


def test_an_operator_is_found_by_its_address() -> None:
    _, _, roofs = known(EXAMPLES[0])
    assert roofs.at(roofs.points[3].address) is roofs.points[3]
    assert roofs.at("forward.99999") is None


@pytest.mark.parametrize("name", TRAINED)
def test_larger_runs_come_nearer_to_the_roof_and_never_far_above_it(name: str) -> None:
    for curve in known(name)[2].curves.values():
        assert all(one[0] < other[0] for one, other in pairwise(curve))
        assert all(0 < share < 1.1 for _, share in curve)
        if curve:
            assert curve[-1][1] > 5 * curve[0][1]


def test_traffic_alone_rises_without_a_dip() -> None:
    for group in ("pointwise", "cast", "softmax"):
        curve = known("gpt2-rtx4070")[2].curves[group]
        assert all(one[1] <= other[1] for one, other in pairwise(curve))


def test_operators_that_only_move_bytes_lie_on_the_curve_of_their_class() -> None:
    _, _, roofs = known("gpt2-rtx4070")
    curve = roofs.curves["pointwise"]
    for point in roofs.points:
        if point.group != "pointwise" or point.size < curve[0][0]:
            continue
        below, above = next(
            (one, other) for one, other in pairwise(curve) if one[0] <= point.size <= other[0]
        )
        assert below[1] * 0.999 <= roofs.share(point) <= above[1] * 1.001


def test_classes_without_one_shape_have_no_curve() -> None:
    assert known("resnet50-rtx3060")[2].curves["batch-norm"] == ()
