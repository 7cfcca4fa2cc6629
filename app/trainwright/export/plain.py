"""Target ``plain``: programs in plain PyTorch around the very step that was traced."""

from collections.abc import Mapping

from trainwright.export import programs, sharing
from trainwright.export.batch import batch
from trainwright.export.header import Reasons
from trainwright.export.lost import lost
from trainwright.export.write import Files
from trainwright.messages import Language, Message
from trainwright.plan.schema import Plan
from trainwright.workload import FullSettings

FOLDERS: Mapping[str, tuple[str, ...]] = {
    "single": ("plain/single",),
    "ddp": ("plain/ddp", "plain/several"),
    "fsdp2": ("plain/fsdp2", "plain/several", programs.SHARDED),
    "pp": ("plain/stages", "plain/several"),
}
"""Strategy -> where the programs for it lie."""
made_for: Mapping[str, str] = programs.LIBRARIES


def files(plan: Plan, settings: FullSettings, reasons: Reasons, language: Language) -> Files:
    """Return the exported files: train.py, plan.json, and what they read.

    Raises:
        UserError: the model's own file cannot be read.
    """
    start = programs.torchrun(batch(plan, settings))
    return started_by(start, {}, plan, settings, reasons, language)


def started_by(
    start: str,
    extra: Files,
    plan: Plan,
    settings: FullSettings,
    reasons: Reasons,
    language: Language,
) -> Files:
    """Return the exported files of a run that a command starts, with what it reads."""
    split = (programs.SPLIT,) if settings.tensor_degree is not None else ()
    launch = programs.Launch(
        folders=(*split, *FOLDERS[settings.strategy]),
        start=start,
        made_for={},
        head=Message.of("export.header.start"),
        remark=Message.of("export.remark.plain"),
        files=extra,
        replaced=sharing.replaced(settings, programs.REPLACED),
    )
    return programs.files(plan, settings, reasons, language, launch)


def not_expressible(plan: Plan, settings: FullSettings) -> tuple[Message, ...]:
    """Return what the files leave out or replace, one message each."""
    return lost(plan, settings, sharing.replaced(settings, programs.REPLACED))
