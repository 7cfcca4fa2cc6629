"""How fast cards do the work with their best settings, were samples always there.

Two looks at each choice of cards. The first compares what usually decides (batch, checkpointing,
layout) and takes what the quick peak lets fit: that is never slower than the truth. The second
is the whole search of ``advise``, its answer replayed; it is made where a build is shown.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from trainwright.advise.aside import sharding
from trainwright.advise.relax import shortage
from trainwright.advise.search import Search
from trainwright.advise.walk import Sources, Timed
from trainwright.catalog import GpuRecord
from trainwright.estimate.input.pipeline import Feeding
from trainwright.estimate.serving.engines import ENGINES
from trainwright.estimate.support import measured, support
from trainwright.estimate.time.clock import Clock
from trainwright.machine.build import BuildGpu
from trainwright.machine.choice import GpuChoice, MachineChoice
from trainwright.machine.machine import System
from trainwright.machine.placement import CARD_GENERATION
from trainwright.machine.wiring import EDGE
from trainwright.messages import UserError
from trainwright.plan.evaluate import Facts, Pending, resolve
from trainwright.plan.schema import Plan
from trainwright.plan.serving_gpus import gpus_of
from trainwright.plan.trace_request import kernel
from trainwright.profile.profile import Profile
from trainwright.workload import FullSettings
from trainwright.workload.engines import COPYING
from trainwright.workload.settings import Effect

Look = Callable[[Plan], Facts | Pending]


class Link(NamedTuple):
    """What a slot gives each card."""

    generation: int
    lanes: int


@dataclass(frozen=True, slots=True)
class Cards:
    """Cards of one kind."""

    record: GpuRecord
    count: int
    limit_w: float | None = None
    """Of each; None: what it comes with."""

    @property
    def key(self) -> "Key":
        """What tells one choice from another."""
        return self.record.id, self.count, self.limit_w

    @property
    def kind(self) -> tuple[str, int]:
        """What they are; an answer has them with one limit only."""
        return self.record.id, self.count

    @property
    def gpus(self) -> tuple[BuildGpu, ...]:
        """The same as parts of a computer."""
        return (BuildGpu(self.record, self.count, self.limit_w),)


Key = tuple[str, int, float | None]


@dataclass(frozen=True, slots=True)
class Speed:
    """The work on some cards."""

    settings: FullSettings
    seconds: float
    """Of a step (a round of requests) of the whole effective batch, the copy of samples too."""
    samples: float
    """In it."""
    feeding: Feeding | None
    """What is asked of the computer around them, which it does not name; None: nothing."""
    clock: Clock
    """That timed it."""
    profile: Profile
    effect: Effect
    """Of the settings on the training."""
    margin: float = 1.0
    """Factor on the seconds that ranks them: the upper end of their interval where no training
    was measured on GPUs of the maker."""


COUNTS = (1, 2, 3, 4)
"""Cards worth weighing in one case; assumed: beyond four, servers begin."""
SHARED_FROM = 24e9
"""Bytes of a card's memory from which weights are shared over several: with less, one larger card
costs less than their slots, lanes and watts. Assumed."""
SPLIT_FROM = 12e9
"""The same where layers of a served model are spread, which need next to no lanes. Assumed: pairs
of used RTX 3060 with 12 GB are the least that people put together for it."""
UNPROVEN = ("prototype", "preview", "unlisted")
"""States of support on whose word nobody should buy a computer where there is another one."""


class Speeds:
    """Times of one workload on any cards; each is worked out once."""

    def __init__(self, plan: Plan, sources: Sources, system: System = "linux") -> None:
        self.plan = plan
        self.system = system
        self.untraced: set[str] = set()
        """Cards whose profile is not at hand."""
        self.unproven: set[str] = set()
        """Cards on which PyTorch runs as a prototype, a preview, or on no list at all."""
        self.refused: dict[str, UserError] = {}
        """Cards that the plan's fixed settings do not run on."""
        self.sources = replace(sources, find=self._found)
        """The same, each profile looked up once."""
        self._find = sources.find
        self._profiles: dict[tuple[object, ...], Profile | None] = {}
        self._too_small: dict[tuple[object, ...], float] = {}
        self._quick: dict[Key, Speed | None] = {}
        self._clocks: dict[tuple[str, float | None], Clock] = {}
        """The last one of each card."""
        self._linked: dict[tuple[object, ...], float] = {}
        self._facts: dict[tuple[object, ...], Facts | None] = {}
        self._shared: set[Key] = set()
        """Cards over which the weights are shared out."""

    @property
    def several(self) -> bool:
        """Whether several cards are any use: some engines serve on one alone."""
        engine = self.plan.settings.engine
        splits = engine is not None and ENGINES[engine].splits
        return self.plan.workload.trains or splits or self.copies

    @property
    def copies(self) -> bool:
        """Whether each of several cards may do a share of the work on a copy of its own."""
        return self.plan.workload.trains or self.plan.settings.engine in COPYING

    def linked(self, link: Link | None, count: int) -> bool:
        """Return whether the cards' link plays a part at all."""
        settings, workload = self.plan.settings, self.plan.workload
        moves = settings.activation_offload or settings.optimizer_offload == "cpu"
        fed = workload.dataset is not None and workload.trains
        return link is not None and bool(count > 1 or fed or moves)

    def quick(self, cards: Cards) -> Speed | None:
        """Return the speed at the first look; None where the work does not fit or run."""
        if cards.key not in self._quick:
            self._quick[cards.key] = self._first(cards)
        return self._quick[cards.key]

    def seconds(self, cards: Cards, speed: Speed, link: Link | None) -> float:
        """Return the seconds of the same step where each card has such a link."""
        if link is None or not self.linked(link, cards.count):
            return speed.seconds
        key = (*cards.key, link)
        if key not in self._linked:
            situation = speed.clock.situation
            gpu = replace(
                situation.gpu, record=linked_record(situation.gpu.record, link), link_read=True
            )
            clock = Clock(replace(situation, gpu=gpu))
            clock.share(speed.clock)
            settings = speed.settings
            terms = clock.terms(speed.profile, settings, settings.micro_batch)
            self._linked[key] = terms.step
        return self._linked[key]

    def _first(self, cards: Cards) -> Speed | None:
        """Return the speed with whole copies on the cards, or shared out where it changes less."""
        shared, copied = self.sharded(cards), batched(self.plan, cards.count)
        plans = [copied] if shared is None else [copied, shared]
        if (cards.record.id, 1, None) in self._quick and not self._copies(cards):
            plans.reverse()  # copies change the training on several cards as they do on one
        found: Speed | None = None
        for plan in plans:
            speed = self._fastest(plan, cards)
            if speed is not None and (found is None or speed.effect < found.effect):
                found = speed
            if found is not None and found.effect is Effect.SAME:
                break
        if found is not None and shared is not None and found.settings.shards:
            self._shared.add(cards.key)
        return found

    def _copies(self, cards: Cards) -> bool:
        """Return whether a whole copy fits on one such card and trains as it is asked to."""
        alone = self._quick.get((cards.record.id, 1, None))
        return alone is not None and alone.effect is Effect.SAME

    def shortage(self, cards: Cards) -> tuple[float | None, bool]:
        """Return the bytes that each card lacks at least, and whether they share the weights.

        None where nobody can say.
        """
        shared = self.sharded(cards)
        copied = batched(self.plan, cards.count)
        for plan in (shared, copied) if shared is not None else (copied,):
            if (facts := self._known(plan, cards)) is not None:
                return shortage(Search(plan, facts, self.sources)), plan is shared
        return None, False

    def sharded(self, cards: Cards) -> Plan | None:
        """Return the plan with the weights shared over the cards; None where that is not open."""
        if not shares(cards.record):
            return None
        plan = batched(self.plan, cards.count)
        return sharding(plan.model_copy(update={"machine": self._machine(cards)}))

    def planned(self, cards: Cards) -> Plan:
        """Return the plan as it runs on the cards: with shared weights where it has to."""
        shared = self.sharded(cards) if cards.key in self._shared else None
        return shared or batched(self.plan, cards.count)

    def _fastest(self, plan: Plan, cards: Cards) -> Speed | None:
        facts = self._known(plan, cards)
        if facts is None:
            return None
        gpu = facts.machine.gpu
        split = gpus_of(facts.settings, facts.machine)
        shared = cards.count if facts.settings.shards or split > 1 else 0
        alike = gpu.record.vendor, gpu.record.compute_capability, min(cards.count, 2), shared
        room = gpu.total.value - gpu.held.value
        if room <= self._too_small.get(alike, 0.0):
            return None
        for names in (_SELDOM_DECIDE, ("strategy",)):
            like = self._clocks.get((cards.record.id, cards.limit_w))
            search = Search(_fixed(plan, facts.settings, names), facts, self.sources, like=like)
            for timed in search.obedient:
                if search.may_fit(timed.candidate):
                    speed = _speed(search, timed)
                    self._clocks[cards.record.id, cards.limit_w] = speed.clock
                    return speed
        self._too_small[alike] = room
        return None

    def _found(self, plan: Plan, facts: Facts, settings: FullSettings) -> Profile | None:
        """Return a profile as the sources do; cards alike share it."""
        key = (
            *(settings.precision, settings.attention, settings.expanded_heads),
            settings.channels_last,
            *(settings.checkpointing == "selective", settings.micro_batch == 1),
            *(settings.update, settings.cross_entropy, settings.optimizer_in_backward),
            settings.shards,  # these compute in 16 bits without autocast
            settings.tensor_degree,
            kernel(settings, facts.machine.gpu.record),
        )
        if key not in self._profiles:
            self._profiles[key] = self._find(plan, facts, settings)
        return self._profiles[key]

    def trial(self, record: GpuRecord) -> bool:
        """Return whether nobody should buy the card for it where there is another one."""
        self.facts(Cards(record, 1))
        return record.id in self.unproven

    def facts(self, cards: Cards) -> Facts | None:
        """Return what is known of the plan on such cards alone; None where it cannot run."""
        return self._known(self.planned(cards), cards)

    def _known(self, plan: Plan, cards: Cards) -> Facts | None:
        key = (*cards.key, plan.settings.strategy)
        if key not in self._facts:
            self._facts[key] = self._resolved(plan, cards)
        return self._facts[key]

    def _machine(self, cards: Cards) -> MachineChoice:
        chosen = GpuChoice(id=cards.record.id, count=cards.count, power_limit_w=cards.limit_w)
        return MachineChoice(gpus=(chosen,), system=self.system)

    def _resolved(self, plan: Plan, cards: Cards) -> Facts | None:
        try:
            found = resolve(plan.model_copy(update={"machine": self._machine(cards)}))
        except UserError as error:
            self.refused[cards.record.id] = error
            return None
        if isinstance(found, Pending):
            if plan.settings.strategy == self.plan.settings.strategy:
                self.untraced.add(cards.record.id)
            return None
        known = support(cards.record, found.machine.system, found.settings)
        if known.state in UNPROVEN:
            self.unproven.add(cards.record.id)
        return found if known.runs else None


def batched(plan: Plan, count: int) -> Plan:
    """Return the plan with its batches open where so many cards would make them another batch.

    The effective batch is what is asked for. The micro-batch is kept where some accumulation of it
    comes to that.
    """
    given, whole = plan.settings, plan.workload.effective_batch
    micro, steps = given.micro_batch, given.accumulation
    if not plan.workload.trains or whole is None or (micro or 1) * (steps or 1) * count == whole:
        return plan
    freed: dict[str, None] = {}
    if steps is not None and (micro is not None or whole % (steps * count)):
        freed["accumulation"] = None
    if micro is not None and whole % (micro * count):
        freed["micro_batch"] = None
    settings = given.model_copy(update=freed)
    return plan.model_copy(update={"settings": settings}) if freed else plan


def shares(record: GpuRecord) -> bool:
    """Return whether it is worth looking at the card with weights shared over several."""
    return record.memory_bytes.value >= SHARED_FROM


def spreads(plan: Plan, record: GpuRecord) -> bool:
    """Return whether it is worth looking at several such cards for what one does not hold."""
    least = SHARED_FROM if plan.workload.trains else SPLIT_FROM
    return record.memory_bytes.value >= least


def widest(record: GpuRecord) -> Link:
    """Return the link that no slot exceeds: the card's own."""
    return Link(record.pcie_generation or CARD_GENERATION, record.pcie_lanes or EDGE)


def linked_record(record: GpuRecord, link: Link) -> GpuRecord:
    """Return the card in a slot that gives it such a link."""
    found = {"pcie_generation": link.generation, "pcie_lanes": link.lanes}
    return record.model_copy(update=found)


_SELDOM_DECIDE = ("precision", "attention", "optimizer", "allocator", "strategy")


def _fixed(plan: Plan, settings: FullSettings, names: tuple[str, ...]) -> Plan:
    """Return the plan with such of its open keys fixed to their default."""
    trains = plan.workload.trains
    free = [
        name
        for name in names
        if getattr(plan.settings, name) is None and (trains or name != "optimizer")
    ]
    fixed = {name: getattr(settings, name) for name in free}
    return plan.model_copy(update={"settings": plan.settings.model_copy(update=fixed)})


def _speed(search: Search, timed: Timed) -> Speed:
    candidate = timed.candidate
    settings, clock = search.settings(candidate), search.clock(candidate)
    profile = search.profile(candidate)
    assert profile is not None, "only candidates with a profile are timed"
    record = clock.situation.gpu.record
    micro = candidate.micro_batch
    return Speed(
        settings=settings,
        seconds=timed.seconds,
        samples=clock.samples(settings, micro),
        feeding=clock.feeding(profile, settings, micro),
        clock=clock,
        profile=profile,
        effect=candidate.effect,
        margin=1.0 if measured(record) else clock.margin(profile, settings, micro),
    )
