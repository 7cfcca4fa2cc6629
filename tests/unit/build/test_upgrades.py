"""What to change of a computer: singles and pairs, what goes with them, and to do nothing."""

import json
import re
from dataclasses import replace
from itertools import combinations, product

import pytest

from trainwright.advise.choose import STORED
from trainwright.build import Money, Owned, Request, Wishes
from trainwright.build.feeds import Feeds
from trainwright.build.offers import Market
from trainwright.build.owning import owned as named
from trainwright.build.report import upgrades_as_json
from trainwright.build.sites import link_of
from trainwright.build.speeds import Cards, Speeds
from trainwright.build.upgrades import Upgrades, added, upgrades
from trainwright.catalog import (
    find_board,
    find_case,
    find_cooler,
    find_cpu,
    find_drive,
    find_gpu,
    find_memory,
    find_psu,
)
from trainwright.machine.build import Build, BuildGpu, Use
from trainwright.machine.checks import checks
from trainwright.machine.power import power
from trainwright.messages import UserError, render
from trainwright.plan.evaluate import evaluate, resolve
from trainwright.plan.schema import Plan
from trainwright.prices import price_book

MACHINE = {
    "gpus": [{"id": "rtx-3060-12gb"}],
    "cpu": "ryzen-5-5600x",
    "board": "msi-mag-b550-tomahawk",
    "memory": [{"id": "corsair-vengeance-lpx-ddr4-3200-cl16-2x8gb"}],
    "drives": [{"id": "samsung-870-evo-1tb"}],
    "psu": "deepcool-pn650d",
    "case": "corsair-4000d-airflow",
    "cooler": "be-quiet-pure-rock-2",
}
BARE = {"gpus": [{"id": "rtx-3060-12gb"}]}
FILES = {"layout": "files", "sample_kib": 110, "decode": "jpeg"}
FIND = {
    "gpu": lambda id: find_gpu(id).record,
    "cpu": find_cpu,
    "board": find_board,
    "memory": find_memory,
    "storage": find_drive,
    "psu": find_psu,
    "case": find_case,
    "cooler": find_cooler,
}
SHELVES = {
    "gpu": ("rtx-3060-12gb", "rtx-5060-ti-16gb", "rtx-5070-ti"),
    "cpu": ("ryzen-5-5600x", "ryzen-9-5950x", "ryzen-9-9950x"),
    "board": ("msi-mag-b550-tomahawk", "asus-proart-x670e-creator-wifi"),
    "memory": (
        "corsair-vengeance-lpx-ddr4-3200-cl16-2x8gb",
        "corsair-vengeance-lpx-ddr4-3200-cl16-2x16gb",
        "corsair-vengeance-ddr5-6000-cl30-2x16gb",
    ),
    "storage": ("samsung-870-evo-1tb", "corsair-mp600-pro-lpx-2tb"),
    "psu": ("deepcool-pn650d", "corsair-rm1000x-2024", "be-quiet-straight-power-12-1500w"),
    "case": ("corsair-4000d-airflow", "corsair-7000d-airflow"),
    "cooler": ("be-quiet-pure-rock-2", "be-quiet-dark-rock-pro-5"),
}


def plan(machine: dict = MACHINE, model: str = "resnet50", **workload: object) -> Plan:
    work = {"task": "pretrain", "effective_batch": 240, "samples": 100_000, **workload}
    return Plan.model_validate(
        {
            "trainwright": 1,
            "model": {"preset": model},
            "workload": work,
            "machine": machine,
        }
    )


def shelves(**others: tuple[str, ...]) -> dict[str, tuple]:
    return {kind: tuple(map(FIND[kind], ids)) for kind, ids in (SHELVES | others).items()}


def owned(machine: dict = MACHINE) -> Wishes:
    singles = [(kind, machine.get(kind)) for kind in ("cpu", "board", "psu", "case", "cooler")]
    several = [("gpu", "gpus"), ("memory", "memory"), ("storage", "drives")]
    some = [(kind, part["id"]) for kind, key in several for part in machine.get(key, ())]
    return Wishes(owned=tuple(Owned(kind, id) for kind, id in (*some, *singles) if id))


def asked(wanted: Plan, amount: float | None, top: int = 20, **others: object) -> Upgrades:
    """Return upgrades out of the few parts on the shelves, or of ``others`` in their place."""
    market = Market(price_book(), "USD", owned(), shelves(**others))
    budget = Money(amount, "USD") if amount is not None else None
    return upgrades(Request(wanted, budget, top=top), market=market)


class Every:
    """All singles and pairs out of the shelves, each mended in all ways, by the rules alone."""

    def __init__(self, wanted: Plan) -> None:
        self.shelves = shelves()
        self.market = Market(price_book(), "USD", Wishes(), self.shelves)
        self.speeds = Speeds(wanted, STORED)
        self.feeds = Feeds(self.speeds)
        self.now = resolve(wanted).machine.parts
        self.wrong = self.errors(self.now)

    def errors(self, build: Build) -> set[str]:
        use = Use("data-parallel" if build.gpu_count > 1 else "single")
        return {check.rule for check in checks(build, use) if check.verdict == "error"}

    def price(self, kind: str, id: str, count: int = 1) -> float:
        return self.market.offer(kind, FIND[kind](id)).cost(count)

    def single(self) -> dict[str, list[tuple[float, dict]]]:
        """Return (price, fields) of what may become another, by what it is of."""
        now = self.now
        kit, drive = now.memory[0][0], now.drives[0]
        gpus = [
            (self.price("gpu", card.id, count - (card is now.gpus[0].record)),
             {"gpus": (BuildGpu(card, count),)})
            for card in self.shelves["gpu"] for count in (1, 2, 3, 4)
            if not (card is now.gpus[0].record and count == 1)
        ]  # fmt: skip
        frames = [
            (self.price("cpu", cpu.id), {"cpu": cpu})
            for cpu in self.shelves["cpu"] if cpu.socket == now.cpu.socket and cpu != now.cpu
        ]  # fmt: skip
        ddr5 = self.shelves["memory"][2]
        am5, board = self.shelves["cpu"][2], self.shelves["board"][1]
        for count in (1, 2):
            cost = self.price("cpu", am5.id) + self.price("board", board.id)
            cost += self.price("memory", ddr5.id, count)
            frames.append((cost, {"cpu": am5, "board": board, "memory": ((ddr5, count),)}))
        kits = [
            (self.price("memory", kit.id, times - 1), {"memory": ((kit, times),)})
            for times in (2, 3, 4)
        ]
        kits += [
            (self.price("memory", one.id, count), {"memory": ((one, count),)})
            for one in self.shelves["memory"][1:] for count in (1, 2)
        ]  # fmt: skip
        new = self.shelves["storage"][1]
        drives = [(self.price("storage", new.id), {"drives": (new, drive)})]
        return {"gpu": gpus, "frame": frames, "memory": kits, "drive": drives}

    def answers(self) -> list[tuple[float, float]]:
        """Return (seconds, price) of all that the rules allow."""
        axes = self.single()
        chosen = [(one,) for axis in axes.values() for one in axis]
        chosen += [
            pair for a, b in combinations(axes, 2) if {a, b} != {"frame", "memory"}
            for pair in product(axes[a], axes[b])
        ]  # fmt: skip
        chosen += [
            (frame, kit) for frame, kit in product(axes["frame"], axes["memory"])
            if "board" not in frame[1]
        ]  # fmt: skip
        found = []
        for options in chosen:
            build, cost = self.now, sum(price for price, _ in options)
            for _, fields in options:
                build = replace(build, **fields)
            speed = self.speeds.quick(Cards(build.gpus[0].record, build.gpu_count))
            if speed is None:
                continue
            if (along := self.mended(build)) is not None:
                found.append((self.seconds(build), cost + along))
        return found

    def seconds(self, build: Build) -> float:
        cards = Cards(build.gpus[0].record, build.gpu_count)
        speed = self.speeds.quick(cards)
        return self.feeds.seconds(
            cards, speed, link_of(build), build.cpu, build.memory_gib, build.drives[0]
        )

    def mended(self, build: Build) -> float | None:
        """Return the least price of supply, case and cooler with which it works."""
        costs = []
        kinds = ("psu", "case", "cooler")
        for parts in product(*(self.shelves[kind] for kind in kinds)):
            whole = replace(build, **dict(zip(kinds, parts, strict=True)))
            small = whole.psu.watts < power(whole).recommended_psu_w
            kept = whole.psu is self.now.psu and (
                power(whole).recommended_psu_w <= power(self.now).recommended_psu_w
            )
            hot = whole.cpu is not self.now.cpu and any(
                one.rule == "G7" and one.verdict == "warning" for one in checks(whole)
            )
            cool = whole.cpu is not self.now.cpu or whole.cooler is self.now.cooler
            if (small and not kept) or hot or not cool or self.errors(whole) - self.wrong:
                continue
            costs.append(
                sum(
                    0.0 if one is getattr(self.now, kind) else self.price(kind, one.id)
                    for kind, one in zip(kinds, parts, strict=True)
                )
            )
        return min(costs, default=None)


@pytest.mark.parametrize(
    "data",
    [pytest.param(None, id="synthetic"), pytest.param(FILES, id="files", marks=pytest.mark.slow)],
)
def test_nothing_among_all_singles_and_pairs_is_faster_for_less(data: dict | None) -> None:
    wanted = plan(dataset=data, epochs=4) if data else plan()
    every = Every(wanted)
    found = asked(wanted, None)
    base = every.seconds(every.now)
    paying = [(seconds, cost) for seconds, cost in every.answers() if base / seconds >= 1.05]
    assert found.upgrades
    assert paying
    offered = []
    for one in found.upgrades:
        built = resolve(one.plan).machine.parts
        offered.append((every.seconds(built), one.total.expected))
    for seconds, cost in offered:  # each is one of them, and none beats it
        assert any(c == pytest.approx(cost, abs=0.02) for s, c in paying if s < seconds * 1.001)
        assert not [(s, c) for s, c in paying if s < seconds * 0.99 and c < cost * 0.95]
    for seconds, cost in paying:  # nothing that pays has no answer as fast for about its price
        assert any(s <= seconds * 1.02 and c <= cost / 0.94 for s, c in offered)


def test_what_the_new_card_wants_is_bought_along_and_priced() -> None:
    none = asked(plan(), 6000, gpu=("rtx-3060-12gb", "rtx-5090"), psu=("deepcool-pn650d",))
    assert not [one for one in none.upgrades if "gpu" in one.kinds], "no supply feeds it"
    why = next(one.reason for one in none.declined if one.kind == "gpu")
    assert why.id == "planner.upgrade.why.forbidden"
    whole = asked(plan(), 6000, gpu=("rtx-3060-12gb", "rtx-5090"), cpu=("ryzen-5-5600x",))
    best = next(one for one in whole.upgrades if one.kinds == ("gpu",))
    assert "psu" in best.along
    assert {part.kind for part in best.parts} >= {"gpu", "psu"}
    price = sum(part.price.expected * part.count for part in best.parts)
    assert best.total.expected == pytest.approx(price)
    assert {part.id for part in best.freed} == {"rtx-3060-12gb", "deepcool-pn650d"}
    assert best.resale is None, "nobody said that anything is sold"
    assert not [one for one in best.checks if one.verdict == "error"]


def test_a_slow_processor_before_a_fast_card_is_changed_with_its_board_and_memory() -> None:
    machine = MACHINE | {"gpus": [{"id": "rtx-5090"}], "psu": "be-quiet-straight-power-12-1500w"}
    found = asked(plan(machine, dataset=FILES, epochs=4), 3000, gpu=("rtx-5090",))
    kinds = {one.kinds for one in found.upgrades}
    assert ("platform",) in kinds or ("cpu",) in kinds
    best = found.upgrades[0]
    assert best.gain > 0.05
    platform = next(one for one in found.upgrades if "platform" in one.kinds)
    assert {part.kind for part in platform.parts} >= {"cpu", "board", "memory"}
    memory = next(part for part in platform.parts if part.kind == "memory")
    assert "ddr5" in memory.id, "its sockets are of another generation"


def test_a_machine_of_which_little_is_known_gets_advice_that_says_what_to_look_at() -> None:
    found = asked(plan(BARE), 1500)
    assert found.upgrades
    unknown = {
        one.missing[0] for one in found.upgrades[0].checks if one.verdict == "unknown"
        if one.message.id.startswith("planner.upgrade.unnamed")
    }  # fmt: skip
    assert unknown == {"psu", "case"}, "a card takes the slot of the one before"


@pytest.mark.parametrize("amount", [1, 100])
def test_to_do_nothing_is_an_answer_with_a_reason_for_each_kind(amount: float) -> None:
    found = asked(plan(), amount)
    data = upgrades_as_json(found)
    assert not found.upgrades
    assert data["do_nothing"]
    assert {one["kind"] for one in data["declined"]} == {
        "gpu", "more-gpus", "cpu", "platform", "memory", "drive",
    }  # fmt: skip
    assert "budget" in next(d["because"] for d in data["declined"] if d["kind"] == "gpu")
    korean = upgrades_as_json(found, "ko")["declined"]
    assert all(any("가" <= letter <= "힣" for letter in one["because"]) for one in korean)


def test_work_that_does_not_fit_is_told_what_makes_it_fit() -> None:
    machine = MACHINE | {"gpus": [{"id": "rtx-3060-12gb"}]}
    wanted = plan(
        machine, "llama-3.1-8b", task="lora", effective_batch=16, samples=1000,
        inputs={"sequence_length": 1024},
    )  # fmt: skip
    found = asked(wanted, 3000, gpu=("rtx-3060-12gb", "rtx-5060-ti-16gb", "rtx-3090"))
    assert found.before is None
    data = upgrades_as_json(found)
    assert not data["do_nothing"], "to do nothing is no answer where the work does not run"
    for one in data["upgrades"]:
        assert one["newly_fits"]
        assert one["gain"] is None
        assert one["estimate"]["fits"]


def test_what_is_replaced_is_sold_only_where_its_owner_says_so() -> None:
    market = Market(price_book(), "USD", owned(), shelves())
    wanted, budget = plan(), Money(1100, "USD")
    kept = upgrades(Request(wanted, budget, top=20), market=market)
    sold = upgrades(Request(wanted, budget, top=20), market=market, sell=True)
    assert all(one.total.expected <= 1100 for one in kept.upgrades)
    beyond = [one for one in sold.upgrades if one.total.expected > 1100]
    assert beyond, "the old card's price buys the next larger one"
    for one in beyond:
        assert one.total.expected - one.resale.low <= 1100


def test_the_plan_of_an_upgrade_says_the_same_when_it_is_opened() -> None:
    best = asked(plan(), 2500).upgrades[0]
    again = evaluate(best.plan, resolve(best.plan))
    assert again.fits
    told = best.report.time.run_seconds.value
    assert again.time.run_seconds.value == pytest.approx(told, rel=0.02)
    assert set(best.plan.machine.owned) >= {"ryzen-5-5600x", "deepcool-pn650d"} - {
        part.id for part in best.freed
    }


def test_upgrades_are_json_that_any_reader_takes() -> None:
    data = json.loads(json.dumps(upgrades_as_json(asked(plan(), 2500))))
    one = data["upgrades"][0]
    assert one["kinds"]
    assert one["total"] == pytest.approx(sum(p["price"] * p["count"] for p in one["parts"]))
    assert one["total_interval"][0] <= one["total"] <= one["total_interval"][1]
    assert one["currency"] == "USD"


def test_a_wished_number_of_cards_is_kept() -> None:
    market = Market(price_book(), "USD", owned(), shelves())
    wishes = Wishes(gpus=1)
    found = upgrades(Request(plan(), Money(2500, "USD"), wishes, top=20), market=market)
    assert found.upgrades
    assert {one.plan.machine.gpus[0].count for one in found.upgrades} == {1}
    assert "more-gpus" in {one["kind"] for one in upgrades_as_json(found)["declined"]}


QLORA = {
    "task": "qlora", "effective_batch": 16, "inputs": {"sequence_length": 2048},
    "samples": 52_000,
}  # fmt: skip
SINGLE_3090 = {
    "gpus": [{"id": "rtx-3090"}], "cpu": "ryzen-7-5700x",
    "board": "asrock-x570-phantom-gaming-x",
    "memory": [{"id": "corsair-vengeance-lpx-ddr4-3200-cl16-2x32gb"}],
    "drives": [{"id": "samsung-970-evo-plus-1tb"}], "psu": "corsair-rm850x-2021",
    "case": "be-quiet-pure-base-500dx", "cooler": "be-quiet-dark-rock-5",
}  # fmt: skip


BARE_3090 = {"gpus": [{"id": "rtx-3090"}]}


def adding(
    part: str, amount: float | None = None, machine: dict = SINGLE_3090, *, used: bool = True
) -> Upgrades:
    """Return what the part, used where that is cheaper, brings to the computer with one 3090."""
    request = Request(
        plan(machine, "llama-3.1-8b", **QLORA),
        Money(amount, "USD") if amount is not None else None,
        Wishes(used=used),
    )
    return added(request, named([part]))


def test_a_card_that_is_sold_used_only_says_so_and_what_it_costs() -> None:
    (found,) = adding("rtx-4090", used=False).upgrades
    assert found.total.unpriced == ("rtx-4090",)
    (note,) = [one for one in adding("rtx-4090", used=False).notes if "only-used" in one.id]
    said = render(note, "en")
    assert "--used" in said
    assert "RTX 4090" in said
    assert not [one for one in adding("rtx-4090").notes if "only-used" in one.id]


def test_a_second_card_keeps_the_batch_that_was_asked_for() -> None:
    """One sample 16 times on one card is one sample 8 times on each of two."""
    fixed = {"micro_batch": 1, "accumulation": 16}
    asked = plan(BARE_3090, "llama-3.1-8b", **QLORA)
    asked = asked.model_copy(update={"settings": asked.settings.model_copy(update=fixed)})
    (found,) = added(Request(asked, None, Wishes(used=True)), named(["rtx-3090"])).upgrades
    assert found.gain is not None
    assert 0.8 < found.gain <= 1.0
    settings = found.report.settings
    assert (settings.micro_batch, settings.accumulation) == (1, 8)


def second_3090(**work: object) -> Upgrades:
    asked = plan(BARE_3090, "llama-3.1-8b", **work)
    return added(Request(asked, None, Wishes(used=True)), named(["rtx-3090"]))


def test_a_second_card_that_serves_nothing_says_why() -> None:
    inputs = {"prompt_tokens": 512, "new_tokens": 64}
    (found,) = second_3090(task="infer", effective_batch=None, samples=None, inputs=inputs).upgrades
    assert found.gain == pytest.approx(0.0, abs=1e-6)
    assert found.idle is not None
    assert "the others stay idle" in render(found.idle, "en")


def test_a_batch_that_two_cards_cannot_share_is_named() -> None:
    found = second_3090(**QLORA | {"effective_batch": 15})
    assert not found.upgrades
    (why,) = found.declined
    assert "batch of 15 cannot be shared by 2 cards" in render(why.reason, "en")


def test_a_slower_card_is_refused_with_what_it_would_replace() -> None:
    found = adding("rtx-3060-12gb")
    assert not found.upgrades
    (why,) = found.declined
    said = render(why.reason, "en")
    assert "take the place of your GeForce RTX 3090" in said
    assert re.search(r"\d\d % slower", said)


def test_a_second_card_says_what_it_gains_and_that_the_power_supply_must_change() -> None:
    (found,) = adding("rtx-3090").upgrades
    assert found.kinds == ("more-gpus",)
    assert found.along == ("psu",), "NVIDIA asks 750 W for one 3090; 850 W do not feed two"
    assert {part.kind for part in found.parts} == {"gpu", "psu"}
    assert found.gain is not None
    assert 0.8 < found.gain <= 1.0, "two cards are at most twice as fast"
    assert found.plan.machine.gpus[0].count == 2
    assert [part.id for part in found.freed] == ["corsair-rm850x-2021"]


def test_a_card_of_another_kind_says_that_it_replaces_the_own_one_and_why() -> None:
    (found,) = adding("rtx-4090").upgrades
    assert [part.id for part in found.freed if part.kind == "gpu"] == ["rtx-3090"]
    assert found.replaced is not None
    text = render(found.replaced, "en")
    assert "GeForce RTX 3090" in text
    assert "replaced" in text
    assert "slower" in text, "why: cards of two kinds wait for the slower one"
    (second,) = adding("rtx-3090").upgrades
    assert second.replaced is None, "the own card stays"


def test_memory_that_makes_nothing_faster_is_said_to_gain_nothing() -> None:
    (found,) = adding("corsair-vengeance-lpx-ddr4-3200-cl16-2x32gb").upgrades
    assert found.gain == pytest.approx(0.0, abs=1e-6)
    assert found.total.expected is not None
    assert found.plan.machine.memory[0].count == 2


@pytest.mark.parametrize(
    ("part", "amount", "id"),
    [
        ("rtx-5090", 300.0, "planner.upgrade.why.above"),
        ("ryzen-9-9950x", None, "planner.upgrade.why.forbidden"),  # AM5, on a board for AM4
    ],
)
def test_a_part_that_cannot_be_added_says_why(part: str, amount: float | None, id: str) -> None:
    found = adding(part, amount)
    assert not found.upgrades
    assert [one.reason.id for one in found.declined] == [id]


@pytest.mark.parametrize(
    ("part", "machine", "id"),
    [
        ("corsair-rm1000x-2024", SINGLE_3090, "planner.add-nothing"),
        ("corsair-vengeance-lpx-ddr4-3200-cl16-2x32gb", BARE, "planner.add-memory"),
    ],
)
def test_a_part_of_which_nothing_can_be_said_is_refused(part: str, machine: dict, id: str) -> None:
    with pytest.raises(UserError) as refused:
        adding(part, machine=machine)
    assert refused.value.message.id == id


def test_more_cards_than_before_come_last_where_nobody_names_the_board() -> None:
    """An office PC with one card: nobody knows of a second slot, so one better card leads."""
    document = {
        "trainwright": 1,
        "model": {"preset": "resnet50"},
        "workload": {
            "task": "full", "inputs": {"image_size": 224}, "effective_batch": 64,
            "samples": 50_000, "epochs": 30,
        },
        "machine": {"gpus": [{"id": "gtx-1060-6gb"}], "cpu": "i5-8400", "memory_gib": 16},
    }  # fmt: skip
    found = upgrades(Request(Plan.model_validate(document), Money(700, "USD"))).upgrades
    counts = [sum(part.count for part in one.parts if part.kind == "gpu") for one in found]
    assert counts[0] == 1
    assert counts == sorted(counts)
    said = {check.rule for check in found[0].checks if check.verdict == "unknown"}
    assert "P3" not in said, "the card takes the slot of the old one"


OFFICE = {
    "gpus": [{"id": "rtx-3060-12gb"}], "cpu": "ryzen-5-3600", "board": "msi-mag-b550-tomahawk",
    "memory": [{"id": "corsair-vengeance-lpx-ddr4-3200-cl16-2x8gb"}],
    "drives": [{"id": "crucial-mx500-500gb"}], "psu": "msi-mag-a650gls-pcie5",
    "case": "corsair-4000d-airflow", "cooler": "amd-wraith-prism",
}  # fmt: skip


def qlora() -> Plan:
    inputs = {"sequence_length": 2048}
    return plan(OFFICE, "llama-3.1-8b", task="qlora", inputs=inputs, effective_batch=16)


@pytest.mark.slow
def test_an_expert_signs_the_first_upgrade_of_a_usual_pc() -> None:
    """One card with more memory, not two behind the chipset, nor a board that is out of sale."""
    found = upgrades(Request(qlora(), Money(1500, "USD"), Wishes(used=True)))
    first = found.upgrades[0]
    (cards,) = [part for part in first.parts if part.kind == "gpu"]
    assert cards.count == 1
    assert find_gpu(cards.id).record.vendor == "NVIDIA"
    for one in found.upgrades:
        boards = [find_board(part.id) for part in one.parts if part.kind == "board"]
        assert not {board.socket for board in boards} & {"LGA1151", "LGA1200"}
    starved = [any(c.rule == "P7" and c.verdict == "warning" for c in one.checks)
               for one in found.upgrades]  # fmt: skip
    assert starved == sorted(starved), "cards that starve come behind the others"


@pytest.mark.slow
def test_memory_that_is_less_than_the_new_card_has_is_bought_along() -> None:
    others = {"gpu": ("rtx-3060-12gb", "rtx-5090"), "psu": ("be-quiet-straight-power-12-1500w",)}
    market = Market(price_book(), "USD", Wishes(), shelves(**others))
    found = upgrades(Request(qlora(), Money(9000, "USD")), market=market)
    one = next(one for one in found.upgrades if one.parts[0].id == "rtx-5090")
    assert "memory" in one.along
    assert resolve(one.plan).machine.parts.memory_gib >= 32


@pytest.mark.parametrize(
    "machine",
    [
        {"gpus": [{"id": "rtx-4050-laptop"}]},
        {"gpus": [{"id": "apple-m3-max"}], "memory_gib": 64},
        {"gpus": [{"id": "h100-80gb-sxm"}]},
    ],
)
def test_no_card_is_sold_to_who_has_no_slot_for_it(machine):
    """A laptop, a Mac, a server of modules: their GPU is no card, and no slot is free for one."""
    work = {"task": "infer", "inputs": {"prompt_tokens": 512, "new_tokens": 64, "concurrent": 1}}
    wanted = Plan.model_validate(
        {"model": {"preset": "llama-3.2-1b"}, "workload": work, "machine": machine}
    )
    found = asked(wanted, 20_000)
    one = added(Request(wanted, None), named(["rtx-3090"]))
    for answer in (found, one):
        assert answer.upgrades == ()
        assert answer.before is not None
        assert "trainwright build" in render(answer.declined[0].message, "en")
