"""How many of a case's openings a card covers, also where its maker sells none."""

from trainwright.catalog import GpuRecord, find_board, list_parts
from trainwright.machine.build import Build, BuildGpu
from trainwright.machine.placement import openings, place, slot_width


def _gpu(id: str) -> GpuRecord:
    return next(gpu for gpu in list_parts("gpu") if gpu.id == id)


def test_a_maker_s_own_card_counts_before_those_of_others() -> None:
    assert openings(_gpu("rtx-3090")) == 3
    assert openings(_gpu("rx-7900-xtx")) == 3  # two and a half


def test_where_the_maker_sells_none_the_thinnest_of_others_counts() -> None:
    """NVIDIA sells no RTX 5070 Ti itself; others sell it two to four slots thick."""
    card = _gpu("rtx-5070-ti")
    assert card.slot_width is None
    assert slot_width(card) == 2


def test_a_laptop_s_gpu_has_no_width() -> None:
    assert openings(_gpu("rtx-4090-laptop")) is None


def test_a_board_for_two_cards_gives_each_eight_lanes_and_one_that_looks_so_does_not() -> None:
    pair = (BuildGpu(_gpu("rtx-5090"), 2),)
    lanes = {
        name: [gpu.lanes for gpu in place(Build(gpus=pair, board=find_board(name))).gpus]
        for name in ("ASUS ProArt X870E-CREATOR WIFI", "MSI MPG X870E CARBON WIFI")
    }
    assert lanes["ASUS ProArt X870E-CREATOR WIFI"] == [8, 8]
    assert lanes["MSI MPG X870E CARBON WIFI"] == [8, 4]
