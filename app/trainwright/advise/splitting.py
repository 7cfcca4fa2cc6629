"""Layers split over GPUs: where that is open to a plan, and why it was chosen."""

from collections.abc import Iterator

from trainwright.advise.advice import Reason
from trainwright.machine.machine import Machine
from trainwright.machine.peers import has_board_nvlink
from trainwright.messages import Message
from trainwright.plan.schema import Plan
from trainwright.workload import FullSettings
from trainwright.workload.settings import SHARDED_OPTIMIZERS

SOURCE = "torch: docs, torch.distributed.tensor.parallel"
_DEGREES = (2, 4, 8)
"""GPUs of a layer that are compared; 8 is what a server's NVSwitch joins."""


def splittings(plan: Plan, machine: Machine) -> Iterator[Plan]:
    """Yield the plan with its layers split over 2, 4 and 8 GPUs that NVLink joins.

    Nothing where the plan, the task or the GPUs are not open to it.
    """
    given, workload = plan.settings, plan.workload
    if workload.task not in ("pretrain", "full") or workload.objective or workload.frozen:
        return
    fixed = (given.tensor_degree, given.shard_degree, given.shard_offload, given.compile)
    moved = given.optimizer_offload == "cpu" or given.optimizer_in_backward
    if any(fixed) or moved or given.cross_entropy not in (None, "full"):
        return
    if given.strategy not in (None, "fsdp2") or given.optimizer not in (None, *SHARDED_OPTIMIZERS):
        return
    if not has_board_nvlink(machine.gpu.record):
        return
    for degree in _DEGREES:
        if machine.gpus_each % degree == 0:
            update = {"strategy": "fsdp2", "tensor_degree": degree}
            yield plan.model_copy(update={"settings": given.model_copy(update=update)})


def split(settings: FullSettings, less: float | None) -> Reason:
    """Return why layers are split: else nothing keeps the result, or a step takes longer.

    ``less`` is the share of the step that it saves; None where nothing else keeps the result.
    """
    degree = settings.tensor_degree
    because = Message.of("advise.tensor-degree.fits", degree=degree)
    if less is not None:
        because = Message.of("advise.tensor-degree.faster", degree=degree, less=less)
    return Reason("tensor_degree", degree, because, SOURCE)
