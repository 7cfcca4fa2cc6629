"""A deep model traced once, with a shallow copy, must be the deep model traced everywhere."""

import json
from dataclasses import replace

import numpy as np
import pytest

from trainwright.messages import UserError
from trainwright.profile import depth, store
from trainwright.profile.fit import fit
from trainwright.profile.profile import evaluate
from trainwright.profile.spec import TraceSpec, kernel_points
from trainwright.profile.trace import OpRow, RawSegment, RawTrace, TraceResult

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": 1000,
    "hidden_size": 128,
    "intermediate_size": 448,
    "num_hidden_layers": 5,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 1024,
}
FLUX = {
    "_class_name": "FluxTransformer2DModel", "in_channels": 16, "num_layers": 5,
    "num_single_layers": 6, "attention_head_dim": 32, "num_attention_heads": 4,
    "joint_attention_dim": 96, "pooled_projection_dim": 64, "axes_dims_rope": [8, 12, 12],
    "sample_size": 16,
}  # fmt: skip
SD3 = {
    "_class_name": "SD3Transformer2DModel", "sample_size": 32, "in_channels": 4, "num_layers": 6,
    "attention_head_dim": 32, "num_attention_heads": 4, "joint_attention_dim": 96,
    "caption_projection_dim": 128, "pooled_projection_dim": 64, "out_channels": 4,
    "pos_embed_max_size": 24, "dual_attention_layers": [0, 1, 2], "qk_norm": "rms_norm",
}  # fmt: skip
WHISPER = {
    "architectures": ["WhisperForConditionalGeneration"], "model_type": "whisper",
    "vocab_size": 500, "num_mel_bins": 40, "d_model": 64, "encoder_layers": 5,
    "decoder_layers": 5, "encoder_attention_heads": 2, "decoder_attention_heads": 2,
    "encoder_ffn_dim": 256, "decoder_ffn_dim": 256, "max_source_positions": 200,
    "max_target_positions": 96,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("config", [FLUX, SD3, WHISPER], ids=["flux", "sd3", "whisper"])
def test_other_models_of_layers_are_transferred_as_well(tmp_path, monkeypatch, config):
    if "_class_name" in config:
        pytest.importorskip("diffusers", exc_type=ImportError)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    source = {"diffusers" if "_class_name" in config else "hf": str(path)}
    spec = TraceSpec(
        model=tuple(source.items()),
        digest="test",
        task="full",
        precision="bf16-mixed",
        kernel="flash",
        sequence="_class_name" not in config,
        optimizers=("sgd",),
        asked="sgd",
    )
    assert depth.shallow_config(path) is not None
    quick = store.trace(spec, keep=False)
    monkeypatch.setattr(depth, "shallow_config", lambda path: None)
    slow = store.trace(spec, keep=False)
    assert quick.exact
    for name, segment in slow.segments.items():
        other = quick.segments[name]
        assert np.array_equal(segment.code, other.code), name
        births = segment.code == 0
        for point in (*kernel_points(spec, depth.positions(source))[0], (7, 64)):
            ours = evaluate(quick.sizes, *point)[other.b[births]]
            assert np.array_equal(ours, evaluate(slow.sizes, *point)[segment.b[births]]), name


@pytest.mark.slow
def test_transferred_equals_traced(tmp_path, monkeypatch):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG), encoding="utf-8")
    spec = TraceSpec(
        model=(("hf", str(path)),),
        digest="test",
        task="full",
        precision="bf16-mixed",
        kernel="flash",
        optimizers=("sgd",),
    )
    quick = store.trace(spec, keep=False)
    monkeypatch.setattr(depth, "shallow_config", lambda path: None)
    slow = store.trace(spec, keep=False)
    assert quick.exact
    assert quick.model["layers"] == 5
    for name, segment in slow.segments.items():
        other = quick.segments[name]
        assert np.array_equal(segment.code, other.code), name
        births = segment.code == 0
        for point in (*kernel_points(spec)[0], (7, 1000)):
            ours = evaluate(quick.sizes, *point)[other.b[births]]
            assert np.array_equal(ours, evaluate(slow.sizes, *point)[segment.b[births]]), name


def test_an_odd_value_of_a_deep_model_names_the_persons_file(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG | {"hidden_act": "foo"}), encoding="utf-8")
    spec = TraceSpec(
        model=(("hf", str(path)),),
        digest="test",
        task="full",
        precision="bf16-mixed",
        kernel="flash",
        optimizers=("sgd",),
    )
    with pytest.raises(UserError, match="hidden_act") as caught:
        store.trace(spec, keep=False)
    assert str(caught.value).startswith(f"{path}: ")


def test_config_without_depth_is_traced_whole(tmp_path):
    path = tmp_path / "config.json"
    path.write_text('{"model_type": "resnet", "depths": [3, 4, 6, 3]}', encoding="utf-8")
    assert depth.shallow_config(path) is None


def result(rows_at_points, layers=1):
    """Traces with one op and one birth for each row, the same layer over and over."""
    traces = []
    for number, rows in enumerate(rows_at_points):
        count = len(rows) * layers
        segment = RawSegment(
            "micro",
            [0] * count,
            list(range(1, count + 1)),
            [row.bytes_written for row in rows] * layers,
            list(range(count)),
            list(range(len(rows))) * layers,
            {},
        )
        traces.append(RawTrace(number + 1, 8, {"micro": segment}, list(rows), {}))
    return TraceResult(tuple(traces), {}, {}, {}, True, {}, 0.0)


def row(name, size):
    return OpRow(name, "forward", 0, "float32", 0, 0, size, (size,))


def test_every_layer_grows_as_the_shallow_one_does():
    shallow = result([[row("a", 8), row("b", 8)], [row("a", 16), row("b", 8)]])
    deep = result([[row("a", 8), row("b", 8)]], layers=4)
    other = depth.transferred(deep, shallow).traces[1]
    assert other.segments["micro"].b == [16, 8] * 4


def test_calls_alike_at_the_main_point_only_are_ambiguous():
    shallow = result([[row("a", 8), row("a", 8)], [row("a", 16), row("a", 8)]])
    with pytest.raises(depth.TransferError):
        depth.transferred(result([[row("a", 8)]], layers=4), shallow)


def test_a_call_that_the_shallow_model_lacks_is_not_guessed():
    shallow = result([[row("a", 8)], [row("a", 16)]])
    deep = result([[row("a", 8), row("c", 4)]], layers=4)
    with pytest.raises(depth.TransferError):
        depth.transferred(deep, shallow)


def test_another_main_point_is_refused():
    shallow = result([[row("a", 8)], [row("a", 16)]])
    deep = result([[row("a", 8)]])
    moved = replace(deep, traces=(replace(deep.traces[0], batch=9),))
    with pytest.raises(depth.TransferError):
        depth.transferred(moved, shallow)


def test_fit_takes_a_transferred_trace():
    shallow = result([[row("a", n * 8)] for n in (1, 2, 3)])
    deep = result([[row("a", 8)]], layers=4)
    profile = fit(depth.transferred(deep, shallow))
    assert profile.exact
    assert evaluate(profile.sizes, 10, 8)[profile.segments["micro"].b].tolist() == [80] * 4


@pytest.mark.parametrize("longest", [16, 64, 77, 128, 256, 511, 512, 4096])
@pytest.mark.parametrize("kernel", ["flash", "eager"])
@pytest.mark.parametrize("single", [False, True])
def test_no_point_is_longer_than_the_model_takes(longest, kernel, single):
    spec = TraceSpec((), "", "full", "fp32", kernel, single=single)
    for points in kernel_points(spec, longest):
        assert all(length <= longest for _, length in points)
        assert len(set(points)) == len(points)
        assert points[-1] not in points[:-1]


def test_positions_of_a_config(tmp_path):
    path = tmp_path / "config.json"
    path.write_text('{"max_position_embeddings": 77}', encoding="utf-8")
    assert depth.positions({"hf": str(path)}) == 77
    assert depth.positions({"hf": str(tmp_path)}) == 77
    path.write_text("{broken", encoding="utf-8")
    assert depth.positions({"hf": str(path)}) == 0
    assert depth.shallow_config(path) is None
    assert depth.positions({"timm": "resnet18"}) == 0


DEEP = {"num_hidden_layers": 24, "hidden_size": 64}
KINDS = {
    "alike": ({}, 3),
    "dense-first": ({"first_k_dense_replace": 1}, 3),
    "three-dense": ({"first_k_dense_replace": 3}, 5),
    "sparse-every-4": ({"decoder_sparse_step": 4}, 5),
    "plain-layers": ({"mlp_only_layers": [0, 1, 2]}, 5),
    "alternating": ({"layer_types": ["sliding_attention", "full_attention"] * 12}, 3),
    "five-to-one": ({"layer_types": [*["sliding_attention"] * 5, "full_attention"] * 4}, 7),
    "too-short-a-list": ({"layer_types": ["full_attention"]}, 3),
    "nonsense": ({"layer_types": [[], {}], "decoder_sparse_step": 0, "mlp_only_layers": 7}, 4),
}


@pytest.mark.parametrize("case", KINDS)
def test_the_shallow_copy_has_layers_of_every_kind(tmp_path, case):
    fields, layers = KINDS[case]
    path = tmp_path / "config.json"
    path.write_text(json.dumps(DEEP | fields), encoding="utf-8")
    shallow = depth.shallow_config(path)
    assert shallow["num_hidden_layers"] == layers
    assert len(shallow.get("layer_types", ())) <= layers


def test_a_model_as_deep_as_its_pattern_is_traced_whole(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(
        '{"num_hidden_layers": 5, "first_k_dense_replace": 3, "hidden_size": 64}', encoding="utf-8"
    )
    assert depth.shallow_config(path) is None


MIXED = {
    "deepseek": {
        "model_type": "deepseek_v2", "architectures": ["DeepseekV2ForCausalLM"],
        "vocab_size": 500, "hidden_size": 128, "intermediate_size": 320,
        "moe_intermediate_size": 96, "num_hidden_layers": 5, "num_attention_heads": 4,
        "num_key_value_heads": 4, "kv_lora_rank": 32, "q_lora_rank": None,
        "qk_nope_head_dim": 32, "qk_rope_head_dim": 16, "v_head_dim": 32, "n_routed_experts": 8,
        "n_shared_experts": 2, "num_experts_per_tok": 2, "first_k_dense_replace": 1,
        "topk_method": "greedy", "max_position_embeddings": 1024,
    },
    "gpt-oss": {
        "model_type": "gpt_oss", "architectures": ["GptOssForCausalLM"], "vocab_size": 500,
        "hidden_size": 128, "intermediate_size": 128, "num_hidden_layers": 5, "head_dim": 32,
        "num_attention_heads": 4, "num_key_value_heads": 2, "num_local_experts": 4,
        "num_experts_per_tok": 2, "sliding_window": 32, "max_position_embeddings": 1024,
        "layer_types": [
            *["sliding_attention", "full_attention"] * 2,
            "sliding_attention",
        ],
    },
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", MIXED)
def test_layers_of_several_kinds_are_transferred(tmp_path, monkeypatch, name):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(MIXED[name]), encoding="utf-8")
    spec = TraceSpec(
        (("hf", str(path)),), "test", "full", "bf16-mixed", "flash", optimizers=("sgd",)
    )
    runs = []
    transferred = depth.transferred
    monkeypatch.setattr(depth, "transferred", lambda *both: runs.append(1) or transferred(*both))
    quick = store.trace(spec, keep=False)
    assert runs, "no shallow copy was traced"
    monkeypatch.setattr(depth, "shallow_config", lambda path: None)
    slow = store.trace(spec, keep=False)
    assert quick.exact
    assert slow.exact
    for segment, logged in slow.segments.items():
        other = quick.segments[segment]
        assert np.array_equal(logged.code, other.code), segment
        births = logged.code == 0
        for point in (*quick.points, (7, 1000)):
            ours = evaluate(quick.sizes, *point)[other.b[births]]
            assert np.array_equal(ours, evaluate(slow.sizes, *point)[logged.b[births]]), segment
