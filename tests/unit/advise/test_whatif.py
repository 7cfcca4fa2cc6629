"""What changing one setting or part would do, on shipped examples."""

from functools import cache

import pytest

from trainwright.advise import ways_out
from trainwright.advise.advice import SAME
from trainwright.advise.parts import next_gpu
from trainwright.advise.whatif import MOST, WhatIf, answered, as_json, whatifs
from trainwright.catalog.query import find_gpu
from trainwright.data import resources
from trainwright.messages import render
from trainwright.plan.edit import with_keys
from trainwright.plan.evaluate import Facts, evaluate, resolve
from trainwright.plan.file import read
from trainwright.plan.report import Report
from trainwright.plan.schema import Plan

RESNET = "resnet50-rtx3060"
SERVING = "llama-8b-serve-rtx4090"
TOO_LARGE = "llama-1b-full-rtx3090"


def example(name: str) -> Plan:
    return read(resources("examples", f"{name}.plan.yaml"))


def answer(plan: Plan) -> tuple[Facts, Report]:
    facts = resolve(plan)
    assert isinstance(facts, Facts)
    return facts, evaluate(plan, facts)


@cache
def found(name: str) -> dict[str, WhatIf]:
    plan = example(name)
    return {one.subject: one for one in whatifs(plan, *answer(plan))}


def test_each_gain_is_what_the_changed_plan_says_itself() -> None:
    plan = example(RESNET)
    _, before = answer(plan)
    for one in found(RESNET).values():
        if one.gain is None:
            continue
        _, after = answer(with_keys(plan, one.patch))
        then, now = after.time.samples_per_second, before.time.samples_per_second
        assert then is not None
        assert now is not None
        assert one.gain == pytest.approx(then.value / now.value - 1)
        assert one.verdict is after.verdict


def test_every_change_keeps_the_effective_batch() -> None:
    for name in (RESNET, TOO_LARGE):
        plan = example(name)
        for one in found(name).values():
            facts = resolve(one.plan)
            if not isinstance(facts, Facts):
                continue
            settings = facts.settings
            gpus = facts.machine.gpu_count if settings.strategy == "ddp" else 1
            samples = settings.micro_batch * settings.accumulation * gpus
            assert samples == plan.workload.effective_batch


def test_gains_that_fit_come_first_and_losses_last() -> None:
    shown = list(found(RESNET).values())
    assert len(shown) <= MOST
    gains = [one.gain for one in shown if one.fits and one.gain is not None]
    assert gains == sorted(gains, reverse=True)
    assert gains[0] > 0 > gains[-1]


def test_a_power_limit_costs_a_little_and_no_more_than_it_takes_away() -> None:
    limited = found(RESNET)["power"]
    assert limited.gain is not None
    assert -0.25 < limited.gain <= 0


def test_of_several_batches_the_best_that_fits_is_shown() -> None:
    chosen = found(RESNET)["micro"]
    assert chosen.fits
    assert chosen.patch["settings.micro_batch"] in (128, 256)


def test_a_change_that_the_machine_cannot_do_is_not_offered() -> None:
    shown = found("llama-8b-lora").values()
    assert shown
    assert all(one.fits or one.verdict is None for one in shown)


def test_where_the_plan_does_not_fit_what_does_comes_first() -> None:
    shown = list(found(TOO_LARGE).values())
    fitting = [one.fits for one in shown]
    assert fitting[0]
    assert fitting == sorted(fitting, reverse=True)
    assert all(one.fits or (one.gain or 0) > 0 for one in shown)


def test_where_the_plan_does_not_fit_the_first_cards_are_the_ways_out() -> None:
    plan = Plan.model_validate({
        "trainwright": 1,
        "model": {"preset": "gpt2"},
        "workload": {
            "task": "pretrain", "effective_batch": 64, "inputs": {"sequence_length": 1024},
        },
        "machine": {"gpus": [{"id": "rtx-3060-12gb"}]},
        "settings": {"checkpointing": "none", "cross_entropy": "full", "micro_batch": 64},
    })  # fmt: skip
    facts = resolve(plan)
    assert isinstance(facts, Facts)
    shown = whatifs(plan, facts, evaluate(plan, facts), ways=ways_out)
    assert [one.kind for one in shown][:1] == ["way"]
    assert all(one.base is plan for one in shown)
    for one in shown:
        if one.kind == "way":
            assert answered(one.plan).fits


def test_what_must_be_traced_is_offered_without_figures() -> None:
    layout = found(RESNET)["channels-last"]
    assert (layout.gain, layout.memory_bytes, layout.verdict) == (None, None, None)


def test_compiling_says_what_it_takes_and_when_it_pays() -> None:
    said = render(found(RESNET)["compile"].because, "en")
    assert "before the first step" in said
    assert "paid back after" in said
    assert found(RESNET)["compile"].remark is not None
    assert found(RESNET)["power"].remark is None


def test_the_gain_of_a_second_gpu_lies_within_its_interval() -> None:
    second = found(RESNET)["second-gpu"]
    assert second.gain is not None
    assert second.interval is not None
    assert second.interval.low < second.gain < second.interval.high <= 1
    assert found(RESNET)["compile"].interval is None


def test_a_second_gpu_is_refused_to_a_batch_that_it_cannot_share() -> None:
    plan = with_keys(example(RESNET), {"workload.effective_batch": 255, "settings.micro_batch": 51})
    assert "second-gpu" not in {one.subject for one in whatifs(plan, *answer(plan))}


def test_serving_is_offered_nothing_of_training() -> None:
    subjects = set(found(SERVING))
    assert "concurrent" in subjects
    assert not subjects & {"micro", "checkpointing", "second-gpu", "channels-last"}


def test_what_changes_nothing_is_an_honest_zero_and_parts_come_first() -> None:
    plan = example(RESNET)
    facts, report = answer(plan)
    shown = whatifs(plan, facts, report, answer=lambda _changed: report)
    assert all(one.same and abs(one.gain or 0) < SAME for one in shown)
    kinds = [one.kind for one in shown]
    assert kinds == sorted(kinds)
    assert "The GPU limits" in render(shown[0].because, "en")


def test_nothing_is_evaluated_once_nobody_wants_it() -> None:
    plan = example(RESNET)
    asked: list[Plan] = []

    def count(changed: Plan) -> Report | None:
        asked.append(changed)
        return answered(changed)

    shown = whatifs(plan, *answer(plan), answer=count, wanted=lambda: len(asked) < 2)
    assert len(asked) == 2
    assert len(shown) <= 2


def test_the_next_gpu_is_faster_new_and_has_no_less_memory() -> None:
    for name in ("rtx-3060-12gb", "rtx-4090", "a100-80gb-sxm"):
        own = find_gpu(name).record
        other = next_gpu(own)
        assert other is not None
        assert other.memory_bytes.value >= own.memory_bytes.value
        assert other.flops["bf16_fp32"].value > 1.2 * own.flops["bf16_fp32"].value
        assert (other.launch or "") > (own.launch or "")
        assert other.form == own.form
    assert next_gpu(find_gpu("rtx-5090").record) is None
    # No SXM module goes into the slot of a workstation.
    card = next_gpu(find_gpu("a100-80gb-pcie").record)
    assert card is not None
    assert card.form == "card"
    assert (
        next_gpu(find_gpu("rtx-3060-12gb").record.model_copy(update={"segment": "laptop"})) is None
    )


@pytest.mark.parametrize("language", ["en", "ko"])
def test_every_sentence_is_written(language: str) -> None:
    for name in (RESNET, SERVING, TOO_LARGE):
        for one in found(name).values():
            for message in (one.change, one.because):
                assert not render(message, language).startswith("advise."), message.id  # type: ignore[arg-type]


def test_json_says_what_to_set_and_nothing_that_is_not_known() -> None:
    listed = {tuple(one["set"]): one for one in as_json(found(RESNET).values())}
    layout = listed[("settings.channels_last",)]
    assert (layout["gain"], layout["fits"], layout["device_used_change_bytes"]) == (None,) * 3
    assert listed[("settings.compile",)]["set"] == {"settings.compile": True}


DRIVES = {
    "workload.dataset": {"layout": "files", "sample_kib": 110, "decode": "jpeg"},
    "machine.cpu": "ryzen-7-7700x",
}


def with_drive(id: str) -> dict[str, WhatIf]:
    plan = with_keys(example(RESNET), {**DRIVES, "machine.drives": [{"id": id}]})
    return {one.subject: one for one in whatifs(plan, *answer(plan))}


def test_a_faster_drive_is_a_zero_where_the_gpu_limits() -> None:
    drive = with_drive("samsung-870-evo-2tb")["drive"]
    assert render(drive.change, "en") == "NVMe 4.0 instead of SATA"
    assert drive.same
    assert "The GPU limits" in render(drive.because, "en")


def test_a_faster_drive_is_a_gain_where_a_hard_disk_limits() -> None:
    shown = with_drive("seagate-barracuda-8tb")
    drive = shown["drive"]
    assert drive.gain is not None
    assert drive.gain > 0.5
    assert render(drive.change, "en") == "SATA instead of HDD"
    assert "drive" in render(drive.because, "en")
    assert shown["shards"].gain is not None
    assert shown["gpu"].same


def test_drives_are_not_offered_without_a_data_set() -> None:
    plan = with_keys(
        example(RESNET),
        {"workload.dataset": None, "machine.drives": [{"id": "wd-black-sn770-1tb"}]},
    )
    assert "drive" not in {one.subject for one in whatifs(plan, *answer(plan))}


def test_a_cache_in_fp8_gains_what_its_bytes_are_of_a_decode_step() -> None:
    """It once said +39 %: vLLM's gain over transformers, which keeps no fp8 cache.

    A step of decoding reads 16.06 GB of weights (8.03 B parameters in bf16) and, for 8 requests
    at 1024 to 1280 tokens, 131072 bytes a token of keys and values: half of those is 3.5 %.
    """
    card = found(SERVING)["kv-cache"]
    assert card.change.id == "advise.whatif.with-engine"
    assert card.engine == "vllm"
    assert card.gain is not None
    weights, cache = 8.03e9 * 2, 8 * 1152 * 131072
    most = 1 / (1 - cache / 2 / (weights + cache)) - 1
    own = card.because.values["own"]
    assert 0 < own <= most
    assert 0.03 < most < 0.04
    alone = found(SERVING)["engine"]
    assert alone.gain == pytest.approx(card.because.values["alone"])
    assert (1 + own) * (1 + card.because.values["alone"]) == pytest.approx(1 + card.gain)
