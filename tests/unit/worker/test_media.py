"""Speech, diffusion, video and control: their size, what they are fed, and what they refuse."""

import importlib
import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import denoiser_cases
import pytest

from trainwright.messages import Message, UserError
from trainwright.profile.presets import presets
from trainwright.worker import client

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytestmark = pytest.mark.filterwarnings("ignore")
needs_diffusers = pytest.mark.skipif(find_spec("diffusers") is None, reason="needs diffusers")

PUBLISHED = {
    # Model cards and the headers of the published weights.
    "sd-1.5-unet": 859_520_964,
    "sd-3.5-medium": 2_469_663_936 - 384 * 384 * 1536,  # the table of positions is not a parameter
    "flux-dit": 11_901_408_320,
    "cogvideox-2b": 1_694_000_000,
    "amused-256": 603_000_000,  # arXiv 2401.01808, table 1
    "amused-512": 608_000_000,
    "whisper-tiny": 37_760_640,
    "whisper-small": 241_734_912,
    "whisper-medium": 763_857_920,
    "whisper-large-v3": 1_543_490_560,
    "wav2vec2-base": 94_396_320,
    "wav2vec2-large": 315_461_792,
}


@pytest.fixture
def build(monkeypatch):
    """Return a function that builds a model from its source, without weights."""
    monkeypatch.syspath_prepend(str(client.PROGRAMS))
    models = importlib.import_module("models")

    def of(source, **options):
        spec = {"model": source, "kernel": "flash", "image_size": 0, "points": []}
        return models.build(spec | options)

    return of


@pytest.fixture
def refusal(build):
    """Return a function for why a preset is refused, which is one line in both languages."""
    refused = importlib.import_module("refusal").Refusal

    def of(id, size=None, **options):
        def fed():
            return build(presets()[id].model(), **options).batch(1, size)

        with pytest.raises(refused) as caught:
            fed()
        assert all(isinstance(value, str | int) for value in caught.value.values.values())
        line = str(UserError(Message.of(caught.value.id, **caught.value.values)))
        assert "\n" not in line
        return line

    return of


def count(parameters, trained=False):
    return sum(p.numel() for p in parameters if p.requires_grad or not trained)


@needs_diffusers
@pytest.mark.parametrize("id", PUBLISHED)
def test_a_preset_has_its_published_parameters(build, id):
    preset = presets()[id]
    assert count(build(preset.model()).model.parameters()) == preset.parameters
    assert preset.parameters == pytest.approx(PUBLISHED[id], rel=0.001)


def test_soft_actor_critic_has_the_layers_of_its_paper(build):
    subject = build({"builtin": "sac-mlp"})
    actor = 17 * 256 + 256 + 256 * 256 + 256 + 256 * 12 + 12
    critic = 23 * 256 + 256 + 256 * 256 + 256 + 256 + 1
    found = list(subject.model.parameters())
    assert count(found, trained=True) == actor + 2 * critic + 1
    assert count(found) == presets()["sac-mlp"].parameters == actor + 4 * critic + 1


def test_decision_transformer_is_that_of_transformers(build):
    transformers = importlib.import_module("transformers")
    config = transformers.DecisionTransformerConfig(
        state_dim=11, act_dim=3, hidden_size=128, n_layer=3, n_head=1, max_ep_len=1000
    )
    with torch.device("meta"):
        theirs = transformers.DecisionTransformerModel(config)
    # Its GPT-2 brings tables of words and of positions that the paper's has not.
    extra = count(theirs.encoder.wte.parameters()) + count(theirs.encoder.wpe.parameters())
    ours = count(build({"builtin": "decision-transformer"}).model.parameters())
    assert (
        ours == presets()["decision-transformer"].parameters == count(theirs.parameters()) - extra
    )


def test_dreamer_has_the_size_that_its_paper_calls_18_million(build):
    found = list(build({"builtin": "dreamer-v3-s"}).model.parameters())
    assert round(count(found, trained=True) / 1e6) == 18
    assert count(found) == presets()["dreamer-v3-s"].parameters


@needs_diffusers
def test_denoisers_see_the_tokens_of_their_papers(build):
    flux = build(presets()["flux-dit"].model(), image_size=1024).batch(2, 0).inputs
    assert flux["hidden_states"].shape == (2, 64 * 64, 64)
    assert flux["encoder_hidden_states"].shape == (2, 512, 4096)
    video = build(presets()["cogvideox-2b"].model(), image_size=480, frames=49).batch(1, 0).inputs
    assert video["hidden_states"].shape == (1, 13, 16, 60, 90)
    assert video["encoder_hidden_states"].shape == (1, 226, 4096)


def test_whisper_hears_thirty_seconds_and_wav2vec_twenty_milliseconds_a_step(build):
    heard = build(presets()["whisper-large-v3"].model()).batch(2, 448).inputs
    assert heard["input_features"].shape == (2, 128, 3000)
    assert heard["decoder_input_ids"].shape == (2, 448)
    subject = build(presets()["wav2vec2-base"].model())
    inputs = subject.batch(1, 750).inputs["input_values"]
    assert inputs.shape[1] / 16_000 == pytest.approx(15, abs=0.01)
    lengths = subject.model._get_feat_extract_output_lengths(torch.tensor(inputs.shape[1]))
    assert int(lengths) == 750


@needs_diffusers
@pytest.mark.parametrize(
    ("id", "options", "says"),
    [
        ("sd-1.5-unet", {"image_size": 500}, "496, 504"),
        ("flux-dit", {"image_size": 1000}, "992, 1008"),
        ("sd-3.5-medium", {"image_size": 8192}, "6144"),
        ("cogvideox-2b", {"image_size": 480, "frames": 48}, "45, 49"),
        ("flux-dit", {"kernel": "eager"}, "settings.attention"),
        ("unet", {"image_size": 250}, "240, 256"),
        ("nature-cnn-ppo", {"image_size": 96}, "84"),
        ("dreamer-v3-s", {"image_size": 128}, "64"),
        ("wav2vec2-base", {"size": 5}, "workload.inputs.sequence_length"),
    ],
)
def test_a_size_that_the_network_cannot_take_is_refused_with_what_works(refusal, id, options, says):
    line = refusal(id, **options).replace(",", "")
    assert says.replace(",", "") in line
    assert line.startswith(("workload.inputs.", "settings."))


@needs_diffusers
def test_an_unknown_denoiser_is_refused_by_name(build, tmp_path):
    refused = importlib.import_module("refusal").Refusal
    (tmp_path / "config.json").write_text(json.dumps({"_class_name": "AutoencoderKL"}))
    with pytest.raises(refused) as caught:
        build({"diffusers": str(tmp_path / "config.json")})
    assert caught.value.id == "worker.denoiser-unknown"
    assert caught.value.values["architecture"] == "AutoencoderKL"


@needs_diffusers
@pytest.mark.parametrize(
    ("name", "text", "pixels", "frames"),
    [
        # encode_prompt and __call__ of the class's pipeline, and the VAE that it is published with.
        ("FluxTransformer2DModel", 512, 8, 1),
        ("SD3Transformer2DModel", 77 + 256, 8, 1),
        ("SanaTransformer2DModel", 300, 32, 1),
        ("UNet2DConditionModel", 77, 8, 1),
        ("UNet2DModel", 77, 1, 1),
        ("HunyuanImageTransformer2DModel", 1000, 32, 1),
        ("WanTransformer3DModel", 512, 8, 4),
        ("MochiTransformer3DModel", 256, 8, 6),
        ("LTXVideoTransformer3DModel", 128, 32, 8),
    ],
)
def test_a_denoiser_is_fed_as_its_pipeline_feeds_it(monkeypatch, name, text, pixels, frames):
    monkeypatch.syspath_prepend(str(client.PROGRAMS))
    pipelines = importlib.import_module("pipelines")
    found = pipelines.usual(importlib.import_module("diffusers"), name)
    assert (found.text, found.pixels, found.frames) == (text, pixels, frames)


@needs_diffusers
def test_every_tiny_denoiser_is_fed_and_has_the_parameters_of_its_class(build, tmp_path):
    diffusers = importlib.import_module("diffusers")
    for fields, options, point in denoiser_cases.CASES.values():
        (tmp_path / "config.json").write_text(json.dumps(fields))
        subject = build({"diffusers": str(tmp_path / "config.json")}, **options)
        kind = getattr(diffusers, fields["_class_name"])
        with torch.device("meta"):
            own = kind(**{key: each for key, each in fields.items() if key != "_class_name"})
        assert count(subject.model.parameters()) == count(own.parameters())
        assert subject.batch(*point).labels.shape[0] == point[0]


@needs_diffusers
@pytest.mark.parametrize(
    ("name", "lacks"),
    [("MiniMaxH3Transformer3DModel", "audio_indices"), ("T5FilmDecoder", "")],
)
def test_what_forward_wants_beyond_what_is_known_is_named(build, tmp_path, name, lacks):
    refused = importlib.import_module("refusal").Refusal
    (tmp_path / "config.json").write_text(json.dumps({"_class_name": name}))
    with pytest.raises(refused) as caught:
        build({"diffusers": str(tmp_path / "config.json")})
    assert lacks in caught.value.values.get("inputs", "")
    line = str(UserError(Message.of(caught.value.id, **caught.value.values)))
    assert name in line
    assert "\n" not in line


def test_what_a_paper_does_not_train_is_not_trained(build):
    whisper = build(presets()["whisper-tiny"].model()).model
    fixed = {name for name, p in whisper.named_parameters() if not p.requires_grad}
    assert fixed == {"model.encoder.embed_positions.weight"}
    speech = build(presets()["wav2vec2-base"].model()).model
    fixed = {name for name, p in speech.named_parameters() if not p.requires_grad}
    assert fixed == {n for n, _ in speech.named_parameters() if ".feature_extractor." in n}


SPELLING = {"vocab_size": 32, "pad_token_id": 0, "ctc_loss_reduction": "sum",
            "ctc_zero_infinity": True}  # fmt: skip
SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
         "intermediate_size": 64}  # fmt: skip
PARAKEET = SPELLING | {
    "model_type": "parakeet_ctc", "architectures": ["ParakeetForCTC"],
    "encoder_config": SMALL | {"num_mel_bins": 16, "subsampling_conv_channels": 8},
}  # fmt: skip
WAV2VEC2_BERT = SPELLING | SMALL | {
    "model_type": "wav2vec2-bert", "architectures": ["Wav2Vec2BertForCTC"],
    "output_hidden_size": 32, "feature_projection_input_dim": 16,
    "conv_depthwise_kernel_size": 3, "apply_spec_augment": False,
}  # fmt: skip


@pytest.mark.parametrize("fields", [PARAKEET, WAV2VEC2_BERT], ids=["parakeet", "wav2vec2-bert"])
def test_a_class_that_spells_what_it_hears_has_the_loss_of_its_own_class(build, tmp_path, fields):
    transformers = importlib.import_module("transformers")
    (tmp_path / "config.json").write_text(json.dumps(fields))
    subject = build({"hf": str(tmp_path / "config.json")})
    batch = subject.batch(2, 96)
    kind = getattr(transformers, fields["architectures"][0])
    with torch.device("cpu"):
        own = kind(kind.config_class.from_dict(fields)).eval()
        heard = {name: torch.randn(value.shape) for name, value in batch.inputs.items()}
        labels = torch.ones(batch.labels.shape, dtype=torch.int64)
        whole = torch.ones(heard["input_features"].shape[:2], dtype=torch.int64)
        output = own(**heard, attention_mask=whole, labels=labels)
    assert labels.shape[1] > 1
    assert subject.loss(output, labels, 1.0).item() == pytest.approx(output.loss.item(), rel=1e-5)


def test_losses_of_reinforcement_learning_reach_their_own_networks_alone(build, monkeypatch):
    torch.manual_seed(0)
    subject = build({"builtin": "sac-mlp"})
    model = subject.model.to_empty(device="cpu")
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, 0, 0.05)
    inputs = {name: torch.randn_like(value) for name, value in subject.batch(8, 0).inputs.items()}
    output = model(**inputs)
    output["policy"].sum().backward(retain_graph=True)
    assert all(p.grad is None for p in model.critics.parameters())
    assert all(p.grad is not None for p in model.actor.parameters())
    model.zero_grad()
    output["values"].sum().backward(retain_graph=True)
    assert all(p.grad is None for p in model.actor.parameters())
    model.zero_grad()
    output["temperature"].sum().backward()
    assert [n for n, p in model.named_parameters() if p.grad is not None] == ["log_alpha"]


PROGRAM = Path(__file__).with_name("detection_runs.py")


@pytest.mark.slow
@pytest.mark.skipif(find_spec("torchvision") is None, reason="needs torchvision")
@pytest.mark.parametrize("kind", ["faster", "mask"])
def test_the_peak_is_that_of_torchvision_at_its_recipes_numbers(kind):
    command = [sys.executable, str(PROGRAM), str(client.PROGRAMS), kind, "256"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    per_image = found["regions"] / found["images"], found["positives"] / found["images"]
    assert per_image == (512, 128), "torchvision must have sampled as many as we assume"
    print(f"{kind}: torchvision {found['real']:,} B, ours {found['ours']:,} B")
    assert found["ours"] == pytest.approx(found["real"], rel=0.005)
