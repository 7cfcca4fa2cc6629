"""What a trial on other hardware tells: another GPU, no GPU, or another processor."""

import re
from collections.abc import Callable

from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.measures.cost import peaks_of
from trainwright.diagnose.measures.trials import COUNTS, NUMBER, step_times
from trainwright.diagnose.trials import Trial

ABLE = 1.25
"""Peaks of two GPUs that differ by less are nearly the same; assumed."""
_CHIP = re.compile(r"\b[A-Z]{0,3}\d{2,4}(?=\b|-)(?! ?GB)")
_PLACE = re.compile(r",|\b(?:on another|of an?|in an?(?! laptop))\b")
"""What follows the name of a GPU; one in a laptop is another."""
_CORES = re.compile(rf"\b({NUMBER}) cores\b")
_ELSEWHERE = re.compile(r"\banother \w*(computer|machine|server|station|host)\b|\blaptop\b")


def another_gpu(evidence: Evidence) -> float | None:
    """Return by what share another model of GPU changes a step's time, faster or slower.

    What another computer changes may be that computer's, and what it does not, neither's. A GPU
    that rests there is held back by something else.
    """
    found = [
        abs(1 - times)
        for trial in evidence.trials
        if trial.changed == "gpu" and (times := step_times(trial, evidence)) is not None
        if not _is_processor(trial) and (abs(1 - times) < 0.1 or not _is_elsewhere(trial))
        if not _as_able(trial, evidence) and not _rests(trial)
    ]
    return min(found) if found else None


def _rests(trial: Trial) -> bool:
    """Whether the GPU of a trial is seen to do nothing for most of the time."""
    return trial.utilisation is not None and trial.utilisation < 0.5


def _peaks(trial: Trial, evidence: Evidence) -> float | None:
    """Return the arithmetic of the run's GPU over that of the trial's, by the catalog.

    In 16 bits, or in fp32 where one of them has none.
    """
    own = next((gpu.name for gpu in evidence.gpus or () if gpu.name), None)
    other = _PLACE.split(trial.to)[0].strip()
    if not own:
        return None
    peaks, others = peaks_of(own), peaks_of(other)
    key = next((key for key in ("fp16_fp32", "fp32") if key in peaks and key in others), None)
    return peaks[key] / others[key] if key is not None else None


def _as_able(trial: Trial, evidence: Evidence) -> bool:
    """Return whether the other GPU computes as fast as this one, so that its time tells nothing."""
    ratio = _peaks(trial, evidence)
    return _is_same_chip(trial, evidence) or (ratio is not None and 1 / ABLE < ratio < ABLE)


def _is_same_chip(trial: Trial, evidence: Evidence) -> bool:
    """Whether the other GPU bears the same number, so that its memory alone is another."""
    own = next((gpu.name for gpu in evidence.gpus or () if gpu.name), "")
    known, other = (_CHIP.findall(name.upper()) for name in (own, _PLACE.split(trial.to)[0]))
    return bool(known) and known[:1] == other[:1]


def _is_processor(trial: Trial) -> bool:
    """Return whether what takes the GPU's place is not a GPU."""
    return trial.changed == "gpu" and bool(
        re.search(r"\bcpu\b|processor|\bcores\b|^none\b", trial.to.lower())
    )


def _is_elsewhere(trial: Trial) -> bool:
    return _ELSEWHERE.search(trial.to.lower()) is not None


def on_the_processor(evidence: Evidence) -> float | None:
    """Return a step's time on the processor alone over that on the GPU."""
    found = (step_times(each, evidence) for each in evidence.trials if _is_processor(each))
    return min((times for times in found if times is not None), default=None)


def beyond_its_peak(evidence: Evidence) -> float | None:
    """Return how much faster a step is on another GPU than both GPUs' arithmetic lets expect.

    By the catalog's peaks in 16 bits, or in fp32 where one of them has none.
    """
    found = [
        ratio / times
        for trial in evidence.trials
        if trial.changed == "gpu" and not _is_processor(trial) and not _is_elsewhere(trial)
        if (times := step_times(trial, evidence)) and (ratio := _peaks(trial, evidence)) is not None
    ]
    return max(found, default=None)


def on_another_processor(evidence: Evidence) -> float | None:
    """Return the share of a step that another processor takes away, of those that are faster."""
    saved = max(_saved_by_processors(evidence, lambda _: True), default=0.0)
    return saved if saved > 0 else None


def saved_by_cores(evidence: Evidence) -> float | None:
    """Return the share of a step that more of a processor's cores take away, where it is said."""
    named = _saved_by_processors(evidence, lambda said: re.search(r"\bcores\b", said) is not None)
    return max(named, default=None)


def saved_by_fewer_cores(evidence: Evidence) -> float | None:
    """Return the share of a step that a processor of fewer cores takes away."""
    cores = (evidence.host.cores if evidence.host is not None else None) or 0

    def fewer(said: str) -> bool:
        count = _CORES.search(said)
        return count is not None and (COUNTS.get(count[1]) or float(count[1])) < cores

    return max(_saved_by_processors(evidence, fewer), default=None)


def _saved_by_processors(evidence: Evidence, meant: Callable[[str], bool]) -> list[float]:
    """Return the share of a step that each other processor takes away, of those that are meant."""
    return [
        1 - times
        for trial in evidence.trials
        if trial.changed == "cpu" and meant(trial.to.lower())
        if (times := step_times(trial, evidence)) is not None
    ]
