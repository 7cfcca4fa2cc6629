"""What creates a layout: commands in order with their undo, and files for other tools.

Nothing here runs anything: the program never changes a GPU.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trainwright import quoting
from trainwright.catalog.mig import MigTable
from trainwright.messages import Message
from trainwright.mig.layout import Instance, Layout
from trainwright.yamltext import dump

RESETS = ("a30", "a100")
"""Tables whose GPUs need a reset to switch MIG on or off; later ones do not. (NVIDIA MIG User
Guide, enabling MIG mode.)"""


@dataclass(frozen=True, slots=True)
class Commands:
    """Lines for a shell, and what they undo."""

    apply: tuple[str, ...]
    undo: tuple[str, ...]
    warnings: tuple[Message, ...]
    """What applying them does; to be read before."""


def commands(
    table: MigTable, layout: Layout, *, gpu: int = 0, current: Layout = (), on: bool = False
) -> Commands:
    """Return the commands that lead from the current layout to another, largest first.

    ``on`` says whether the GPU is in MIG mode already.
    """
    enable = [] if on or current else [f"sudo nvidia-smi -i {gpu} -mig 1"]
    disable = [] if on or current else [f"sudo nvidia-smi -i {gpu} -mig 0"]
    added = [instance for instance in layout if instance not in current]
    gone = [instance for instance in current if instance not in layout]
    return Commands(
        apply=(*enable, *_destroy(gone, current, gpu), *_create(table, added, gpu)),
        undo=(*_destroy(added, layout, gpu), *_create(table, gone, gpu), *disable),
        warnings=tuple(_warnings(table, bool(enable), gone)),
    )


def _destroy(gone: Sequence[Instance], there: Sequence[Instance], gpu: int) -> Iterator[str]:
    """Yield what destroys instances; compute instances go first, as the driver wants."""
    if not gone:
        return
    if len(gone) == len(there):
        yield f"sudo nvidia-smi mig -i {gpu} -dci"
        yield f"sudo nvidia-smi mig -i {gpu} -dgi"
        return
    yield f"nvidia-smi mig -i {gpu} -lgi"
    for instance in gone:
        name = _word(f"<{instance.shown}>")
        yield f"sudo nvidia-smi mig -i {gpu} -dci -gi {name}"
        yield f"sudo nvidia-smi mig -i {gpu} -dgi -gi {name}"


def _create(table: MigTable, added: Sequence[Instance], gpu: int) -> Iterator[str]:
    """Yield one line that creates instances with their places, and a compute instance in each."""
    if not added:
        return
    ordered = sorted(added, key=lambda each: (-(table.profile(each.profile).size or 0), each))
    wanted = _word(",".join(_wanted(table, instance) for instance in ordered))
    yield f"sudo nvidia-smi mig -i {gpu} -cgi {wanted} -C"


def _word(text: str) -> str:
    """Return a name as the driver tells it, or a gap to fill in, as one word of a shell."""
    return quoting.shell_word(quoting.visible(text))


def _wanted(table: MigTable, instance: Instance) -> str:
    """Return a profile by its id where it has one: names differ between drivers."""
    profile = table.profile(instance.profile)
    name = profile.name if profile.id is None else str(profile.id)
    return name if instance.start is None else f"{name}:{instance.start}"


def _warnings(table: MigTable, enables: bool, gone: Sequence[Instance]) -> Iterator[Message]:
    if enables or gone:
        yield Message.of("mig.apply.stops")
    if enables and table.id.startswith(RESETS):
        yield Message.of("mig.apply.resets")
    if table.display_mode:
        yield Message.of("mig.apply.display", gpu=table.name)
    for edition, vbios in table.vbios.items():
        yield Message.of("mig.apply.vbios", edition=edition, vbios=vbios)
    if table.driver is not None:
        yield Message.of("mig.apply.driver", driver=table.driver)
    yield Message.of("mig.apply.reboot")
    yield Message.of("mig.apply.no-peers")
    if table.placements == "inferred":
        yield Message.of("mig.placements-inferred", gpu=table.name)


# Other tools


def kubernetes(profile: str, count: int = 1) -> str:
    """Return the resource that a pod asks for, with the device plugin's strategy ``mixed``.

    A plus in a profile's name becomes a dot there. (NVIDIA/k8s-device-plugin, README.)
    """
    resource = f"nvidia.com/mig-{profile.replace('+', '.')}"
    data = {"resources": {"limits": {resource: count}}}
    return dump(data, frozenset({"resources", "limits"}))


def visible(job: str, instance: Instance) -> str:
    """Return the line by which a job sees its instance alone; ``nvidia-smi -L`` has the UUID."""
    line = "CUDA_VISIBLE_DEVICES=" + _word(f"MIG-<UUID of {instance.shown}>")
    return f"{line}  {quoting.shell_comment(job)}" if job else line
