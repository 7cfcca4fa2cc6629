"""The search: points of the space in the order of their worth, then confirmed until enough fit.

Exact: the first choice is the minimum over the whole space of (effect, departure, seconds,
distance from what the plan has now) among settings whose p95 leaves headroom. Where none of the
least effect does, the leanest of them is the only choice. Whole copies go before shares in 16 bits
that only are faster (``preferred``). Points are dropped unseen only
where a lower bound of their memory is more than the device has, or one above them in the lattice
is at least as fast.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from trainwright.advise import space, structure
from trainwright.advise.space import Candidate, Space
from trainwright.advise.walk import Sources, Timed, Walk
from trainwright.estimate.calibration import memory_calibration
from trainwright.estimate.memory.device_memory import allocated_peak_bytes
from trainwright.estimate.memory.outside import bytes_outside
from trainwright.estimate.pinned_memory import pinned_bytes
from trainwright.estimate.serving.served import Served
from trainwright.estimate.time.clock import Clock
from trainwright.estimate.time.unrolled import refusal
from trainwright.messages import UserError
from trainwright.plan.effective import completed_with
from trainwright.plan.evaluate import (
    Facts,
    asked_of,
    evaluate,
    runs_out,
    served_in,
    situation_of,
    splits_of,
)
from trainwright.plan.report import HEADROOM, Report
from trainwright.plan.schema import Plan
from trainwright.profile.expand import model_bytes
from trainwright.profile.profile import Profile
from trainwright.workload import FullSettings
from trainwright.workload.settings import WEIGHTS_SHARED, Effect, Loader

_SLACK = 32 << 20
"""Bytes by which the quick peak may be above the replayed one: 256 for each live storage."""

Found = tuple[Timed, Report]
_SHAPING = ("checkpointing", "precision")
"""Searched keys from which others follow that are not searched."""
_FOLLOWING = FullSettings.model_fields.keys() - {
    *space.KEYS,
    *("micro_batch", "accumulation", *Loader.model_fields),
}
"""Settings that are not searched, less those of the loader, which follow from a choice."""


# Long: what one step works out, the others look up.
class Search:
    """One search; keeps the profiles, times and reports that it has worked out."""

    def __init__(
        self, plan: Plan, facts: Facts, sources: Sources, *, like: Clock | None = None
    ) -> None:
        """Prepare a search; nothing is timed before it is asked for.

        ``like`` is a clock of the same GPU, that has timed operators already.
        """
        self.plan = plan
        self.facts = facts
        self.held = space.fixed(plan.settings, facts.settings)
        self.missing: dict[tuple[object, ...], Candidate] = {}
        """Structures without a profile at hand, with an example of each."""
        self.sources = sources
        self._like = like
        self._recipe = facts.settings.recipe is not None
        self._workload = plan.workload.model_copy(update={"inputs": facts.inputs})
        self._profiles: dict[tuple[object, ...], Profile | None] = {}
        self._updated: dict[tuple[object, ...], bool] = {}
        self._clocks: dict[int, Clock] = {}
        self._seconds: dict[tuple[object, ...], float | None] = {}
        self._peaks: dict[tuple[object, ...], dict[int, int]] = {}
        self._full: dict[Candidate, FullSettings] = {}
        self._bases: dict[tuple[object, ...], FullSettings] = {}
        self._room: dict[int, float] = {}
        self._reports: dict[Candidate, Report] = {}
        self._values = space.values(
            plan.settings,
            facts.settings,
            self._workload,
            facts.machine.gpu.record,
            facts.profile,
            facts.machine.gpu_count,
            facts.machine.memory_bytes,
            facts.machine.nodes,
            splits_of(plan, facts),
        )
        self.obedient = Walk(self, self._space(self.held))
        """Candidates that keep to what the plan fixes and may fit, best first."""
        self._freed: dict[str, Walk] = {}

    def _space(self, held: Mapping[str, Any], freed: str = "") -> Space:
        gpus = self.facts.machine.gpu_count
        settings, workload = self.facts.settings, self.plan.workload
        return Space(self._values, held, settings, workload, gpus, freed, self.held.get(freed))

    @property
    def changeable(self) -> tuple[str, ...]:
        """Return the fixed keys that have another value to compare."""
        return tuple(key for key in self.held if key == "batch" or len(self._values[key]) > 1)

    def freed(self, key: str) -> Walk:
        """Return the candidates that disregard one fixed key, and only those."""
        if key not in self._freed:
            rest = {name: value for name, value in self.held.items() if name != key}
            self._freed[key] = Walk(self, self._space(rest, key))
        return self._freed[key]

    def holding(self, **values: Any) -> Walk:
        """Return the candidates that keep to further values, and may fit."""
        return Walk(self, self._space({**self.held, **values}))

    @cached_property
    def preferred(self) -> Walk:
        """Return the candidates to choose from: whole copies alone where they fit with headroom.

        A copy's autocast keeps the sums between layers in fp32, which shares do not: that explains
        much of a shorter step, so that shares are then an alternative.
        """
        shares = next(self.best(self.obedient), None)
        if shares is None or "strategy" in self.held or not self.casts(shares[0].candidate):
            return self.obedient
        chosen = shares[0].candidate
        copies = self.holding(strategy="ddp", precision=chosen.precision)
        found = next(self.best(copies), None)
        fit = found is not None and found[1].roomy and found[0].candidate.departs <= chosen.departs
        return copies if fit else self.obedient

    def casts(self, candidate: Candidate) -> bool:
        """Return whether fp32 weights are cast to 16 bits as a whole, without autocast."""
        return self.settings(candidate).casts_shares and not self.plan.workload.adapts

    def alike(self, candidate: Candidate, **changed: object) -> Timed | None:
        """Return the candidate with other values, if it obeys the plan and can be timed."""
        wanted = replace(candidate, **changed)  # type: ignore[arg-type]
        if not self.obedient.space.has(wanted):
            return None
        wanted = self.obedient.space.placed(wanted)
        seconds = self.seconds(wanted)
        return None if seconds is None else Timed(wanted, seconds)

    @cached_property
    def smallest(self) -> Candidate | None:
        """The candidate with the smallest quick peak, whether it fits or not."""
        return min(self.obedient.leanest(), key=self.peak, default=None)

    @cached_property
    def considered(self) -> int:
        """Return how many settings obey the plan, and were compared or need not be."""
        walk = self.obedient.space
        return sum(
            len(alike) * walk.below_each(point.checkpointing)
            for effect in Effect
            for group in walk.roots(effect)
            for alike, point in self._known(group)
        )

    def compares(self, group: Sequence[Candidate]) -> bool:
        """Return whether any point at or below those of a group, which differ in the batch, counts.

        What saves memory may be of another structure, known where that of the plain step is not.
        """
        return bool([*self._known(group)])

    def _known(self, group: Sequence[Candidate]) -> Iterator[tuple[Sequence[Candidate], Candidate]]:
        """Yield roots of one structure with each point below one of them that has a profile."""
        for alike in structure.by_structure(group):
            for point in self.obedient.space.without_moves(alike[0]):
                if self.profile(point) is not None:
                    yield alike, point

    def settings(self, candidate: Candidate) -> FullSettings:
        """Return the candidate's settings; what is not searched is the plan's or default."""
        if candidate not in self._full:
            self._full[candidate] = candidate.settings(self._base(candidate))
        return self._full[candidate]

    def _base(self, candidate: Candidate) -> FullSettings:
        """Return the plan's settings, with what follows from values of the candidate.

        A recipe sets others by the checkpointing, and the cache has the dtype of the precision.
        """
        known = self.facts.settings
        values = {key: getattr(candidate, key) for key in _SHAPING}
        key = tuple(values.values())
        if key not in self._bases:
            machine = self.facts.machine
            place = machine.gpu.record, machine.gpu_count, machine.all_cores
            try:
                full = completed_with(self.plan, values, *place)
            except UserError:  # what does not go with the plan is not a candidate
                full = known
            following = {name: getattr(full, name) for name in _FOLLOWING}
            self._bases[key] = known.model_copy(update=following)
        return self._bases[key]

    def profile(self, candidate: Candidate) -> Profile | None:
        """Return the profile of the candidate's structure, or None where it is not at hand."""
        key = self._traced(candidate)
        if key not in self._profiles:
            settings = self.settings(candidate)
            found = self.sources.find(self.plan, self.facts, settings)
            if found is None and key == self._traced_now():
                found = self.facts.profile  # it may hold at the plan's own point alone
            known = found is not None and structure.updates(found, settings.update)
            self._profiles[key] = found if known or not self.plan.workload.trains else None
            if self._profiles[key] is None:
                self.missing[key] = candidate
        found = self._profiles[key]
        return found if found is not None and self._updates(found, candidate) else None

    def _updates(self, profile: Profile, candidate: Candidate) -> bool:
        """Return whether a profile of the structure knows the candidate's own update too."""
        if not self.plan.workload.trains:
            return True
        key = self._traced(candidate), candidate.optimizer
        if key not in self._updated:
            update = self.settings(candidate).update
            self._updated[key] = structure.updates(profile, update)
        return self._updated[key]

    def _traced(self, candidate: Candidate, *, alone: bool | None = None) -> tuple[object, ...]:
        """Return what decides which profile answers; recipes differ by the checkpointing."""
        recomputes = self._recipe and candidate.checkpointing != "none"
        return (*structure.structure(candidate, alone=alone), recomputes)

    def _traced_now(self) -> tuple[object, ...]:
        settings = self.facts.settings
        recomputes = self._recipe and settings.checkpointing != "none"
        return (*structure.structure_of(settings), recomputes)

    @property
    def uncompared(self) -> Iterator[Candidate]:
        """Yield an example of each structure that was not compared at any batch."""
        _ = self.considered  # counting looks at every structure, whether a walk reaches it or not
        for candidate in self.missing.values():
            alone = candidate.micro_batch == 1  # which is a structure of its own
            if self._profiles.get(self._traced(candidate, alone=not alone)) is None:
                yield candidate

    def gpus(self, candidate: Candidate) -> int:
        """Return how many GPUs the candidate uses."""
        return self.facts.machine.gpu_count if candidate.strategy != "single" else 1

    def ranks(self, candidate: Candidate) -> int:
        """Return how many of them take samples of their own."""
        return self.settings(candidate).ranks_of(self.gpus(candidate))

    def confirmed(self, ordered: Iterable[Timed]) -> Iterator[Found]:
        """Yield those whose replayed p95 fits, in the given order."""
        for timed in ordered:
            if self.may_fit(timed.candidate) and not self._runs_out(timed.candidate):
                report = self.report(timed.candidate)
                if report.fits:
                    yield timed, report

    def best(self, walk: Walk, ordered: Iterable[Timed] | None = None) -> Iterator[Found]:
        """Yield those of a walk that fit with headroom, best first.

        Where those that change the training as little as the first that fits all lack headroom,
        the leanest of them alone. ``ordered`` is the walk less what need not be looked at.
        """
        roomy = False
        for timed in walk if ordered is None else ordered:
            if roomy and not self.may_fit(timed.candidate, spare=HEADROOM):
                continue
            for found in self.confirmed([timed]):
                if not found[1].roomy and not roomy:
                    lean = self._leanest(walk, found)
                    if not lean[1].roomy:
                        yield lean
                        return
                roomy = True
                if found[1].roomy:
                    yield found

    def _leanest(self, walk: Walk, like: Found) -> Found:
        """Return what needs the least memory of all that change the training as little.

        Any of them with headroom will do: first the leanest of the same structure is tried.
        """
        chosen = like[0].candidate
        if like[0].seconds == math.inf:  # without times the leanest comes first
            return like
        own = walk.below(walk.space.root(chosen))
        if own is not None and (found := self._leaner(walk, like, own))[1].roomy:
            return found
        leanest = walk.leanest(chosen.effect)
        alike = [one for one in leanest if one.departs == chosen.departs]
        return self._leaner(walk, like, min(alike, key=self.peak)) if alike else like

    def _leaner(self, walk: Walk, like: Found, lean: Candidate) -> Found:
        """Return the leaner of a choice and a candidate, with any allocator that has headroom."""
        seconds = self.seconds(lean)
        if seconds is None:
            return like
        allocators = walk.space.open["allocator"]
        points = [Timed(replace(lean, allocator=one), seconds) for one in allocators]
        found = next((one for one in self.confirmed(points) if one[1].roomy), None)
        return found or min((like, *self.confirmed(points)), key=_use)

    def report(self, candidate: Candidate) -> Report:
        """Return the full evaluation of a candidate."""
        if candidate not in self._reports:
            self._reports[candidate] = evaluate(self.plan, self._facts(candidate))
        return self._reports[candidate]

    def _runs_out(self, candidate: Candidate) -> bool:
        """Return whether PyTorch would run out of memory: most that fail are known by this."""
        known = self._reports.get(candidate)
        return known is None and runs_out(self.plan, self._facts(candidate))

    def _facts(self, candidate: Candidate) -> Facts:
        profile = self.profile(candidate)
        assert profile is not None, "only candidates with a profile are timed"
        return replace(self.facts, settings=self.settings(candidate), profile=profile)

    def may_fit(self, candidate: Candidate, *, spare: float = 0.0) -> bool:
        """Return whether a lower bound of the p95 is within the device.

        ``spare`` is the share of the device's memory that stays free.
        """
        room = self.room(candidate) - spare * self.facts.machine.gpu.total.value
        # Without a layout first: often the model alone is too large, or too little can be moved.
        bounds = (self._model_bytes, self._least_moved, self.least)
        return all(bound(candidate) <= room for bound in bounds)

    def _least_moved(self, candidate: Candidate) -> float:
        """Return a bound of what stays where activations are moved: all but what can be moved.

        0 where what they take in place has not been weighed.
        """
        stays = replace(candidate, activation_offload=False)
        known = self._peaks.get(structure.layout(stays), {}) if candidate.activation_offload else {}
        profile = self.profile(candidate)
        if profile is None or candidate.micro_batch not in known:
            return 0.0
        policy = self.settings(candidate).recomputing
        moved = pinned_bytes(profile, policy, candidate.micro_batch, self.sequence)
        return _least(known[candidate.micro_batch] - moved)

    def least(self, candidate: Candidate) -> float:
        """Return a lower bound of the p95 of what the allocator takes."""
        return _least(self.peak(candidate))

    def may_be_lean(self, candidate: Candidate) -> bool:
        """Return whether a candidate may fit, as far as a profile of it tells."""
        return self.profile(candidate) is None or self.may_fit(candidate)

    def _model_bytes(self, candidate: Candidate) -> float:
        """Return what the model itself takes at least."""
        key = ("model", *self._traced(candidate), candidate.tensor_degree)
        if key not in self._peaks:
            profile = self.profile(candidate)
            assert profile is not None, "only candidates with a profile are timed"
            served = self._served(candidate, profile)
            packed = served.held_weights if served is not None else None
            nbytes = model_bytes(profile) if packed is None else packed.nbytes
            self._peaks[key] = {0: int(nbytes)}
        shared = candidate.strategy in WEIGHTS_SHARED
        settings = self.settings(candidate)
        shards = settings.shards_of(self.gpus(candidate)) if shared else 1
        return _least(self._peaks[key][0] // (settings.pipeline_stages or shards))

    def room(self, candidate: Candidate) -> float:
        """Return the bytes that the allocator may take on the device."""
        count = self.gpus(candidate)
        if count not in self._room:
            gpu = self.facts.machine.gpu
            self._room[count] = gpu.total.value - bytes_outside(gpu, count)
        return self._room[count]

    def peak(self, candidate: Candidate) -> int:
        """Return the quick allocated peak; worked out for all micro-batches at once."""
        key = structure.layout(candidate)
        known = self._peaks.setdefault(key, {})
        if candidate.micro_batch not in known:
            known |= self._all_peaks(candidate)
        if candidate.micro_batch not in known:
            known |= self._all_peaks(candidate, (candidate.micro_batch,))
        return known[candidate.micro_batch]

    def weighed(self, candidate: Candidate) -> bool:
        """Return whether the quick peak of a candidate's layout is known at any batch."""
        return bool(self._peaks.get(structure.layout(candidate)))

    def _all_peaks(self, candidate: Candidate, batches: Sequence[int] = ()) -> dict[int, int]:
        asked = asked_of(self.plan, self._facts(candidate))
        if not batches:
            ranks = self.ranks(candidate)
            pairs = space.batches(self.facts.settings, self.plan.workload, ranks)
            single = candidate.micro_batch == 1  # which is a structure of its own
            batches = [micro for micro, _ in pairs if (micro == 1) == single]
        queues = asked.served is not None and asked.served.queues  # one request is enough to run
        points = np.ones(len(batches), np.int64) if queues else np.array(batches, np.int64)
        peaks = allocated_peak_bytes(asked, points)
        return dict(zip(batches, peaks.tolist(), strict=True))

    def _served(self, candidate: Candidate, profile: Profile) -> Served | None:
        if self.plan.workload.trains:
            return None
        settings = self.settings(candidate)
        return served_in(self.plan, replace(self.facts, settings=settings, profile=profile))

    @property
    def sequence(self) -> int:
        """Tokens a sample, or of a prompt; 0 where there is none."""
        inputs = self.facts.inputs
        return inputs.sequence_length or inputs.prompt_tokens or 0

    def seconds(self, candidate: Candidate) -> float | None:
        """Return the seconds of a step; None where there is no profile for it.

        Infinite where no time is predicted.
        """
        profile = self.profile(candidate)
        if profile is None:
            return None
        key = (*structure.structure(candidate), *structure.work(candidate))
        if key not in self._seconds:
            self._seconds[key] = None
            if structure.answers(profile, candidate, self.sequence):
                engine = self.facts.settings.engine != "transformers"
                took = self._round(candidate) if engine else self._step(candidate, profile)
                self._seconds[key] = took
        return self._seconds[key]

    def _step(self, candidate: Candidate, profile: Profile) -> float:
        clock, settings = self.clock(candidate), self.settings(candidate)
        if refusal(profile, clock, settings, candidate.micro_batch) is not None:
            return math.inf
        return clock.terms(profile, settings, candidate.micro_batch).step

    def _round(self, candidate: Candidate) -> float:
        """Return the seconds in which an engine answers all requests, those that wait too."""
        rate = self.report(candidate).time.samples_per_second
        return math.inf if rate is None else candidate.micro_batch / rate.value

    def clock(self, candidate: Candidate) -> Clock:
        """Return the clock for as many GPUs as the candidate uses."""
        count = self.gpus(candidate)
        if count not in self._clocks:
            cluster = self.facts.machine.cluster if count > 1 else None
            situation = situation_of(self.plan, self.facts)
            clock = Clock(replace(situation, gpu_count=count, cluster=cluster))
            if self._like is not None:
                clock.share(self._like)
            self._like = self._clocks[count] = clock
        return self._clocks[count]


def first(plan: Plan, sources: Sources) -> tuple[Search, Timed, Report] | None:
    """Return the best settings of a plan, or None where nothing fits or is at hand."""
    facts = sources.resolve(plan)
    if facts is None:
        return None
    search = Search(plan, facts, sources)
    for timed, report in search.best(search.preferred):
        return search, timed, report
    return None


def _use(found: Found) -> float:
    """Return the device memory that a choice uses at p95."""
    return found[1].memory.device_used_p95.value


def _least(peak: int) -> float:
    """Return what the p95 of the allocator's memory is at least, for a quick peak."""
    constants = memory_calibration()
    return (peak - _SLACK) * (1 + constants.z95 * constants.relative_sigma["whole"])
