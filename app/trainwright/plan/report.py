"""What an evaluation answers: figures that open, a verdict, and notes."""

from dataclasses import dataclass
from enum import StrEnum

from trainwright.estimate.memory import MemoryEstimate
from trainwright.estimate.steptime import TimeEstimate
from trainwright.messages import Message
from trainwright.workload import FullSettings


class Verdict(StrEnum):
    """Decided on the p95 of device memory."""

    FITS = "fits"
    TIGHT = "tight"
    SPILLS = "spills"
    """Windows: would spill into system memory and crawl."""
    NO = "no"
    CANNOT_CHECK = "cannot-check"


@dataclass(frozen=True, slots=True)
class Report:
    """The answer to a plan."""

    verdict: Verdict
    memory: MemoryEstimate
    time: TimeEstimate
    settings: FullSettings
    """What the estimate was made for: the plan's own settings and the defaults."""
    notes: tuple[Message, ...]
    """Assumptions and warnings, most important first."""
