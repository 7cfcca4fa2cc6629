"""Layers cut into pipeline stages: where that is open to a plan, and why it was chosen."""

from collections.abc import Iterator

from trainwright.advise.advice import Reason
from trainwright.estimate.stagetime import bubble_share
from trainwright.machine.machine import Machine
from trainwright.machine.peers import has_board_nvlink
from trainwright.messages import Message
from trainwright.plan.schema import Plan
from trainwright.workload import FullSettings
from trainwright.workload.settings import SHARDED_OPTIMIZERS

SOURCE = "torch: docs, torch.distributed.pipelining"
_STAGES = (2, 4, 8)
"""Compared beside all GPUs in one pipeline; assumed: more cut few layers apiece."""


def stagings(plan: Plan, machine: Machine, waits: float) -> Iterator[Plan]:
    """Yield the plan with its layers cut into 2, 4, 8 and as many stages as there are GPUs.

    Only where the bubble is less than ``waits``, the share of a step that GPUs wait for each other
    without stages: else they cannot be faster. Nothing where NVLink joins all GPUs, which makes
    the waits short, and where the plan or the task is not open to it.
    """
    given, workload, gpus = plan.settings, plan.workload, machine.gpu_count
    if workload.task not in ("pretrain", "full") or workload.objective or workload.frozen:
        return
    fixed = (given.tensor_degree, given.shard_degree, given.shard_offload, given.compile)
    moved = given.optimizer_offload == "cpu" or given.optimizer_in_backward
    if any(fixed) or moved or given.strategy or given.optimizer not in (None, *SHARDED_OPTIMIZERS):
        return
    if gpus < 2 or (has_board_nvlink(machine.gpu.record) and machine.nodes == 1):
        return
    for stages in sorted({*_STAGES, gpus}):
        rows = (workload.effective_batch or 1) // max(gpus // stages, 1)
        if gpus % stages == 0 and stages <= rows and bubble_share(stages, rows) < waits:
            update = {"strategy": "pp", "pipeline_stages": stages}
            yield plan.model_copy(update={"settings": given.model_copy(update=update)})


def staged(settings: FullSettings, less: float | None) -> Reason:
    """Return why layers are cut into stages: else nothing keeps the result, or takes longer.

    ``less`` is the share of the step that it saves; None where nothing else keeps the result.
    """
    stages, several = settings.pipeline_stages or 1, settings.accumulation
    values = {"stages": stages, "bubble": bubble_share(stages, several), "micro_batches": several}
    because = Message.of("advise.stages.fits", **values)
    if less is not None:
        because = Message.of("advise.stages.faster", less=less, **values)
    return Reason("pipeline_stages", stages, because, SOURCE)
