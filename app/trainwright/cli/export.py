"""``trainwright export``: files that run a plan."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainwright.cli import options, planning
from trainwright.cli.answer import Answer
from trainwright.cli.parsing import Command, option
from trainwright.cli.planning import PlanSource
from trainwright.cli.terminal import Terminal
from trainwright.export import files, target, write
from trainwright.messages import Message, render
from trainwright.plan.evaluate import resolve

if TYPE_CHECKING:
    from trainwright.cli.screen import Screen


@click.command(cls=Command, help="cli.export.summary")
@planning.plan_argument
@option("--to", "name", required=True, metavar="TARGET", help="cli.option.to")
@option(
    "--out",
    required=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="cli.option.out-folder",
)
@option("--overwrite", is_flag=True, help="cli.option.overwrite")
@options.common
@click.pass_obj
def command(
    terminal: Terminal, source: PlanSource, name: str, out: Path, overwrite: bool
) -> Answer:
    """Write the files; nothing is traced for it."""
    chosen = target(name)
    plan = planning.load(source)
    settings = resolve(plan).settings
    written = write(files(name, plan, settings, {}, terminal.language), out, overwrite=overwrite)
    lost = chosen.not_expressible(plan, settings)

    def show(screen: "Screen") -> None:
        screen.say("cli.export.written", path=str(out), count=len(written))
        screen.bullets(str(path.relative_to(out)) for path in written)
        if lost:
            screen.line()
            screen.say("cli.export.lost", "bold")
            screen.bullets(lost)

    document = {
        "target": name,
        "folder": str(out),
        "files": [path.relative_to(out).as_posix() for path in written],
        "made_for": dict(chosen.made_for),
        "settings": settings.model_dump(mode="json"),
        "not_expressible": [_plain(message) for message in lost],
    }
    return Answer(document, show)


def _plain(message: Message) -> dict[str, str]:
    return {"setting": str(message.values.get("setting", "")), "because": render(message, "en")}
