"""What a slow run shows whatever slows it: no sign of a cause, but a second look beside one.

A device that idles, or that is busy and still slow, belongs to half of the causes each. Neither
says which; beside a cause's own sign it says that the cause costs something.
"""

from trainwright.diagnose.causes.rules import Rule, above, below, rules_of, signals
from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.gains import measured_gain
from trainwright.diagnose.measures.cost import power_share
from trainwright.diagnose.measures.figures import (
    data_wait,
    number,
    on_cpu,
    on_gpu,
    uneven,
    utilisation,
)
from trainwright.diagnose.measures.trials import saved_by
from trainwright.diagnose.measures.work import device_of_step
from trainwright.diagnose.verdict import Cause, Signal

_FILLS = ("power", "heat", "battery", "mig", "mps", "other-programs-gpu")
"""Kinds of scheduling under which the device looks busy."""
_TB = "torch-tb-profiler: utilisation below 50 %, raised: the device waits for something"
_DCGM = "DCGM user guide: SM activity of 0.8 is needed, and below 0.5 is likely ineffective"
_SLOWER = "assumed: others reach more on the same hardware"


def _idle(cause: Cause) -> tuple[Rule, ...]:
    """Return the rules of a device that waits."""
    rule = rules_of(cause)
    return (
        rule("gpus.utilisation", utilisation, "share", below(0.7, 1, _TB)),
        rule(
            "profile.idle",
            number("profile.idle"),
            "share",
            above(0.3, 1, "assumed, after HTA's idle time"),
        ),
        rule("gpus.idle_share", number("gpus.idle_share"), "share", above(0.4, 1, _TB)),
        rule("gpus.sm_active", number("gpus.sm_active"), "share", below(0.5, 1, _DCGM)),
        rule("gpus.power", _power, "share", below(0.4, 1, "assumed: the device rests")),
        rule(
            "steps.device_seconds",
            device_of_step,
            "share",
            below(0.6, 1, "assumed: most of the rest is the host's"),
        ),
        rule("steps.uneven", uneven, "times", above(1.8, 1, "assumed: some steps wait for it")),
        rule("throughput.expected", _expected, "times", above(1.5, 1, _SLOWER)),
    )


def _fed(cause: Cause) -> tuple[Rule, ...]:
    """Return the rules of a device whose batches are there: it waits for something else."""
    rule, tried = rules_of(cause), saved_by("synthetic_batch")
    return (
        rule("steps.data_wait", data_wait, "share", below(0.05, 1, "assumed: it has its batches")),
        rule("experiments.synthetic_batch", tried, "share", below(0.05, 1, "DS-Analyzer")),
    )


def _busy(cause: Cause) -> tuple[Rule, ...]:
    """Return the rules of a device that is fed and does not get on."""
    rule = rules_of(cause)
    return (
        rule("gpus.utilisation", utilisation, "share", above(0.8, 1, "assumed: it has work")),
        rule("profile.idle", number("profile.idle"), "share", below(0.1, 1, "assumed")),
        rule("gpus.sm_active", number("gpus.sm_active"), "share", above(0.8, 1, _DCGM)),
        rule("steps.device_seconds", device_of_step, "share", above(0.8, 1, "assumed")),
        rule("throughput.expected", _expected, "times", above(1.5, 1, _SLOWER)),
    )


def _power(evidence: Evidence) -> float | None:
    """Return the power's share of its limit, where no utilisation says the same."""
    return power_share(evidence) if utilisation(evidence) is None else None


def _fed_else(cause: Cause) -> tuple[Rule, ...]:
    """Return what a device that is fed says of one that idles: no more of a slow loader."""
    return _fed(cause) if cause in (Cause.PARALLELISM, Cause.MEMORY, Cause.MONITORING) else ()


_expected = number("throughput.expected_times")
_ANYWHERE = {
    cause: (rules_of(cause)("throughput.expected", _expected, "times", above(1.5, 1, _SLOWER)),)
    for cause in Cause
}
_IDLE = {cause: _idle(cause) + _fed_else(cause) for cause in Cause}
_BUSY = {cause: _busy(cause) + _fed(cause) for cause in Cause}
RULES = tuple(
    rule for kind in (_ANYWHERE, _IDLE, _BUSY) for rules in kind.values() for rule in rules
)


def symptoms(cause: Cause, variant: str, evidence: Evidence) -> tuple[Signal, ...]:
    """Return what goes with the cause in a run on a GPU, beside its own signs."""
    if variant in ("nothing-measured", "uneven"):  # of which a mean over GPUs says nothing
        return ()
    if not on_gpu(evidence):
        return signals(_ANYWHERE[cause], evidence) if on_cpu(evidence) else ()
    fills = cause is Cause.TUNING or (cause is Cause.SCHEDULING and variant in _FILLS)
    spins = cause is Cause.COMMUNICATION  # NCCL's kernels wait on the device: it looks busy
    rules = (_BUSY[cause] if fills or spins else ()) + (() if fills else _IDLE[cause])
    found = signals(rules, evidence)
    if _explains_little(cause, variant, evidence):
        found = tuple(each for each in found if each.reading != "throughput.expected")
    return found


def _explains_little(cause: Cause, variant: str, evidence: Evidence) -> bool:
    """Whether less than half of what others reach more was measured to be the cause's."""
    faster, share = _expected(evidence), measured_gain(cause, variant, evidence)
    if faster is None or share is None:
        return False
    return 1 / (1 - share) - 1 < (faster - 1) / 2
