"""A plan's machine with other parts, and the build that it names."""

import pytest

from trainwright.machine.choice import MachineChoice
from trainwright.machine.parts import (
    build_of,
    left_out,
    unknown_parts,
    with_count,
    with_owned,
    with_part,
    without_part,
)
from trainwright.machine.resolve import catalogued

CHOICE = MachineChoice.model_validate(
    {
        "gpus": [{"id": "rtx-4090", "count": 2, "power_limit_w": 350}],
        "cpu": "ryzen-9-7950x",
        "board": "no-such-board",
        "memory_gib": 64,
        "drives": [{"id": "samsung-990-pro-2tb"}],
        "owned": ["ryzen-9-7950x"],
    }
)


def test_a_build_has_the_parts_that_the_catalog_knows_and_no_others() -> None:
    build = build_of(CHOICE)
    assert build.gpu_count == 2
    assert build.gpus[0].watts == 350
    assert build.cpu is not None
    assert build.cpu.id == "ryzen-9-7950x"
    assert build.board is None
    assert unknown_parts(CHOICE) == ("no-such-board",)


def test_another_card_keeps_the_number_and_not_the_old_ones_limit() -> None:
    changed = with_part(CHOICE, "gpu", "rtx-3090")
    assert [(gpu.id, gpu.count, gpu.power_limit_w) for gpu in changed.gpus] == [
        ("rtx-3090", 2, None)
    ]


@pytest.mark.parametrize("id", ["gb10-dgx-spark", "apple-m4", "rtx-5090-laptop", "mi300x"])
def test_a_gpu_that_comes_with_its_computer_takes_the_place_of_another_ones_parts(id: str) -> None:
    parts = {"board": "asus-proart-x870e-creator-wifi", "psu": "be-quiet-straight-power-12-1200w"}
    changed = with_part(CHOICE.model_copy(update=parts), "gpu", id)
    assert changed.gpus[0].count == (2 if id == "mi300x" else 1)
    assert {"cpu", "board", "psu"} <= set(left_out(CHOICE.model_copy(update=parts), changed))
    assert changed.drives == CHOICE.drives
    assert catalogued(changed).machine.gpus  # one that can be had
    assert not left_out(CHOICE, with_part(CHOICE, "gpu", "rtx-3090"))


def test_kits_add_up_and_take_the_place_of_a_stated_size() -> None:
    once = with_part(CHOICE, "memory", "kit")
    assert once.memory_gib is None
    twice = with_part(once, "memory", "kit")
    assert [(kit.id, kit.count) for kit in twice.memory] == [("kit", 2)]
    other = with_part(twice, "memory", "other", instead="kit")
    assert [kit.id for kit in other.memory] == ["other"]


def test_a_drive_takes_the_place_of_another_or_comes_beside_it() -> None:
    beside = with_part(CHOICE, "storage", "b")
    assert [drive.id for drive in beside.drives] == ["samsung-990-pro-2tb", "b"]
    instead = with_part(beside, "storage", "c", instead="samsung-990-pro-2tb")
    assert [drive.id for drive in instead.drives] == ["c", "b"]
    assert len(with_count(instead, "storage", "b", 3).drives) == 4


def test_what_is_taken_out_is_owned_no_more_and_the_last_card_stays() -> None:
    assert without_part(CHOICE, "cpu", "ryzen-9-7950x").cpu is None
    assert without_part(CHOICE, "cpu", "ryzen-9-7950x").owned == ()
    assert without_part(CHOICE, "gpu", "rtx-4090") == CHOICE
    assert with_owned(CHOICE, "rtx-4090", True).owned == ("ryzen-9-7950x", "rtx-4090")
