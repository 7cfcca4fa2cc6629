"""A profile must not be asked about lengths at which the model takes other paths."""

import json

import numpy as np
import pytest

from trainwright.profile import store, windows
from trainwright.profile.profile import evaluate
from trainwright.profile.spec import SHORTEST, TraceSpec, kernel_points

USUAL = (352, 416, 256, 512)
KINDS = (["sliding_attention"] * 5 + ["full_attention"]) * 2
SIZES = {
    "vocab_size": 1000, "hidden_size": 96, "intermediate_size": 160, "num_hidden_layers": 7,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32,
}  # fmt: skip
GEMMA_3 = SIZES | {
    "architectures": ["Gemma3ForCausalLM"], "model_type": "gemma3_text", "sliding_window": 512,
    "layer_types": KINDS[:7], "max_position_embeddings": 32768,
}  # fmt: skip
GEMMA_2 = SIZES | {
    "architectures": ["Gemma2ForCausalLM"], "model_type": "gemma2", "sliding_window": 600,
    "layer_types": (["sliding_attention", "full_attention"] * 4)[:7],
    "max_position_embeddings": 8192,
}  # fmt: skip
MODERN_BERT = {
    "architectures": ["ModernBertForMaskedLM"], "model_type": "modernbert", "vocab_size": 1000,
    "hidden_size": 96, "intermediate_size": 160, "num_hidden_layers": 4, "local_attention": 128,
    "num_attention_heads": 4, "max_position_embeddings": 8192, "pad_token_id": 0,
    "layer_types": ["full_attention", "sliding_attention", "sliding_attention", "full_attention"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("config", "window"),
    [
        ({"sliding_window": 4096}, 4096),
        ({"sliding_window": 512, "layer_types": KINDS}, 512),
        ({"text_config": {"sliding_window": 512}}, 512),
        ({"attention_chunk_size": 8192}, 8192),
        ({"model_type": "modernbert", "local_attention": 128}, 64),
        ({"sliding_window": 4096, "use_sliding_window": False}, 0),
        ({"sliding_window": 512, "layer_types": ["full_attention"]}, 0),
        ({"sliding_window": None}, 0),
        ({"sliding_window": "many"}, 0),
        ({"sliding_window": True}, 0),
        ({}, 0),
    ],
)
def test_where_layers_begin_to_see_a_part(config, window):
    assert windows.first_partial(config) == window


def spec(path, task="full", beyond=0, kernel="flash"):
    return TraceSpec(
        model=(("hf", str(path)),), digest="test", task=task, precision="bf16-mixed",
        kernel=kernel, optimizers=("sgd",), asked="sgd", beyond=beyond,
    )  # fmt: skip


@pytest.mark.parametrize("longest", [0, 700, 8192])
@pytest.mark.parametrize("kernel", ["flash", "eager"])
@pytest.mark.parametrize("window", [300, 512, 600])
def test_points_stay_on_their_side_of_the_window(window, kernel, longest):
    for beyond in (0, window):
        for points in kernel_points(spec("any", beyond=beyond, kernel=kernel), longest, window):
            tokens = {length for _, length in points}
            assert len(tokens) == (3 if len(points) == 5 else 4)
            assert max(tokens) <= (longest or max(tokens))
            reaches = min(tokens) >= window if beyond else max(tokens) < window
            assert reaches or (not beyond and window > max(USUAL))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("config", "task", "tokens"),
    [
        (GEMMA_3, "full", 8192),
        (GEMMA_3, "full", 500),
        (GEMMA_3, "infer", 2048),
        (GEMMA_2, "full", 2048),
        (GEMMA_2, "infer", 2048),
        (MODERN_BERT, "full", 2048),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_profile_says_what_a_trace_at_the_length_says(tmp_path, config, task, tokens):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    window = windows.first_partial(config)
    reached = SHORTEST <= window <= tokens and not (task == "full" and config is GEMMA_2)
    asked = spec(path, task, beyond=window if reached else 0)
    fitted = store.trace(asked, keep=False)
    assert fitted.exact
    there = store.trace(asked, keep=False, at=(2, tokens))
    for name, segment in there.segments.items():
        other = fitted.segments[name]
        assert np.array_equal(segment.code, other.code), name
        births = segment.code == 0
        ours = evaluate(fitted.sizes, 2, tokens)[other.b[births]]
        theirs = evaluate(there.sizes, 2, tokens)[segment.b[births]]
        assert np.array_equal(ours, theirs), name
