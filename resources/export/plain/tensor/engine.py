"""What runs the steps: each layer split over a few processes, and their parts shared by all others.

The processes of a split layer lie side by side and take the same samples (tensor parallelism); each
of them shares its part of the weights with its peers in the other groups (fully_shard).
"""

from collections.abc import Iterator

from plan_file import Plan
from selfcheck import Fact
from shares import Shares, shard
from splitting import split
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor, Replicate
from world import World


class Engine(Shares):
    """Parts of the layers, and shares of these parts."""

    def meshed(self, plan: Plan, world: World) -> DeviceMesh:
        """Return the processes: rows of those that split each layer."""
        shape, names = (world.groups, world.parts), ("shard", "tensor")
        return init_device_mesh(world.device.type, shape, mesh_dim_names=names)

    def shared(self, model: nn.Module) -> nn.Module:
        """Return the model with its layers split, and the parts shared out."""
        self.layers = split(model, self.mesh["tensor"])
        return shard(model, self.plan, self.mesh["shard"])

    @property
    def shards(self) -> int:
        """Processes that share one copy of what each holds."""
        return self.mesh["shard"].size()

    def holds(self, weight: DTensor) -> bool:
        """Whether this process has a share of the weight or of its part, as the mesh says."""
        return weight.device_mesh == self.mesh and weight.placements[0] != Replicate()

    def facts(self) -> Iterator[Fact]:
        """Yield what the engine has made of the plan."""
        yield from super().facts()
        weights = [self.model.get_submodule(name).weight for name in self.layers]
        split = sum(
            isinstance(one, DTensor) and one.placements[-1] != Replicate() for one in weights
        )
        yield (
            "tensor_degree",
            self.plan.settings.tensor_degree,
            f"{split} of {len(weights)} layers split over {self.mesh['tensor'].size()}",
            split == len(weights) > 0 and self.world.parts == self.mesh["tensor"].size(),
        )
