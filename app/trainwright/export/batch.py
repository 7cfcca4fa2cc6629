"""How the effective batch is made up in the exported run."""

from dataclasses import dataclass

from trainwright.plan.schema import Plan
from trainwright.workload import FullSettings


@dataclass(frozen=True, slots=True)
class Batch:
    """effective = micro x accumulation x gpus / together, exactly."""

    micro: int
    accumulation: int
    gpus: int
    nodes: int = 1
    """Computers that the GPUs are in, each with as many."""
    together: int = 1
    """GPUs that take the same samples: they split each layer, or have a stage each."""

    @property
    def each(self) -> int:
        """GPUs of one computer."""
        return self.gpus // self.nodes

    @property
    def effective(self) -> int:
        """Samples an optimizer step."""
        return self.micro * self.accumulation * self.gpus // self.together


def batch(plan: Plan, settings: FullSettings) -> Batch:
    """Return the batch; of this computer's GPUs, those that make up the effective batch."""
    micro, accumulation = settings.micro_batch, settings.accumulation
    if settings.strategy == "single":
        gpus = 1
    elif plan.machine.gpus:
        gpus = plan.machine.gpu_count
    else:
        gpus = max(1, round((plan.workload.effective_batch or 1) / (micro * accumulation)))
    nodes = 1 if settings.strategy == "single" else plan.machine.nodes
    return Batch(micro, accumulation, gpus, nodes, settings.together)
