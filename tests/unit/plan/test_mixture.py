"""What a report says of a mixture of experts, on shipped profiles."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from trainwright.estimate.time.efficiency import load
from trainwright.estimate.time.roofline import classify, op_times, rates
from trainwright.messages import LANGUAGES, UserError, render
from trainwright.plan import mixture
from trainwright.plan.evaluate import Facts, evaluate, resolve
from trainwright.plan.schema import Plan
from trainwright.profile import presets
from trainwright.profile.profile import monomials

ACTIVE = {
    # Preset: (published, in units of, whether input embeddings, which are looked up, count).
    "mixtral-8x7b": (12.9, 0.1, True),
    "qwen-3-30b-a3b": (3.3, 0.1, True),
    "olmoe-1b-7b": (1.3, 0.1, True),
    "deepseek-v2-lite": (2.4, 0.1, False),
    "gpt-oss-20b": (3.61, 0.01, False),
}
"""Billions of parameters at work on a token, as the presets' sources say; two of them say
that embeddings are not counted (arXiv 2508.10925, table 1), or come out only so."""


def plan(preset: str, task: str = "infer", gpu: str = "h100-sxm", **keys: Any) -> Plan:
    lengths: dict[str, Any] = {"prompt_tokens": 128, "new_tokens": 128}
    workload: dict[str, Any] = {"task": task, "inputs": lengths}
    if task != "infer":
        workload |= {"inputs": {"sequence_length": 512}, "effective_batch": 2}
    document = {
        "model": {"preset": preset},
        "workload": workload | keys,
        "machine": {"gpus": [{"id": gpu}]},
        "settings": {"precision": "bf16" if task == "infer" else "bf16-mixed", "micro_batch": 2},
    }
    return Plan.model_validate(document)


def facts(asked: Plan) -> Facts:
    found = resolve(asked)
    assert isinstance(found, Facts), "no shipped profile answers"
    return found


def notes(asked: Plan) -> set[str]:
    return {note.id.removeprefix("plan.note.") for note in facts(asked).notes}


@pytest.mark.parametrize("preset", ACTIVE)
def test_parameters_at_work_are_the_published_ones(preset: str) -> None:
    billions, unit, embeddings = ACTIVE[preset]
    model = facts(plan(preset)).profile.model
    active = model["active_parameters"]
    if not embeddings:
        active -= model["vocabulary"] * model["hidden"]
    print(f"{preset}: {active:,} of {model['parameters']:,}, published {billions} B")
    assert abs(active / 1e9 - billions) < unit  # some round, some cut off


@pytest.mark.parametrize("preset", [*ACTIVE, "minicpm3-4b"])
def test_all_parameters_are_the_published_ones(preset: str) -> None:
    traced = facts(plan(preset)).profile.model["parameters"]
    assert traced == pytest.approx(presets.find(preset).parameters, rel=0.001)


@pytest.mark.parametrize("preset", ["olmoe-1b-7b", "qwen-3-30b-a3b", "mixtral-8x7b"])
def test_work_of_a_token_follows_the_parameters_at_work(preset: str) -> None:
    """Two FLOPs a parameter a token, embeddings looked up, beside attention's scores."""
    profile = facts(plan(preset)).profile
    batch, sequence = 2, 512
    rows = profile.segments["prefill"].ops
    flops = (profile.ops.flops @ monomials(batch, sequence) / 1024)[rows].sum()
    model = profile.model
    # The prompt's last token alone gets scores.
    embedded = model["vocabulary"] * model["hidden"]
    tokens = batch * sequence
    scores = 4 * batch * sequence**2 * model["heads"] * model["head_dim"] * model["layers"]
    expected = 2 * (model["active_parameters"] - 2 * embedded) * tokens + scores
    assert flops - 2 * embedded * batch == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("preset", ["olmoe-1b-7b", "qwen-3-30b-a3b", "mixtral-8x7b"])
def test_one_request_reads_the_weights_at_work_and_many_read_all(preset: str) -> None:
    known = facts(plan(preset))
    profile, record = known.profile, known.machine.gpu.record
    offered = rates(record, load(), tf32=True)
    model = profile.model
    embedded = model["vocabulary"] * model["hidden"]
    read = {}
    for batch in (1, 2048):
        times = op_times(classify(profile), offered, load(), batch=batch, sequence=1)
        products = np.flatnonzero(times.flops > 0)
        rows = [row for row in profile.segments["decode"].ops if row in set(products.tolist())]
        read[batch] = times.bytes[rows].sum()
    active = 2 * (model["active_parameters"] - embedded)
    assert read[1] == pytest.approx(active, rel=0.02)
    assert read[2048] > 2 * (model["parameters"] - embedded)


def test_memory_of_the_experts_is_a_figure_of_its_own() -> None:
    asked = plan("olmoe-1b-7b", "lora")
    known = facts(asked)
    memory = evaluate(asked, known).memory
    weights = next(term for term in memory.terms if term.role == "parameters")
    experts = [part for part in weights.parts if part.name.id == "memory.member.experts"]
    assert sum(part.value for part in experts) == known.profile.model["expert_bytes"]
    assert known.profile.model["expert_bytes"] == 2 * 6_442_450_944, "arXiv 2409.02060, in bf16"


@pytest.mark.parametrize(
    ("preset", "values"), [("deepseek-v2-lite", (512 + 64) * 27), ("minicpm3-4b", (256 + 32) * 62)]
)
def test_latent_attention_caches_what_its_paper_says(preset: str, values: int) -> None:
    """Of a token: the latent and the shared rotary key of each layer (arXiv 2405.04434, 2.1)."""
    held = []
    for prompt in (1024, 2048):
        asked = plan(preset, inputs={"prompt_tokens": prompt, "new_tokens": 1})
        terms = evaluate(asked, facts(asked)).memory.terms
        held.append(next(term.value for term in terms if term.role == "kv_cache"))
    requests, width = 2, 2
    assert held[1] - held[0] == 1024 * values * requests * width


def test_the_assumed_routing_is_said() -> None:
    assert {"experts", "routing-balanced", "routing-of-grouped"} <= notes(plan("olmoe-1b-7b"))
    worst = notes(plan("olmoe-1b-7b", routing="worst"))
    assert "routing-worst" in worst
    assert "routing-balanced" not in worst


def test_a_dense_model_has_no_routing_to_choose() -> None:
    assert not {note for note in notes(plan("llama-3.2-1b")) if "expert" in note}
    with pytest.raises(UserError) as caught:
        resolve(plan("llama-3.2-1b", routing="balanced"))
    assert caught.value.message.id == "plan.no-experts"


def test_what_libraries_leave_alone_is_said() -> None:
    lora, qlora = notes(plan("olmoe-1b-7b", "lora")), notes(plan("olmoe-1b-7b", "qlora"))
    assert "experts-frozen" in lora
    assert "experts-not-quantized" not in lora
    assert {"experts-frozen", "experts-not-quantized"} <= qlora


def test_4_bits_do_not_shrink_experts() -> None:
    adapted, packed = (facts(plan("olmoe-1b-7b", task)) for task in ("lora", "qlora"))
    assert packed.profile.model["expert_bytes"] == adapted.profile.model["expert_bytes"]


@pytest.mark.parametrize(
    ("gpu", "task", "expected"),
    [
        ("h100-sxm", "infer", set()),
        ("h100-sxm", "full", {"experts-without-autocast", "experts-one-by-one"}),
        ("rtx-4090", "infer", {"experts-one-by-one"}),
    ],
)
def test_how_the_gpu_multiplies_for_experts_is_said(
    gpu: str, task: str, expected: set[str]
) -> None:
    told = {"experts-without-autocast", "experts-one-by-one", "experts-old-gpu"}
    assert notes(plan("olmoe-1b-7b", task, gpu)) & told == expected


def test_a_gpu_without_the_kernel_launches_a_product_an_expert() -> None:
    launches = {}
    for gpu in ("h100-sxm", "rtx-4090"):
        known = facts(plan("olmoe-1b-7b", gpu=gpu))
        offered = rates(known.machine.gpu.record, load(), tf32=True)
        times = op_times(classify(known.profile), offered, load(), batch=2, sequence=512)
        launches[gpu] = times.launches[known.profile.segments["prefill"].ops].sum()
    layers, products, experts = 16, 2, 64
    assert launches["rtx-4090"] - launches["h100-sxm"] == layers * products * (experts - 1)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_notes_read_in_both_languages(language: str) -> None:
    for task in ("full", "qlora"):
        for note in facts(plan("olmoe-1b-7b", task)).notes:
            assert note.id not in render(note, language)


def test_llama_4_is_not_said_to_route() -> None:
    """transformers' ``Llama4TextMoe.forward`` repeats every token for every expert."""
    found = facts(plan("mixtral-8x7b"))
    model = found.profile.model | {"experts_implementation": "every"}
    profile, spec = SimpleNamespace(model=model), SimpleNamespace(task="full", routing="balanced")
    said = list(mixture.notes(profile, spec, found.machine.gpu.record, None))  # type: ignore[arg-type]
    assert [message.id for message in said] == ["plan.note.experts-every"]
    assert all(render(said[0], language) for language in LANGUAGES)
