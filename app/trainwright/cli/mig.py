"""``trainwright mig``: cut a GPU into instances, on paper."""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from trainwright.catalog.mig import GIB, MigTable
from trainwright.catalog.yaml_file import read_document
from trainwright.cli import options, planning
from trainwright.cli.answer import Answer, Exit
from trainwright.cli.migchoice import Choice, choose, document
from trainwright.cli.parsing import Command, NamedPath, option
from trainwright.cli.terminal import Terminal
from trainwright.messages import Message, UserError, render
from trainwright.mig import parted
from trainwright.mig.board import Share, share
from trainwright.mig.commands import Commands, commands, kubernetes, visible
from trainwright.mig.layout import Instance, Layout, Verdict, check, free, layouts, maximal
from trainwright.mig.packing import Goal
from trainwright.quoting import one_line

if TYPE_CHECKING:
    from trainwright.cli.screen import Screen
    from trainwright.mig.planning import Planned

_COUNT = re.compile("[0-9]{1,3}")


@click.command(cls=Command, help="cli.mig.summary")
@click.argument("gpu", metavar="GPU")
@option("--jobs", type=NamedPath(), metavar="FILE", help="cli.mig.jobs")
@option("--check", "wanted", metavar="LAYOUT", help="cli.mig.check")
@option("--list", "listing", is_flag=True, help="cli.mig.list")
@option("--current", default="", metavar="LAYOUT", help="cli.mig.current")
@option("--count", type=click.IntRange(1, 8), default=1, metavar="N", help="cli.mig.count")
@option("--goal", type=click.Choice(get_args(Goal)), default="finish", help="cli.mig.goal")
@option("--driver", metavar="VERSION", help="cli.mig.driver")
@options.tracing
@options.common
@click.pass_obj
def command(
    terminal: Terminal,
    gpu: str,
    jobs: Path | None,
    wanted: str | None,
    listing: bool,
    current: str,
    count: int,
    goal: Goal,
    driver: str | None,
) -> Answer:
    """Do one of the three things that are asked for."""
    asked = sum((jobs is not None, wanted is not None, listing))
    if asked != 1:
        raise UserError.of("mig.one-question")
    choice = choose(gpu)
    if choice.local and count > len(choice.lives):
        raise UserError.of("mig.live.fewer-gpus", asked=count, there=len(choice.lives))
    table = choice.table
    if listing:
        return _list(choice)
    if wanted is not None and (wanted.endswith((".yaml", ".yml")) or os.sep in wanted):
        return _check_file(table, Path(wanted), driver or choice.driver)
    existing = [_placed(table, current)] if current else choice.current(count)
    if wanted is not None:
        return _check(choice, _counts(table, wanted), existing, driver or choice.driver)
    assert jobs is not None
    return _jobs(terminal, choice, jobs, existing, count, goal)


def _counts(table: MigTable, text: str) -> dict[str, int]:
    """Return the counts in ``3g.20gb:1,1g.5gb:4``; a profile alone stands for one."""
    found: dict[str, int] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        name, _, number = part.partition(":")
        if number and not _COUNT.fullmatch(number.strip()):
            raise UserError.of("mig.bad-layout", text=part[:60])
        profile = table.profile(name).name
        found[profile] = found.get(profile, 0) + int(number or 1)
    if not found:
        raise UserError.of("mig.bad-layout", text=text[:60])
    return found


def _placed(table: MigTable, text: str) -> Layout:
    """Return the instances in ``3g.20gb@4,1g.5gb@0``."""
    found = []
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        name, _, start = part.partition("@")
        if not _COUNT.fullmatch(start.strip()):
            raise UserError.of("mig.bad-place", text=part[:60])
        profile = table.profile(name)
        if int(start) not in profile.starts:
            starts = ", ".join(map(str, profile.starts))
            raise UserError.of("mig.no-such-start", text=part[:60], starts=starts)
        found.append(Instance(profile.name, int(start)))
    return tuple(found)


# --check


def _check(
    choice: Choice, counts: Mapping[str, int], current: Sequence[Layout], driver: str | None
) -> Answer:
    table, existing = choice.table, next(iter(current), ())
    verdict = check(table, counts, existing=existing, driver=driver)
    found = None
    if verdict.valid:
        (gpu,), on = choice.indices(1), choice.on(0)
        found = commands(table, verdict.instances, gpu=gpu, current=existing, on=on)

    def show(screen: "Screen") -> None:
        _show_verdict(screen, choice, verdict)
        _show_notes(screen, choice.notes())
        if found is not None:
            _show_commands(screen, found)

    told = _document(table, verdict, found) | {"table": document(choice)}
    return Answer(told, show, Exit.DONE if verdict.valid else Exit.NO)


def _check_file(table: MigTable, path: Path, driver: str | None) -> Answer:
    """Judge a file of mig-parted: each configuration that is about this GPU."""
    found = parted.found_in(read_document(path), one_line(str(path), 300))
    verdicts = {
        name: verdict
        for name, entries in found.configs.items()
        if (verdict := _of_entries(table, entries, driver)) is not None
    }

    def show(screen: "Screen") -> None:
        for name, verdict in verdicts.items():
            id = "cli.mig.config-valid" if verdict.valid else "cli.mig.config-invalid"
            screen.say(id, "green" if verdict.valid else "red", name=name, gpu=table.name)
            if verdict.reason is not None:
                screen.indented(verdict.reason)

    configs = [
        {
            "name": name,
            "valid": verdict.valid,
            "reason": render(verdict.reason, "en") if verdict.reason else None,
        }
        for name, verdict in verdicts.items()
    ]
    valid = all(verdict.valid for verdict in verdicts.values())
    told = {"gpu": table.id, "valid": valid, "reason": None, "configs": configs}
    return Answer(told, show, Exit.DONE if valid else Exit.NO)


def _of_entries(
    table: MigTable, entries: Sequence[parted.Devices], driver: str | None
) -> Verdict | None:
    """Return the worst verdict of the entries about this GPU; None where there is none."""
    verdicts = [
        _check_counts(table, entry.gpu_instances(), driver)
        for entry in entries
        if entry.enabled and entry.instances and entry.meant(table)
    ]
    return min(verdicts, key=lambda each: each.valid, default=None)


def _check_counts(table: MigTable, counts: Mapping[str, int], driver: str | None) -> Verdict:
    """Return the verdict on counts; a profile that the GPU lacks is one, too."""
    try:
        return check(table, counts, driver=driver)
    except UserError as error:
        return Verdict(False, error.message, ())


def _document(table: MigTable, verdict: Verdict, found: Commands | None) -> dict[str, Any]:
    return {
        "gpu": table.id,
        "valid": verdict.valid,
        "reason": render(verdict.reason, "en") if verdict.reason else None,
        "instances": [_instance(table, each, None) for each in verdict.instances],
        "free": free(table, verdict.instances),
        "placements": table.placements,
        "notes": [render(note, "en") for note in verdict.notes],
        **_shell(found),
    }


def _instance(table: MigTable, instance: Instance, job: str | None) -> dict[str, Any]:
    profile = table.profile(instance.profile)
    return {
        "profile": profile.name,
        "start": instance.start,
        "size": profile.size,
        "memory_gib": profile.memory_gib,
        "job": job,
    }


def _shell(found: Commands | None) -> dict[str, Any]:
    if found is None:
        return {"commands": [], "undo": [], "warnings": []}
    return {
        "commands": list(found.apply),
        "undo": list(found.undo),
        "warnings": [render(warning, "en") for warning in found.warnings],
    }


def _show_notes(screen: "Screen", notes: Sequence[Message]) -> None:
    if notes:
        screen.bullets(notes)


def _show_verdict(screen: "Screen", choice: Choice, verdict: Verdict) -> None:
    table = choice.table
    if verdict.reason is not None:
        screen.say("cli.mig.invalid", "bold red", gpu=table.name)
        screen.line(verdict.reason)
        return
    screen.say("cli.mig.valid", "bold green", gpu=table.name)
    (gpu,) = choice.indices(1)
    _show_instances(screen, choice, [(gpu, each, None) for each in verdict.instances])
    _show_room(screen, table, verdict.instances)
    _show_notes(screen, verdict.notes)


def _show_instances(
    screen: "Screen", choice: Choice, instances: list[tuple[int, Instance, str | None]]
) -> None:
    """Show the instances; a wave stands before what is inferred."""
    unknown = Message.of("cli.mig.unknown")
    rows = []
    for board, instance, job in instances:
        profile = choice.table.profile(instance.profile)
        part = share(choice.gpu, choice.table, instance.profile)
        memory = f"{part.memory_wave}{part.memory_bytes / GIB:.4g} GiB"
        start = unknown if instance.start is None else str(instance.start)
        sm = _processors(part) or unknown
        rows.append(
            (str(board), profile.name, start, str(profile.size or "-"), memory, sm, job or "-")
        )
    headings = ("gpu", "profile", "start", "size", "memory", "processors", "job")
    screen.table(
        rows, headings=[Message.of(f"cli.mig.{name}") for name in headings], numbers=(0, 2, 3, 4, 5)
    )


def _show_room(screen: "Screen", table: MigTable, layout: Layout) -> None:
    left = {name: count for name, count in free(table, layout).items() if count}
    if left:
        names = ", ".join(f"{name} x{count}" for name, count in left.items())
        screen.say("cli.mig.free", names=names)
    elif table.units is not None:
        screen.say("cli.mig.full")


def _show_commands(screen: "Screen", found: Commands) -> None:
    screen.line()
    screen.say("cli.mig.before", "bold")
    screen.bullets(found.warnings)
    for id, lines in (("cli.mig.apply", found.apply), ("cli.mig.undo", found.undo)):
        if lines:
            screen.line()
            screen.say(id, "bold")
            for line in lines:
                screen.whole_line(f"  {line}")


# --list


def _list(choice: Choice) -> Answer:
    table = choice.table
    kinds = [profile for profile in table.profiles if profile.plain]
    every = layouts(table) if table.units else []
    full = maximal(table, every, kinds)
    names = sorted({_summary(layout) for layout in full}, reverse=True)

    def show(screen: "Screen") -> None:
        screen.say("cli.mig.profiles", "bold", gpu=table.name)
        _show_profiles(screen, choice)
        _show_notes(screen, choice.notes())
        if full:
            screen.say("cli.mig.counts", layouts=len(every), maximal=len(full))
            screen.bullets(names)
        if table.placements == "inferred":
            screen.line(Message.of("mig.placements-inferred", gpu=table.name))
        elif table.placements == "unknown" and not choice.lives:
            screen.line(choice.nowhere)
        screen.say("cli.mig.source", "dim", source=table.source)

    told = {
        "gpu": table.id,
        "placements": table.placements,
        "source": table.source,
        "profiles": [profile.model_dump(by_alias=True) for profile in table.profiles],
        "layouts": len(every) or None,
        "maximal": [[each.shown for each in layout] for layout in full],
        "table": document(choice),
    }
    return Answer(told, show)


def _summary(layout: Layout) -> str:
    names = [each.profile for each in layout]
    ordered = sorted(dict.fromkeys(names), reverse=True)
    return " + ".join(f"{names.count(name)} x {name}" for name in ordered)


def _show_profiles(screen: "Screen", choice: Choice) -> None:
    """Print what each profile offers, as the board in the window does: a wave before inferred."""
    table = choice.table
    parts = {each.name: share(choice.gpu, table, each.name) for each in table.profiles}
    unknown = Message.of("cli.mig.unknown")
    headings = ("profile", "id", "memory", "processors", "size", "starts", "most")
    screen.table(
        [
            (
                profile.name,
                unknown if profile.id is None else str(profile.id),
                f"{parts[profile.name].memory_wave}"
                f"{parts[profile.name].memory_bytes / GIB:.4g} GiB",
                _processors(parts[profile.name]) or unknown,
                str(profile.size) if profile.size else unknown,
                ", ".join(map(str, profile.starts)) or unknown,
                str(profile.count),
            )
            for profile in table.profiles
        ],
        headings=[Message.of(f"cli.mig.{name}") for name in headings],
        numbers=(1, 2, 3, 4, 6),
    )


def _processors(part: Share) -> str:
    count = part.processors
    return "" if count is None else f"{part.processors_wave}{count}"


# --jobs


def _jobs(
    terminal: Terminal,
    choice: Choice,
    path: Path,
    current: Sequence[Layout],
    count: int,
    goal: Goal,
) -> Answer:
    from trainwright.mig import jobs as job_file
    from trainwright.mig.planning import plan_jobs

    needs, table = job_file.read(path), choice.table
    if table.units is None:
        raise UserError(choice.nowhere)

    def facts_of(plan: Any) -> Any:
        planning.check_consent(plan.model, allowed=False)
        return planning.facts(plan, terminal)

    planned = plan_jobs(
        choice.gpu, table, needs, path.parent, facts_of, count=count, current=current, goal=goal,
        like=choice.like,
    )  # fmt: skip
    gpus, now = choice.indices(count), dict(enumerate(current))
    shells = [
        commands(table, layout, gpu=gpu, current=now.get(number, ()), on=choice.on(number))
        for number, (gpu, layout) in enumerate(zip(gpus, planned.packed.layouts, strict=True))
    ]

    def show(screen: "Screen") -> None:
        _show_planned(screen, choice, planned, gpus)
        _show_notes(screen, choice.notes(count))
        for shell in shells:
            _show_commands(screen, shell)

    told = _planned_document(planned, shells, gpus) | {"table": document(choice, count)}
    return Answer(told, show, Exit.DONE if planned.complete else Exit.NO)


def _named(planned: "Planned", gpus: Sequence[int]) -> list[tuple[int, Instance, str | None]]:
    return [
        (gpus[place[0]], place[1], need.name)
        for need, place in zip(planned.needs, planned.packed.jobs, strict=True)
        if place is not None
    ]


def _unplaced(planned: "Planned") -> list[str]:
    return [
        need.name
        for need, place in zip(planned.needs, planned.packed.jobs, strict=True)
        if place is None
    ]


def _planned_document(
    planned: "Planned", shells: list[Commands], gpus: Sequence[int]
) -> dict[str, Any]:
    packed, table = planned.packed, planned.table
    left = _unplaced(planned)
    return {
        "gpu": table.id,
        "valid": planned.complete,
        "reason": " ".join(render(each, "en") for each in planned.unplaced) or None,
        "instances": [
            _instance(table, instance, job) | {"gpu": gpu}
            for gpu, instance, job in _named(planned, gpus)
        ],
        "unplaced": left,
        "finish_seconds": packed.finish or None,
        "samples_per_second": packed.rate or None,
        "destroyed": packed.destroyed,
        "free": [free(table, layout) for layout in packed.layouts],
        "alternatives": [
            {
                "way": each.way,
                "fits": each.fits,
                "finish_seconds": list(each.finish) if each.finish else None,
                "isolation": render(each.isolation, "en"),
                "because": render(each.because, "en"),
            }
            for each in planned.alternatives
        ],
        "advice": render(planned.advice, "en") if planned.advice else None,
        "placements": table.placements,
        "notes": [render(note, "en") for note in planned.notes],
        "commands": [line for shell in shells for line in shell.apply],
        "undo": [line for shell in shells for line in shell.undo],
        "warnings": list(
            dict.fromkeys(render(each, "en") for shell in shells for each in shell.warnings)
        ),
        "mig_parted": parted.write(parted.of_layouts(packed.layouts, gpus)),
        "kubernetes": {
            profile: kubernetes(profile)
            for profile in sorted({each.profile for layout in packed.layouts for each in layout})
        },
        "environment": [visible(job or "", instance) for _, instance, job in _named(planned, gpus)],
    }


def _span(finish: tuple[float, float]) -> Message:
    least, most = finish
    if least == most:
        return Message.of("cli.mig.exactly", seconds=least)
    return Message.of("cli.mig.between", least=least, most=most)


def _show_planned(
    screen: "Screen", choice: Choice, planned: "Planned", gpus: Sequence[int]
) -> None:
    packed, table = planned.packed, planned.table
    style = "bold green" if planned.complete else "bold red"
    screen.say("cli.mig.placed", style, placed=packed.placed, jobs=len(planned.needs))
    _show_instances(screen, choice, _named(planned, gpus))
    for reason in planned.unplaced:
        screen.line(reason)
    for layout in packed.layouts:
        _show_room(screen, table, layout)
    screen.line()
    screen.say("cli.mig.ways", "bold")
    unknown = Message.of("cli.mig.unknown")
    screen.table(
        [
            (
                Message.of(f"mig.way.{each.way}"),
                Message.of("cli.mig.yes" if each.fits else "cli.mig.no"),
                _span(each.finish) if each.finish else unknown,
                each.isolation,
            )
            for each in planned.alternatives
        ],
        headings=[Message.of(f"cli.mig.{name}") for name in ("way", "fits", "finish", "isolation")],
    )
    if planned.advice is not None:
        screen.line(planned.advice, "bold")
    _show_notes(screen, planned.notes)
