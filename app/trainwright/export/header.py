"""The comment block at the head of an exported program: what, how to start it, and why so."""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from trainwright.export.comments import WIDTH, comment, wrapped
from trainwright.export.lost import OF_SERVING
from trainwright.messages import Language, Message, render
from trainwright.plan.effective import open_choices
from trainwright.plan.schema import Plan
from trainwright.quoting import json_text
from trainwright.workload import FullSettings

Reasons = Mapping[str, Message]
"""Name of a setting, as ``FullSettings`` has it -> why it has its value."""


def start_of(files: Mapping[str, str]) -> tuple[str, ...]:
    """Return the commands that install what exported files need and try them; empty without any.

    They are read from the head that ``header`` wrote.
    """
    for text in files.values():
        head = "\n".join(itertools.takewhile(lambda line: line.startswith("#"), text.split("\n")))
        flat = head.replace(" \\\n#     ", " ")
        found = re.search(r"^#     (\S.*)$", flat, re.MULTILINE)
        if found is not None:
            words = flat.partition("\n#\n")[0].replace("\n# ", " ").split()
            needed = [
                f'"{name}{versions.rstrip(",.")}"'
                for name, versions in itertools.pairwise(words)
                if versions[0] in "<>=" and name != "python"
            ]
            install = ("pip install " + " ".join(needed),) if needed else ()
            return (*install, found[1])
    return ()


FREE_IN_LOADER = ("num_workers", "prefetch_factor", "pin_memory", "persistent_workers")


def header(
    plan: Plan,
    settings: FullSettings,
    reasons: Reasons,
    *,
    title: str,
    start: Message,
    commands: Sequence[str],
    made_for: Mapping[str, str],
    lost: Iterable[Message],
    remarks: Iterable[Message],
    language: Language,
) -> str:
    """Return the block as ``#`` lines."""

    def say(id: str, **values: object) -> str:
        return render(Message.of(id, **values), language)

    def paragraphs() -> Iterator[tuple[int, str]]:
        versions = [f"{library} {versions}" for library, versions in made_for.items()]
        yield 0, say("export.header.made-for", versions=versions)
        # Python and editors take orders from the first two lines: no name stands there.
        yield 0, say("export.header.title", name=plan.name, model=title, task=plan.workload.task)
        yield 0, ""
        yield 0, render(start, language)
        for command in commands:
            yield from _command(command)
        yield 0, ""
        yield 0, say("export.header.settings")
        defaults = []
        for name, value, why in explained(plan, settings, reasons):
            shown = f"{name} = {value if isinstance(value, str) else json_text(value)}"
            if why is None:
                defaults.append(shown)
            else:
                yield 2, f"{shown}: {render(why, language)}"
        if defaults:
            yield 2, say("export.header.defaults", settings=defaults)
        lines = tuple(lost)
        if lines:
            yield 0, ""
            yield 0, say("export.header.lost")
            for message in lines:
                yield 2, f"- {render(message, language)}"
        for remark in remarks:
            yield 0, ""
            yield 0, render(remark, language)

    return comment(paragraphs())


def _command(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a command; a long one goes on after a backslash, as shells have it."""
    *first, last = wrapped(text, WIDTH - len("#     \\ "))
    for line in first:
        yield 4, f"{line} \\"
    yield 4, last


def explained(
    plan: Plan, settings: FullSettings, reasons: Reasons
) -> Iterator[tuple[str, object, Message | None]]:
    """Yield (setting, value, reason) for every setting that has a part in training.

    The reason is None where the setting is left open and has its default.
    """
    choices = {key.rpartition(".")[2]: one for key, one in open_choices(plan)}
    for name, value in settings:
        if name in OF_SERVING or (value is None and name not in reasons):
            continue
        if name == "generation" and plan.workload.writes is None:
            continue
        if name == "framework" and _given(plan, name) is None:
            continue  # any torch from 2.4 on: the versions above say which
        if name in reasons:
            yield name, value, reasons[name]
        elif _given(plan, name) is not None:
            yield name, value, Message.of("export.reason.yours")
        elif name in choices and choices[name].value == value:
            yield name, value, choices[name].reason
        else:
            yield name, value, None


def _given(plan: Plan, name: str) -> object:
    if name in FREE_IN_LOADER:
        return getattr(plan.settings.loader, name)
    return getattr(plan.settings, name)
