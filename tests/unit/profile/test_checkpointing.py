"""Derived checkpointing must be what a run under torch.utils.checkpoint does."""

import json

import numpy as np
import pytest

from trainwright.profile import store
from trainwright.profile.checkpointing import chosen_blocks, derive
from trainwright.profile.profile import evaluate
from trainwright.profile.spec import TraceSpec

POINT = (2, 96)

LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": 1000,
    "hidden_size": 128,
    "intermediate_size": 448,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 1024,
}
GPT2 = {
    "architectures": ["GPT2LMHeadModel"],
    "model_type": "gpt2",
    "vocab_size": 1000,
    "n_positions": 512,
    "n_embd": 128,
    "n_layer": 4,
    "n_head": 4,
}
FLUX = {
    "_class_name": "FluxTransformer2DModel",
    "in_channels": 16,
    "num_layers": 2,
    "num_single_layers": 3,
    "attention_head_dim": 32,
    "num_attention_heads": 4,
    "joint_attention_dim": 96,
    "pooled_projection_dim": 64,
    "axes_dims_rope": [8, 12, 12],
    "sample_size": 16,
}
WHISPER = {
    "architectures": ["WhisperForConditionalGeneration"],
    "model_type": "whisper",
    "vocab_size": 500,
    "num_mel_bins": 40,
    "d_model": 64,
    "encoder_layers": 3,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 256,
    "decoder_ffn_dim": 256,
    "max_source_positions": 200,
    "max_target_positions": 96,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "dropout": 0.1,
}
WAV2VEC2 = {
    "architectures": ["Wav2Vec2ForCTC"],
    "model_type": "wav2vec2",
    "hidden_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 384,
    "layerdrop": 0.0,
}


def traced(folder, config, checkpointing, task="full", precision="bf16-mixed", kernel="flash"):
    if "_class_name" in config:
        pytest.importorskip("diffusers")
    path = folder / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    spec = TraceSpec(
        model=(("diffusers" if "_class_name" in config else "hf", str(path)),),
        digest="test",
        task=task,
        precision=precision,
        kernel=kernel,
        checkpointing=checkpointing,
        optimizers=(),
    )
    return store.trace(spec, at=POINT, keep=False)


def births(profile, segment, blocks=frozenset()):
    """Sizes in order of birth, and the bytes alive before each."""
    log = derive(profile.segments[segment], blocks)
    known = log.size >= 0
    size = np.where(known, evaluate(profile.sizes, *POINT)[np.maximum(log.size, 0)], 0)
    live = np.cumsum(np.where(log.storage > 0, size, -size))
    born = log.storage > 0
    return size[born].tolist(), (live - size)[born].tolist()


CASES = {
    "llama": (LLAMA, {}),
    "llama-lora": (LLAMA, {"task": "lora"}),
    "gpt2-fp32-dropout": (GPT2, {"precision": "fp32", "kernel": "efficient"}),
    "flux": (FLUX, {}),
    "flux-qlora": (FLUX, {"task": "qlora"}),
    "whisper": (WHISPER, {}),
    "wav2vec2": (WAV2VEC2, {}),
}


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """The run without checkpointing, traced once a case."""
    known = {}

    def of(case):
        if case not in known:
            config, options = CASES[case]
            known[case] = traced(tmp_path_factory.mktemp(case), config, "none", **options)
        return known[case]

    return of


@pytest.mark.parametrize(
    ("case", "policy"),
    [
        ("llama", "full"),
        *(
            pytest.param(case, policy, marks=pytest.mark.slow)
            for case in CASES
            for policy in ("full", "every-2", "every-3")
            if (case, policy) != ("llama", "full")
        ),
    ],
)
def test_derived_equals_traced(tmp_path, plain, case, policy):
    config, options = CASES[case]
    real = traced(tmp_path, config, policy, **options)
    blocks = chosen_blocks(policy, plain(case).blocks)
    for segment in ("micro", "again"):
        assert births(plain(case), segment, blocks) == births(real, segment), segment


def test_every_k_checkpoints_each_kth_block():
    assert chosen_blocks("every-2", 5) == {0, 2, 4}
    assert chosen_blocks("full", 3) == {0, 1, 2}
    assert not chosen_blocks("none", 3)
    with pytest.raises(ValueError, match="selective"):
        chosen_blocks("selective", 3)
