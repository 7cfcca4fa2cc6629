"""The board without its window: places are NVIDIA's (MIG User Guide, nvidia-smi mig -lgipp)."""

import random

import pytest

from trainwright.catalog.mig import find_mig_table
from trainwright.messages import UserError, render
from trainwright.mig import board
from trainwright.mig.board import Sketch
from trainwright.mig.layout import Instance


def sketch(gpu="A100 80GB"):
    return Sketch(find_mig_table(gpu)[0])


def drawn(made):
    return [each.shown for each in made.layout]


def built(made, *places):
    for profile, start in places:
        made = board.add(made, profile, start)
    return made


def test_a_profile_without_a_start_leaves_the_largest_possible():
    made = board.add(sketch(), "1g.10gb")
    left = board.largest(made)
    assert drawn(made) == ["1g.10gb@6"]
    assert left == Instance("4g.40gb", 0)


@pytest.mark.parametrize("gpu", ["A100 40GB", "A100 80GB", "H100 80GB", "B200"])
def test_every_instance_that_has_room_gets_a_place(gpu):
    """Also before one alike that lies further behind."""
    table, dice = find_mig_table(gpu)[0], random.Random(27)
    for _ in range(60):
        made = Sketch(table)
        for _ in range(12):
            profile = dice.choice(table.profiles).name
            if board.why_not(made, profile, None) is None:
                made = board.add(made, profile)
            if made.layout and dice.random() < 0.3:
                made = board.remove(made, dice.choice(made.layout))
            assert all(each.start is not None for each in made.layout)


def test_a_2g_cannot_start_at_6_though_two_units_are_free_there():
    made = built(sketch(), ("3g.40gb", 0))
    with pytest.raises(UserError) as caught:
        board.add(made, "2g.20gb", 6)
    assert "0, 2, 4" in render(caught.value.message, "en")
    assert board.starts(made, "1g.20gb") == (4, 6)
    assert board.starts(made, "2g.20gb") == (4,)


def test_what_lies_in_the_way_is_named():
    made = built(sketch(), ("3g.40gb", 4))
    reason = board.why_not(made, "2g.20gb", 4)
    assert reason is not None
    assert "3g.40gb@4" in render(reason, "en")
    full = built(sketch(), ("7g.80gb", 0))
    assert "7g.80gb@0" in render(board.why_not(full, "1g.10gb", 0), "en")


def test_three_ones_block_a_3g_with_four_units_free():
    """NVIDIA/k8s-dra-driver-gpu, issue 933: 1g at 0, 1 and 5."""
    made = built(sketch(), ("1g.10gb", 0), ("1g.10gb", 1), ("1g.10gb", 5))
    reason = board.why_not(made, "3g.40gb", None)
    assert reason is not None
    assert "5" in render(reason, "en")
    assert board.still(made, "3g.40gb") == 0
    assert board.still(made, "1g.10gb") == 4


def test_the_double_memory_slice_may_start_where_the_2g_may_not():
    made = built(sketch(), ("3g.40gb", 0), ("2g.20gb", 4))
    assert board.largest(made) == Instance("1g.20gb", 6)


def test_one_media_instance_per_gpu():
    made = built(sketch(), ("1g.10gb+me", 0))
    assert board.why_not(made, "1g.10gb+me", 1) is not None
    assert board.still(made, "1g.10gb+me") == 0


def test_a_drag_snaps_to_the_nearest_legal_start_and_says_why_far_from_one():
    made = built(sketch(), ("3g.40gb", 0))
    assert board.nearest(made, "2g.20gb", 4.7) == (4, None)
    assert board.nearest(made, "1g.10gb", 3.4) == (4, None)
    there, reason = board.nearest(made, "2g.20gb", 6.0)
    assert (there, reason is None) == (6, False)
    there, reason = board.nearest(made, "3g.40gb", 0.3)
    assert reason is not None


def test_moving_takes_the_job_along_and_steps_over_what_is_taken():
    made = built(sketch(), ("1g.10gb", 0), ("2g.20gb", 2))
    one = Instance("1g.10gb", 1)
    made = board.move(made, Instance("1g.10gb", 0), 1)
    made = board.replaced(made, made.layout, {one: "embed"})
    assert board.next_start(made, one, 1) == 4
    assert board.next_start(made, one, -1) == 0
    made = board.move(made, one, 4)
    assert made.drawn.jobs == {Instance("1g.10gb", 4): "embed"}
    assert board.next_start(made, Instance("1g.10gb", 4), -1) == 1


def test_moving_to_where_it_is_is_no_step():
    made = built(sketch(), ("1g.10gb", 0))
    assert board.move(made, Instance("1g.10gb", 0), 0) is made


def test_idle_processors_of_a_full_h100_are_those_that_no_slice_has():
    """7 x 1g of 16 SMs on an H100 of 132 leave 20 (NVIDIA MIG User Guide, H100 profiles)."""
    table, gpu = find_mig_table("h100-80gb-sxm")
    made = Sketch(table)
    for start in range(7):
        made = board.add(made, "1g.10gb", start)
    left = board.idle(gpu, made)
    assert left is not None
    assert (left.processors, left.total, left.inferred) == (20, 132, False)


def test_fragments_on_twelve_units():
    """RTX PRO 6000: 1g at 3 and 6 leave half of the units and no 2g."""
    made = built(sketch("rtx-pro-6000-workstation"), ("1g.24gb", 3), ("1g.24gb", 6))
    assert board.largest(made).profile == "1g.24gb"
    assert board.why_not(made, "2g.48gb", None) is not None


def test_a_gpu_with_unknown_places_takes_nothing():
    made = sketch("rtx-pro-4500")
    assert board.why_not(made, "1g.16gb", 0) is not None
    assert board.largest(made) is None


def test_names_read_from_a_live_gpu_are_placed_where_a_driver_would():
    table = find_mig_table("A100 80GB")[0]
    layout = board.from_names(table, ["1g.10gb", "3g.40gb", "MIG 2g.20gb"])
    assert sorted(each.profile for each in layout) == ["1g.10gb", "2g.20gb", "3g.40gb"]
    assert board.from_names(table, ["7g.80gb", "1g.10gb"]) is None
    with pytest.raises(UserError):
        board.from_names(table, ["5g.1gb"])
