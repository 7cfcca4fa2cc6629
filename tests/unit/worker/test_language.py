"""Dense language presets: their sizes, and adapters' targets that a family does not have."""

import importlib
import json

import pytest

from trainwright.profile.presets import presets
from trainwright.worker import client

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.filterwarnings("ignore")

PUBLISHED = {
    # Sums of the tensors in the published weights (safetensors indexes), a tied table once.
    "roberta-base": 124_697_433,
    "roberta-large": 355_412_057,
    "modernbert-base": 149_655_232,
    "modernbert-large": 395_881_664,
    "t5-large": 737_668_096,
    "t5-3b": 2_851_598_336,
    "smollm2-135m": 134_515_008,
    "smollm2-360m": 361_821_120,
    "smollm2-1.7b": 1_711_376_384,
    "tinyllama-1.1b": 1_100_048_384,
    "llama-3.1-70b": 70_553_706_496,
    "qwen-2.5-1.5b": 1_543_714_304,
    "qwen-2.5-3b": 3_085_938_688,
    "qwen-2.5-14b": 14_770_033_664,
    "qwen-2.5-32b": 32_763_876_352,
    "qwen-3-0.6b": 751_632_384 - 151_936 * 1024,  # the files hold the tied table twice
    "qwen-3-1.7b": 2_031_739_904 - 151_936 * 2048,
    "qwen-3-4b": 4_022_468_096,
    "qwen-3-8b": 8_190_735_360,
    "qwen-3-14b": 14_768_307_200,
    "qwen-3-32b": 32_762_123_264,
    "gemma-2-2b": 2_614_341_888,
    "gemma-2-9b": 9_241_705_984,
    "gemma-2-27b": 27_227_128_320,
    "gemma-3-1b": 999_885_952,
    "phi-3.5-mini": 3_821_079_552,
    "phi-4": 14_659_507_200,
    "lfm2-1.2b": 1_170_340_608,
    "falcon-7b": 7_217_189_760 - 65_024 * 4544,  # and so do these
    "falcon-h1-0.5b": 521_411_104,
    # Paper, table 2: 86 M and 98 M, 304 M and 131 M; with the pooler and head of two classes.
    "deberta-v3-base": 184_423_682,
    "deberta-v3-large": 435_063_810,
}
WITH_IMAGES = {
    "gemma-3-4b": 4_300_079_472, "gemma-3-12b": 12_187_325_040, "gemma-3-27b": 27_432_406_640,
}  # fmt: skip
"""The whole of the published weights; the presets are their text parts."""
VISION = {
    "hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27,
    "num_attention_heads": 16, "patch_size": 14, "image_size": 896, "vision_use_head": False,
}  # fmt: skip


@pytest.fixture
def build(monkeypatch):
    """Return a function that builds a preset without weights."""
    monkeypatch.syspath_prepend(str(client.PROGRAMS))
    models = importlib.import_module("models")

    def of(id, **options):
        spec = {"model": presets()[id].model(), "kernel": "flash", "image_size": 0, "points": []}
        return models.build(spec | options)

    return of


def weights(model):
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize("id", PUBLISHED)
def test_a_preset_has_its_published_weights(build, id):
    assert weights(build(id).model) == presets()[id].parameters == PUBLISHED[id]


@pytest.mark.parametrize("id", WITH_IMAGES)
def test_a_text_part_is_what_the_image_encoder_leaves(build, id):
    text = json.loads(presets()[id].definition())
    config = transformers.Gemma3Config(text_config=text, vision_config=VISION)
    with torch.device("meta"):
        whole = transformers.Gemma3ForConditionalGeneration(config)
    images = weights(whole.model.vision_tower) + weights(whole.model.multi_modal_projector)
    assert weights(whole) == WITH_IMAGES[id]
    assert weights(build(id).model) == presets()[id].parameters == WITH_IMAGES[id] - images


@pytest.mark.parametrize(
    ("id", "targets"),
    [
        ("phi-3.5-mini", ("q_proj",)),  # one layer for query, key and value: qkv_proj
        ("roberta-base", ("q_proj",)),
        ("modernbert-base", ("query",)),
        ("t5-3b", ("q_proj", "v_proj")),
    ],
)
def test_targets_of_another_family_are_refused(build, id, targets):
    subject = build(id)
    shaping, refusal = (importlib.import_module(name) for name in ("shaping", "refusal"))
    spec = {
        "task": "lora", "lora": [16, list(targets)], "precision": "bf16-mixed", "method": {},
        "checkpointing": "none", "channels_last": False, "quantization": "none",
    }  # fmt: skip
    with pytest.raises(refusal.Refusal) as caught:
        shaping.shape(subject, spec)
    assert caught.value.id == "worker.no-targets"
