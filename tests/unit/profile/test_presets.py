"""The shipped models: as large as their publishers say, described, and at sizes they can take."""

from dataclasses import replace

import pytest

from trainwright.messages import LANGUAGES, render
from trainwright.profile import presets, shipped, store
from trainwright.profile.spec import TraceSpec, digest_of

VISION = {id: preset for id, preset in presets.presets().items() if preset.area == "vision"}


def stored(preset):
    spec = TraceSpec(
        model=(("preset", preset.id),),
        digest=digest_of(preset.definition()),
        task="full",
        precision="bf16-mixed",
        kernel="flash",
        image_size=preset.image_size,
        sequence=False,
    )
    return store.load(spec)


@pytest.mark.parametrize("id", VISION)
def test_a_vision_preset_ships_and_has_its_published_parameters(id):
    profile = stored(VISION[id])
    assert profile is not None
    assert profile.exact
    assert profile.model["parameters"] == pytest.approx(VISION[id].parameters, rel=1e-3)


@pytest.mark.parametrize("id", VISION)
def test_a_vision_preset_is_described_in_both_languages(id):
    lines = {render(VISION[id].description, language) for language in LANGUAGES}
    assert len(lines) == 2
    assert not any(id in line for line in lines), "the id itself means that a sentence is missing"


@pytest.mark.parametrize("id", VISION)
def test_the_usual_image_is_one_that_the_model_takes(id):
    preset = VISION[id]
    assert preset.image_size >= preset.image_least
    assert preset.image_size % preset.image_step == 0


@pytest.mark.parametrize(
    ("typed", "id"),
    [("DeiT-S", "vit-s16"), ("스윈 T", "swin-t"), ("욜로", "yolox-s"), ("DeepLabV3+", None)],
)
def test_names_that_people_type_find_their_preset(typed, id):
    assert presets.find(typed).id == (id or "deeplabv3plus-r50")


# What the recipes train: all of it but the first stages of a backbone that starts from ImageNet.
# DETR's own code prints 41302368; torchvision freezes its stem and first stage of 222 400.
TRAINED = {
    "detr-r50": 41_302_368,
    "faster-rcnn-r50": 41_755_286 - 222_400,
    "mask-rcnn-r50": 44_401_393 - 222_400,
}


@pytest.mark.parametrize("id", TRAINED)
def test_detectors_leave_the_first_stages_as_they_are(id):
    assert stored(VISION[id]).model["trainable"] == TRAINED[id]


@pytest.mark.parametrize("lora", [(8, ()), (256, ()), (16, ("q_proj", "v_proj"))])
def test_other_adapters_are_not_answered_by_those_that_ship(lora):
    preset = presets.find("llama-3.2-1b")
    spec = TraceSpec(
        model=(("preset", preset.id),),
        digest=digest_of(preset.definition()),
        task="lora",
        precision="bf16-mixed",
        kernel="flash",
    )
    assert store.load(spec) is not None
    assert shipped.place(replace(spec, lora=lora)) is None


def test_of_a_damaged_archive_nothing_ships(monkeypatch, tmp_path):
    (tmp_path / "gpt2.zip").write_bytes(b"PK\x03\x04, and then the disk was full")
    monkeypatch.setattr(shipped, "resources", lambda *parts: tmp_path / parts[-1])
    shipped.names.cache_clear()
    assert shipped.names("gpt2") == ()
    assert shipped.profile("gpt2", "full-fp16-flash") is None
    shipped.names.cache_clear()
