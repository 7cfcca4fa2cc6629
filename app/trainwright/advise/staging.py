"""Layers cut into pipeline stages: where that is open to a plan, and why it was chosen."""

from collections.abc import Iterator

from trainwright.advise.advice import Reason
from trainwright.estimate.parallel.stagetime import bubble_share
from trainwright.estimate.time.steptime import TimeEstimate
from trainwright.machine.peers import has_board_nvlink
from trainwright.messages import Message
from trainwright.plan.evaluate import Facts
from trainwright.plan.report import Report
from trainwright.plan.schema import Plan
from trainwright.workload.settings import SHARDED_OPTIMIZERS

SOURCE = "torch: docs, torch.distributed.pipelining"
WORTH_STAGES = 0.1
"""Share of a step that stages must save to be taken before what has no bubble. Assumed: no run in
stages was timed yet, and they need an export of their own."""
_STAGES = (2, 4, 8, 16)
"""Of which the fewest that may fit are compared, beside all GPUs in one pipeline: the former have
the least bubble, the latter have no copies whose gradients are added up."""
_ROOM = 0.75
"""Share of the memory that weights and state may take; assumed: activations need the rest."""
_STATE = 16
"""Bytes a parameter: weights, gradients and AdamW's moments in fp32."""


def stagings(plan: Plan, facts: Facts, waits: float) -> Iterator[Plan]:
    """Yield the plan with its layers cut into as few stages as may fit, and one for each GPU.

    Only where the bubble is less than ``waits``, the share of a step that GPUs wait for each other
    without stages: else they cannot be faster. Nothing where NVLink joins all GPUs, which makes
    the waits short, and where the plan or the task is not open to it.
    """
    given, workload, machine = plan.settings, plan.workload, facts.machine
    gpus = machine.gpu_count
    if workload.task not in ("pretrain", "full") or workload.objective or workload.frozen:
        return
    fixed = (given.tensor_degree, given.shard_degree, given.shard_offload, given.compile)
    moved = given.optimizer_offload == "cpu" or given.optimizer_in_backward
    if any(fixed) or moved or given.strategy or given.optimizer not in (None, *SHARDED_OPTIMIZERS):
        return
    if gpus < 2 or (has_board_nvlink(machine.gpu.record) and machine.nodes == 1):
        return
    state = _STATE * float(facts.profile.model.get("parameters", 0))
    room = _ROOM * machine.gpu.total.value
    able = [n for n in (*_STAGES, gpus) if gpus % n == 0 and state / n < room]
    for stages in dict.fromkeys((*able[:1], *able[-1:])):
        rows = (workload.effective_batch or 1) // (gpus // stages)
        if stages <= rows and bubble_share(stages, rows) < waits:
            update = {"strategy": "pp", "pipeline_stages": stages}
            yield plan.model_copy(update={"settings": given.model_copy(update=update)})


def staged(report: Report, less: float | None) -> Reason:
    """Return why layers are cut into stages: else nothing keeps the result, or takes longer.

    ``less`` is the share of the step that it saves; None where nothing else keeps the result.
    """
    settings = report.settings
    stages, several = settings.pipeline_stages or 1, settings.accumulation
    values = {"stages": stages, "bubble": _bubble(report.time), "micro_batches": several}
    because = Message.of("advise.stages.fits", **values)
    if less is not None:
        because = Message.of("advise.stages.faster", less=less, **values)
    return Reason("pipeline_stages", stages, because, SOURCE)


def _bubble(time: TimeEstimate) -> float:
    """Return the share of a step in which the pipeline fills and drains, as the report has it."""
    waits = (part for stage in time.stages for part in stage.seconds.parts)
    bubble = sum(part.value for part in waits if part.name.id == "time.exchange.bubble")
    return bubble / time.step_seconds.value if time.step_seconds is not None else 0.0
