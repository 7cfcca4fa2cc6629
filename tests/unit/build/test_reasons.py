"""Why each part: the card on the screen, the terminal and the document say the same need."""

import re
from functools import cache

import pytest

from trainwright.build import Builds, Request, Wishes, money, search
from trainwright.build.owning import owned
from trainwright.build.report import as_json
from trainwright.messages import render
from trainwright.plan.schema import Plan

DATA = {"layout": "files", "sample_kib": 110, "decode": "jpeg"}


@cache
def answer(budget: str, *own: str) -> Builds:
    document = {
        "trainwright": 1,
        "model": {"preset": "resnet50"},
        "workload": {
            "task": "pretrain", "inputs": {"image_size": 224}, "effective_batch": 256,
            "samples": 1_281_167, "epochs": 30, "dataset": DATA,
        },
        "machine": {"gpus": [{"id": "rtx-4090"}]},
    }  # fmt: skip
    return search(Request(Plan.model_validate(document), money(budget), Wishes(owned=owned(own))))


def test_each_part_says_the_need_that_it_answers_in_both_languages() -> None:
    (first, *_) = answer("2500USD").builds
    for part in first.parts:
        assert part.why is not None, part.kind
        assert len(render(part.why, "en")) < 110, "one short line"
        assert re.search("[가-힣]", render(part.why, "ko"))
    said = {part.kind: render(part.why, "en") for part in first.parts if part.why}
    psu, cpu = first.build.psu, first.build.cpu
    assert psu is not None
    assert cpu is not None
    assert f"{first.dc_watts / psu.watts:.0%}".replace("%", " %") in said["psu"]
    assert said["cpu"].startswith(f"{cpu.cores} cores")
    data = 110 * 1024 * 1_281_167 / 1e9
    more = "money was left" in said["storage"]
    assert more or f"{data:,.0f} GB of data" in said["storage"]


def test_the_document_has_the_same_sentences() -> None:
    found = answer("2500USD")
    for language in ("en", "ko"):
        for part, data in zip(
            found.builds[0].parts, as_json(found, language)["builds"][0]["parts"], strict=True
        ):
            assert part.why is not None
            assert data["why"] == render(part.why, language)


@pytest.mark.slow
def test_an_owned_part_is_said_to_be_there_or_why_it_stays_idle() -> None:
    """650 W do not carry what the money buys around them."""
    found = answer("2500USD", "corsair-rm1000x-2024", "asus-rog-strix-650w-gold")
    said = [render(note, "en") for note in found.notes if note.id.startswith("planner.note.idle")]
    assert any("650W Gold is yours and is not used: it gives 650 W" in text for text in said)
    supplies = [part for one in found.builds for part in one.parts if part.kind == "psu"]
    owned_ones = [part for part in supplies if part.owned]
    assert owned_ones, "1,000 W are enough for some of them"
    for part in owned_ones:
        assert part.why is not None
        assert render(part.why, "en") == "Is there already."
    if not supplies[0].owned:  # nobody says whether it has two plugs more
        assert any("RM1000x (2024) is yours and is not used: Cannot" in text for text in said)
