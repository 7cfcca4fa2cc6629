"""What speaks for and against a cause, and how sure that makes it."""

from dataclasses import dataclass

from trainwright.diagnose.verdict import Cause, Confidence, Signal

ENOUGH = 3
"""Least score of a verdict: a measured cost, or a symptom with a circumstance; assumed."""
SURE, LIKELY = 5, 4
"""Least scores of high and medium confidence; assumed."""
MEASURED, SYMPTOM = 3, 2
"""Weights of a cause's own cost and of a strong symptom; see ``Signal.weight``."""
WORTH_NAMING = 0.1
"""Measured gain below which nobody is sure that it is the main one; assumed."""
DEBUGGING = 4
"""Weight of settings that always cost."""
GAIN_WEIGHT = 4.0
"""What a whole step's gain counts beside the score; assumed."""
UNKNOWN_GAIN = 0.3
"""What an unmeasured gain counts as; assumed."""
_ONE_PROFILE = {"arithmetic": "operators", "between-operators": "operators"}
"""Instruments that one profile of a step feeds: enough for a verdict, but not to be sure of it."""


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

        A setting is not a measurement, unless it is for debugging only and never free.
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
    def takes_little(self) -> bool:
        """Whether what it takes was measured, and is too little to slow the run most."""
        return self.measured is not None and self.measured < WORTH_NAMING

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
        if agree and self.score >= SURE and not self.against and not self.takes_little:
            return Confidence.HIGH
        return Confidence.MEDIUM if self.score >= LIKELY else Confidence.LOW
