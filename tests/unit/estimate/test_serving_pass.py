"""Passes of a serving engine: what makes tokens faster, and what does not."""

import json

import pytest
from pydantic import ValidationError

from trainwright.catalog import find_gpu
from trainwright.data import resources
from trainwright.estimate.serving import kv, weights
from trainwright.estimate.serving.engines import ENGINES
from trainwright.estimate.serving.serving_pass import (
    Constants,
    Load,
    ServingModel,
    calibration,
    decode_load,
    prefill_s,
    serving_model,
)
from trainwright.profile.presets import presets


def model(
    preset: str, gpu: str, engine: str = "vllm", format: str = "none", dtype: str = "bf16"
) -> ServingModel:
    config = json.loads(resources("presets", preset, "config.json").read_text("utf-8"))
    inventory, shape = weights.inventory(config, presets()[preset].parameters), kv.read(config)
    assert inventory is not None
    assert shape is not None
    record = find_gpu(gpu).record
    return serving_model(inventory, shape, ENGINES[engine], record, format=format, dtype=dtype)


def token_s(served: ServingModel, requests: int = 1, prompt: int = 512) -> float:
    return served.run(decode_load(requests, prompt, 128)).seconds


def test_one_request_is_bound_by_reading_the_weights() -> None:
    run = model("llama-3.1-8b", "rtx-4090").run(decode_load(1, 512, 128))
    assert run.bound == "weights"
    assert run.products < run.weights


def test_a_second_request_costs_next_to_nothing_and_the_hundredth_something() -> None:
    served = model("llama-3.1-8b", "rtx-4090")
    assert token_s(served, 2) < 1.05 * token_s(served, 1)
    assert token_s(served, 100) > 1.3 * token_s(served, 1)


def test_quantised_weights_help_one_request_much_and_many_little() -> None:
    plain, packed = (model("llama-3.1-8b", "rtx-4090", format=f) for f in ("none", "int4"))
    assert token_s(packed, 1) < 0.55 * token_s(plain, 1)
    gains = [token_s(plain, n) / token_s(packed, n) for n in (1, 16, 128, 512)]
    assert gains == sorted(gains, reverse=True)
    assert gains[-1] < 1.2


def test_a_longer_context_slows_every_token() -> None:
    served = model("llama-3.1-8b", "rtx-4090")
    times = [token_s(served, 8, prompt) for prompt in (128, 4096, 32768)]
    assert times == sorted(times)
    assert times[-1] > 1.5 * times[0]


def test_what_lies_beyond_a_window_costs_nothing() -> None:
    windowed, whole = model("gemma-3-1b", "rtx-4090"), model("llama-3.2-1b", "rtx-4090")

    def grows(served: ServingModel) -> float:
        near, far = (served.run(Load(8, 8, n)).cache for n in (1024, 32768))
        return far / near

    assert grows(whole) == pytest.approx(32, rel=0.01)
    assert grows(windowed) < 16


def test_unpacking_gguf_takes_longer_on_few_slow_cores() -> None:
    """H100 PCIe has twice the bandwidth of a 4090 and is no faster with Q4_0 in llama.cpp."""
    h100, rtx = (
        model("llama-3.1-8b", gpu, "llama.cpp", "q4_0", "fp16")
        for gpu in ("h100-80gb-pcie", "rtx-4090")
    )
    assert h100.rates.bandwidth > 2 * rtx.rates.bandwidth
    assert token_s(h100) > 0.55 * token_s(rtx)


def test_experts_are_read_as_more_tokens_ask_for_them() -> None:
    served = model("qwen-3-30b-a3b", "h100-80gb-sxm")
    read = [served.run(Load(n, n, 512)).weights for n in (1, 8, 64, 1024)]
    assert read == sorted(read)
    assert read[0] < 0.2 * read[-1]


def test_long_prompts_take_more_than_their_share() -> None:
    served = model("llama-3.1-8b", "rtx-4090")
    short, long = (prefill_s(served, ENGINES["vllm"], 1, n) for n in (2048, 32768))
    assert 16 * short < long < 40 * short


def test_a_card_without_published_peaks_is_bound_by_its_memory_alone() -> None:
    served = model("llama-3.1-8b", "apple-m4", "llama.cpp", "q4_k_m", "fp16")
    assert served.rates.peak is None
    run = served.run(decode_load(1, 512, 128))
    assert run.products == 0
    assert run.seconds > run.weights > 0


def test_shares_above_what_memory_can_do_are_refused() -> None:
    known = calibration().families["paged"].model_dump()
    with pytest.raises(ValidationError, match="memory"):
        Constants.model_validate(known | {"memory": 0.96})


def test_every_constant_has_a_source_or_says_that_it_is_assumed() -> None:
    known = calibration()
    texts = [one.source for one in (*known.families.values(), *known.makers.values())]
    texts += [known.interval_source, known.eager_source, known.stated]
    assert all(len(text) > 20 for text in texts)
    assert "assumed" in known.makers["AMD"].source
    assert known.makers["AMD"].interval_factor > known.interval_factor


def test_a_power_limit_slows_prompts_and_leaves_what_waits_for_memory() -> None:
    config = json.loads(resources("presets", "llama-3.1-8b", "config.json").read_text("utf-8"))
    inventory = weights.inventory(config, presets()["llama-3.1-8b"].parameters)
    shape = kv.read(config)
    assert inventory is not None
    assert shape is not None
    full, capped = (
        serving_model(
            inventory,
            shape,
            ENGINES["vllm"],
            find_gpu("rtx-3090").record,
            format="none",
            dtype="bf16",
            limit_w=limit,
        )
        for limit in (None, 200)
    )
    assert prefill_s(capped, ENGINES["vllm"], 1, 4096) > 1.2 * prefill_s(
        full, ENGINES["vllm"], 1, 4096
    )
    assert token_s(capped) < 1.05 * token_s(full)
