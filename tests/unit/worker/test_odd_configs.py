"""A ``config.json`` with an odd value is refused by its key, in words for people."""

import importlib
import json
import math

import pytest

from trainwright.messages import LANGUAGES, Message, render
from trainwright.worker import client

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytestmark = pytest.mark.filterwarnings("ignore")

TEXT = {"vocab_size": 256, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
MODELS = {
    "llama": TEXT | {"intermediate_size": 128, "architectures": ["LlamaForCausalLM"]},
    "gpt2": {"n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 256, "n_positions": 64},
    "bert": TEXT | {"intermediate_size": 128, "architectures": ["BertForMaskedLM"]},
    "t5": {"d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 4,
           "vocab_size": 256, "pad_token_id": 0, "decoder_start_token_id": 0},
    "vit": {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
            "num_attention_heads": 4, "image_size": 32, "patch_size": 8},
    "mamba2": {"hidden_size": 64, "num_hidden_layers": 2, "vocab_size": 256, "num_heads": 8,
               "head_dim": 16, "state_size": 16, "n_groups": 2, "chunk_size": 32,
               "time_step_limit": [0.0, math.inf]},
    "mixtral": TEXT | {"intermediate_size": 128, "num_local_experts": 4, "num_key_value_heads": 2},
    "gemma3_text": TEXT | {"intermediate_size": 128, "num_key_value_heads": 2, "head_dim": 16},
    "whisper": {"d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "vocab_size": 256,
                "encoder_attention_heads": 4, "decoder_attention_heads": 4, "pad_token_id": 0,
                "architectures": ["WhisperForConditionalGeneration"]},
}  # fmt: skip
ODD = {
    "llama": [
        ("hidden_size", "64"), ("hidden_size", None), ("hidden_size", [64]), ("hidden_size", -64),
        ("hidden_size", 64.5), ("hidden_size", math.inf), ("hidden_size", math.nan),
        ("hidden_size", 0), ("hidden_size", {}), ("hidden_size", True),
        ("num_hidden_layers", [2]), ("num_key_value_heads", "2"), ("vocab_size", None),
        ("rope_theta", "x"), ("rope_theta", [1]), ("rope_scaling", "linear"),
        ("rope_scaling", {"rope_type": "linear", "factor": None}),
        ("rope_scaling", {"rope_type": "linear", "factor": "2"}), ("rms_norm_eps", None),
        ("rms_norm_eps", math.nan), ("rms_norm_eps", -1), ("hidden_act", "foo"),
        ("hidden_act", {}), ("attention_bias", "false"), ("attention_dropout", "0.1"),
        ("head_dim", 15), ("architectures", [3]), ("dtype", "foo"), ("pad_token_id", 9999),
        ("id2label", [1]), ("num_labels", "x"), ("initializer_range", -1), ("use_cache", 1.5),
    ],
    "gpt2": [("n_embd", None), ("n_inner", "x"), ("n_inner", -1), ("activation_function", 3),
             ("resid_pdrop", math.nan), ("n_positions", "x")],
    "bert": [("type_vocab_size", None), ("hidden_dropout_prob", 5), ("layer_norm_eps", "x"),
             ("num_hidden_layers", math.inf), ("pad_token_id", 300)],
    "t5": [("d_kv", None), ("feed_forward_proj", 3), ("feed_forward_proj", "a-b-c"),
           ("relative_attention_num_buckets", 0), ("num_decoder_layers", -1), ("d_ff", [1])],
    "vit": [("image_size", [32]), ("patch_size", 0), ("num_channels", "3"), ("id2label", "x"),
            ("num_labels", "3"), ("layer_norm_eps", None)],
    "mamba2": [("time_step_limit", [0.0]), ("time_step_limit", None), ("time_step_limit", "x"),
               ("state_size", "16"), ("n_groups", 0), ("chunk_size", 0), ("expand", 1.5),
               ("conv_kernel", 0)],
    "mixtral": [("num_local_experts", "4"), ("num_experts_per_tok", None),
                ("sliding_window", 1.5), ("router_aux_loss_coef", "x")],
    "gemma3_text": [("layer_types", ["foo", "bar"]), ("layer_types", 3),
                    ("query_pre_attn_scalar", 0), ("final_logit_softcapping", 0)],
    "whisper": [("num_mel_bins", 0), ("max_source_positions", "x"),
                ("encoder_attention_heads", 0), ("activation_function", "foo")],
}  # fmt: skip


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Return a function that builds a model as the tracer does, and runs two short samples."""
    monkeypatch.syspath_prepend(str(client.PROGRAMS))
    huggingface, models = map(importlib.import_module, ("huggingface", "models"))
    path = tmp_path / "config.json"

    def build(fields):
        path.write_text(json.dumps(fields), encoding="utf-8")
        spec = {"model": {"hf": str(path)}, "kernel": "efficient", "image_size": 0}
        with huggingface.blaming(spec):
            subject = models.build(spec)
            with importlib.import_module("torch").device("meta"):
                huggingface._run_once(subject)

    return build


@pytest.mark.parametrize(
    ("kind", "key", "value"),
    [(kind, key, value) for kind, odd in ODD.items() for key, value in odd],
    ids=lambda value: str(value)[:20],
)
def test_an_odd_value_is_refused_by_its_key(run, tmp_path, kind, key, value):
    refusal = importlib.import_module("refusal").Refusal
    with pytest.raises(refusal) as caught:
        run(MODELS[kind] | {"model_type": kind, key: value})
    for language in LANGUAGES:
        said = render(Message.of(caught.value.id, **caught.value.values), language)
        assert said.startswith(f"{tmp_path / 'config.json'}: ")
        assert key in said
        assert len(said.splitlines()) == 1
        for word in ("Error", "StrictDataclass", "NoneType", "attribute", "<class"):
            assert word not in said


@pytest.mark.parametrize("kind", MODELS)
def test_a_sane_configuration_builds_and_runs(run, kind):
    run(MODELS[kind] | {"model_type": kind})


def test_values_that_do_not_fit_together_are_said_in_the_librarys_sentence(run):
    refusal = importlib.import_module("refusal").Refusal
    with pytest.raises(refusal) as caught:
        run(MODELS["whisper"] | {"model_type": "whisper", "encoder_attention_heads": 5,
                                 "decoder_attention_heads": 5})  # fmt: skip
    assert caught.value.id == "worker.config-values"
    assert "embed_dim must be divisible by num_heads" in caught.value.values["text"]
