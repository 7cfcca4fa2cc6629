"""Wishes in a plan file: read, written, refused, and followed by the planner's commands."""

from datetime import date
from pathlib import Path

import pytest

from trainwright.build import Owned, Request, Wishes, money, search, wishing
from trainwright.build.wished import cloud_rate, energy_rates, wishes_of
from trainwright.messages import LANGUAGES, UserError, render
from trainwright.plan import file
from trainwright.plan.edit import with_keys
from trainwright.prices import Rate, exchange

BARE = """trainwright: 1
model: {preset: resnet50}
workload: {task: pretrain, effective_batch: 256, samples: 100000}
machine: {gpus: [{id: rtx-3090, count: 2}]}
"""
WISHES = """limits:
  budget: 3000 USD
  power_w: 800
  wishes:
    {used: true, form: micro-atx, gpus: 2, circuit: us-120v-20a,
    owned: [rtx-3090, 2x crucial-mx500-1tb]}
  rates: {cloud: 0.79 USD, usd_per_kwh: 0.31, household_kwh: 0}
"""


def plan(text=WISHES):
    return file.parsed(BARE + text, "mine.plan.yaml")


def test_a_plan_without_wishes_wishes_nothing():
    assert wishes_of(plan("")) == Wishes()


def test_what_the_file_wishes_is_what_the_planner_is_asked():
    assert wishes_of(plan()) == Wishes(
        used=True,
        form="micro-atx",
        gpus=2,
        power_w=800,
        circuit="us-120v-20a",
        owned=(Owned("gpu", "rtx-3090"), Owned("storage", "crucial-mx500-1tb", 2)),
    )


def test_what_is_said_beside_the_plan_counts_first():
    said = wishes_of(plan(), ("corsair-rm850x-2021",), used=False, gpus=1, quiet=None, power_w=500)
    assert (said.used, said.gpus, said.power_w, said.form) == (False, 1, 500, "micro-atx")
    assert Owned("psu", "corsair-rm850x-2021") in said.owned


def test_owned_parts_of_the_machine_count_as_often_as_it_has_them_and_once():
    owned = "limits: {wishes: {owned: [rtx-3090]}}\n"
    machine = BARE.replace("count: 2}]", "count: 2}], owned: [rtx-3090, a-processor-of-1998]")
    found = wishes_of(file.parsed(machine + owned, "mine.plan.yaml"))
    assert found.owned == (Owned("gpu", "rtx-3090", 2),)


def test_wishes_come_back_from_a_file_as_they_were(tmp_path: Path):
    path = tmp_path / "a.plan.yaml"
    before = plan()
    file.write(before, path)
    assert file.read(path).limits == before.limits
    assert "{used: true, form: micro-atx, gpus: 2" in path.read_text(encoding="utf-8")


def test_a_wish_that_is_taken_back_leaves_no_trace():
    freed = with_keys(plan(), {"limits.wishes.gpus": None, "limits.rates.cloud": None})
    assert freed.limits.wishes.gpus is None
    assert "gpus: 2" not in file.text_of(freed).partition("wishes")[2]
    assert "cloud" not in file.text_of(freed)
    none = with_keys(plan("limits: {wishes: {used: true}}\n"), {"limits.wishes.used": None})
    assert "wishes" not in file.text_of(none)


@pytest.mark.parametrize(
    ("wishes", "key", "remedy"),
    [
        ("wishes: {use: true}", "limits.wishes.use", "did you mean used?"),
        ("wishes: {power_w: 500}", "limits.wishes.power_w", "limits.power_w"),
        ("wishes: {used: maybe}", "limits.wishes.used", "true or false"),
        ("wishes: {form: itx}", "limits.wishes.form", "mini-itx"),
        ("wishes: {gpus: 0}", "limits.wishes.gpus", "at least 1, not 0"),
        ("wishes: {gpus: two}", "limits.wishes.gpus", "a whole number"),
        ("wishes: {circuit: kr}", "limits.wishes.circuit", "kr-220v-16a"),
        ("wishes: {owned: rtx-3090}", "limits.wishes.owned", "a list"),
        ("wishes: [used]", "limits.wishes", "keys with values"),
        ("quiet: true", "limits.quiet", "limits.wishes.quiet"),
        ("cloud: 1 USD", "limits.cloud", "limits.rates.cloud"),
        ("rates: {cloud: 1 EUR}", "limits.rates.cloud", "0.79 USD"),
        ("rates: {cloud: -1 USD}", "limits.rates.cloud", "0.79 USD"),
        ("rates: {usd_per_kwh: -1}", "limits.rates.usd_per_kwh", "at least 0"),
        ("rates: {kwh: 1}", "limits.rates.kwh", "usd_per_kwh"),
    ],
)
def test_a_wish_that_nobody_knows_is_refused_with_file_key_and_remedy(wishes, key, remedy):
    with pytest.raises(UserError) as error:
        plan(f"limits:\n  {wishes}\n")
    line = str(error.value)
    assert line.startswith("mine.plan.yaml:")
    assert key in line
    assert remedy in line
    assert "\n" not in line


CONTRADICTIONS = (
    ("power_w: 900\n  wishes: {quiet: true}", "limits.wishes.quiet", "limits.power_w"),
    ("wishes: {form: mini-itx, gpus: 4}", "limits.wishes.form", "limits.wishes.gpus"),
    ("power_w: 20", "limits.power_w", "50 W"),
    ("power_w: 1900\n  wishes: {circuit: us-120v-15a}", "limits.power_w", "limits.wishes.circuit"),
)


@pytest.mark.parametrize(("limits", "one", "other"), CONTRADICTIONS)
def test_wishes_that_contradict_are_refused_in_one_line_that_names_both(limits, one, other):
    asked = plan(f"limits:\n  {limits}\n")
    with pytest.raises(UserError) as error:
        wishing.agree(Request(asked, None, wishes_of(asked)))
    for language in LANGUAGES:
        line = render(error.value.message, language)
        assert one in line
        assert other in line
        assert "\n" not in line


def test_a_cloud_rate_counts_in_the_budgets_currency_by_the_rate_that_is_set(monkeypatch):
    rates = plan().limits.rates
    assert cloud_rate(rates, "USD", 2) == pytest.approx(0.79)
    monkeypatch.setattr(exchange, "load", lambda: (None, None))
    assert cloud_rate(rates, "KRW", 2) is None
    monkeypatch.setattr(exchange, "load", lambda: (Rate(1400, date(2026, 11, 1)), None))
    assert cloud_rate(rates, "KRW", 2) == pytest.approx(1106)
    each = rates.model_copy(update={"cloud": "0.79 USD/GPU"})
    assert cloud_rate(each, "USD", 2) == pytest.approx(1.58)
    assert cloud_rate(plan("").limits.rates, "USD", 1) is None


def test_energy_costs_what_the_plan_says():
    assert energy_rates(plan().limits.rates) == {"usd_per_kwh": 0.31, "household_kwh": 0}
    assert energy_rates(plan("").limits.rates) == {}


def test_the_plan_of_a_computer_keeps_what_is_there_already():
    asked = plan("limits: {wishes: {gpus: 1, owned: [rtx-3090]}}\n")
    found = search(Request(asked, money("1500USD"), wishes_of(asked), date(2026, 11, 1)))
    best = found.builds[0]
    assert best.plan.machine.gpus[0].id == "rtx-3090"
    assert best.plan.machine.owned == ("rtx-3090",)
    assert found.builds[-1].total.expected <= 1500


QUIET = """limits:
  budget: 4000 USD
  wishes: {used: true, quiet: true}
"""
LORA = """trainwright: 1
model: {preset: llama-3.1-8b}
workload: {task: lora, inputs: {sequence_length: 2048}, effective_batch: 64, samples: 52000}
machine: {gpus: [{id: rtx-4090}]}
"""


def test_a_card_that_draws_too_much_is_taken_with_a_power_limit():
    """People run an RTX 4090 at 400 W and less next to their desk: nvidia-smi -pl."""
    asked = file.parsed(LORA + QUIET, "mine.plan.yaml")
    request = Request(asked, money("4000 USD"), wishes_of(asked), today=date(2026, 11, 30))
    found = search(request)
    first = found.builds[0]
    (gpu,) = first.build.gpus
    assert (gpu.record.id, first.plan.machine.gpus[0].power_limit_w) == ("rtx-4090", gpu.watts)
    assert 0.7 * 450 - 10 <= gpu.watts < 450
    assert first.wall_watts <= 600
    for language in LANGUAGES:
        assert f"nvidia-smi -pl {gpu.watts:.0f}" in " ".join(
            render(note, language) for note in found.notes
        )


def test_more_cards_than_boards_have_slots_for_is_said():
    asked = file.parsed(LORA, "mine.plan.yaml")
    found = search(Request(asked, money("60000 USD"), Wishes(gpus=8), today=date(2026, 11, 30)))
    assert not found.builds
    assert "planner.stuck.board" in {note.id for note in found.notes}


def test_a_batch_that_the_wished_cards_cannot_share_is_refused_before_the_search():
    asked = file.parsed(LORA, "mine.plan.yaml")
    with pytest.raises(UserError) as caught:
        wishing.agree(Request(asked, None, Wishes(gpus=3)))
    assert "64" in render(caught.value.message, "en")


@pytest.mark.parametrize(("circuit", "watts"), [("us-120v-15a", 1440), ("jp-100v-15a", 1200)])
def test_no_computer_draws_more_for_hours_than_its_circuit_carries(circuit, watts):
    """NEC 210.20(A): four fifths of the breaker."""
    asked = file.parsed(LORA, "mine.plan.yaml")
    wishes = Wishes(circuit=circuit)
    found = search(Request(asked, money("12000 USD"), wishes, today=date(2026, 11, 30)))
    assert found.builds
    assert all(one.wall_watts <= watts for one in found.builds)


@pytest.mark.parametrize(
    ("wishes", "holds"),
    [
        ("only: [rtx-5070-ti]", lambda one: one.cards[0] == "rtx-5070-ti"),
        ("without: [nvidia]", lambda one: one.build.gpus[0].record.vendor != "NVIDIA"),
        (
            "only: [corsair-rm1000x-2024], without: [i5-14400f]",
            lambda one: (
                (one.build.psu.id, one.build.cpu.id != "i5-14400f")
                == ("corsair-rm1000x-2024", True)
            ),
        ),
    ],
)
def test_parts_that_must_or_must_not_be_there(wishes, holds):
    asked = file.parsed(f"{BARE}limits: {{wishes: {{{wishes}}}}}\n", "mine.plan.yaml")
    found = search(Request(asked, money("3000 USD"), wishes_of(asked), today=date(2026, 11, 30)))
    built = [one for one in found.builds if one.build.board is not None]
    assert built
    assert all(map(holds, built))


def test_a_wished_part_that_nobody_knows_is_refused():
    asked = file.parsed(BARE + "limits: {wishes: {only: [rtx-9999]}}\n", "mine.plan.yaml")
    with pytest.raises(UserError):
        wishes_of(asked)
