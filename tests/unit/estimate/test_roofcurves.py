"""Curves of the calibration as a person sees them: they rise with the size, below the roof."""

from functools import cache
from itertools import pairwise

import pytest

from trainwright.data import resources
from trainwright.estimate.roofpoints import Roofs
from trainwright.plan.evaluate import Facts, operators_of, resolve
from trainwright.plan.file import read

EXAMPLES = ("resnet50-rtx3060", "gpt2-rtx4070", "sdxl-lora-rtx4090")


@cache
def known(name: str) -> Roofs:
    plan = read(resources("examples", f"{name}.plan.yaml"))
    facts = resolve(plan)
    assert isinstance(facts, Facts)
    roofs = operators_of(plan, facts)
    assert roofs is not None
    return roofs


@pytest.mark.parametrize("name", EXAMPLES)
def test_larger_runs_come_nearer_to_the_roof_and_never_far_above_it(name: str) -> None:
    for curve in known(name).curves.values():
        assert all(one[0] < other[0] for one, other in pairwise(curve))
        assert all(0 < share < 1.1 for _, share in curve)
        if curve:
            assert curve[-1][1] > 5 * curve[0][1]


def test_traffic_alone_rises_without_a_dip() -> None:
    for group in ("pointwise", "cast", "softmax"):
        curve = known("gpt2-rtx4070").curves[group]
        assert all(one[1] <= other[1] for one, other in pairwise(curve))


def test_operators_that_only_move_bytes_lie_on_the_curve_of_their_class() -> None:
    roofs = known("gpt2-rtx4070")
    curve = roofs.curves["pointwise"]
    for point in roofs.points:
        if point.group != "pointwise" or point.size < curve[0][0]:
            continue
        below, above = next(
            (one, other) for one, other in pairwise(curve) if one[0] <= point.size <= other[0]
        )
        assert below[1] * 0.999 <= roofs.share(point) <= above[1] * 1.001


def test_classes_without_one_shape_have_no_curve() -> None:
    assert known("resnet50-rtx3060").curves["batch-norm"] == ()
