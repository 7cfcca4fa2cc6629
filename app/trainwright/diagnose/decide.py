"""From evidence to a diagnosis: signals are weighed, causes ranked, and doubt is said.

A cause is a verdict only with two independent signals, one of them more than a circumstance. An
experiment may stand alone, as it is two measurements, and so may the run's own error. What the
cause itself costs, measured by one instrument and denied by nothing, is a suspicion: of low
confidence, and marked as one. High confidence needs two measured signals that are each more than a
circumstance, and no rival that would explain what is seen.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from trainwright.diagnose import (
    causes_beside,
    causes_communication,
    causes_cores,
    causes_crowded,
    causes_devices,
    causes_input,
    causes_joint,
    causes_memory,
    causes_monitoring,
    causes_needless,
    causes_none,
    causes_offload,
    causes_parallelism,
    causes_transfer,
    causes_trials,
    causes_tuning,
)
from trainwright.diagnose.causes_remedies import remedies_of
from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.fixes import fixes
from trainwright.diagnose.gains import gain, measured_gain
from trainwright.diagnose.rules import Rule, signals
from trainwright.diagnose.symptoms import symptoms
from trainwright.diagnose.unseen import unseen
from trainwright.diagnose.verdict import (
    Cause,
    Confidence,
    Diagnosis,
    RuledOut,
    Signal,
    Verdict,
)
from trainwright.diagnose.wording import wording
from trainwright.messages import Message

_SIGNS: dict[Cause, tuple[Rule, ...]] = {
    Cause.PARALLELISM: (
        *causes_parallelism.RULES,
        *causes_needless.PARALLELISM,
        *causes_trials.PARALLELISM,
    ),
    Cause.INPUT: (
        *causes_input.RULES,
        *causes_transfer.RULES,
        *causes_trials.INPUT,
        *causes_joint.INPUT,
    ),
    Cause.TUNING: (
        *causes_tuning.RULES,
        *causes_needless.TUNING,
        *causes_trials.TUNING,
        *causes_joint.TUNING,
    ),
    Cause.MEMORY: (
        *causes_memory.RULES,
        *causes_needless.MEMORY,
        *causes_offload.RULES,
        *causes_joint.MEMORY,
    ),
    Cause.COMMUNICATION: causes_communication.RULES,
    Cause.SCHEDULING: (*causes_devices.RULES, *causes_cores.RULES),
    Cause.MONITORING: (*causes_monitoring.RULES, *causes_needless.MONITORING),
}
_BESIDE = causes_beside.RULES | causes_crowded.RULES
RULES = {cause: (*signs, *_BESIDE[cause], *remedies_of(cause)) for cause, signs in _SIGNS.items()}
ENOUGH = 3
"""Least score of a verdict: a measured cost, or a symptom with a circumstance; assumed."""
SURE, LIKELY = 5, 4
"""Least scores of high and medium confidence; assumed."""
MEASURED, SYMPTOM = 3, 2
"""Weights of a cause's own cost and of a strong symptom; see ``Signal.weight``."""
DEBUGGING = 4
"""Weight of settings that always cost."""
MARGIN = 2.5
"""By how much the first cause must lead to be sure; assumed."""
GAIN_WEIGHT = 4.0
"""What a whole step's gain counts beside the score; assumed."""
UNKNOWN_GAIN = 0.3
"""What an unmeasured gain counts as; assumed."""
WORTH = 0.05
"""Gain below which a busy device is not disturbed; assumed."""
A_COST = 0.15
"""Share of the time that a cause takes which goes before how a run computes; assumed."""
LARGER = 1.2
"""How many times as much of the time a cause takes that goes before a surer one; assumed."""
CONTRARY = 4
"""Weight against "nothing is wrong" that no number of signs for it outweighs; assumed."""
_ONE_PROFILE = {"arithmetic": "operators"}
"""Instruments that one profile of a step feeds: enough for a verdict, but not to be sure of it."""
_ONE_VARIANT = (Cause.INPUT, Cause.PARALLELISM, Cause.COMMUNICATION)
"""Causes whose variants are answers to one question: one of them holds."""
_ONE_ROOT = (Cause.PARALLELISM, Cause.COMMUNICATION)
"""Causes whose variants' signs all say that the cause is there, and differ in where to begin."""


_AnyOf = tuple[tuple[Cause, str], ...]
_SHORT_OF_CORES: _AnyOf = tuple(
    (Cause.SCHEDULING, each)
    for each in ("quota", "other-programs-cpu", "workers", "threads", "affinity")
)
_ELSEWHERE: _AnyOf = ((Cause.MEMORY, "offload"), (Cause.MEMORY, "swapping"))
_DEBUGS: _AnyOf = ((Cause.MONITORING, "profiler"), (Cause.MONITORING, "anomaly-detection"))
_EXPLAINED: dict[tuple[Cause, str], _AnyOf] = {
    (Cause.PARALLELISM, ""): (
        *_ELSEWHERE,
        *_SHORT_OF_CORES,
        *_DEBUGS,
        (Cause.MEMORY, "empty-cache"),
        (Cause.MEMORY, "heap"),
        (Cause.MONITORING, "synchronisation"),
    ),
    (Cause.INPUT, ""): (
        (Cause.MEMORY, "swapping"),
        (Cause.SCHEDULING, "quota"),
        (Cause.SCHEDULING, "affinity"),
        (Cause.SCHEDULING, "threads"),
    ),
    (Cause.INPUT, "fetch"): ((Cause.MEMORY, "swapping"),),
    (Cause.TUNING, "kernels"): ((Cause.MEMORY, "heap"),),
    (Cause.COMMUNICATION, "straggler"): (
        (Cause.SCHEDULING, "power"),
        (Cause.SCHEDULING, "heat"),
    ),
    (Cause.INPUT, "transfer"): (
        *_ELSEWHERE,
        (Cause.SCHEDULING, "link"),
        (Cause.SCHEDULING, "numa"),
    ),
    (Cause.MONITORING, "synchronisation"): (*_ELSEWHERE, *_DEBUGS),
    (Cause.MONITORING, "logging"): (
        *_ELSEWHERE,
        *_DEBUGS,
        (Cause.COMMUNICATION, "exposed"),
        (Cause.MEMORY, "garbage"),
        (Cause.MEMORY, "empty-cache"),
    ),
}
"""Cause -> what shows the same symptoms, and is nearer to their root: a device waits for its host
or for a read also because something else keeps those."""
_PARTS: _AnyOf = (
    *((Cause.INPUT, each) for each in ("", "fetch", "preprocessing")),
    (Cause.MONITORING, "logging"),
    *((Cause.MEMORY, each) for each in ("garbage", "recomputation")),
)
"""Causes of which it was timed what they take of the training thread's time."""
_DOUBTED: dict[tuple[Cause, str], _AnyOf] = _EXPLAINED | {
    (Cause.PARALLELISM, ""): (
        *_EXPLAINED[Cause.PARALLELISM, ""],
        (Cause.MONITORING, "synchronisation"),
    ),
    (Cause.MONITORING, "synchronisation"): (
        *_EXPLAINED[Cause.MONITORING, "synchronisation"],
        (Cause.PARALLELISM, "host-bound"),
    ),
    (Cause.INPUT, ""): (*_SHORT_OF_CORES, (Cause.MEMORY, "swapping"), (Cause.MEMORY, "garbage")),
    (Cause.INPUT, "fetch"): (*_SHORT_OF_CORES, (Cause.MEMORY, "swapping")),
    (Cause.COMMUNICATION, ""): _SHORT_OF_CORES,
    (Cause.TUNING, "kernels"): (*_EXPLAINED[Cause.TUNING, "kernels"], *_SHORT_OF_CORES),
    (Cause.MONITORING, "logging"): (
        *_EXPLAINED[Cause.MONITORING, "logging"],
        (Cause.MEMORY, "heap"),
    ),
}
"""Those, and causes that may be the root or not: of them it is told how fast batches would be."""


@dataclass(frozen=True, slots=True)
class Case:
    """What speaks for and against one variant of a cause."""

    cause: Cause
    variant: str
    speaks_for: tuple[Signal, ...]
    against: tuple[Signal, ...]
    gain: float | None
    measured: float | None
    """The gain, where it was measured what the cause takes."""

    @property
    def score(self) -> int:
        """The weights' sum; of signals of one instrument the strongest counts."""
        best: dict[tuple[str, bool], int] = {}
        for signal in (*self.speaks_for, *self.against):
            key = signal.instrument, signal.weight > 0
            best[key] = max(best.get(key, 0), signal.weight, key=abs)
        return sum(best.values())

    @property
    def holds(self) -> bool:
        """Whether it is enough for a verdict."""
        instruments = {signal.instrument for signal in self.speaks_for}
        strongest = max((signal.weight for signal in self.speaks_for), default=0)
        enough = len(instruments) >= 2 or self._tried
        return self.score >= ENOUGH and enough and strongest >= 2

    @property
    def suspected(self) -> bool:
        """Whether the cause's own cost was measured by one instrument, and nothing denies it.

        A setting is no measurement, unless it is for debugging only and never free.
        """
        costs = any(
            signal.weight >= (DEBUGGING if signal.instrument == "setup" else MEASURED)
            for signal in self.speaks_for
        )
        return not self.holds and costs and self.score >= ENOUGH

    @property
    def agreed(self) -> bool:
        """Whether it is a verdict that stands on a measurement, and not on a setting alone."""
        strong = (signal for signal in self.speaks_for if signal.weight >= SYMPTOM)
        return self.holds and any(signal.instrument != "setup" for signal in strong)

    @property
    def _tried(self) -> bool:
        """Whether an experiment shows what the cause costs, or the run itself failed for it."""
        least = SYMPTOM if self.cause is Cause.NONE else MEASURED
        return any(
            signal.weight >= least and signal.reading.startswith(("experiments.", "failure."))
            for signal in self.speaks_for
        )

    @property
    def strength(self) -> float:
        """What cases are ranked by: how sure, and how much there is to gain."""
        worth = UNKNOWN_GAIN if self.measured is None else self.measured
        return self.score + GAIN_WEIGHT * worth

    @property
    def confidence(self) -> Confidence:
        """How sure the case is by itself."""
        strongest: dict[str, int] = {}
        for signal in self.speaks_for:
            source = _ONE_PROFILE.get(signal.instrument, signal.instrument)
            strongest[source] = max(strongest.get(source, 0), signal.weight)
        setting = strongest.pop("setup", 0)  # no measurement, unless it is never free
        if self.suspected:
            return Confidence.LOW
        first, second = (*sorted(strongest.values(), reverse=True), 0, 0)[:2]
        agree = first >= MEASURED and (second >= SYMPTOM or setting >= DEBUGGING)
        if self.cause is Cause.NONE and not self._tried:
            agree = False  # work that need not be done keeps a device as busy as any other
        if agree and self.score >= SURE and not self.against:
            return Confidence.HIGH
        return Confidence.MEDIUM if self.score >= LIKELY else Confidence.LOW


def judge(evidence: Evidence) -> Diagnosis:
    """Return what the evidence says; no evidence is too thin or too odd for an answer."""
    found = {cause: signals(rules, evidence) for cause, rules in RULES.items()}
    cases = [case for cause, each in found.items() for case in _cases(cause, each, evidence)]
    named = (case for case in cases if case.holds or case.suspected)
    holding = sorted(named, key=lambda case: (_says_little(case), not case.agreed, -case.strength))
    fine = _case(Cause.NONE, "", signals(causes_none.RULES, evidence), evidence)
    if (
        fine.holds
        and fine.score >= LIKELY
        and _used_well(fine)
        and not _denied(fine)
        and not any(map(_disturbs, holding))
    ):
        verdicts: tuple[Verdict, ...] = (_verdict(fine, evidence),)
    elif holding:
        verdicts = _ranked(holding, cases, evidence)
    elif _busy(fine) and not _denied(fine) and not _suspicions(cases, evidence):
        verdicts = (replace(_verdict(fine, evidence), confidence=Confidence.LOW),)
    else:
        verdicts = (Verdict(Cause.UNKNOWN, "", Confidence.LOW), *_suspicions(cases, evidence))
    said = {verdict.cause for verdict in verdicts}
    ruled_out = tuple(_ruled_out(cause, found[cause]) for cause in RULES if cause not in said)
    return Diagnosis(verdicts, ruled_out, unseen(evidence))


def _cases(cause: Cause, found: Iterable[Signal], evidence: Evidence) -> list[Case]:
    """Return one case a variant, or the strongest one where variants exclude each other."""
    found = tuple(found)
    variants = list(dict.fromkeys(signal.variant for signal in found if signal.weight > 0))
    cases = [_case(cause, variant, found, evidence) for variant in variants]
    named = [case for case in cases if case.variant]
    if cause in _ONE_VARIANT and cases:
        return [max(named or cases, key=lambda case: (case.strength, _own(case)))]
    return named or cases


def _own(case: Case) -> int:
    """Return the weight of a case's signs of its very variant."""
    return sum(signal.weight for signal in case.speaks_for if signal.variant == case.variant)


def _case(cause: Cause, variant: str, found: Iterable[Signal], evidence: Evidence) -> Case:
    shared = cause in _ONE_ROOT
    concerning = [
        signal
        for signal in found
        if signal.variant in ("", variant) or (shared and signal.weight > 0)
    ]
    if any(signal.weight >= SYMPTOM for signal in concerning):
        concerning += symptoms(cause, variant, evidence)
    ranked = sorted(concerning, key=lambda signal: -abs(signal.weight))
    return Case(
        cause,
        variant,
        tuple(signal for signal in ranked if signal.weight > 0),
        tuple(signal for signal in ranked if signal.weight < 0),
        gain(cause, variant, evidence),
        measured_gain(cause, variant, evidence),
    )


def _says_little(case: Case) -> bool:
    """Whether a case only says that nothing was measured: any other says more."""
    return case.variant == "nothing-measured"


def _busy(fine: Case) -> bool:
    """Whether the device is known to be at work, or its loader to be ahead."""
    seen = (
        *("gpus.", "profile.", "host.run_cores", "loading.alone"),
        *("experiments.other", "experiments.doubled_batch"),
    )
    return (fine.holds or fine.suspected) and any(
        signal.reading.startswith(seen) for signal in fine.speaks_for
    )


def _denied(fine: Case) -> bool:
    return any(signal.weight <= -CONTRARY for signal in fine.against)


def _disturbs(case: Case) -> bool:
    """Whether a case is worth naming though the device looks well used."""
    return case.score >= LIKELY and (case.gain is None or case.gain >= WORTH)


def _used_well(fine: Case) -> bool:
    """Whether something says how well the device is used; that it is busy says nothing of it."""
    return any(signal.reading.startswith(_HOW_WELL) for signal in fine.speaks_for)


_HOW_WELL = (
    "profile.",
    "experiments.",
    "throughput.expected",
    "gpus.sm_active",
    "gpus.tensor_active",
    "gpus.dram_active",
    "gpus.memory_utilisation",
    "gpus.power",
    "steps.least_core_rate",
)


def _ranked(holding: list[Case], cases: list[Case], evidence: Evidence) -> tuple[Verdict, ...]:
    """Return the verdicts: the strongest case first, or the one that explains it as well."""
    leading = _largest(holding)
    roots = [case for case in holding if case.score >= LIKELY and _among(_EXPLAINED, case, leading)]
    first = (*roots, leading)[0]
    others = [case for case in holding if case is not first]
    verdict = _verdict(first, evidence)
    rivals = [case.strength for case in others if case.cause is not first.cause]
    close = bool(rivals) and first.strength - max(rivals) < MARGIN
    doubted = any(case.score >= SYMPTOM and _among(_DOUBTED, case, first) for case in cases)
    if close or doubted:
        verdict = replace(verdict, confidence=_less(verdict.confidence))
    return (verdict, *(_verdict(case, evidence) for case in others))


def _largest(holding: list[Case]) -> Case:
    """Return the strongest case, or the one that takes more of the time, where both were measured.

    Parts of a step exclude each other, so that the largest is what slows it most.
    """
    first = holding[0]
    if _a_state(first):
        return next((case for case in holding[1:] if _costs(case)), first)
    larger = [case for case in holding[1:] if _a_part(first) and _a_part(case)]
    larger = [case for case in larger if _measured(case) >= LARGER * _measured(first)]
    return max((case for case in larger if _costs(case)), key=_measured, default=first)


def _measured(case: Case) -> float:
    return case.measured or 0.0


def _a_part(case: Case) -> bool:
    """Whether what a case takes is a part of the time that no other case has as well."""
    return case.measured is not None and (case.cause, case.variant) in _PARTS


def _a_state(case: Case) -> bool:
    """Whether a case says how a run computes, and no time that it loses by that is known."""
    return case.cause in (Cause.PARALLELISM, Cause.TUNING) and case.measured is None


def _costs(case: Case) -> bool:
    """Whether a case takes a share of the time, measured, that a step has not by how it computes.

    Small operators and slow kernels are all over the step; who waits, saves or evaluates for a
    sixth of the time is slowed by that, and computes as others do.
    """
    within = (case.cause, case.variant) == (Cause.MEMORY, "heap")  # pages are taken by operators
    return case.holds and not within and _measured(case) >= A_COST


def _among(table: dict[tuple[Cause, str], _AnyOf], root: Case, symptom: Case) -> bool:
    """Whether one cause would show what speaks for the other."""
    known = table.get((symptom.cause, symptom.variant)) or table.get((symptom.cause, ""))
    return (root.cause, root.variant) in (known or ())


def _less(confidence: Confidence) -> Confidence:
    return Confidence.MEDIUM if confidence is Confidence.HIGH else Confidence.LOW


def _suspicions(cases: list[Case], evidence: Evidence) -> list[Verdict]:
    """Return the causes that one signal alone speaks for."""
    suspected = [case for case in cases if case.score >= 2 and case.speaks_for[0].weight >= 2]
    ranked = sorted(suspected, key=lambda case: -case.strength)[:2]
    return [replace(_verdict(case, evidence), confidence=Confidence.LOW) for case in ranked]


def _verdict(case: Case, evidence: Evidence) -> Verdict:
    return Verdict(
        case.cause,
        case.variant,
        case.confidence,
        _once(case.speaks_for),
        _once(case.against),
        case.gain,
        fixes(case.cause, case.variant, evidence),
        wording(case.cause, case.variant, evidence),
        suspected=not case.holds,
    )


def _once(ranked: tuple[Signal, ...]) -> tuple[Signal, ...]:
    """Return the signals less those of a reading that a stronger one has named already."""
    named = {(signal.reading, signal.value): signal for signal in reversed(ranked)}
    return tuple(signal for signal in ranked if named[signal.reading, signal.value] is signal)


def _ruled_out(cause: Cause, found: tuple[Signal, ...]) -> RuledOut:
    against = sorted((each for each in found if each.weight < 0), key=lambda each: each.weight)
    speaks_for = [each for each in found if each.weight > 0]
    if against:
        first = against[0]
        because = Message.of("diagnose.ruled.against", name=first.name, value=first.shown)
        return RuledOut(cause, because, tuple(against))
    if speaks_for:
        strongest = max(speaks_for, key=lambda each: each.weight)
        because = Message.of("diagnose.ruled.weak", name=strongest.name, value=strongest.shown)
        return RuledOut(cause, because, tuple(speaks_for))
    return RuledOut(cause, Message.of("diagnose.ruled.nothing"))
