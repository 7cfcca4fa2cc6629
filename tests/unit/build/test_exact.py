"""On reduced catalogs nothing better exists: all combinations, and HiGHS, say so too."""

import random
from itertools import islice, product

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

from trainwright.advise.choose import STORED
from trainwright.build import Money, Request, Wishes, search
from trainwright.build.choosing import Choosing, Outcome, level
from trainwright.build.feeds import Feeds
from trainwright.build.offers import Market
from trainwright.build.sites import Around, link_of
from trainwright.build.sizing import needs
from trainwright.build.speeds import Cards, Speeds
from trainwright.build.works import Works
from trainwright.catalog import find_gpu, list_parts
from trainwright.machine.build import Build, BuildGpu
from trainwright.machine.checks import checks
from trainwright.machine.power import power
from trainwright.plan.schema import Plan
from trainwright.prices import price_book

AROUND = ("cpu", "board", "memory", "storage", "psu", "case", "cooler")
CARDS = ("rtx-5060-ti-16gb", "rtx-5070-ti")
SEEDS = [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3))]


def plan(**workload: object) -> Plan:
    return Plan.model_validate(
        {
            "trainwright": 1,
            "model": {"preset": "resnet50"},
            "workload": {
                "task": "pretrain", "effective_batch": 256, "samples": 100_000, **workload,
            },
            "machine": {"gpus": [{"id": "rtx-4070"}]},
        }
    )  # fmt: skip


def shelves(seed: int) -> dict[str, tuple]:
    """Return a few parts of each kind; boards and processors of one socket, to have matches."""
    rng = random.Random(seed)
    socket = rng.choice(("AM5", "LGA1700"))
    found = {"gpu": tuple(find_gpu(id).record for id in CARDS)}
    known = {
        "cpu": [cpu for cpu in list_parts("cpu") if cpu.socket == socket],
        "board": [b for b in list_parts("board") if b.socket == socket and b.lanes_complete],
        "memory": [m for m in list_parts("memory") if m.module == "udimm" and m.modules == 2],
        "storage": [d for d in list_parts("storage") if d.interface == "nvme" and d.form == "m.2"],
    }
    for kind in AROUND:
        records = list(known.get(kind) or list_parts(kind))
        found[kind] = tuple(rng.sample(records, min(4, len(records))))
    return found


def warned(rule: str, **parts: object) -> bool:
    """Return whether the rule has an objection to a few parts."""
    said = checks(Build(**parts))
    return any(c.rule.startswith(rule) and c.verdict in ("warning", "error") for c in said)


def cache(fits):
    known = {}

    def asked(*parts) -> bool:
        key = tuple(part.id for part in parts)
        if key not in known:
            known[key] = fits(*parts)
        return known[key]

    return asked


class Situation:
    """One reduced market, with the planner's search on it."""

    def __init__(self, asked: Plan, seed: int) -> None:
        self.shelves = shelves(seed)
        self.market = Market(price_book(), "USD", Wishes(), self.shelves)
        self.speeds = Speeds(asked, STORED)
        self.works = Works([(self.speeds, 1.0)])
        self.choosing = Choosing(Around(self.market, Wishes()), "us-120v-15a")
        self.plan = asked

    def best(self, cards: Cards, limit: float) -> Outcome | None:
        work = self.works.quick(cards)
        assert work is not None
        return self.choosing.best(cards, work, self.cost(cards), limit)

    def cost(self, cards: Cards) -> float:
        return self.market.offer("gpu", cards.record).cost(cards.count)

    def price(self, kind: str, record) -> float:
        return self.market.offer(kind, record).cost(1)

    def sized(self):
        """Return whether a cooler is strong enough, and memory fills its channels at full rate.

        Where nothing on the shelves is, anything goes.
        """
        found = {}
        for cpu, board in product(self.shelves["cpu"], self.shelves["board"]):
            coolers = self.shelves["cooler"]
            strong = [c for c in coolers if not warned("G7", cpu=cpu, board=board, cooler=c)]
            found[cpu.id, board.id] = strong or coolers

        def fits(cpu, board, kit, cooler) -> bool:
            kits = [k for k in self.shelves["memory"] if k.type == board.memory_type]
            full = [k for k in kits if not warned("M", cpu=cpu, board=board, memory=((k, 1),))]
            return cooler in found[cpu.id, board.id] and kit in (full or kits)

        return cache(fits)

    def drives(self, needed) -> list:
        """Return drives that are large enough and, where there are such, keep their speed."""
        large = [d for d in self.shelves["storage"] if (d.capacity_gb or 0) >= needed.drive_gb]
        return [d for d in large if not warned("S5", drives=(d,))] or large

    def large_enough(self, cards: Cards):
        """Return (cost, build) of everything that is large enough, cheapest first."""
        return sorted(self._large_enough(cards), key=lambda one: one[0])

    def _large_enough(self, cards: Cards):
        speed = self.speeds.quick(cards)
        needed = needs(self.plan, self.speeds.facts(cards), cards, speed)
        gpus = (BuildGpu(cards.record, cards.count),)
        sized, drives = self.sized(), self.drives(needed)
        for cpu, board, kit, drive, psu, case, cooler in product(
            *(self.shelves[kind] for kind in AROUND)
        ):
            enough = (
                cpu.cores >= needed.cores
                and kit.gib >= needed.memory_gib
                and drive in drives
                and kit.type == board.memory_type
            )
            if not enough or not sized(cpu, board, kit, cooler):
                continue
            build = Build(gpus, cpu, board, ((kit, 1),), (drive,), psu, case, cooler, "us-120v-15a")
            parts = zip(AROUND, (cpu, board, kit, drive, psu, case, cooler), strict=True)
            cost = self.cost(cards) + sum(self.price(kind, one) for kind, one in parts)
            yield cost, build

    def allowed(self, cards: Cards):
        """Yield (cost, build) of what no rule forbids, cheapest first: the rules take long."""
        return (one for one in self.large_enough(cards) if sound(one[1]))


def sound(build: Build) -> bool:
    """Return whether the power supply is strong enough, and no rule forbids anything."""
    strong = build.psu.watts >= power(build).recommended_psu_w
    return strong and not any(check.verdict == "error" for check in checks(build))


@pytest.mark.parametrize("seed", SEEDS)
def test_no_combination_is_cheaper(seed: int) -> None:
    situation = Situation(plan(), seed)
    for id in CARDS:
        cards = Cards(find_gpu(id).record, 1)
        least = next((cost for cost, _ in situation.allowed(cards)), None)
        found = situation.best(cards, float("inf"))
        assert (found is None) == (least is None)
        if found is not None:
            assert found.cost == pytest.approx(least, abs=0.02)
            assert situation.best(cards, found.cost - 1) is None, "below the least price"


@pytest.mark.parametrize("seed", SEEDS)
def test_fed_cards_are_on_the_fastest_level_that_the_money_reaches(seed: int) -> None:
    data = {"layout": "files", "sample_kib": 110, "decode": "jpeg"}
    situation = Situation(plan(dataset=data, epochs=4), seed)
    cards = Cards(find_gpu(CARDS[1]).record, 1)
    speed, feeds = situation.speeds.quick(cards), Feeds(situation.speeds)

    @cache
    def seconds(cpu, board, kit, drive) -> float:
        build = Build((BuildGpu(cards.record),), cpu, board, ((kit, 1),), (drive,))
        return feeds.seconds(cards, speed, link_of(build), cpu, build.memory_gib, drive)

    agree_on_the_fastest(situation, cards, seconds)


def agree_on_the_fastest(situation: Situation, cards: Cards, seconds) -> None:
    """Hold the choice against every combination, without a limit and near the least money."""
    every = []
    for cost, build in situation.large_enough(cards):
        (kit, _), *_ = build.memory
        took = seconds(build.cpu, build.board, kit, build.drives[0])
        every.append((level(took), cost, build))
    every.sort(key=lambda one: one[:2])
    near = [cost + 5 for cost, _ in islice(situation.allowed(cards), 3)]
    for limit in (float("inf"), *near):
        within = (one for one in every if one[1] <= limit and sound(one[2]))
        fastest, least, _ = next(within, (None, None, None))
        found = situation.best(cards, limit)
        assert (found is None) == (fastest is None)
        if found is not None:
            assert (level(found.seconds), found.cost) == (fastest, pytest.approx(least, abs=0.02))


@pytest.mark.parametrize("seed", [1, 3])
def test_two_cards_are_on_the_fastest_level_for_the_least_money(seed: int) -> None:
    """Slots and lanes for two, plugs and watts for two, openings of the case: by the rules."""
    situation = Situation(plan(), seed)
    cards = Cards(find_gpu(CARDS[1]).record, 2)
    speed = situation.speeds.quick(cards)

    @cache
    def seconds(cpu, board, kit, drive) -> float:
        build = Build((BuildGpu(cards.record, 2),), cpu, board, ((kit, 1),), (drive,))
        return situation.speeds.seconds(cards, speed, link_of(build))

    agree_on_the_fastest(situation, cards, seconds)


def test_a_batch_that_three_cards_cannot_share_is_one_for_four() -> None:
    """256 samples: on one, two and four cards, and not on three."""
    kinds = ("gpu", *AROUND)
    shelves = {kind: tuple(list_parts(kind)) for kind in kinds}
    shelves["gpu"] = (find_gpu("rtx-pro-4000").record,)  # of one slot: four find room
    market = Market(price_book(), "USD", Wishes(), shelves)
    found = search(Request(plan(), None, top=5), market=market)
    assert {point.count for point in found.front} == {1, 2, 4}


@pytest.mark.parametrize("seed", SEEDS)
def test_highs_finds_nothing_cheaper(seed: int) -> None:
    """The same as an integer program: one part of each kind, forbidden pairs, and watts."""
    situation = Situation(plan(), seed)
    cards = Cards(find_gpu(CARDS[0]).record, 1)
    speed = situation.speeds.quick(cards)
    needed = needs(situation.plan, situation.speeds.facts(cards), cards, speed)
    gpus = (BuildGpu(cards.record),)
    field = {"storage": "drives", "memory": "memory"}

    def built(*chosen) -> Build:
        values = {}
        for kind, record in chosen:
            value = ((record, 1),) if kind == "memory" else record
            values[field.get(kind, kind)] = (record,) if kind == "storage" else value
        return Build(gpus=gpus, circuit="us-120v-15a", **values)

    def enough(kind: str, record) -> bool:
        match kind:
            case "cpu":
                return record.cores >= needed.cores
            case "memory":
                return record.gib >= needed.memory_gib
            case "storage":
                return record in situation.drives(needed)
        return True

    parts = [(k, r) for k in AROUND for r in situation.shelves[k] if enough(k, r)]
    sized = situation.sized()
    rows, low, high = [], [], []

    def constrain(row, least, most) -> None:
        rows.append(row)
        low.append(least)
        high.append(most)

    for kind in AROUND:
        constrain([float(k == kind) for k, _ in parts], 1, 1)
    for a in range(len(parts)):
        for b in range(a + 1, len(parts)):
            if parts[a][0] == parts[b][0]:
                continue
            said = checks(built(parts[a], parts[b]))
            pair = dict((parts[a], parts[b]))
            weak = set(pair) == {"cpu", "cooler"} and all(
                not sized(pair["cpu"], board, kit, pair["cooler"])
                for board in situation.shelves["board"]
                for kit in situation.shelves["memory"]
                if kit.type == board.memory_type
            )
            if weak:
                constrain([float(i in (a, b)) for i in range(len(parts))], 0, 1)
            # Watts are a sum over all parts: they have rows of their own.
            if any(c.verdict == "error" and not c.rule.startswith("W") for c in said):
                constrain([float(i in (a, b)) for i in range(len(parts))], 0, 1)
    for number, (kind, record) in enumerate(parts):
        if kind == "psu" and any(c.rule == "W7" and c.verdict == "error"
                                 for c in checks(built((kind, record)))):  # fmt: skip
            constrain([float(i == number) for i in range(len(parts))], 0, 0)
    card = cards.record.tdp_w.value
    drawn = {
        "cpu": lambda r: r.max_power_w or r.tdp_w,
        "memory": lambda r: 5.0 * r.modules,
        "storage": lambda r: 8.0,
    }
    fixed = 50.0 + 4 * 3.0  # board and fans
    watts = np.array([drawn[k](r) if k in drawn else 0.0 for k, r in parts])
    rating = np.array([r.watts if k == "psu" else 0.0 for k, r in parts])
    swing = np.array(
        [r.watts * (2.0 if r.atx_version in ("3.0", "3.1") and r.watts > 450 else 1.25)
         if k == "psu" else 0.0 for k, r in parts]
    )  # fmt: skip
    constrain(0.8 * rating - watts, card + fixed, np.inf)
    constrain(swing - watts, 3 * card + fixed, np.inf)
    prices = np.array([situation.price(k, r) for k, r in parts])
    solved = milp(
        prices,
        constraints=LinearConstraint(np.array(rows), low, high),
        integrality=np.ones(len(parts)),
        bounds=Bounds(0, 1),
    )
    found = situation.best(cards, float("inf"))
    assert (found is not None) == solved.success
    if found is not None:
        assert found.cost - situation.cost(cards) == pytest.approx(solved.fun, abs=0.02)


def test_owned_parts_cost_nothing_and_are_used() -> None:
    from trainwright.build import Owned

    wishes = Wishes(owned=(Owned("gpu", "rtx-5070-ti"), Owned("case", "antec-c8")))
    bare = search(Request(plan(), Money(2500, "USD"), top=3))
    found = search(Request(plan(), Money(2500, "USD"), wishes, top=3))
    best = found.builds[0]
    assert best.seconds <= bare.builds[0].seconds
    owned = {part.id for part in best.parts if part.owned}
    assert owned
    paid = [p for p in best.parts if p.owned < p.count]
    total = sum(p.price.expected * (p.count - p.owned) for p in paid)
    assert best.total.expected == pytest.approx(total)
