"""Images within text: tokens as the library's own processors write them, sizes as published."""

import importlib
import importlib.util
import json
import math

import pytest

from trainwright.messages import LANGUAGES, Message, render
from trainwright.worker import client

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.filterwarnings("ignore")

QWEN_2_5 = {
    "model_type": "qwen2_5_vl", "architectures": ["Qwen2_5_VLForConditionalGeneration"],
    "text_config": {
        "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28,
        "num_attention_heads": 28, "num_key_value_heads": 4, "vocab_size": 152064,
    },
    "vision_config": {
        "depth": 32, "hidden_size": 1280, "intermediate_size": 3420, "num_heads": 16,
        "out_hidden_size": 3584, "patch_size": 14, "fullatt_block_indexes": [7, 15, 23, 31],
    },
}  # fmt: skip
QWEN_3 = {
    "model_type": "qwen3_vl", "architectures": ["Qwen3VLForConditionalGeneration"],
    "text_config": {
        "hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 36,
        "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
        "vocab_size": 151936,
    },
    "vision_config": {
        "depth": 27, "hidden_size": 1152, "intermediate_size": 4304, "num_heads": 16,
        "out_hidden_size": 4096, "patch_size": 16, "num_position_embeddings": 2304,
        "deepstack_visual_indexes": [8, 16, 24],
    },
}  # fmt: skip
GEMMA_3 = {
    "model_type": "gemma3", "architectures": ["Gemma3ForConditionalGeneration"],
    "text_config": {
        "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34,
        "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256,
        "vocab_size": 262208,
    },
    "vision_config": {
        "hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27,
        "num_attention_heads": 16, "patch_size": 14, "image_size": 896, "vision_use_head": False,
    },
}  # fmt: skip
SCOUT = {
    "model_type": "llama4", "architectures": ["Llama4ForConditionalGeneration"],
    "image_token_index": 200092,
    "text_config": {
        "hidden_size": 5120, "intermediate_size": 8192, "intermediate_size_mlp": 16384,
        "num_hidden_layers": 48, "num_attention_heads": 40, "num_key_value_heads": 8,
        "head_dim": 128, "num_local_experts": 16, "vocab_size": 202048,
        "interleave_moe_layer_step": 1,
    },
    "vision_config": {
        "hidden_size": 1408, "intermediate_size": 5632, "num_hidden_layers": 34,
        "num_attention_heads": 16, "vision_output_dim": 4096, "image_size": 336,
        "patch_size": 14, "projector_input_dim": 4096, "projector_output_dim": 4096,
    },
}  # fmt: skip
PUBLISHED = {
    # Sums of the tensors in the published weights (safetensors indexes).
    "Qwen2.5-VL-7B": (QWEN_2_5, 8_292_166_656),
    "Qwen3-VL-8B": (QWEN_3, 8_767_123_696),
    "Gemma 3 4B": (GEMMA_3, 4_300_079_472),
    "Llama 4 Scout": (SCOUT, 108_641_793_536),
}
SIDES = (28, 50, 100, 224, 447, 448, 600, 1000, 1001, 1500, 2000)


@pytest.fixture
def build(monkeypatch, tmp_path):
    """Return a function that builds a configuration with images in its text."""
    monkeypatch.syspath_prepend(str(client.PROGRAMS))
    path = tmp_path / "config.json"

    def of(config, **options):
        path.write_text(json.dumps(config), encoding="utf-8")
        spec = {"model": {"hf": str(path)}, "kernel": "efficient", "image_size": 0, "images": 1}
        return importlib.import_module("models").build(spec | options)

    return of


@pytest.fixture
def imagetext(monkeypatch):
    monkeypatch.syspath_prepend(str(client.PROGRAMS))
    return importlib.import_module("imagetext")


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_model_has_its_published_weights_all_of_them_trained(build, name):
    config, published = PUBLISHED[name]
    weights = list(build(config).model.parameters())
    assert sum(weight.numel() for weight in weights) == published
    assert all(weight.requires_grad for weight in weights)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("patch", [14, 16])
def test_a_grid_is_the_one_of_the_processor(build, side, patch, tmp_path):
    np = pytest.importorskip("numpy")
    Image = pytest.importorskip("PIL.Image")  # noqa: N806
    module = "transformers.models.qwen2_vl.image_processing_pil_qwen2_vl"
    options = {"patch_size": 16, "size": {"shortest_edge": 65536, "longest_edge": 1 << 24}}
    options = options if patch == 16 else {}
    processor = importlib.import_module(module).Qwen2VLImageProcessorPil(**options)
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(options), encoding="utf-8")
    image = Image.fromarray(np.zeros((side, side, 3), np.uint8))
    made = processor(images=[image], return_tensors="np")
    subject = build(TINY | {"vision_config": TINY["vision_config"] | {"patch_size": patch}},
                    image_size=side)  # fmt: skip
    inputs = subject.batch(1, 20_000).inputs
    assert inputs["image_grid_thw"].tolist() == made["image_grid_thw"].tolist()
    assert tuple(inputs["pixel_values"].shape) == made["pixel_values"].shape
    tokens = int(made["image_grid_thw"].prod()) // processor.merge_size**2
    assert (inputs["input_ids"] == subject.config.image_token_id).sum() == tokens


TINY = {
    "model_type": "qwen2_5_vl", "architectures": ["Qwen2_5_VLForConditionalGeneration"],
    "image_token_id": 90,
    "text_config": {
        "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 1, "vocab_size": 100,
        "num_attention_heads": 2, "num_key_value_heads": 1,
    },
    "vision_config": {
        "depth": 1, "hidden_size": 32, "intermediate_size": 32, "num_heads": 2,
        "out_hidden_size": 64, "fullatt_block_indexes": [0],
    },
}  # fmt: skip


TILES = {100: 1, 336: 1, 337: 5, 672: 5, 673: 10, 1100: 17, 1345: 17, 3000: 17}
"""What ``Llama4ImageProcessor`` of transformers 5.24 makes of a square image."""


def test_tiles_are_those_of_the_processor(imagetext):
    assert {side: imagetext._tiles(side, 336) for side in TILES} == TILES
    if importlib.util.find_spec("torchvision") is None:
        return
    processor = transformers.Llama4ImageProcessor()
    made = {side: processor(images=[torch.zeros(3, side, side)]) for side in TILES}
    assert {side: len(one["pixel_values"][0]) for side, one in made.items()} == TILES


def test_pieces_are_those_of_internvls_processor(imagetext):
    name = "transformers.models.got_ocr2.image_processing_pil_got_ocr2"
    processor = importlib.import_module(name).GotOcr2ImageProcessorPil(crop_to_patches=True)
    for pixels in (100, 383, 384, 543, 544, 800, 814, 815, 1100, 3000):
        options = {"patch_size": {"height": 384, "width": 384}}
        cut = processor.get_number_of_image_patches(pixels, pixels, options)
        assert imagetext._pieces(pixels, 384) == cut


INTERNVL = {
    "model_type": "internvl", "architectures": ["InternVLForConditionalGeneration"],
    "image_token_id": 90, "image_seq_length": 16,
    "text_config": TINY["text_config"] | {"model_type": "qwen2"},
    "vision_config": {
        "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1,
        "num_attention_heads": 2, "image_size": [112, 112], "patch_size": [14, 14],
    },
}  # fmt: skip


def test_internvl_takes_the_images_and_the_tokens_that_it_is_given(build):
    subject = build(INTERNVL, image_size=224, images=1)
    given = subject.batch(2, 128).inputs
    assert given["pixel_values"].shape == (2 * 5, 3, 112, 112)
    own = transformers.InternVLForConditionalGeneration(subject.config)
    with torch.no_grad():  # the class compares the tokens with what its images become
        scores = own(**given).logits
    assert scores.shape == (2, 128, 100)
    assert (given["input_ids"] == 90).sum() == 2 * 5 * INTERNVL["image_seq_length"]


def test_tokens_of_scaled_images_are_those_of_the_configuration(build):
    shallow = {part: GEMMA_3[part] | {"num_hidden_layers": 1, "hidden_size": 64,
                                      "num_attention_heads": 4, "head_dim": 16}
               for part in ("text_config", "vision_config")}  # fmt: skip
    subject = build(GEMMA_3 | shallow, images=3)
    inputs = subject.batch(2, 1000).inputs
    assert inputs["pixel_values"].shape == (6, 3, 896, 896)
    each = transformers.Gemma3Config().mm_tokens_per_image
    assert (inputs["input_ids"] == subject.config.image_token_id).sum() == 6 * each
    assert subject.assumed == {"profile.assumed.image-tokens": each}


def test_images_that_do_not_fit_or_are_not_known_are_refused_in_a_line(build, monkeypatch):
    refusal = importlib.import_module("refusal").Refusal
    with pytest.raises(refusal) as beyond:
        build(TINY, image_size=448).batch(1, 256)
    assert beyond.value.values["each"] == math.prod((16, 16))
    unknown = {"model_type": "idefics3", "architectures": ["Idefics3ForConditionalGeneration"],
               "text_config": TINY["text_config"] | {"model_type": "llama"}}  # fmt: skip
    with pytest.raises(refusal) as cut:
        build(unknown)
    assert cut.value.id == "worker.images-unknown"
    for caught in (beyond, cut):
        for language in LANGUAGES:
            said = render(Message.of(caught.value.id, **caught.value.values), language)
            assert len(said.splitlines()) == 1
            assert "{" not in said.replace("{python: {file, factory}}", "")
