"""From what stands on the command line to a plan and its facts."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

from trainwright.cli.parsing import option
from trainwright.cli.progress import ProgressLine
from trainwright.cli.terminal import Terminal
from trainwright.messages import Message, UserError
from trainwright.plan import file
from trainwright.plan.evaluate import Facts, Pending, resolve
from trainwright.plan.schema import Plan
from trainwright.profile import store
from trainwright.workload import ModelSource
from trainwright.workload.sourcefiles import check_code

STDIN = "-"


@dataclass(frozen=True, slots=True)
class PlanSource:
    """PLAN and the options that go with it."""

    plan: str
    """A path, or ``-`` for standard input."""
    overrides: tuple[str, ...]
    """``key=value`` each."""
    allow_code: bool
    """Whether the user consents to running the plan's Python file."""


def plan_argument(function: Callable[..., Any], *, required: bool = True) -> Callable[..., Any]:
    """Add PLAN, ``--set`` and ``--allow-code``; the command takes them as one ``source``."""

    @click.argument("plan", metavar="PLAN" if required else "[PLAN]", required=required, default="")
    @option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="cli.option.set")
    @option("--allow-code", is_flag=True, help="cli.option.allow-code")
    def with_source(plan: str, overrides: tuple[str, ...], allow_code: bool, **rest: Any) -> Any:
        with file.naming(plan):
            return function(source=PlanSource(plan, overrides, allow_code), **rest)

    # click keeps the parameters that decorators declared on the function itself.
    declared = getattr(function, "__click_params__", [])
    with_source.__click_params__ = declared + with_source.__click_params__
    decorated: Callable[..., Any] = with_source
    return decorated


def load(source: PlanSource, terminal: Terminal | None = None) -> Plan:
    """Read the plan and apply the overrides.

    A terminal gets a line where the file is another trainer's: a plan may not say all of it.

    Raises:
        UserError: anything about the file, its keys or the overrides; or the plan's model is a
            Python file and the user did not consent to running it.
    """
    if source.plan == STDIN and sys.stdin is None:
        raise UserError.of("cli.input-closed")
    plan = _read(source, terminal)
    check_consent(plan.model, source.allow_code)
    return plan


def _read(source: PlanSource, terminal: Terminal | None) -> Plan:
    """Return the plan in a file: ours, or that which another trainer's file makes here.

    Raises:
        UserError: as ``load`` does, or the other trainer's file does not say enough.
    """
    try:
        return file.read(source.plan, source.overrides)
    except UserError as error:
        if source.plan == STDIN or source.plan.endswith(file.SUFFIX):
            raise
        from trainwright.review import plan_of, sources  # loads what plans do not need

        try:
            run = sources([source.plan])
        except UserError:
            raise error from None
        plan = plan_of(run, source.overrides)
        if terminal is not None:
            terminal.complain(Message.of("cli.estimate.foreign", file=source.plan))
        return plan


def check_consent(model: ModelSource, allowed: bool) -> None:
    """Refuse a model whose file holds code, unless the user consents to running it.

    Raises:
        UserError: they did not, or it is not a file that can be read.
    """
    if model.code is None:
        return
    check_code(model)
    if not allowed:
        id = "cli.code-consent.pt2" if model.pt2 is not None else "cli.code-consent"
        raise UserError.of(id, path=model.code)


def facts(plan: Plan, terminal: Terminal, *, one_point: bool = False) -> Facts:
    """Look everything up; where the profile is not at hand, trace it with progress.

    ``one_point`` traces only the plan's batch and length: sooner, and not kept, since it
    answers nothing else.

    Raises:
        UserError: as ``resolve`` and ``profile.store.trace`` do.
    """
    found = resolve(plan)
    if isinstance(found, Facts):
        return found
    return traced(found, plan.name, terminal, one_point=one_point)


def traced(pending: Pending, name: str, terminal: Terminal, *, one_point: bool = False) -> Facts:
    """Trace what a plan's facts lack, with progress under its name.

    Raises:
        UserError: as ``profile.store.trace`` does.
    """
    at = pending.point if one_point else None
    with ProgressLine(terminal, terminal.say("cli.tracing", name=name)) as line:
        found = store.trace_for(pending.spec, pending.point, at=at, on_progress=line.update)
        return pending.answered(found)
