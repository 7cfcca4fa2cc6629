"""What a diagnosis says: causes, the signals that speak for and against them, and fixes."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

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
    ``attention``, ``compile``, ``kernels``, ``padding``, ``architecture``."""
    MEMORY = "memory"
    """Memory is managed badly. Variants: ``empty-cache``, ``fragmentation``, ``full``,
    ``offload``, ``garbage``, ``swapping``, ``heap``, ``recomputation``."""
    COMMUNICATION = "communication"
    """Devices wait for each other. Variants: ``data-parallel``, ``backend``, ``exposed``,
    ``straggler``."""
    SCHEDULING = "scheduling"
    """The run does not get what the computer has. Variants: ``other-programs-gpu``,
    ``other-programs-cpu``, ``uneven``, ``mig``, ``mps``, ``power``, ``heat``, ``battery``,
    ``quota``, ``threads``, ``workers``, ``affinity``, ``numa``, ``link``."""
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


Form = Literal["share", "seconds", "bytes", "number", "yes-no", "word", "celsius", "times", "flops"]
"""How a value is written for people."""


@dataclass(frozen=True, slots=True)
class Signal:
    """One observation that speaks for or against a cause."""

    cause: Cause
    variant: str
    """Which kind of the cause it speaks for; empty: any."""
    reading: str
    """Key of the evidence that it looks at, and of its name: ``steps.data_wait``."""
    value: float | str
    """In base units."""
    form: Form
    weight: int
    """3 and more: the cause's own cost, measured; 2: a strong symptom; 1: a circumstance.
    Negative: speaks against."""
    limit: float | None
    """What the value was held against; None: a word, or a yes or no."""
    above: bool
    """Whether the value is above the limit."""
    source: str
    """Where the limit comes from, or ``assumed``."""

    @property
    def name(self) -> Message:
        """What was looked at."""
        return Message.of(f"diagnose.reading.{self.reading.replace('_', '-')}")

    @property
    def shown(self) -> Message:
        """The value, readable."""
        return shown(self.value, self.form)

    @property
    def held_against(self) -> Message | None:
        """The limit, readable: ``more than 5 %``."""
        if self.limit is None:
            return None
        side = "more" if self.above else "less"
        return Message.of(f"diagnose.limit.{side}", limit=shown(self.limit, self.form))

    @property
    def sourced(self) -> Message:
        """Where the limit comes from, for people; tools and documents keep their names.

        The rules hold the English text, by which ``limits.po`` knows that of another language.
        """
        assumed, colon, because = self.source.partition(":")
        if self.source == "assumed":
            return Message.of("diagnose.source.assumed")
        if assumed == "assumed" and colon:
            return Message.of(
                "diagnose.source.assumed-because", because=Message.of(because.strip())
            )
        return Message.of("diagnose.source.named", source=Message.of(self.source))

    @property
    def instrument(self) -> str:
        """Who says it: two signals of one instrument are not independent."""
        return SHARED.get(self.reading) or SHARED.get(self.reading.split(".")[0]) or self.reading

    @property
    def origin(self) -> Message:
        """Where the reading comes from, for people."""
        return Message.of(f"diagnose.origin.{self.reading.split('.')[0]}")


SHARED = {
    "likeness": "likeness",
    "setup": "setup",
    "setup.link_bytes_s": "link-rate",
    "setup.gradients_on_link": "link-rate",
    "setup.sequence_padding": "padding",
    "setup.ignored_targets": "padding",
    "steps.data_wait": "waits",
    "steps.data_wait_p95": "waits",
    "loading.cpu_share": "workers",
    "loading.workers_cpu": "workers",
    "loading.workers_cores": "workers",
    "gpus.sm_active": "activity",
    "gpus.sm_occupancy": "activity",
    "gpus.utilisation": "utilisation",
    "gpus.idle_share": "utilisation",
    "gpus.swing": "utilisation",
    "gpus.imbalance": "utilisation",
    "gpus.steady": "utilisation",
    "gpus.throttled": "clocks",
    "gpus.clock": "clocks",
    "profile.host_wait": "trace-gaps",
    "profile.idle": "trace-gaps",
    "host.starved_threads": "host.starved_share",
    "host.run_cores": "core-times",
    "host.workers_threads": "core-times",
    "host.busy_cores": "core-times",
    "host.throttled_periods": "throttling",
    "host.throttled_seconds": "throttling",
    "gpus.received_bytes_s": "link-traffic",
    "gpus.link_used": "link-traffic",
    "host.foreign_cores": "core-times",
    "profile.operator_calls": "operators",
    "profile.kernel_median_seconds": "operators",
    "steps.least_core_rate": "arithmetic",
    "profile.achieved_of_matrix_rate": "arithmetic",
    "profile.achieved_of_peak": "efficiency",
    "profile.achieved_by_rate": "efficiency",
    "profile.products_rate": "arithmetic",
    "profile.written": "arithmetic",
    "profile.longest_other": "arithmetic",
    "profile.passes_by_element": "arithmetic",
    "profile.scattered": "arithmetic",
    "profile.rounded": "arithmetic",
    "profile.fills": "arithmetic",
    "profile.filled_for_products": "arithmetic",
    "profile.copies_planes": "arithmetic",
    "profile.grown": "joining",
    "profile.joined": "joining",
    "profile.long_calls": "operators",
    "profile.products_again": "operators",
    "profile.in_operators": "between-operators",
    "host.other_programs": "other-programs",
    "host.other_utilisation": "other-programs",
    "experiments.another_gpu": "other-hardware",
    "experiments.faster_cpu": "other-hardware",
    "experiments.more_cores": "other-hardware",
    "experiments.fewer_cores": "other-hardware",
    "experiments.larger_model": "other-hardware",
    "experiments.processor": "other-hardware",
    "experiments.shapes": "other-inputs",
    "experiments.smaller_inputs": "other-inputs",
    "host.read_a_step": "drive-waits",
    "host.read_bytes_s": "drive-waits",
    "host.pressure_io": "drive-waits",
    "host.io_wait": "drive-waits",
    "host.swapped_files": "file-traffic",
    "host.written_a_step": "file-traffic",
    "counters.mid_step": "saving",
    "counters.checkpoint_seconds": "saving",
    "profile.kernel_spacing": "launches",
    "profile.kernels_a_step": "launches",
    "profile.plain_matrix": "kernel-table",
    "profile.double_matrix": "kernel-table",
    "profile.odd_kernel": "kernel-table",
    "profile.attention_kernels": "kernel-table",
    "profile.fallback_attention": "kernel-table",
    "profile.older_kernels": "kernel-table",
    "profile.filled": "kernel-table",
    "profile.host_few_bits": "host-table",
    "profile.host_allocation": "host-table",
    "profile.host_communication": "host-table",
    "profile.host_garbage": "host-table",
    "profile.host_recomputation": "host-table",
    "profile.host_launch": "host-table",
    "profile.host_loader": "host-table",
    "profile.host_log": "host-table",
    "profile.host_offload": "host-table",
    "profile.host_waiting": "host-table",
    "profile.host_workers": "host-table",
    "profile.host_compile": "host-table",
    "profile.host_copy": "host-table",
    "profile.host_optimizer": "host-table",
    "profile.host_profiler": "host-table",
    "profile.kernel_waiting": "kernel-table",
    "profile.call_seconds": "operators",
    "counters.alloc_retries": "allocator",
    "counters.device_allocations": "allocator",
}
"""Readings that tell the same thing twice; all others are independent of each other."""


def shown(value: float | str, form: Form) -> Message:
    """Return a value of a signal, readable."""
    if form == "yes-no":
        return Message.of("diagnose.value.yes" if value else "diagnose.value.no")
    return Message.of(f"diagnose.value.{form}", value=value)


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
    signals: tuple[Signal, ...] = ()
    """What speaks for it, the strongest first."""
    against: tuple[Signal, ...] = ()
    gain: float | None = None
    """Upper bound of the share of a step's time that the fix can take away, by Amdahl's law on
    the measured shares; None: the evidence has no measure of it."""
    fixes: tuple[Fix, ...] = ()
    wording: str = ""
    """Which sentence says it where there are several; see ``wording``."""
    suspected: bool = False
    """Whether one instrument alone speaks for it: a suspicion, and never more than of low
    confidence."""

    @property
    def title(self) -> Message:
        """The cause in a few words."""
        if self.variant == "nothing-measured":
            return Message.of("diagnose.cause.monitoring.nothing-measured")
        return Message.of(f"diagnose.cause.{self.cause}")

    @property
    def says(self) -> Message:
        """The verdict as a sentence."""
        parts = ("diagnose.verdict", self.cause, self.variant, self.wording)
        return Message.of(".".join(part for part in parts if part))

    @property
    def sure(self) -> Message:
        """How sure it is, for people."""
        how = "alike" if self.alike else "suspected" if self.suspected else self.confidence
        return Message.of(f"diagnose.confidence.{how}")

    @property
    def alike(self) -> bool:
        """Whether no rule decided, and known runs that are like this one had the cause."""
        return any(signal.instrument == "likeness" for signal in self.signals)

    @property
    def faster(self) -> float | None:
        """How many times as fast the run gets at most."""
        return 1 / (1 - self.gain) if self.gain is not None and self.gain < 1 else None


@dataclass(frozen=True, slots=True)
class RuledOut:
    """A cause that it is not, or that nothing speaks for."""

    cause: Cause
    because: Message
    signals: tuple[Signal, ...] = ()


@dataclass(frozen=True, slots=True)
class Unseen:
    """Something that could not be looked at."""

    what: Message
    because: Message
    remedy: Message | None = None
    """How to see it next time."""


@dataclass(frozen=True, slots=True)
class Reliability:
    """How many first verdicts that were as sure were right, on runs that no rule had seen."""

    kind: str
    """``recorded``, ``reported``, or ``on-gpu``: then the figures are of runs on a processor."""
    confidence: Confidence
    right: int
    of: int

    @property
    def says(self) -> Message:
        """The count as a sentence."""
        return Message.of(
            f"diagnose.reliability.{self.kind}",
            right=self.right,
            of=self.of,
            sure=Message.of(f"diagnose.confidence.{self.confidence}"),
        )


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The outcome: the first verdict is the answer, the others hold as well."""

    verdicts: tuple[Verdict, ...]
    """At least one; ``unknown`` may be followed by suspicions of low confidence."""
    ruled_out: tuple[RuledOut, ...] = ()
    unseen: tuple[Unseen, ...] = ()
    reliability: Reliability | None = None
    """Of the first verdict; None: it names no cause, or too few like it were scored."""

    @property
    def first(self) -> Verdict:
        """The main cause."""
        return self.verdicts[0]

    @property
    def undecided(self) -> bool:
        """Whether no rule decided, so that all that is named is a suspicion."""
        return self.first.cause is Cause.UNKNOWN or self.first.alike
