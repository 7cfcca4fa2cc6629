"""What a diagnosis says: causes, the signals that speak for and against them, and fixes."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from trainwright.messages import Message


class Cause(StrEnum):
    """Why a run is slower than it could be."""

    PARALLELISM = "parallelism"
    """Too little parallel work: the device waits for launches, or a batch does not fill it.
    Variants: ``small-batch``, ``host-bound``."""
    INPUT = "input"
    """Batches come too late. Variants: ``fetch`` (drive, network), ``preprocessing`` (cores),
    ``transfer`` (copies to the device)."""
    TUNING = "tuning"
    """The device works, but not as it could. Variants: ``precision``, ``shapes``, ``layout``,
    ``attention``, ``compile``, ``optimizer``, ``padding``, ``architecture``."""
    MEMORY = "memory"
    """Memory is managed badly. Variants: ``empty-cache``, ``fragmentation``, ``full``,
    ``offload``, ``garbage``, ``swapping``."""
    COMMUNICATION = "communication"
    """Devices wait for each other. Variants: ``data-parallel``, ``backend``, ``exposed``,
    ``straggler``."""
    SCHEDULING = "scheduling"
    """The run does not get what the computer has. Variants: ``other-programs-gpu``,
    ``other-programs-cpu``, ``mig``, ``mps``, ``power``, ``heat``, ``battery``, ``quota``,
    ``threads``, ``numa``, ``link``."""
    MONITORING = "monitoring"
    """Nobody watches, or watching itself costs. Variants: ``nothing-measured``,
    ``synchronisation`` (a value read from the device every step, explicit synchronisation),
    ``profiler``, ``anomaly-detection``, ``logging``."""
    NONE = "none"
    """Nothing is wrong: the device is busy and used well."""
    UNKNOWN = "unknown"
    """What was seen does not decide."""


class Confidence(StrEnum):
    """How sure a verdict is."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


@dataclass(frozen=True, slots=True)
class Threshold:
    """A limit that a reading is held against."""

    value: float
    source: str
    """Tool, document or study that it comes from, or ``assumed``."""


@dataclass(frozen=True, slots=True)
class Signal:
    """One observation that speaks for or against a cause."""

    cause: Cause
    variant: str
    """Which kind of the cause it speaks for; empty: any."""
    reading: str
    """Key of the evidence that it looks at: ``steps.data_wait``."""
    says: Message
    """The observation as a sentence, with the value."""
    weight: int
    """3 and more: the cause's own cost, measured; 2: a strong symptom; 1: a circumstance.
    Negative: speaks against."""
    threshold: Threshold | None = None
    value: float | None = None
    """In base units."""


@dataclass(frozen=True, slots=True)
class Fix:
    """What to do about a cause."""

    says: Message
    patch: dict[str, Any] = field(default_factory=dict)
    """Plan keys and their new values; empty where no plan says it."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A cause, and how it is known."""

    cause: Cause
    variant: str
    confidence: Confidence
    signals: tuple[Signal, ...]
    """What speaks for it, the strongest first."""
    against: tuple[Signal, ...] = ()
    gain: float | None = None
    """Upper bound of the share of a step's time that the fix can take away, by Amdahl's law on
    the measured shares; None: the evidence has no measure of it."""
    fixes: tuple[Fix, ...] = ()


@dataclass(frozen=True, slots=True)
class RuledOut:
    """A cause that it is not, or that nothing speaks for."""

    cause: Cause
    because: Message


@dataclass(frozen=True, slots=True)
class Unseen:
    """Something that could not be looked at."""

    what: Message
    because: Message
    remedy: Message | None = None
    """How to see it next time."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The outcome: the first verdict is the answer, the others hold as well."""

    verdicts: tuple[Verdict, ...]
    """At least one; ``none`` and ``unknown`` stand alone."""
    ruled_out: tuple[RuledOut, ...] = ()
    unseen: tuple[Unseen, ...] = ()

    @property
    def first(self) -> Verdict:
        """The main cause."""
        return self.verdicts[0]
