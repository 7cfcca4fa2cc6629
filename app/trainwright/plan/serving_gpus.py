"""How a served model lies on the GPUs of a machine: copies of it, its layers, or parts of each."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from trainwright.estimate.parallel.communication import Link, link_between
from trainwright.estimate.serving.engines import ENGINES
from trainwright.estimate.serving.served import Served
from trainwright.estimate.serving.served_split import degrees
from trainwright.machine.choice import MachineChoice
from trainwright.machine.machine import Machine
from trainwright.machine.peers import fabric_link
from trainwright.messages import Message, UserError
from trainwright.plan.serving import Serving, served_of
from trainwright.profile.profile import Profile
from trainwright.workload import FullSettings
from trainwright.workload.engines import SHARING, copies_of

PARTED = "plan.note.layers-parted"
"""The note of an engine that splits each layer over several GPUs."""
COPIES = "plan.note.copies"
"""The note of an engine that serves a copy of the model on each GPU."""


def gpus_of(settings: FullSettings, machine: Machine) -> int:
    """Return the GPUs that hold a served model between them.

    Layers are spread where GPUs and computers are all of one kind.
    """
    if settings.tensor_degree is not None:
        return settings.tensor_degree
    return machine.gpu_count if ENGINES[settings.engine].splits and _alike(machine) else 1


def copies_on(settings: FullSettings, machine: Machine | MachineChoice) -> int:
    """Return the copies of a served model that share the requests.

    One where the GPUs differ, or where a plan of this computer does not name them.
    """
    places = machine.gpu_count // (settings.tensor_degree or 1)
    return copies_of(settings.engine, settings.micro_batch, places) if _alike(machine) else 1


def _alike(machine: Machine | MachineChoice) -> bool:
    return len(machine.gpus) == 1 and machine.nodes == 1


def served_on(machine: Machine, settings: FullSettings, profile: Profile, config: str) -> Served:
    """Return the model as the engine of the settings holds it on a machine.

    Raises:
        UserError: as ``served_of`` does, or the heads do not go into the degree of the split.
    """
    degree = settings.tensor_degree
    link = _joining(machine, degree) if degree is not None else None
    held = served_of(settings, profile, config, gpus_of(settings, machine), link)
    if degree is not None and held.tensor is None:
        possible = list(_degrees(held, machine))
        id = "plan.tensor-heads" if possible else "plan.tensor-unknown"
        raise UserError.of(id, key="settings.tensor_degree", value=degree, possible=possible)
    copies = copies_on(settings, machine)
    return held if copies == 1 else replace(held, copies=copies)


def _joining(machine: Machine, degree: int) -> Link:
    """Return what joins the GPUs of a split layer; of a mesh only the links between them count.

    Pairs lie on a bridge, where there are any.
    """
    gpu = machine.gpu
    count = degree if gpu.bridged or fabric_link(gpu.record) else machine.gpus_each
    return link_between(
        gpu.record,
        count,
        bridged=gpu.bridged,
        processor=machine.processor,
        read=gpu.link_read,
        slots=gpu.slots,
    )


def split_degrees(machine: Machine, settings: FullSettings, served: Served) -> Iterator[int]:
    """Yield over how many GPUs the engine can split each layer, the fewest first."""
    if settings.engine in SHARING and _alike(machine):
        yield from _degrees(served, machine)


def _degrees(served: Served, machine: Machine) -> Iterator[int]:
    if served.model is not None and served.shape is not None and not served.shape.has_state:
        yield from degrees(machine.gpus_each, served.model, served.shape)


def as_needed(
    machine: Machine,
    settings: FullSettings,
    profile: Profile,
    config: str,
    holds: Callable[[FullSettings, int], bool],
) -> FullSettings:
    """Return the settings with layers split over the fewest GPUs that hold all requests, else one.

    As they are where the plan says, where one GPU holds the model and a request, and where nothing
    does; ``holds`` tells of settings and requests.
    """
    if settings.tensor_degree is not None or machine.gpu_count < 2:
        return settings
    served = served_on(machine, settings, profile, config)
    possible = tuple(split_degrees(machine, settings, served))
    if not possible or holds(settings, 1):
        return settings
    ways = [settings.model_copy(update={"tensor_degree": degree}) for degree in possible]
    counts = settings.micro_batch, 1
    return next((way for count in counts for way in ways if holds(way, count)), settings)


def placed(serving: Serving, gpus: int) -> Iterator[Message]:
    """Yield how the model lies on so many GPUs, by which options, and how many stay idle.

    Sources: vLLM: docs, Data Parallel Deployment, Parallelism and Scaling; SGLang: docs, Server
    Arguments.
    """
    served, split = serving.served, serving.served.tensor
    engine = served.engine.id
    if split is not None and split.link is not None:
        path = Message.of(f"time.path.{split.link.path}")
        yield Message.of(PARTED, engine=engine, gpus=split.gpus, link=path)
    if served.copies > 1:
        each = served.each(serving.concurrent)
        values = {"engine": engine, "gpus": served.copies, "each": each}
        if split is None:
            yield Message.of(COPIES, **values)
        else:
            yield Message.of(f"{COPIES}-parted", degree=split.gpus, **values)
    used = served.copies * (served.split.gpus if served.split is not None else 1)
    if used < gpus:
        idle = gpus - used
        yield Message.of("plan.note.idle-served", engine=engine, used=used, idle=idle)
