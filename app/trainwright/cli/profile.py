"""``trainwright profile``: trace a model and keep, or save, what its training step does."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from trainwright import saving
from trainwright.cli import options, planning
from trainwright.cli.answer import Answer
from trainwright.cli.parsing import Command, option
from trainwright.cli.terminal import Terminal
from trainwright.messages import Message, UserError
from trainwright.plan.schema import GpuChoice, MachineChoice, Plan
from trainwright.profile import codec, presets
from trainwright.profile.profile import Profile
from trainwright.workload import Inputs, ModelSource, PythonSource, Settings, Workload
from trainwright.workload.settings import Precision
from trainwright.workload.workload import Task

if TYPE_CHECKING:
    from trainwright.cli.screen import Screen

TIMM = "timm:"
GPU = "rtx-4090"
"""Any GPU that has every precision: a profile does not depend on it."""
BATCH = 8


@click.command(cls=Command, help="cli.profile.summary")
@click.argument("model", metavar="MODEL")
@option("--task", type=click.Choice(get_args(Task)), help="cli.option.task")
@option(
    "--precision",
    type=click.Choice(get_args(Precision)),
    default="bf16-mixed",
    help="cli.option.precision",
)
@option("--sequence-length", type=click.IntRange(1, 10_000_000), help="cli.option.sequence-length")
@option("--image-size", type=click.IntRange(8, 16_384), help="cli.option.image-size")
@option("--allow-code", is_flag=True, help="cli.option.allow-code")
@options.out_file("cli.option.out-profile")
@options.tracing
@options.common
@click.pass_obj
def command(
    terminal: Terminal,
    model: str,
    task: Task | None,
    precision: Precision,
    sequence_length: int | None,
    image_size: int | None,
    allow_code: bool,
    out: Path | None,
) -> Answer:
    """Trace the model, or find its profile where it was traced before."""
    found_at = source(model)
    planning.check_consent(found_at, allow_code)
    plan = Plan(
        name=model[-200:].strip() or "untitled",
        model=found_at,
        workload=_workload(task or _usual_task(found_at), sequence_length, image_size),
        machine=MachineChoice(gpus=(GpuChoice(id=GPU),)),
        settings=Settings(precision=precision, micro_batch=BATCH),
    )
    found = planning.facts(plan, terminal).profile
    if out is not None:
        saving.write(out, codec.encode(found))
    return Answer(_document(model, found, out), lambda screen: _show(screen, model, found, out))


def _usual_task(source: ModelSource) -> Task:
    """Return ``full``, or the first task of a preset that is not for it."""
    tasks = presets.find(source.preset).tasks if source.preset else ("full",)
    return "full" if "full" in tasks else tasks[0]


def _workload(task: Task, length: int | None, pixels: int | None) -> Workload:
    if task == "infer":
        return Workload(task=task, inputs=Inputs(prompt_tokens=length, image_size=pixels))
    inputs = Inputs(sequence_length=length, image_size=pixels)
    return Workload(task=task, effective_batch=BATCH, inputs=inputs)


def source(model: str) -> ModelSource:
    """Return where a model comes from: ``timm:NAME``, ``FILE.py:FACTORY``, a path, or the id of
    a preset.

    Raises:
        UserError: it is empty.
    """
    if not model.strip():
        raise UserError.of("cli.empty-name", name="MODEL")
    if model.startswith(TIMM):
        return ModelSource(timm=model.removeprefix(TIMM))
    file, colon, factory = model.rpartition(":")
    if colon and file.endswith(".py"):
        path = Path(os.path.expanduser(file)).absolute()
        return ModelSource(python=PythonSource(file=str(path), factory=factory))
    path = Path(os.path.expanduser(model))
    if os.path.exists(path) or path.suffix == ".json" or len(path.parts) > 1:
        return ModelSource(hf=str(path.absolute()))
    return ModelSource(preset=model)


def _document(model: str, profile: Profile, out: Path | None) -> dict[str, Any]:
    return {
        "model": model,
        "structure": profile.model,
        "exact": profile.exact,
        "points": [{"batch": batch, "sequence": sequence} for batch, sequence in profile.points],
        "ops": len(profile.ops.name),
        "events": {name: len(segment.code) for name, segment in profile.segments.items()},
        "assumptions": profile.assumptions,
        "kernels": profile.kernels,
        "versions": profile.versions,
        "file": None if out is None else str(out),
    }


def _show(screen: "Screen", model: str, profile: Profile, out: Path | None) -> None:
    screen.line(model, "bold")
    structure = [(name, str(value)) for name, value in profile.model.items() if value]
    screen.table(structure, title=Message.of("cli.profile.structure"))
    screen.table(
        [(name, screen.count(len(segment.code))) for name, segment in profile.segments.items()],
        title=Message.of("cli.profile.events"),
        numbers=(1,),
    )
    exact = "cli.profile.exact" if profile.exact else "cli.profile.points-only"
    screen.say(exact, points=[f"{batch} × {length}" for batch, length in profile.points])
    versions = [f"{name} {version}" for name, version in profile.versions.items()]
    screen.say("cli.profile.versions", versions=versions)
    if profile.guessed:
        screen.say("cli.profile.assumptions", assumptions=list(profile.guessed))
    for message in profile.stated:
        screen.say(message.id, **message.values)
    if out is not None:
        screen.say("cli.profile.saved", path=str(out))
