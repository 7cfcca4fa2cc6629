"""AdamW without ``fused``, derived from the trace of the fused, is what a trace of it shows."""

import json
from dataclasses import replace

import pytest

from trainwright.profile import shipped, store
from trainwright.profile.foreach import FOREACH, with_foreach
from trainwright.profile.profile import Profile
from trainwright.profile.spec import TraceSpec
from trainwright.profile.trace import ALLOC

MODEL = {
    **{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 1000},
    **{"hidden_size": 128, "intermediate_size": 448, "num_hidden_layers": 2},
    **{"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 1024},
}
TRACED = [
    (preset, name)
    for preset in ("bert-base", "gpt2", "llama-3.1-8b", "qwen-2.5-0.5b", "t5-base")
    for name in shipped.names(preset)
    if name.startswith("full-bf16")
]


def events(profile: Profile) -> list[tuple[object, ...]]:
    """The segment's births and deaths, its own storages by their number."""
    segment, own = profile.segments[FOREACH], dict[int, int]()
    rows: list[tuple[object, ...]] = []
    for code, a, b, c in zip(segment.code, segment.a, segment.b, segment.c, strict=True):
        if code == ALLOC:
            own[int(a)] = len(own)
        sizes = profile.sizes[b].tolist() if code == ALLOC else None
        rows.append((code, own.get(int(a), f"before {a}"), sizes, c, profile.category.get(int(a))))
    return rows


def operators(profile: Profile) -> list[tuple[object, ...]]:
    ops = profile.ops
    told = (ops.name, ops.phase, ops.region, ops.dtype)
    costs = (ops.flops, ops.bytes_read, ops.bytes_written, ops.dims)
    return [
        (*(one[row] for one in told), *(one[row].tolist() for one in costs))
        for row in profile.segments[FOREACH].ops.tolist()
    ]


def without(profile: Profile) -> Profile:
    """The profile as if only the fused update had been traced."""
    segment = profile.segments[FOREACH]
    own = set(segment.a[segment.code == ALLOC].tolist())
    return replace(
        profile,
        segments={name: one for name, one in profile.segments.items() if name != FOREACH},
        category={id: what for id, what in profile.category.items() if id not in own},
    )


def same(profile: Profile) -> None:
    derived = with_foreach(without(profile))
    assert derived is not None
    assert events(derived) == events(profile)
    assert operators(derived) == operators(profile)


@pytest.mark.parametrize(("preset", "name"), TRACED)
def test_what_ships_with_both_has_the_derived(preset: str, name: str) -> None:
    profile = shipped.profile(preset, name)
    assert profile is not None
    same(profile)


@pytest.mark.slow
@pytest.mark.parametrize(("task", "precision"), [("lora", "bf16-mixed"), ("full", "fp32")])
def test_a_model_that_is_traced_with_both_has_the_derived(tmp_path, task, precision) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(MODEL), encoding="utf-8")
    updates = ("adamw", "adamw-foreach")
    kernel = "efficient" if precision == "fp32" else "flash"
    spec = TraceSpec((("hf", str(path)),), "", task, precision, kernel, optimizers=updates)
    same(store.trace(spec, keep=False))


def test_a_scaler_steps_in_another_way() -> None:
    """fp16's fused update takes the scale itself, the other divides gradients before."""
    profile = shipped.profile("gpt2", "full-fp16-mixed-flash")
    assert profile is not None
    assert with_foreach(profile) is None
