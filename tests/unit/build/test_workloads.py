"""Ten workloads and four budgets: every build passes its own checks and is within the budget."""

import pytest

from trainwright.build import Request, money, search
from trainwright.build.doubt import counted
from trainwright.build.report import as_json
from trainwright.build.request import Work
from trainwright.machine.checks import checks
from trainwright.messages import UserError
from trainwright.plan.evaluate import evaluate, resolve
from trainwright.plan.schema import Plan
from trainwright.workload import FullSettings

WORKLOADS: dict[str, dict] = {
    "llama-lora": {
        "model": {"preset": "llama-3.1-8b"},
        "workload": {
            "task": "lora", "effective_batch": 64, "samples": 52_000, "epochs": 3,
            "inputs": {"sequence_length": 2048},
        },
    },
    "qwen-qlora": {
        "model": {"preset": "qwen-2.5-7b"},
        "workload": {
            "task": "qlora", "effective_batch": 32, "samples": 10_000, "epochs": 2,
            "inputs": {"sequence_length": 1024},
        },
    },
    "gpt2-pretrain": {
        "model": {"preset": "gpt2"},
        "workload": {
            "task": "pretrain", "effective_batch": 64, "samples": 100_000,
            "inputs": {"sequence_length": 1024},
        },
    },
    "llama-1b-full": {
        "model": {"preset": "llama-3.2-1b"},
        "workload": {
            "task": "full", "effective_batch": 32, "samples": 20_000,
            "inputs": {"sequence_length": 1024},
        },
    },
    "resnet50-files": {
        "model": {"preset": "resnet50"},
        "workload": {
            "task": "pretrain", "effective_batch": 256, "samples": 1_281_167, "epochs": 90,
            "dataset": {"layout": "files", "sample_kib": 110, "decode": "jpeg"},
        },
    },
    "vit-shards": {
        "model": {"preset": "vit-b16"},
        "workload": {
            "task": "pretrain", "effective_batch": 512, "samples": 1_281_167, "epochs": 30,
            "dataset": {"layout": "shards", "sample_kib": 110, "decode": "jpeg"},
        },
    },
    "bert-full": {
        "model": {"preset": "bert-base"},
        "workload": {
            "task": "full", "effective_batch": 32, "samples": 100_000, "epochs": 3,
            "inputs": {"sequence_length": 128},
        },
    },
    "sdxl-lora": {
        "model": {"preset": "sdxl-unet"},
        "workload": {
            "task": "lora", "effective_batch": 4, "samples": 1000, "epochs": 10,
            "inputs": {"image_size": 1024},
        },
    },
    "llama-serve": {
        "model": {"preset": "llama-3.1-8b"},
        "workload": {
            "task": "infer",
            "inputs": {"prompt_tokens": 1024, "new_tokens": 256, "concurrent": 4},
        },
    },
    "whisper-full": {
        "model": {"preset": "whisper-tiny"},
        "workload": {"task": "full", "effective_batch": 16, "samples": 10_000},
    },
}  # fmt: skip
BUDGETS = ("1200USD", "3000USD", "3000000KRW", "12000000KRW")
QUICK = [("llama-lora", "3000000KRW"), ("resnet50-files", "3000USD"), ("llama-serve", "1200USD")]
EVERY = [
    pytest.param(name, budget, marks=() if (name, budget) in QUICK else (pytest.mark.slow,))
    for name in WORKLOADS
    for budget in BUDGETS
]


def plan(name: str) -> Plan:
    base = {"trainwright": 1, "machine": {"gpus": [{"id": "rtx-4090"}]}}
    return Plan.model_validate(base | WORKLOADS[name])


@pytest.mark.parametrize(("name", "budget"), EVERY)
def test_builds_pass_their_checks_within_the_budget(name: str, budget: str) -> None:
    limit = money(budget)
    found = search(Request(plan(name), limit, top=3))
    data = as_json(found)
    if not found.builds:
        assert found.cheapest is not None, "an honest no names the cheapest that does the work"
        assert found.cheapest.total.expected > limit.amount
    plain = [one for one in found.builds if one.doubt is None and one.thrift is None]
    times = [counted(one) for one in plain if not one.unknown]
    assert times == sorted(times), "fastest first, but for the surest before all"
    missing = {field for one in found.builds for check in one.unknown for field in check.missing}
    assert all(field.startswith("gpu.") for field in missing), "all is known of parts around cards"
    for one, shown in zip(found.builds, data["builds"], strict=True):
        assert one.total.expected <= limit.amount
        assert one.total.currency == limit.currency
        assert one.total.complete, "what has no price is in no build that has to keep to a budget"
        priced = sum(p["price"] * (p["count"] - p["owned"]) for p in shown["parts"])
        assert priced == pytest.approx(shown["total"], abs=1)
        assert not [check for check in checks(one.build) if check.verdict == "error"]
        kinds = {part["kind"] for part in shown["parts"]}
        assert kinds == {"gpu", "cpu", "board", "memory", "storage", "psu", "case", "cooler"}
        assert shown["estimate"]["fits"]


def test_the_plan_of_a_build_says_the_same_when_it_is_opened() -> None:
    found = search(Request(plan("gpt2-pretrain"), money("3000USD"), top=1)).builds[0]
    facts = resolve(found.plan)
    again = evaluate(found.plan, facts)
    assert again.fits
    settings: FullSettings = again.settings
    assert settings.micro_batch == found.settings.micro_batch
    assert again.time.run_seconds.value == pytest.approx(found.seconds, rel=0.02)


def test_a_computer_is_chosen_for_all_workloads_that_are_asked_for() -> None:
    """LoRA of 8 B alone is done by cards that cannot serve 8 B in 16 bits, which must fit too."""
    asked, limit = plan("qwen-qlora"), money("3000USD")
    alone = search(Request(asked, limit, top=5)).builds
    also = (Work(plan("vit-shards"), 2.0), Work(plan("llama-serve"), 0.0))
    found = search(Request(asked, limit, top=5, also=also)).builds
    assert any(one.build.gpus[0].record.memory_bytes.value < 2e10 for one in alone)
    assert all(one.build.gpus[0].record.memory_bytes.value > 2e10 for one in found)
    for one in found:
        qlora, vit, served = one.works
        assert all(done.report.fits for done in one.works)
        assert served.run is None
        runs = qlora.report.time.run_seconds.value + 2 * vit.report.time.run_seconds.value
        assert one.seconds == pytest.approx(runs)
        assert one.time.interval.low < runs < one.time.interval.high
    shown = as_json(search(Request(asked, limit, top=1, also=also)))["builds"][0]["workloads"]
    assert [(work["times"], work["runs_seconds"] is None) for work in shown] == [
        (1.0, False), (2.0, False), (0.0, True),
    ]  # fmt: skip


def test_the_other_work_asks_of_the_computer_around_the_cards() -> None:
    """8 TB of pictures beside a small training: the drives are for both."""
    pictures = plan("resnet50-files")
    many = pictures.workload.model_copy(update={"samples": 80_000_000, "epochs": 1})
    also = (Work(pictures.model_copy(update={"workload": many})),)
    best = search(Request(plan("bert-full"), money("8000USD"), top=1, also=also)).builds[0]
    assert sum(drive.capacity_gb for drive in best.build.drives) > 9000


def test_more_money_is_never_slower() -> None:
    times = [
        search(Request(plan("bert-full"), money(budget), top=1)).builds[0].seconds
        for budget in ("1500USD", "2500USD", "4000USD")
    ]
    assert times == sorted(times, reverse=True)


@pytest.mark.parametrize(
    ("text", "id"),
    [
        ("0USD", "planner.budget-not-positive"),
        ("0", "planner.budget-not-positive"),
        ("-5USD", "planner.budget-not-positive"),
        ("1e12USD", "planner.budget-too-large"),
        ("1e12", "planner.budget-too-large"),
        ("3000EUR", "planner.budget-unknown-currency"),
        ("3000", "planner.budget-no-currency"),
        ("much", "planner.budget-no-number"),
    ],
)
def test_a_budget_that_is_none_is_refused(text: str, id: str) -> None:
    with pytest.raises(UserError) as refused:
        money(text)
    assert refused.value.message.id == id


@pytest.mark.parametrize(
    ("text", "amount", "currency"),
    [
        ("3000USD", 3000, "USD"),
        ("$2,500.50", 2500.5, "USD"),
        ("3k USD", 3000, "USD"),
        ("300만원", 3_000_000, "KRW"),
        ("₩3,000,000", 3_000_000, "KRW"),
        ("3000000KRW", 3_000_000, "KRW"),
        ("250만 원", 2_500_000, "KRW"),
    ],
)
def test_a_budget_is_read_as_people_write_it(text: str, amount: float, currency: str) -> None:
    read = money(text)
    assert (read.amount, read.currency) == (amount, currency)
