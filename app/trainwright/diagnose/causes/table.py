"""Every rule by the cause that it speaks of."""

from trainwright.diagnose.causes import (
    avoidable,
    communication,
    contention,
    cores,
    devices,
    gpu,
    host_and_device,
    input_pipeline,
    memory,
    monitoring,
    offload,
    parallelism,
    threads,
    transfer,
    trials,
    tuning,
    waiting,
)
from trainwright.diagnose.causes.remedies import remedies_of
from trainwright.diagnose.causes.rules import Rule
from trainwright.diagnose.verdict import Cause

_SIGNS: dict[Cause, tuple[Rule, ...]] = {
    Cause.PARALLELISM: (
        *parallelism.RULES,
        *gpu.PARALLELISM,
        *avoidable.PARALLELISM,
        *trials.PARALLELISM,
        *host_and_device.PARALLELISM,
    ),
    Cause.INPUT: (*input_pipeline.RULES, *transfer.RULES, *trials.INPUT, *host_and_device.INPUT),
    Cause.TUNING: (*tuning.RULES, *avoidable.TUNING, *trials.TUNING, *host_and_device.TUNING),
    Cause.MEMORY: (*memory.RULES, *avoidable.MEMORY, *offload.RULES, *host_and_device.MEMORY),
    Cause.COMMUNICATION: communication.RULES,
    Cause.SCHEDULING: (
        *devices.RULES,
        *gpu.SCHEDULING,
        *cores.RULES,
        *threads.RULES,
        *host_and_device.SCHEDULING,
    ),
    Cause.MONITORING: (*monitoring.RULES, *avoidable.MONITORING),
}
_BESIDE = waiting.RULES | contention.RULES
RULES = {cause: (*signs, *_BESIDE[cause], *remedies_of(cause)) for cause, signs in _SIGNS.items()}
