"""What serving adds to a report: engines, what fits at most, and why a monitor shows more."""

import json
from dataclasses import replace
from typing import Any

import pytest

from trainwright.estimate.serving.engines import ENGINES
from trainwright.estimate.serving.served_split import held, split_over
from trainwright.messages import LANGUAGES, UserError, render
from trainwright.plan import sentences, serving
from trainwright.plan.evaluate import Facts, evaluate, resolve
from trainwright.plan.limits import with_limits
from trainwright.plan.report import Report, Verdict, as_json
from trainwright.plan.schema import Plan
from trainwright.plan.serving_rows import serving_rows
from trainwright.workload.engines import CACHES, WEIGHTS
from trainwright.workload.meaning import meaningful

GIB = 1 << 30


def plan(
    settings: dict[str, Any] | None = None, preset: str = "llama-3.1-8b", **inputs: int
) -> Plan:
    shape = {"prompt_tokens": 1024, "new_tokens": 256, "concurrent": 8} | inputs
    return Plan.model_validate(
        {
            "model": {"preset": preset},
            "workload": {"task": "infer", "inputs": shape},
            "machine": {"gpus": [{"id": "rtx-4090"}]},
            "settings": settings or {},
        }
    )


def facts_of(asked: Plan) -> Facts:
    found = resolve(asked)
    assert isinstance(found, Facts)
    return found


def report_of(asked: Plan) -> Report:
    return evaluate(asked, facts_of(asked))


def term(report: Report, role: str) -> float:
    return sum(part.value for part in report.memory.terms if part.role == role)


def test_engines_have_what_the_settings_promise() -> None:
    assert set(ENGINES) == set(WEIGHTS)
    for name, caches in CACHES.items():
        assert set(caches) == set(ENGINES[name].forms) - {"fp32", "bf16", "fp16"}


def test_a_token_of_llama_takes_the_published_bytes() -> None:
    document = as_json(report_of(plan()))["serving"]
    assert document["kv_bytes_per_token"] == 131_072  # 2·32·8·128·2
    assert document["attention"] == "gqa"
    assert document["layers"] == {"full": 32}
    assert document["kv_bytes"] == 8 * 1280 * 131_072


def test_the_traced_cache_is_the_formula_s() -> None:
    short = report_of(plan(prompt_tokens=1, new_tokens=1))
    long = report_of(plan(prompt_tokens=1, new_tokens=4001))
    grown = term(long, "kv_cache") - term(short, "kv_cache")
    last = 8 * 4000 * 131_072 / 64  # of the last layer, the old keys live beside the new
    assert grown == pytest.approx(8 * 4000 * 131_072 + last, rel=0.001)


def test_packed_weights_take_their_own_bytes() -> None:
    full, packed = (
        report_of(plan({"engine": "llama.cpp", "quantization": "none"})),
        report_of(plan({"quantization": "q4_k_m"})),
    )
    assert term(full, "parameters") == pytest.approx(2 * 8_030_261_248, rel=1e-3)
    assert term(packed, "parameters") == pytest.approx(4.913e9, rel=1e-3)
    assert packed.time.step_seconds.value < full.time.step_seconds.value
    assert packed.serving is not None
    assert packed.serving.served.engine.id == "llama.cpp"


def test_a_quantised_cache_halves_and_speeds_up() -> None:
    asked: dict[str, Any] = {"prompt_tokens": 16_384, "concurrent": 2}
    plain = report_of(plan({"engine": "vllm"}, **asked))
    small = report_of(plan({"kv_cache": "fp8"}, **asked))
    assert term(small, "kv_cache") == pytest.approx(term(plain, "kv_cache") / 2, rel=1e-3)
    assert small.time.step_seconds.value < plain.time.step_seconds.value


def test_engines_explain_what_they_take() -> None:
    report = report_of(plan({"engine": "vllm"}))
    assert report.serving is not None
    assert report.serving.taken_bytes is not None
    assert report.serving.taken_bytes == pytest.approx(
        0.92 * report.memory.device_total.value, rel=1e-6
    )
    assert report.serving.tokens_left is not None
    assert report.serving.tokens_left % 16 == 0
    stated = report_of(plan({"engine": "vllm", "memory_share": 0.5})).serving
    assert stated is not None
    assert stated.taken_bytes == pytest.approx(0.5 * report.memory.device_total.value, rel=1e-6)
    note = next(note for note in report.notes if note.id == "plan.note.engine-takes")
    for language in LANGUAGES:
        text = render(note, language)
        assert "gpu_memory_utilization" in text
        assert "nvidia-smi" in text


@pytest.mark.parametrize(
    ("engine", "small"), [("vllm", 0.6), ("sglang", 0.6), ("tensorrt-llm", 0.01)]
)
def test_a_share_without_room_for_a_request_is_refused_with_one_that_has(
    engine: str, small: float
) -> None:
    refused = report_of(plan({"engine": engine, "memory_share": small}))
    assert refused.verdict is Verdict.NO
    assert not refused.fits
    note = refused.notes[0]
    assert note.id == "plan.note.share-small"
    for language in LANGUAGES:
        assert render(note, language)
        assert render(sentences.verdict(refused), language)
    least = float(str(note.values["least"]))
    for share, all_run in ((least, True), (least - 0.01, False)):
        stated = report_of(plan({"engine": engine, "memory_share": round(share, 2)}))
        assert stated.serving is not None
        assert (stated.serving.waiting == 0) is all_run
        assert stated.verdict is (Verdict.FITS if all_run else Verdict.QUEUES)


@pytest.mark.parametrize(("engine", "share"), [("vllm", 0.7), ("sglang", 0.7), ("vllm", None)])
def test_requests_without_room_in_the_cache_wait_and_the_rates_are_of_those_that_run(
    engine: str, share: float | None
) -> None:
    """vLLM and SGLang queue what their cache does not hold; they end with no error."""
    settings = {"engine": engine} | ({"memory_share": share} if share else {})
    many = 8 if share else 200  # 200 requests need more than the whole card
    report = report_of(plan(settings, concurrent=many))
    assert (report.verdict, report.fits) == (Verdict.QUEUES, True)
    side, speed = report.serving, report.time.serving
    assert side is not None
    assert speed is not None
    assert 1 <= side.running < many
    assert side.running * 1280 <= (side.tokens_left or 0) < (side.running + 1) * 1280
    assert side.cache_bytes == side.served.pool_bytes(side.running, 1280), "of those that run"
    rows = dict((row.id, row) for row, _ in serving_rows(side))
    assert rows["plan.serving.cache"].values["requests"] == side.running
    alone = report_of(plan(settings, concurrent=side.running))
    assert alone.verdict is not Verdict.QUEUES
    assert alone.time.tokens_per_second == report.time.tokens_per_second
    assert term(alone, "kv_cache") == term(report, "kv_cache")
    longer = alone.time.serving
    assert longer is not None
    assert speed.first_token_all.value > longer.first_token_all.value
    note = next(note for note in report.notes if note.id == "plan.note.requests-wait")
    for language in LANGUAGES:
        assert "kv_cache: fp8" in render(note, language)
        for said in (note, sentences.verdict(report)):
            assert str(side.running) in render(said, language)


def test_a_share_is_proposed_only_where_it_holds_all_requests() -> None:
    settings = {"engine": "vllm", "quantization": "int4"}
    waits = report_of(plan(settings, preset="qwen-2.5-32b", concurrent=32))
    assert waits.verdict is Verdict.QUEUES
    note = next(note for note in waits.notes if note.id == "plan.note.requests-wait")
    assert "memory_share" not in render(note, "en")
    held = report_of(plan({"engine": "vllm", "memory_share": 0.75}, concurrent=32))
    assert held.serving is not None
    share = held.serving.whole_share
    assert share is not None
    enough = report_of(plan({"engine": "vllm", "memory_share": share}, concurrent=32))
    assert enough.verdict is not Verdict.QUEUES


def on_cards(asked: Plan, gpu: str, count: int, **settings: object) -> Report:
    machine = asked.machine.model_validate({"gpus": [{"id": gpu, "count": count}]})
    given = asked.settings.model_copy(update=settings)
    return report_of(asked.model_copy(update={"machine": machine, "settings": given}))


def test_two_cards_that_split_the_layers_hold_more_requests_than_copies() -> None:
    """Qwen 2.5 32B in 4 bits: 18 GiB of 23.5 GiB on each of two cards, or half of that."""
    asked = plan({"engine": "vllm", "quantization": "int4"}, preset="qwen-2.5-32b", concurrent=32)
    copies = on_cards(asked, "rtx-4090", 2)
    split = on_cards(asked, "rtx-4090", 2, tensor_degree=2)
    assert copies.serving is not None
    assert split.serving is not None
    assert copies.serving.served.copies == 2
    assert (split.serving.served.copies, split.serving.waiting) == (1, 0)
    waits = next(one for one in copies.notes if one.id == "plan.note.requests-wait")
    assert "tensor_degree: 2" in render(waits, "en")
    both = 2 * 0.92 * 23.5 * 2**30 - 20 * 2**30
    assert 0.85 * both < (split.serving.tokens_left or 0) * 262_144 < both


def test_each_gpu_of_a_split_holds_its_part_of_weights_and_heads() -> None:
    """Llama 3.1 70B: 141.1 GB in bf16, 8 KV heads of 128 in 80 layers: model card, config.json."""
    asked = plan({"engine": "vllm"}, preset="llama-3.1-70b")
    for degree in (2, 4, 8):
        served = on_cards(asked, "a100-80gb", 8, tensor_degree=degree).serving
        assert served is not None
        assert served.served.held_weights is not None
        part = 141.1e9 / degree
        assert part <= served.served.held_weights.nbytes < 1.002 * part
        assert served.served.token_bytes == 2 * 2 * 80 * 8 // degree * 128
        assert served.served.copies == min(8 // degree, served.concurrent)


def test_kv_heads_are_copied_where_there_are_fewer_than_gpus() -> None:
    """Qwen 2.5 7B has 4 KV heads (config.json), which vLLM copies over 28 / 7 and more GPUs."""
    asked = plan({"engine": "vllm"}, preset="qwen-2.5-1.5b")  # 12 heads, 2 of keys
    four = on_cards(asked, "rtx-4090", 4, tensor_degree=4).serving
    two = on_cards(asked, "rtx-4090", 4, tensor_degree=2).serving
    assert four is not None
    assert two is not None
    assert four.served.token_bytes == two.served.token_bytes
    with pytest.raises(UserError, match="tensor_degree"):
        on_cards(asked, "rtx-4090", 8, tensor_degree=8)


def test_as_many_gpus_split_the_layers_as_it_takes() -> None:
    """70B in bf16 is 131 GiB: two A100 of 80 GB hold it, 32B is 61 GiB: four RTX 4090 do."""
    large = on_cards(plan({"engine": "vllm"}, preset="llama-3.1-70b", concurrent=1), "a100-80gb", 8)
    assert large.settings.tensor_degree == 2
    cards = on_cards(plan({"engine": "vllm"}, preset="qwen-2.5-32b", concurrent=1), "rtx-4090", 4)
    assert cards.settings.tensor_degree == 4
    assert cards.verdict is Verdict.FITS
    small = on_cards(plan({"engine": "vllm"}, concurrent=1), "rtx-4090", 4)
    assert small.settings.tensor_degree is None


def test_a_split_that_is_needed_holds_all_requests_where_gpus_allow() -> None:
    """Two H100 hold the 131 GiB of 70B and 56 such requests of 64: four hold all."""
    asked = plan(
        {"engine": "vllm"},
        preset="llama-3.1-70b",
        concurrent=64,
        prompt_tokens=2048,
        new_tokens=512,
    )
    report = on_cards(asked, "h100-80gb", 8)
    assert (report.settings.tensor_degree, report.verdict) == (4, Verdict.FITS)
    assert on_cards(asked, "h100-80gb", 2).verdict is Verdict.QUEUES


def test_a_model_that_is_published_in_four_bits_is_served_so() -> None:
    """gpt-oss 20B: 12.8 GiB of MXFP4 (openai/gpt-oss-20b), 11.27 GiB as llama-bench prints them."""
    for engine, gib in (("vllm", 12.8), ("ollama", 12.8), ("llama.cpp", 11.27)):
        report = report_of(plan({"engine": engine}, preset="gpt-oss-20b", concurrent=1))
        assert term(report, "parameters") / GIB == pytest.approx(gib, rel=0.005)
        assert "plan.note.published" in [note.id for note in report.notes]
    whole = report_of(
        plan({"engine": "vllm", "quantization": "none"}, preset="gpt-oss-20b", concurrent=1)
    )
    assert term(whole, "parameters") / GIB == pytest.approx(2 * 20.91e9 / GIB, rel=0.01)
    # "can run within 16 GB of memory": openai.com, Introducing gpt-oss
    asked = plan({"engine": "ollama"}, preset="gpt-oss-20b", concurrent=1)
    assert on_cards(asked, "rtx-4060-ti-16gb", 1).verdict is Verdict.FITS


def test_what_even_a_split_does_not_hold_is_refused() -> None:
    """Qwen 2.5 32B in bf16: 61 GiB of weights, more than two cards of 24 GB have."""
    report = on_cards(plan({"engine": "vllm"}, preset="qwen-2.5-32b"), "rtx-4090", 2)
    assert report.verdict is Verdict.NO


def test_layers_are_split_by_engines_that_do_so() -> None:
    with pytest.raises(UserError, match="vllm"):
        on_cards(plan({"engine": "llama.cpp"}), "rtx-4090", 2, tensor_degree=2)
    chosen = on_cards(plan({}), "rtx-4090", 2, tensor_degree=2)
    assert chosen.settings.engine == "vllm"


def test_more_gpus_a_layer_answer_one_request_sooner_and_slow_links_less_so() -> None:
    asked = plan({"engine": "vllm"}, preset="qwen-2.5-32b", concurrent=1)
    seconds = [
        on_cards(asked, "h100-80gb", 8, tensor_degree=n).time.step_seconds for n in (2, 4, 8)
    ]
    values = [one.value for one in seconds if one is not None]
    assert values == sorted(values, reverse=True)
    linked, cards = (on_cards(asked, gpu, 4, tensor_degree=4) for gpu in ("a100-80gb", "rtx-4090"))
    first = [one.time.serving.first_token.value for one in (linked, cards) if one.time.serving]
    assert first[1] > 1.5 * first[0]


def test_an_engine_with_its_default_share_does_not_start_without_room_for_a_request() -> None:
    """16.1 GB of weights in 92 % of 16 GB: vLLM raises, whatever the rest of the card has."""
    asked = plan({"engine": "vllm", "kv_cache": "fp8"}, concurrent=1, prompt_tokens=100_000)
    machine = asked.machine.model_validate({"gpus": [{"id": "rtx-4090"}]})
    report = report_of(asked.model_copy(update={"machine": machine}))
    assert report.serving is not None
    assert not report.serving.starts
    assert report.verdict is Verdict.NO


@pytest.mark.parametrize("engine", ["llama.cpp", "ollama"])
def test_layers_without_room_go_to_the_cpu_and_no_speed_is_said_of_that(engine: str) -> None:
    settings = {"engine": engine, "quantization": "q8_0"}
    report = report_of(plan(settings, preset="qwen-2.5-32b"))
    assert report.verdict is Verdict.NO
    assert "plan.note.layers-on-cpu" in [note.id for note in report.notes]
    parallel = [note for note in report.notes if note.id == "plan.note.ollama-parallel"]
    assert len(parallel) == (engine == "ollama")


@pytest.mark.parametrize(("gpus", "verdict"), [(1, Verdict.NO), (2, Verdict.FITS)])
def test_two_cards_hold_what_one_does_not(gpus: int, verdict: Verdict) -> None:
    """16 GB of weights: too much for one card of 12 GB, and 8 GB for each of two."""
    report = on_cards(plan({"engine": "vllm"}, concurrent=1), "rtx-3060-12gb", gpus)
    assert report.verdict is verdict
    parted = [note for note in report.notes if note.id == "plan.note.layers-parted"]
    assert len(parted) == gpus - 1
    assert all(render(note, language) for note in parted for language in LANGUAGES)


def test_what_is_left_is_what_fits() -> None:
    asked = plan({"engine": "vllm"})
    report = report_of(asked)
    assert report.serving is not None
    left = report.serving.tokens_left
    assert left is not None
    more = evaluate(
        asked,
        replace(
            facts_of(asked),
            inputs=facts_of(asked).inputs.model_copy(
                update={"prompt_tokens": left // 128 * 16 - 256}
            ),
        ),
    )
    used = more.memory.allocated_peak.value + (
        more.memory.device_used.value - more.memory.reserved_peak.value
    )
    assert used == pytest.approx(0.92 * more.memory.device_total.value, rel=0.01)


@pytest.mark.parametrize(
    "settings",
    [
        *({}, {"engine": "vllm"}, {"engine": "vllm", "memory_share": 0.75}),
        *({"engine": "sglang"}, {"quantization": "q8_0"}),
    ],
)
def test_limits_are_exact(settings: dict[str, Any]) -> None:
    asked = plan(settings)
    facts = facts_of(asked)
    found = with_limits(asked, facts, evaluate(asked, facts)).serving
    assert found is not None
    assert found.limits is not None
    context, most = found.limits.largest_context, found.limits.most_concurrent
    assert context is not None
    assert most is not None

    def fits(prompt: int, concurrent: int) -> bool:
        report = report_of(plan(settings, prompt_tokens=prompt, concurrent=concurrent))
        return report.fits and report.verdict is not Verdict.QUEUES

    assert fits(context - 256, 8)
    assert not fits(context - 255, 8)
    assert fits(1024, most)
    assert not fits(1024, most + 1)
    more = report_of(plan(settings, concurrent=most + 9)).serving
    assert more is not None
    assert more.running == (most if more.served.queues else most + 9), "one figure, twice"


def test_the_context_ends_at_the_model_s_positions() -> None:
    asked = plan(preset="gpt2", prompt_tokens=64, new_tokens=16, concurrent=1)
    facts = facts_of(asked)
    found = with_limits(asked, facts, evaluate(asked, facts)).serving
    assert found is not None
    assert found.limits is not None
    assert found.limits.largest_context == 1024
    assert found.limits.bounded_by_model


@pytest.mark.parametrize(
    ("gpu", "count", "each_second"),
    [("rtx-3090", 2, 16.57), ("rtx-3090", 4, 17.07), ("rtx-4090", 2, 19.22), ("rtx-4090", 4, 19.8)],
)
def test_llama_cpp_serves_70b_on_several_cards_as_published(
    gpu: str, count: int, each_second: float
) -> None:
    """XiongjieDai, GPU-Benchmarks-on-LLM-Inference: one card runs out of memory, two do not."""
    packed = {"engine": "llama.cpp", "quantization": "q4_k_m"}
    asked = plan(packed, "llama-3.1-70b", prompt_tokens=1, new_tokens=512, concurrent=1)

    def on(cards: int) -> Report:
        machine = {"gpus": [{"id": gpu, "count": cards}]}
        return report_of(Plan.model_validate(asked.model_dump() | {"machine": machine}))

    assert not on(1).fits
    report = on(count)
    assert report.fits
    rate = report.time.tokens_per_second
    assert rate is not None
    assert rate.interval is not None
    assert rate.interval.low < each_second < rate.interval.high
    said = next(note for note in report.notes if note.id == "plan.note.layers-split")
    assert f"spreads the layers over {count} GPUs" in render(said, "en")
    assert not any(note.id == "plan.note.idle-gpus" for note in report.notes)


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_each_of_two_gpus_serves_a_copy_to_half_of_the_requests(engine: str) -> None:
    """vLLM, docs, Data Parallel Deployment: each rank is an engine with its own cache."""
    asked = plan({"engine": engine}, prompt_tokens=512, new_tokens=128, concurrent=16)

    def on(cards: int, concurrent: int) -> Report:
        changed = asked.model_dump() | {"machine": {"gpus": [{"id": "rtx-4090", "count": cards}]}}
        changed["workload"]["inputs"]["concurrent"] = concurrent
        return report_of(Plan.model_validate(changed))

    two, half = on(2, 16), on(1, 8)
    assert two.fits
    assert two.time.serving is not None
    assert half.time.serving is not None
    assert two.memory.allocated_peak.value == half.memory.allocated_peak.value
    one, each = half.time.serving.together, two.time.serving.together
    assert one is not None
    assert each is not None
    assert each.value == pytest.approx(2 * one.value)
    said = [render(note, "en") for note in two.notes]
    assert any("--data-parallel-size 2" in note and "8 each" in note for note in said)
    assert not any("stays idle" in note or "tensor parallel" in note for note in said)


def test_layers_of_several_gpus_are_those_of_the_model() -> None:
    packed = {"engine": "llama.cpp", "quantization": "q4_k_m"}
    facts = facts_of(plan(packed, "llama-3.1-70b", concurrent=1))
    served = serving.served_of(facts.settings, facts.profile, facts.config, 2)
    assert served.split is not None
    assert served.split.layers == 41, "80 layers and the output are halved: 40.5"
    assert served.model is not None
    each = [held(n, 2, served.model, served.shape, "q4_k_m", None) for n in range(2)]
    embedding = next(m for m in served.model.matrices if m.role == "embedding")
    elements = sum(one.weights.elements for one in each) + embedding.elements
    assert elements == pytest.approx(served.model.elements, abs=2)
    assert split_over(100, served.model, served.shape, "q4_k_m", None).layers == 1


def test_largest_is_found_by_few_looks() -> None:
    looked: list[int] = []

    def fits(number: int) -> bool:
        looked.append(number)
        return number <= 70_001

    assert serving.largest(fits, 10_000_000) == 70_001
    assert len(looked) < 40
    assert serving.largest(lambda _: False, 10) is None
    assert serving.largest(lambda _: True, 10) == 10
    assert serving.largest(lambda n: n <= 7, 10, start=7) == 7


def test_training_has_no_serving_side() -> None:
    document = {
        "model": {"preset": "llama-3.2-1b"},
        "workload": {"task": "lora", "effective_batch": 2},
        "machine": {"gpus": [{"id": "rtx-4090"}]},
        "settings": {"micro_batch": 2},
    }
    assert as_json(report_of(Plan.model_validate(document)))["serving"] is None


BERT = {"model_type": "bert", "architectures": ["BertForMaskedLM"], "hidden_size": 64}


def test_an_encoder_is_not_asked_to_generate(tmp_path: Any) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(BERT))
    asked = Plan.model_validate(
        {
            "model": {"hf": str(path)},
            "workload": {"task": "infer", "inputs": {"prompt_tokens": 16, "new_tokens": 4}},
            "machine": {"gpus": [{"id": "rtx-4090"}]},
        }
    )
    with pytest.raises(UserError) as error:
        resolve(asked)
    for language in LANGUAGES:
        text = render(error.value.message, language)
        assert "workload.inputs.new_tokens" in text
        assert len(text.splitlines()) == 1


@pytest.mark.parametrize(
    ("engine", "quantization", "shown"),
    [("vllm", "none", False), ("transformers", "none", True), ("transformers", "nf4", True)],
)
def test_settings_of_a_run_in_pytorch_are_not_shown_of_a_serving_engine(
    engine: str, quantization: str, shown: bool
) -> None:
    asked = plan({"engine": engine, "quantization": quantization})
    keys = meaningful(resolve(asked).settings, asked.workload)
    for name in ("attention", "allocator", "compile", "framework", "scores_upcast"):
        assert (name in keys) is shown
    assert "strategy" not in keys
    assert ("double_quantization" in keys) is (quantization == "nf4")
    assert {"engine", "kv_cache", "quantization", "precision"} <= keys.keys()
