"""Two shallow models must say of a deep one what its own trace says, or nothing."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from trainwright.profile import depth, repeat, store
from trainwright.profile.spec import TraceSpec
from trainwright.profile.trace import (
    ALLOC,
    BEGIN,
    END,
    FREE,
    PACK,
    RELEASE,
    UNPACK,
    OpRow,
    RawSegment,
    RawTrace,
    TraceResult,
)

LLAMA = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 1000,
    "hidden_size": 128, "intermediate_size": 448, "num_hidden_layers": 12,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 1024,
}  # fmt: skip
GEMMA = LLAMA | {
    "architectures": ["Gemma2ForCausalLM"], "model_type": "gemma2", "head_dim": 32,
    "layer_types": ["sliding_attention", "full_attention"] * 8, "num_hidden_layers": 16,
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("task", ["full", "qlora", "infer"])
@pytest.mark.parametrize("config", [LLAMA, GEMMA], ids=["llama", "gemma-2"])
def test_a_deep_model_is_told_as_it_is_traced(tmp_path, config, task):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    quantization = "nf4" if task == "qlora" else "none"
    spec = TraceSpec(
        model=(("hf", str(path)),), digest="test", task=task, precision="bf16-mixed",
        kernel="flash", quantization=quantization,
    )  # fmt: skip
    tracer = store._Tracer(spec, None, None, store.client.run)
    stretched = depth.stretched_configs(path)
    assert stretched is not None
    short, long, times = stretched
    point = ((3, 96),)
    copies = tracer.answers(store._Question(point, short), store._Question(point, long))
    told = repeat.deeper(*copies, times)
    traced = tracer.run(point)
    assert replace(told, seconds=0.0) == replace(traced, seconds=0.0)


def test_the_first_answer_takes_two_shallow_copies(tmp_path, monkeypatch):
    """So a model of 32 layers answers after 9 of them."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA), encoding="utf-8")
    spec = TraceSpec(
        model=(("hf", str(path)),), digest="test", task="full", precision="bf16", kernel="math",
    )  # fmt: skip
    asked = []

    def run(program, document, **options):
        files = [Path(each["model"]["hf"]) for each in store.questions(document)]
        asked.append([json.loads(file.read_text())["num_hidden_layers"] for file in files])
        return store.client.run(program, document, **options)

    first = store.trace(spec, at=(2, 64), run=run)
    monkeypatch.setattr(depth, "stretched_configs", lambda path: None)
    whole = store.trace(spec, at=(2, 64), run=run)
    assert asked == [[4, 5], [12]]
    assert first.category == whole.category
    for name, segment in whole.segments.items():
        assert first.segments[name].code.tolist() == segment.code.tolist()
        assert first.segments[name].b.tolist() == segment.b.tolist()
    assert first.sizes.tolist() == whole.sizes.tolist()


def made(layers, odd=()):
    """The log of a model whose layers make, save and give back a tensor; odd ones two."""
    events, ops, rows, category = [(ALLOC, 1, 64, -1)], [], [], {1: "parameter"}
    inputs, saved, number = {}, [], 1

    def call(name, size):
        rows.append(OpRow(name, "forward", 0, "float32", 0, size, size, (size,)))
        ops.append(len(rows) - 1)
        return len(ops) - 1

    for layer in range(layers):
        events.append((BEGIN, layer, 0, 0))
        inputs[layer] = [number]
        for size in (8, 16, 32) if layer in odd else (8, 16):
            number += 1
            events.append((ALLOC, number, size, call("aten.mm.default", size)))
            saved.append((len(saved) + 1, number))
            events.append((PACK, *saved[-1], layer))
        events.append((END, layer, 0, 0))
    total = call("aten._foreach_norm.Scalar", layers * 24)
    events.append((ALLOC, number + 1, layers * 24, total))
    for holder, storage in reversed(saved):
        events += [(UNPACK, holder, 0, 0), (FREE, storage, 0, 0), (RELEASE, holder, 0, 0)]
    code, a, b, c = map(list, zip(*events, strict=True))
    segment = RawSegment("micro", code, a, b, c, ops, inputs)
    trace = RawTrace(3, 8, {"micro": segment}, rows, category)
    facts = {"layers": layers, "parameters": 10 + 7 * layers, "stack": "plain"}
    return TraceResult((trace,), facts, {}, {}, True, {}, 0.0)


def called(result):
    segment = result.traces[0].segments["micro"]
    return [result.traces[0].rows[row] for row in segment.ops]


@pytest.mark.parametrize("layers", [6, 12, 80])
def test_layers_go_on_as_they_began(layers):
    told, traced = repeat.deeper(made(4), made(5), layers - 4), made(layers)
    assert told.model == traced.model
    assert called(told) == called(traced)
    ours, theirs = (result.traces[0].segments["micro"] for result in (told, traced))
    assert ours.inputs == theirs.inputs
    assert ours.code.count(ALLOC) == 2 * layers + 2
    births = [(a, b, c) for code, a, b, c in zip(ours.code, ours.a, ours.b, ours.c, strict=True)
              if code == ALLOC]  # fmt: skip
    assert births == [
        (a, b, c)
        for code, a, b, c in zip(theirs.code, theirs.a, theirs.b, theirs.c, strict=True)
        if code == ALLOC
    ]


def test_a_layer_of_another_kind_is_not_overlooked():
    with pytest.raises(repeat.RepeatError):
        repeat.deeper(made(4), made(5, odd=(2,)), 8)
    with pytest.raises(repeat.RepeatError):
        repeat.deeper(made(4, odd=(1, 2)), made(5, odd=(1, 3)), 8)


def test_facts_that_do_not_grow_evenly_say_nothing():
    other = made(5)
    with pytest.raises(repeat.RepeatError):
        repeat.deeper(made(4), replace(other, model=other.model | {"stack": "transformers"}), 8)


def configs(tmp_path, **fields):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA | {"num_hidden_layers": 60} | fields), encoding="utf-8")
    return depth.stretched_configs(path)


def test_alike_layers_take_two_shallow_models(tmp_path):
    short, long, times = configs(tmp_path)
    assert (short["num_hidden_layers"], long["num_hidden_layers"], times) == (4, 5, 56)


def test_a_pattern_of_layers_is_kept_whole(tmp_path):
    kinds = (["sliding_attention"] * 5 + ["full_attention"]) * 10
    short, long, times = configs(tmp_path, model_type="gemma3_text", layer_types=kinds)
    few = short["num_hidden_layers"]
    assert long["num_hidden_layers"] == few + 6
    assert few + 6 * times == 60
    assert short["layer_types"] == kinds[:few]
    assert long["layer_types"] == kinds[: few + 6]


@pytest.mark.parametrize(
    "fields",
    [
        {"model_type": "jamba"},
        {"num_hidden_layers": 8},
        {"use_sliding_window": True},
        {"layer_types": ["conv", "full_attention", "conv"] + ["conv"] * 56 + ["full_attention"]},
        {"num_decoder_layers": 30},
    ],
)
def test_other_models_are_traced_whole(tmp_path, fields):
    assert configs(tmp_path, **fields) is None
