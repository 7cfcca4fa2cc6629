"""Several GPUs beside each other without their window."""

import pytest

from trainwright.catalog.mig import find_mig_table
from trainwright.messages import UserError
from trainwright.mig import board, boards
from trainwright.mig.board import Sketch
from trainwright.mig.boards import Boards, Place
from trainwright.mig.layout import Instance

TABLE = find_mig_table("A100 80GB")[0]


def some(*layouts):
    """Return boards of GPUs with these instances: ``3g.40gb@4``."""
    made = []
    for layout in layouts:
        sketch = Sketch(TABLE)
        for each in layout:
            name, _, start = each.partition("@")
            sketch = board.add(sketch, name, int(start))
        made.append(sketch)
    return Boards(tuple(made))


def drawn(made):
    return [[each.shown for each in sketch.layout] for sketch in made.sketches]


def test_every_step_over_both_is_undone_and_done_again():
    steps = [some([], [])]
    one = Place(0, Instance("3g.40gb", 4))
    for edit in (
        lambda made: boards.put(made, {0: board.add(made.sketches[0], "3g.40gb", 4)}),
        lambda made: boards.assign(made, one, "eval"),
        lambda made: boards.carry(made, one, 1, 0),
        lambda made: boards.resized(made, (Sketch(TABLE),) * 3),
        boards.cleared,
    ):
        steps.append(edit(steps[-1]))
    made = steps[-1]
    assert len(made.past) == 5
    for before in reversed(steps[:-1]):
        made = boards.undo(made)
        assert made.sketches == before.sketches
    assert boards.undo(made) == made
    for after in steps[1:]:
        made = boards.redo(made)
        assert made.sketches == after.sketches
    assert boards.redo(made) == made
    again = boards.undo(made)
    assert boards.put(again, {2: board.add(again.sketches[2], "1g.10gb")}).ahead == ()


def test_an_instance_takes_its_job_along_to_another_gpu():
    made = boards.assign(some(["2g.20gb@0"], []), Place(0, Instance("2g.20gb", 0)), "embed")
    made = boards.carry(made, Place(0, Instance("2g.20gb", 0)), 1, None)
    assert drawn(made) == [[], ["2g.20gb@4"]]
    assert made.jobs == {Place(1, Instance("2g.20gb", 4)): "embed"}


def test_what_has_no_place_there_stays():
    made = some(["3g.40gb@0"], ["7g.80gb@0"])
    with pytest.raises(UserError):
        boards.carry(made, Place(0, Instance("3g.40gb", 0)), 1, None)


def test_a_job_that_goes_to_another_gpu_leaves_its_instance():
    one, other = Place(0, Instance("3g.40gb", 0)), Place(1, Instance("3g.40gb", 4))
    made = boards.assign(some(["3g.40gb@0"], ["3g.40gb@4"]), one, "eval")
    made = boards.assign(made, other, "eval", before=one)
    assert made.jobs == {other: "eval"}


def test_a_profile_goes_to_the_next_gpu_with_room():
    made = some(["7g.80gb@0"], ["3g.40gb@0"])
    assert boards.home(made, "3g.40gb", 0) == 1
    assert boards.home(made, "3g.40gb", 1) == 1
    assert boards.home(made, "7g.80gb", 0) is None


def test_fewer_gpus_keep_what_is_drawn_on_those_that_remain():
    made = some(["3g.40gb@4"], ["2g.20gb@0"])
    fewer = boards.resized(made, (Sketch(TABLE),))
    assert drawn(fewer) == [["3g.40gb@4"]]
    assert boards.resized(made, (Sketch(TABLE),) * 2) is made
