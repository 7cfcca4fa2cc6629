"""From evidence to a diagnosis: signals are weighed, causes ranked, and doubt is said.

A cause is a verdict only with two independent signals, one of them more than a circumstance. An
experiment may stand alone, as it is two measurements, and so may the run's own error. What the
cause itself costs, measured by one instrument and denied by nothing, is a suspicion: of low
confidence, and marked as one. High confidence needs two measured signals that are each more than a
circumstance, and no rival that would explain what is seen.
"""

from collections.abc import Iterable
from dataclasses import replace
from itertools import chain

from trainwright.diagnose.case import LIKELY, SYMPTOM, Case
from trainwright.diagnose.causes import nothing_wrong
from trainwright.diagnose.causes.rules import signals
from trainwright.diagnose.causes.table import RULES
from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.fixes import fixes
from trainwright.diagnose.gains import gain, measured_gain
from trainwright.diagnose.likeness import Likeness, likeness
from trainwright.diagnose.reliability import reliability
from trainwright.diagnose.roots import DOUBTED, EXPLAINED, PARTS, WITHIN_OPERATORS, among, explains
from trainwright.diagnose.symptoms import symptoms
from trainwright.diagnose.traits import measured, speed_alone, traits
from trainwright.diagnose.unseen import unseen
from trainwright.diagnose.verdict import Cause, Confidence, Diagnosis, RuledOut, Signal, Verdict
from trainwright.diagnose.wording import wording
from trainwright.messages import Message

MARGIN = 2.5
"""By how much the first cause must lead to be sure; assumed."""
WORTH = 0.05
"""Gain below which a busy device is not disturbed; assumed."""
A_COST = 0.2
"""Share of the time that a cause takes which goes before how a run computes; assumed."""
_READINGS = 3
"""Least readings of a run that is compared with others: a time, and two that may be signals."""
_CHANCE = 0.25
"""Least chance of a cause that is suspected for runs that are alike. Of 332 public records of
batches 12 to 23, each batch left out of the fit, it makes 288 first verdicts right, and 0.15 286;
the two are of those whose cause nobody knows."""
_SECOND = 0.1
"""Least chance of a cause that is named second. Of 661 runs of batches 18 to 27, told by a fit to
those before, the first two contain the true cause of 620 with it, and of 605 without."""
_TIMES = {Confidence.LOW: 3.0, Confidence.MEDIUM: 7.0, Confidence.HIGH: 55.0}
"""How many times as likely a cause is that rules say first. Of 439 runs of batches 14 to 19, each
by the rules of its day, that makes 389 first verdicts right; rules that went first unless another
cause was likelier by half made 384."""
_DENIED = -3
"""Weight of a reading that denies a cause, where no more speaks for it: a trial without it that
changed nothing, or what it costs, measured and small; assumed."""
_SURE_CHANCE = 0.5
"""Least chance of a cause that rules are sure of. Of 143 such verdicts on batches 14 to 19, each by
the rules of its day, one of the three that were wrong had less, and ten that were right."""
LARGER = 1.2
"""How many times as much of the time a cause takes that goes before a surer one; assumed."""
_REPORTED = ("heat", "power", "quota")
"""Variants that the device or the system itself reports."""
CONTRARY = 4
"""Weight against "nothing is wrong" that no number of signs for it outweighs; assumed."""
_ONE_VARIANT = (Cause.INPUT, Cause.PARALLELISM, Cause.COMMUNICATION)
"""Causes whose variants are answers to one question: one of them holds."""
_ONE_ROOT = (Cause.PARALLELISM, Cause.COMMUNICATION)
"""Causes whose variants' signs all say that the cause is there, and differ in where to begin."""


def judge(evidence: Evidence) -> Diagnosis:
    """Return what the evidence says; no evidence is too thin or too odd for an answer."""
    found = _found(evidence)
    cases = _all_cases(found, evidence)
    verdicts = _by_rules(cases, evidence)
    alike = likeness(traits(evidence, chain.from_iterable(found.values())))
    cause = verdicts[0].cause
    if cause is Cause.UNKNOWN or evidence.by_hand:  # of what is recorded, rules tell more
        cause = _likeliest(verdicts[0], alike, found, evidence)
    if cause is not verdicts[0].cause:
        verdicts = _by_likeness(cause, verdicts, cases, alike, evidence)
    verdicts = tuple(_as_sure_as(alike, verdict) for verdict in verdicts)
    verdicts += _second(verdicts, cases, found, alike, evidence)
    said = {verdict.cause for verdict in verdicts}
    ruled_out = tuple(_ruled_out(cause, found[cause]) for cause in RULES if cause not in said)
    before = reliability(evidence, verdicts[0])
    return Diagnosis(verdicts, ruled_out, unseen(evidence), before)


def _likeliest(
    first: Verdict, alike: Likeness, found: dict[Cause, tuple[Signal, ...]], evidence: Evidence
) -> Cause:
    """Return the cause that rules and runs like this one make likeliest together."""
    if measured(evidence) < _READINGS or _tried(first):
        return first.cause
    chances = {
        cause: chance
        for cause, chance in alike.chances.items()
        if cause is first.cause
        or (
            _may_be(cause, chance, found.get(cause, ()), first)
            and not (_glance(evidence) and _unseen(found.get(cause, ())))
        )
    }
    if first.cause is not Cause.UNKNOWN:
        chances[first.cause] *= _TIMES[first.confidence]
    return max(chances, key=lambda cause: chances[cause])


def _tried(verdict: Verdict) -> bool:
    """Whether the run without the cause was timed, and something else says the same."""
    low = verdict.confidence is Confidence.LOW
    decisive = (signal for signal in verdict.signals if signal.weight >= CONTRARY)
    return not low and any(map(_is_trial, decisive))


def _as_sure_as(alike: Likeness, verdict: Verdict) -> Verdict:
    """Return the verdict, sure only where known runs that are like this one had its cause too."""
    sure = verdict.confidence is Confidence.HIGH
    if sure and alike.chances.get(verdict.cause, 0.0) < _SURE_CHANCE:
        return replace(verdict, confidence=Confidence.MEDIUM)
    return verdict


def by_rules(evidence: Evidence) -> Verdict:
    """Return the first verdict by what each reading means by itself, runs like it left out."""
    return _by_rules(_all_cases(_found(evidence), evidence), evidence)[0]


def _found(evidence: Evidence) -> dict[Cause, tuple[Signal, ...]]:
    """Return what the rules of each cause, and those of its absence, find."""
    found = {cause: signals(rules, evidence) for cause, rules in RULES.items()}
    return found | {Cause.NONE: signals(nothing_wrong.RULES, evidence)}


def _all_cases(found: dict[Cause, tuple[Signal, ...]], evidence: Evidence) -> list[Case]:
    """Return the cases of all causes, that of no cause last."""
    cases = [case for cause in RULES for case in _cases(cause, found[cause], evidence)]
    return [*cases, _case(Cause.NONE, "", found[Cause.NONE], evidence)]


def _by_rules(every: list[Case], evidence: Evidence) -> tuple[Verdict, ...]:
    """Return the verdicts by what each reading means by itself."""
    *cases, fine = every
    named = (case for case in cases if (case.holds or case.suspected) and not _negligible(case))
    holding = sorted(named, key=_rank)
    if (
        fine.holds
        and fine.score >= LIKELY
        and _used_well(fine)
        and not _denied(fine)
        and not any(map(_disturbs, holding))
    ):
        return (_verdict(fine, evidence),)
    if holding:
        return _ranked(holding, cases, evidence)
    if _well(fine) and not _denied(fine) and not _suspicions(cases, evidence):
        return (replace(_verdict(fine, evidence), confidence=Confidence.LOW),)
    return (Verdict(Cause.UNKNOWN, "", Confidence.LOW), *_suspicions(cases, evidence))


def _may_be(cause: Cause, chance: float, found: tuple[Signal, ...], first: Verdict) -> bool:
    """Whether a cause may be suspected because runs that are alike had it, as nothing denies it.

    What rules see wrong by two signals is not well because other runs were; nor is what they are
    sure of another cause, for what it shows itself in. Slight contrary readings are traits, which
    have lowered the chance already.
    """
    if cause is Cause.UNKNOWN or chance < _CHANCE:
        return False
    seen = first.cause is not Cause.UNKNOWN and first.confidence is not Confidence.LOW
    sure = first.confidence is Confidence.HIGH or (seen and first.variant in _REPORTED)
    if sure and explains(first.cause, first.variant, cause):
        return False
    apart = cause is not Cause.NONE and cause not in _ONE_VARIANT
    weights = [each.weight for each in found if not (apart and each.variant and each.weight < 0)]
    least = min(weights, default=0)
    if cause is Cause.NONE and (seen or least <= -CONTRARY):
        return False
    return sum(weights) > 0 or least > _DENIED


def _glance(evidence: Evidence) -> bool:
    """Whether only the devices or the computer were looked at, and nothing of the run itself."""
    of_the_run = (
        evidence.steps, evidence.throughput, evidence.profile, evidence.loading,
        evidence.counters, evidence.experiments, evidence.failure, evidence.trials,
    )  # fmt: skip
    return not any(of_the_run)


def _unseen(found: Iterable[Signal]) -> bool:
    """Whether no reading speaks for a cause."""
    return not any(signal.weight > 0 for signal in found)


def _by_likeness(
    cause: Cause,
    verdicts: tuple[Verdict, ...],
    cases: list[Case],
    alike: Likeness,
    evidence: Evidence,
) -> tuple[Verdict, ...]:
    """Return the suspicion of what known runs that are like this one had, before the others."""
    others = (each for each in verdicts if each.cause not in (cause, Cause.UNKNOWN))
    return (_alike(cause, cases, alike, evidence), *others)


def _alike(cause: Cause, cases: list[Case], alike: Likeness, evidence: Evidence) -> Verdict:
    """Return the verdict that the run has the cause of those that are most like it."""
    own = [case for case in cases if case.cause is cause and case.speaks_for]
    best = max(own, key=lambda case: case.strength, default=_case(cause, "", (), evidence))
    verdict = _verdict(best, evidence)
    return replace(
        verdict, confidence=Confidence.LOW, signals=(*verdict.signals, *alike.signals(cause))
    )


def _second(
    verdicts: tuple[Verdict, ...],
    cases: list[Case],
    found: dict[Cause, tuple[Signal, ...]],
    alike: Likeness,
    evidence: Evidence,
) -> tuple[Verdict, ...]:
    """Return the other cause that runs like this one had, where one alone is named and not sure."""
    first = verdicts[0]
    few = measured(evidence) < _READINGS or _glance(evidence) or speed_alone(evidence)
    well = first.cause is Cause.NONE and first.confidence is not Confidence.LOW
    sure = first.confidence is Confidence.HIGH or well
    if few or sure or len({each.cause for each in verdicts}) > 1:
        return ()
    likely = {
        cause: chance
        for cause, chance in alike.chances.items()
        if cause not in (first.cause, Cause.UNKNOWN, Cause.NONE)
        and chance >= _SECOND
        and min((signal.weight for signal in found[cause]), default=0) > _DENIED
    }
    if not likely:
        return ()
    second = _alike(max(likely, key=lambda cause: likely[cause]), cases, alike, evidence)
    return (replace(second, fixes=()),)  # there is nothing to do before it is known to be it


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


def _rank(case: Case) -> tuple[bool, bool, bool, float]:
    """Return what cases are sorted by: what takes little, measured, goes after all that hold."""
    return (_says_little(case), not case.agreed, case.takes_little, -case.strength)


def _negligible(case: Case) -> bool:
    """Whether what a case takes was measured, and nobody would notice it."""
    hosts = case.cause in (Cause.PARALLELISM, Cause.MONITORING)
    return hosts and case.measured is not None and case.measured < WORTH


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


_AS_GOOD = ("throughput.expected", "experiments.single_device", "experiments.each_doubling")
"""Readings that compare a run with others of it: as fast as those, it is as well."""


def _well(fine: Case) -> bool:
    """Whether the device is known to be at work, or the run to be as fast as others of it."""
    best = max(fine.speaks_for, key=lambda signal: signal.weight, default=None)
    compared = best is not None and best.reading in _AS_GOOD and best.weight >= SYMPTOM
    return _busy(fine) or (compared and fine.score >= SYMPTOM)


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
    roots = [
        case
        for case in holding
        if case.score >= LIKELY and _is_root(case, leading) and not case.takes_little
    ]
    first = (*roots, leading)[0]
    others = [case for case in holding if case is not first]
    verdict = _verdict(first, evidence)
    rivals = [
        case.strength
        for case in others
        if case.cause is not first.cause and not _is_root(first, case)
    ]
    own = max(case.strength for case in holding if case.cause is first.cause)
    close = bool(rivals) and own - max(rivals) < MARGIN
    doubted = any(case.score >= SYMPTOM and among(DOUBTED, case, first) for case in cases)
    if close or doubted:
        verdict = replace(verdict, confidence=_less(verdict.confidence))
    return (verdict, *(_verdict(case, evidence) for case in others))


def _is_root(root: Case, symptom: Case) -> bool:
    """Whether one cause shows itself in the other: always does, or did until it was taken away.

    Ranks wait for the one whose batch is late, and that looks like a slow exchange.
    """
    exchanges = symptom.cause is Cause.COMMUNICATION and root.cause is Cause.INPUT
    gone = any(signal.weight >= CONTRARY and _is_trial(signal) for signal in root.speaks_for)
    return among(EXPLAINED, root, symptom) or (exchanges and gone)


def _is_trial(signal: Signal) -> bool:
    return signal.reading.startswith("experiments.")


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
    return case.measured is not None and (case.cause, case.variant) in PARTS


def _a_state(case: Case) -> bool:
    """Whether a case says how a run computes, and no time that it loses by that is known."""
    return case.cause in (Cause.PARALLELISM, Cause.TUNING) and case.measured is None


def _costs(case: Case) -> bool:
    """Whether a case takes a share of the time, measured, that a step has not by how it computes.

    Small operators and slow kernels are all over the step; who waits, saves or evaluates for a
    fifth of the time is slowed by that, and computes as others do.
    """
    within = (case.cause, case.variant) in WITHIN_OPERATORS
    return case.holds and not within and _measured(case) >= A_COST


def _less(confidence: Confidence) -> Confidence:
    return Confidence.MEDIUM if confidence is Confidence.HIGH else Confidence.LOW


def _suspicions(cases: list[Case], evidence: Evidence) -> list[Verdict]:
    """Return the causes that one signal alone speaks for."""
    seen = (case for case in cases if case.score >= 2 and not _negligible(case))
    suspected = [case for case in seen if case.speaks_for[0].weight >= 2]
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
    denying = (each for each in found if each.weight <= -SYMPTOM)
    against = sorted(denying, key=lambda each: each.weight)
    speaks_for = [each for each in found if each.weight > 0]
    if against:
        first = against[0]
        because = Message.of("diagnose.ruled.against", name=first.name, value=first.shown)
        return RuledOut(cause, because, _once(tuple(against)))
    if speaks_for:
        strongest = max(speaks_for, key=lambda each: each.weight)
        because = Message.of("diagnose.ruled.weak", name=strongest.name, value=strongest.shown)
        return RuledOut(cause, because, tuple(speaks_for))
    return RuledOut(cause, Message.of("diagnose.ruled.nothing"))
