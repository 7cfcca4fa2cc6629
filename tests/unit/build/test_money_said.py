"""What an answer says of money: what is short or left, what more of it buys, what is next to it."""

from functools import cache

import pytest

from trainwright.build import Builds, Request, Wishes, money, search
from trainwright.build.tracing import at_hand
from trainwright.messages import Message, UserError
from trainwright.plan.schema import Plan
from trainwright.workload import ModelSource


@cache
def answer(task: str, budget: str | None, **wishes: object) -> Builds:
    plan = Plan.model_validate(
        {
            "trainwright": 1,
            "model": {"preset": "llama-3.1-8b"},
            "workload": {
                "task": task, "inputs": {"sequence_length": 2048},
                "effective_batch": 128 if task == "full" else 16, "samples": 52_000, "epochs": 1,
            },
            "machine": {"gpus": [{"id": "rtx-4090"}]},
            "settings": {"optimizer": "adamw", "precision": "bf16-mixed"},
        }
    )  # fmt: skip
    return search(Request(plan, money(budget) if budget else None, Wishes(**wishes)))


def said(found: Builds, id: str) -> Message:
    (one,) = [note for note in found.notes if note.id == id]
    return one


def amount(message: object) -> float:
    assert isinstance(message, Message)
    return float(message.values["amount"])


def test_too_little_money_names_what_is_short_why_and_the_ways_out() -> None:
    found = answer("lora", "300USD")
    assert not found.builds
    assert found.cheapest is not None, "it costs more than twice the budget"
    short = said(found, "planner.short.money").values
    total = found.cheapest.total.expected
    assert amount(short["more"]) == pytest.approx(total - 300, abs=1)
    assert amount(short["cards"]) + amount(short["rest"]) == pytest.approx(total, abs=2)
    for way in ("planner.way.used", "planner.way.task"):
        assert amount(said(found, way).values["price"]) < total


def test_work_for_no_computer_says_how_much_memory_is_short_and_what_would_do() -> None:
    found = answer("full", "60000USD", gpus=1)
    assert found.cheapest is None
    least = 16 * 8.03e9 - 96 * 2**30
    assert said(found, "planner.short.memory").values["short"] > least, "16 bytes a weight"
    assert said(found, "planner.way.gpus").values["count"] > 1
    assert said(found, "planner.way.task").values["task"] == "qlora"


def test_the_next_step_costs_what_the_note_on_a_tenth_more_says() -> None:
    found = answer("lora", "2700USD", used=True)
    for one in found.builds:
        step = one.next_step
        assert step is None or one.total.expected + step.more == pytest.approx(step.price, abs=1)
    first, note = found.builds[0].next_step, said(found, "planner.note.tenth").values
    assert first is not None
    assert amount(note["price"]) == pytest.approx(first.price, abs=1)
    assert note["gain"] == pytest.approx(first.gain)


def test_a_step_from_a_card_on_trial_compares_what_is_expected_of_both() -> None:
    """The card is ranked by its upper end; of the next one the expected time counts."""
    found = answer("lora", "3000000KRW")
    first = found.builds[0]
    step = first.next_step
    assert step is not None
    (there,) = [one for one in found.front if one.price == pytest.approx(step.price)]
    assert step.gain == pytest.approx(first.seconds / there.seconds - 1, abs=0.05)


def test_the_chart_shows_the_builds_of_the_list() -> None:
    found = answer("lora", "3000USD", used=True)
    points = {(one.gpu, one.count): one for one in found.front if one.candidate is not None}
    assert len(points) == len(found.builds)
    for one in found.builds:
        point = points[one.build.gpus[0].record.id, one.build.gpu_count]
        assert point.candidate is one
        assert (point.price, point.seconds) == (one.total.expected, one.seconds)


def test_much_money_fills_all_channels_and_says_why_some_of_it_is_left() -> None:
    found = answer("full", "66000USD")
    first = found.builds[0]
    assert first.build.modules == min(first.build.cpu.memory_channels, 8), "the board has 8 slots"
    assert sum(drive.capacity_gb for drive in first.build.drives) >= 2000
    left = amount(said(found, "planner.note.left").values["left"])
    assert left == pytest.approx(66_000 - first.total.expected, abs=1)
    assert said(found, "planner.barred.supply").values["count"] == 4, "4 x 600 W from one supply"


def test_a_card_on_trial_stands_next_to_used_ones_and_the_first_that_pytorch_lists() -> None:
    found = answer("lora", "3000000KRW")
    assert {one.build.gpus[0].record.vendor for one in found.builds} == {"Intel"}
    assert found.cheapest.build.gpus[0].record.vendor == "NVIDIA"
    said(found, "planner.software.intel")
    over = amount(said(found, "planner.note.surer").values["more"])
    assert over == pytest.approx(found.cheapest.total.expected - 3_000_000, abs=1)
    assert amount(said(found, "planner.way.used").values["price"]) <= 3_000_000


def test_without_a_budget_no_card_leads_because_nobody_knows_its_price() -> None:
    for one in answer("qlora", None).builds:
        assert one.total.complete


def test_a_complete_computer_is_offered_for_a_model_that_needs_much_memory() -> None:
    document = {
        "trainwright": 1,
        "model": {"preset": "llama-3.1-70b"},
        "workload": {"task": "infer", "inputs": {"prompt_tokens": 1024, "new_tokens": 256}},
        "machine": {"gpus": [{"id": "rtx-4090"}]},
        "settings": {"engine": "llama.cpp", "quantization": "q4_k_m"},
    }
    found = search(Request(Plan.model_validate(document), money("5000USD"), top=2))
    last = next(one for one in found.builds if len(one.parts) == 1)  # it is bought whole
    assert not any(one.unknown for one in found.builds[: found.builds.index(last)])
    assert "DGX Spark" in last.parts[0].name
    assert last.total.expected <= 5000
    tokens = last.rate.value
    assert 3.0 < tokens < 6.5, "273 GB/s over 42.5 GB of weights: 6.4 at most; owners see about 4.5"


def test_a_complete_computer_is_not_offered_where_a_consumer_card_does_the_work() -> None:
    for one in answer("lora", "3000USD", used=True).builds:
        assert len(one.parts) > 1, one.parts


def test_money_that_is_left_buys_memory_at_its_full_rate() -> None:
    first = answer("lora", "20000000KRW", gpus=1).builds[0]
    assert "warning" not in {one.verdict for one in first.checks if one.rule in ("M3", "M4")}
    assert first.build.board.form_factor != "mini-itx", "nobody asked for a small one"


def test_cards_beyond_the_wished_watts_are_said_to_be_so() -> None:
    document = {
        "trainwright": 1,
        "model": {"preset": "resnet50"},
        "workload": {"task": "pretrain", "effective_batch": 256},
        "machine": {"gpus": [{"id": "rtx-4090"}]},
    }
    wishes = Wishes(quiet=True)
    found = search(Request(Plan.model_validate(document), money("4000USD"), wishes))
    assert said(found, "planner.barred.watts").values["count"] > 1


def unshipped(task: str) -> Plan:
    """Return a plan whose model nobody has traced."""
    return Plan.model_validate(
        {
            "trainwright": 1,
            "model": {"preset": "gemma-3-27b"},
            "workload": {"task": task, "effective_batch": 16},
            "machine": {"gpus": [{"id": "rtx-4090"}]},
        }
    )


def test_what_else_may_do_the_work_is_traced_once_where_someone_traces() -> None:
    asked: list[Plan] = []
    wanted = unshipped("qlora")
    assert not at_hand(wanted, asked.append), "nothing came of it"
    assert asked == [wanted]
    assert not at_hand(wanted, None)


def test_a_trace_that_fails_is_no_answer_and_no_error() -> None:
    def fails(_: Plan) -> None:
        raise UserError.of("planner.untraced.shared")

    assert not at_hand(unshipped("qlora"), fails)


def test_what_is_refused_waits_for_no_trace() -> None:
    refused = unshipped("lora").model_copy(update={"model": ModelSource(preset="nobodys-model")})
    assert at_hand(refused, None)


@pytest.mark.slow
def test_a_model_too_large_in_16_bits_names_the_bits_that_the_money_serves() -> None:
    plan = Plan.model_validate(
        {
            "trainwright": 1,
            "model": {"preset": "qwen-3-32b"},
            "workload": {"task": "infer", "inputs": {"prompt_tokens": 1024, "new_tokens": 256}},
            "machine": {"gpus": [{"id": "rtx-4090"}]},
            "settings": {"engine": "vllm"},
        }
    )
    found = search(Request(plan, money("2500USD"), Wishes()))
    assert not found.builds, "64 GB of weights"
    way = said(found, "planner.way.bits").values
    assert way["value"] == "int4"
    assert amount(way["price"]) <= 2500, "20 GB of weights on a card of 24 GB"
