"""The class that a config.json names is the one built; others are refused by their name."""

import importlib
import json

import pytest

from trainwright.messages import LANGUAGES, Message, render
from trainwright.worker import client

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.filterwarnings("ignore")

TEXT = {"vocab_size": 128, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 128, "head_dim": 16, "num_key_value_heads": 2}  # fmt: skip
TOWER = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
         "num_attention_heads": 4, "image_size": 64, "patch_size": 16}  # fmt: skip
BLIP = {
    "model_type": "blip",
    "text_config": {"num_hidden_layers": 1},
    "vision_config": {"num_hidden_layers": 1},
}
BEIT = TOWER | {"model_type": "beit"}
NAMED = {
    "BertModel": TEXT | {"model_type": "bert"},
    "BertForTokenClassification": TEXT | {"model_type": "bert"},
    "BertForQuestionAnswering": TEXT | {"model_type": "bert"},
    "BertForMultipleChoice": TEXT | {"model_type": "bert"},
    "BertForNextSentencePrediction": TEXT | {"model_type": "bert"},
    "BertForPreTraining": TEXT | {"model_type": "bert"},
    "CLIPModel": {"model_type": "clip", "text_config": {"num_hidden_layers": 1},
                  "vision_config": {"num_hidden_layers": 1}},
    "YolosForObjectDetection": TOWER | {"model_type": "yolos", "image_size": [64, 64],
                                        "use_mid_position_embeddings": False},
    "ViTForMaskedImageModeling": TOWER | {"model_type": "vit"},
    "ViTMAEForPreTraining": TOWER | {"model_type": "vit_mae", "decoder_num_hidden_layers": 1},
    "GLPNForDepthEstimation": {"model_type": "glpn", "image_size": 64},
    "TimesformerForVideoClassification": TOWER | {"model_type": "timesformer", "num_frames": 2},
    "ASTForAudioClassification": {"model_type": "audio-spectrogram-transformer", "max_length": 64,
                                  "num_hidden_layers": 1, "num_labels": 5},
    "WavLMForXVector": {"model_type": "wavlm", "num_hidden_layers": 1},
    "Wav2Vec2ForAudioFrameClassification": {"model_type": "wav2vec2", "num_hidden_layers": 1},
    "LlamaForSequenceClassification": TEXT | {"model_type": "llama"},
    "MptForTokenClassification": {"model_type": "mpt", "n_layers": 2, "d_model": 64, "n_heads": 4},
    "UniSpeechForCTC": {"model_type": "unispeech", "num_hidden_layers": 2},
    "SegformerForSemanticSegmentation": {"model_type": "segformer", "image_size": 64},
    "BeitForImageClassification": BEIT,
    "BeitModel": BEIT,
    "Dinov2Model": TOWER | {"model_type": "dinov2"},
    "ConvNextModel": {"model_type": "convnext", "depths": [1] * 4, "hidden_sizes": [8] * 4},
    "Llama4ForCausalLM": TEXT | {"model_type": "llama4_text", "intermediate_size_mlp": 128,
                                 "num_local_experts": 4, "interleave_moe_layer_step": 1},
    "Gemma3ForConditionalGeneration": {
        "model_type": "gemma3", "text_config": TEXT | {"model_type": "gemma3_text"},
        "vision_config": TOWER | {"model_type": "siglip_vision_model"},
        "mm_tokens_per_image": 16, "image_token_index": 100},
    "Gemma4ForCausalLM": TEXT | {"model_type": "gemma4_text", "global_head_dim": 32,
                                 "layer_types": ["sliding_attention", "full_attention"],
                                 "vocab_size_per_layer_input": 128,
                                 "hidden_size_per_layer_input": 16},
    "Gemma3nForCausalLM": TEXT | {
        "model_type": "gemma3n_text", "intermediate_size": [128] * 2, "laurel_rank": 8,
        "layer_types": ["sliding_attention", "full_attention"], "num_kv_shared_layers": 0,
        "hidden_size_per_layer_input": 16, "vocab_size_per_layer_input": 128,
        "activation_sparsity_pattern": [0.95, 0.0]},
    "Mistral4ForCausalLM": {"model_type": "mistral4", "num_hidden_layers": 1,
                            "hidden_size": 64, "vocab_size": 128, "n_routed_experts": 4},
    # What no ending tells is fed by what forward takes.
    "BeitForSemanticSegmentation": BEIT | {
        "num_hidden_layers": 4, "out_indices": [0, 1, 2, 3], "use_auxiliary_head": True},
    "BertGenerationDecoder": TEXT | {"model_type": "bert-generation", "is_decoder": True},
    "BlipForConditionalGeneration": BLIP,
    "BlipForQuestionAnswering": BLIP,
    "LevitForImageClassificationWithTeacher": {"model_type": "levit"},
    "MoonshineForConditionalGeneration": {"model_type": "moonshine",
                                          "encoder_num_hidden_layers": 1},
    "PatchTSTForRegression": {"model_type": "patchtst"},
    "SamModel": {"model_type": "sam", "vision_config": {"num_hidden_layers": 1}},
    "T5EncoderModel": {"model_type": "t5", "num_layers": 1},
    "XmodForMaskedLM": {"model_type": "xmod", "num_hidden_layers": 1, "languages": ["en", "ko"]},
}  # fmt: skip
REFUSED = {
    "Siglip2Model": ({"model_type": "siglip2"}, "worker.class-wants"),
    "FlavaForPreTraining": ({"model_type": "flava"}, "worker.class-wants"),
    "EomtForUniversalSegmentation": (
        {"model_type": "eomt", "num_hidden_layers": 4}, "worker.class-wants"),
    "ViTForNothing": (TOWER | {"model_type": "vit"}, "worker.class-untrained"),
}  # fmt: skip


@pytest.fixture
def programs(monkeypatch):
    monkeypatch.syspath_prepend(str(client.PROGRAMS))
    return importlib.import_module


@pytest.fixture
def built(programs, tmp_path):
    """Return a function that builds what a configuration names, and runs two short samples."""
    path = tmp_path / "config.json"

    def build(name, fields):
        path.write_text(json.dumps(fields | {"architectures": [name]}), encoding="utf-8")
        spec = {"model": {"hf": str(path)}, "kernel": "efficient", "image_size": 0}
        subject = programs("models").build(spec)
        with torch.device("meta"):
            programs("huggingface")._run_once(subject)
        return subject

    return build


@pytest.mark.parametrize("name", NAMED)
def test_exactly_the_named_class_is_built(built, name):
    subject = built(name, NAMED[name])
    assert type(subject.model) is getattr(transformers, name)
    assert "traced_class" not in subject.facts


@pytest.mark.parametrize("name", REFUSED)
def test_a_class_that_cannot_be_trained_here_says_its_name_and_the_way_out(built, programs, name):
    fields, id = REFUSED[name]
    with pytest.raises(programs("refusal").Refusal) as caught:
        built(name, fields)
    assert caught.value.id == id
    for language in LANGUAGES:
        said = render(Message.of(id, **caught.value.values), language)
        assert said.startswith(name)
        assert "model: {python: {file, factory}}" in said
        assert len(said.splitlines()) == 1


def test_a_class_traced_in_place_of_another_is_named(built):
    fields = {"model_type": "bart", "d_model": 64, "encoder_layers": 1, "decoder_layers": 1}
    facts = built("BartModel", fields).facts
    assert (facts["named_class"], facts["traced_class"]) == (
        "BartModel",
        "BartForConditionalGeneration",
    )


def test_pixels_are_judged_as_the_library_judges_them(programs):
    torch.manual_seed(0)
    config = transformers.SegformerConfig(
        depths=[1] * 4, hidden_sizes=[8] * 4, decoder_hidden_size=8, num_attention_heads=[1] * 4
    )
    model = transformers.SegformerForSemanticSegmentation(config).eval()
    labels = torch.randint(0, 2, (2, 64, 64))
    output = model(pixel_values=torch.randn(2, 3, 64, 64), labels=labels)
    own = programs("step").segmentation_loss(output, labels, labels.numel())
    assert own.item() == pytest.approx(output.loss.item(), rel=1e-5)


def test_spans_are_judged_as_the_library_judges_them(programs):
    torch.manual_seed(0)
    fields = {key: value for key, value in TEXT.items() if key != "head_dim"}
    model = transformers.BertForQuestionAnswering(transformers.BertConfig(**fields)).eval()
    ends = torch.randint(0, 16, (3, 2))
    tokens = torch.randint(0, 128, (3, 16))
    output = model(input_ids=tokens, start_positions=ends[:, 0], end_positions=ends[:, 1])
    step = programs("step")
    count = step.counted([step.Batch({"input_ids": tokens}, ends)], step.span_loss)
    assert step.span_loss(output, ends, count).item() == pytest.approx(output.loss.item(), rel=1e-5)


def test_only_what_the_library_refuses_is_laid_to_the_file(programs, tmp_path):
    path, refusal = tmp_path / "config.json", programs("refusal").Refusal
    spec = {"model": {"hf": str(path)}, "kernel": "efficient", "image_size": 0, "precision": "fp32"}
    blaming = programs("huggingface").blaming

    def said(fields, run):
        path.write_text(json.dumps(fields), encoding="utf-8")
        with pytest.raises(refusal) as caught, blaming(spec):
            run()
        lines = [
            render(Message.of(caught.value.id, **caught.value.values), each) for each in LANGUAGES
        ]
        assert all(len(line.splitlines()) == 1 for line in lines)
        return caught.value.id, lines[0]

    bert = TEXT | {"model_type": "bert", "architectures": ["BertForMaskedLM"]}
    id, line = said(bert, lambda: torch.ones(2).sum(dim=3))
    assert id == "worker.class-untraced"
    assert "Dimension out of range" in line

    xmod = TEXT | {"model_type": "xmod", "architectures": ["XmodForMaskedLM"]}
    with torch.device("cpu"):
        model = transformers.XmodForMaskedLM(transformers.XmodConfig(num_hidden_layers=1))
    id, line = said(xmod, lambda: model(input_ids=torch.zeros((1, 4), dtype=torch.int64)))
    assert id == "worker.class-fails"
    assert "set_default_language" in line


def test_a_type_of_numbers_that_a_model_lacks_is_named_with_the_way_out(programs, tmp_path):
    path = tmp_path / "config.json"
    fields = {"model_type": "fnet", "architectures": ["FNetForMaskedLM"], "num_hidden_layers": 1}
    path.write_text(json.dumps(fields), encoding="utf-8")
    spec = {"model": {"hf": str(path)}, "kernel": "efficient", "precision": "bf16-mixed"}
    with (
        pytest.raises(programs("refusal").Refusal) as caught,
        programs("huggingface").blaming(spec | {"image_size": 0}),
    ):
        torch.fft.fft(torch.ones(4, dtype=torch.bfloat16))
    said = render(Message.of(caught.value.id, **caught.value.values), "en")
    assert "does not run in bf16-mixed" in said
    assert "settings.precision to fp32" in said


def test_infinity_is_read_as_the_library_writes_it(programs, tmp_path):
    config = transformers.Mamba2Config(
        vocab_size=128, hidden_size=64, num_hidden_layers=1, num_heads=8, head_dim=16, state_size=16
    )
    config.architectures = ["Mamba2ForCausalLM"]
    config.save_pretrained(tmp_path)
    assert "__float__" in (tmp_path / "config.json").read_text(encoding="utf-8")
    spec = {"model": {"hf": str(tmp_path / "config.json")}, "kernel": "efficient"}
    limit = programs("models").build(spec).config.time_step_limit
    assert tuple(limit) == (0.0, float("inf"))
