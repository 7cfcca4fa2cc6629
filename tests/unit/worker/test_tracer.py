"""The tracer as a program: what it refuses, and what its log holds."""

import gzip
import json
import os
import subprocess
import sys

import pytest

from trainwright.messages import UserError
from trainwright.profile import trace
from trainwright.worker import client

LLAMA = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 200,
    "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 256,
}  # fmt: skip


def document(folder, config=None, **options):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "config.json"
    if config is not None:
        text = config if isinstance(config, str) else json.dumps(config)
        path.write_text(text, encoding="utf-8")
    return {
        "model": {"hf": str(path)}, "task": "full", "precision": "bf16-mixed",
        "kernel": "flash", "channels_last": False, "checkpointing": "none",
        "quantization": "none", "lora": [8, []], "image_size": 0, "points": [(2, 64)],
        "optimizers": ["adamw"], "result_file": str(folder / "결과 1.json.gz"),
    } | options  # fmt: skip


def traced(spec):
    client.run("trace", spec, timeout_s=300)
    with gzip.open(spec["result_file"], "rt", encoding="utf-8") as file:
        return trace.parse(json.load(file))


def refusal(spec):
    with pytest.raises(UserError) as caught:
        client.run("trace", spec, timeout_s=300)
    return caught.value.message


DEEP = "[" * 100_000
BROKEN = {
    "not-json": ("{", "worker.config-unreadable"),
    "a-list": ("[1]", "worker.config-unreadable"),
    "deep": (DEEP, "worker.config-unreadable"),
    "nan": ('{"hidden_size": NaN}', "worker.config-nan"),
    "missing": (None, "worker.config-missing"),
    "code": (
        LLAMA | {"model_type": "own", "auto_map": {"AutoModel": "x--y.Z"}},
        "worker.remote-code",
    ),
    "no-type": ({"hidden_size": 64}, "worker.model-type-unknown"),
    "type": (LLAMA | {"model_type": "nothing"}, "worker.model-type-unknown"),
    "negative": (LLAMA | {"hidden_size": -64}, "worker.config-field"),
    "text": (LLAMA | {"num_hidden_layers": "two"}, "worker.config-field"),
    "absurd": (LLAMA | {"num_hidden_layers": 10**9}, "worker.config-absurd"),
    "heads": (LLAMA | {"num_attention_heads": 5, "num_key_value_heads": 5}, "worker.heads-divide"),
    "kv-heads": (LLAMA | {"num_key_value_heads": 3}, "worker.kv-heads-divide"),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", BROKEN)
def test_broken_or_hostile_config_is_refused_in_one_line(tmp_path, case):
    config, message_id = BROKEN[case]
    message = refusal(document(tmp_path / "모델 폴더", config))
    assert message.id == message_id
    assert "\n" not in str(UserError(message))


@pytest.mark.slow
def test_code_that_comes_with_a_model_that_the_library_has_is_left_out(tmp_path):
    own = LLAMA | {"auto_map": {"AutoConfig": "x.C", "AutoModelForCausalLM": "x--y.Z"}}
    assert traced(document(tmp_path, own)).model == traced(document(tmp_path, LLAMA)).model


@pytest.mark.slow
def test_training_log_keeps_its_promises(tmp_path):
    result = traced(document(tmp_path / "한글 폴더", LLAMA, points=[(2, 64), (3, 64)]))
    assert result.repeats
    assert result.kernels.keys() == {"flash"}
    first, second = result.traces
    assert set(first.segments) == {"setup", "micro", "again", "optimizer:adamw"}
    assert first.segments["micro"].code == second.segments["micro"].code
    assert first.segments["micro"].a == second.segments["micro"].a
    held = {"parameter": 0, "optimizer": 0}
    for segment in first.segments.values():
        for code, a, b in zip(segment.code, segment.a, segment.b, strict=True):
            kind = first.category.get(a)
            if code == trace.ALLOC and kind in held:
                held[kind] += b
    parameters = result.model["parameters"]
    assert held["parameter"] == 4 * parameters
    assert 8 * parameters <= held["optimizer"] < 8 * parameters + 4 * 100  # and step counters
    micro = first.segments["micro"]
    casts = [
        b
        for code, a, b in zip(micro.code, micro.a, micro.b, strict=True)
        if code == trace.ALLOC and first.category.get(a) == "cast"
    ]
    norms = 5 * 64  # autocast leaves their weights alone, and the embedding's
    assert sum(casts) == 2 * (parameters - norms - 200 * 64)
    products = 2 * 128 * (parameters - 200 * 64)  # all weights but the embedding's multiply
    flops = sum(
        first.rows[op].flops
        for op in first.segments["micro"].ops
        if first.rows[op].phase in ("forward", "loss") and ".mm" in first.rows[op].name
    )
    assert flops == pytest.approx(products, rel=0.01)


@pytest.mark.slow
def test_decoding_grows_the_cache_by_one_token(tmp_path):
    spec = document(tmp_path, LLAMA, task="infer", precision="bf16")
    (point,) = traced(spec).traces
    sizes = {
        name: sum(
            b
            for code, a, b in zip(segment.code, segment.a, segment.b, strict=True)
            if code == trace.ALLOC and point.category.get(a) == "kv_cache"
        )
        for name, segment in point.segments.items()
    }
    token = 2 * 2 * 16 * 2  # keys and values of 2 heads of 16, in 2 bytes
    assert sizes["prefill"] == 2 * 2 * 64 * token
    assert sizes["decode"] == 2 * 2 * 65 * token


ODD = {
    "a layer whose weight the model itself looks at": (
        {
            "model_type": "t5", "architectures": ["T5ForConditionalGeneration"], "d_model": 64,
            "d_ff": 128, "d_kv": 16, "num_layers": 1, "num_heads": 4, "vocab_size": 200,
        },
        {"task": "qlora", "quantization": "nf4"},
    ),
    "a window that the cache moves to the device": (
        LLAMA | {
            "model_type": "gemma2", "architectures": ["Gemma2ForCausalLM"], "head_dim": 16,
            "sliding_window": 32,
        },
        {"task": "infer", "precision": "bf16"},
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("case", ODD)
def test_odd_models_of_transformers_are_traced(tmp_path, case):
    config, options = ODD[case]
    assert traced(document(tmp_path, config, **options)).traces


@pytest.mark.slow
def test_longer_than_the_position_table_is_refused(tmp_path):
    gpt = {
        "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 100,
        "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 128,
    }  # fmt: skip
    message = refusal(document(tmp_path, gpt, points=[(2, 256)]))
    assert message.id == "worker.sequence-too-long"
    assert message.values["longest"] == 128


@pytest.mark.slow
def test_standard_output_carries_the_protocol_only(tmp_path):
    spec = document(tmp_path, LLAMA | {"bos_token_id": 99999})  # transformers complains of it
    program = client.PROGRAMS / "trace.py"
    done = subprocess.run(
        [sys.executable, str(program)], input=json.dumps(spec), capture_output=True, text=True,
        env=os.environ | {"HF_HUB_OFFLINE": "1"}, check=True,
    )  # fmt: skip
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines[-1] == {"result_file": spec["result_file"]}
    assert all(0 <= line["progress"] <= 1 for line in lines[:-1])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "options", "id"),
    [
        ({"builtin": "deeplabv3plus-r50"}, {"points": [(1, 0)]}, "worker.one-value"),
        ({"timm": "vit_tiny_patch16_224"}, {"points": [(2, 0)]}, "worker.image-patches"),
        ({"timm": "bat_resnext26ts"}, {"points": [(2, 0)]}, "worker.image-refused"),
        ({"torchvision": "ssd300_vgg16"}, {"points": [(2, 0)]}, "worker.torchvision-unknown"),
    ],
)
def test_an_image_model_says_what_it_cannot_do(tmp_path, model, options, id):
    pytest.importorskip("timm")
    message = refusal(document(tmp_path, model=model, image_size=65, **options))
    assert message.id == id
