"""What the palette finds beside commands: files, examples, lessons, models, GPUs and parts."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from trainwright.plan import file
from trainwright.ui.frame import Frame
from trainwright.ui.i18n import tr
from trainwright.ui.names import search_gpus, search_models
from trainwright.ui.options import Option, plain

_MOST = {"lesson": 7, "file": 9, "example": 9, "model": 8, "gpu": 12, "part": 12}
"""Options of each kind that are offered; assumed: a person types more rather than scroll."""

_NEEDS = {"undo": "edit", "redo": "undone", "copy-summary": "answer", "share": "answer",
          "learn": "answer"}  # fmt: skip
"""What a command needs; all others that may not run need a plan."""


def find(window: Frame, text: str) -> list[Option]:
    """Return what is found for every word of a text; the key says the kind."""
    words = [plain(word) for word in text.split()]
    found = {
        "lesson": _named("lesson", _lessons(), tr("ui.action.learn"), words),
        "file": _named("file", _names(window.preferences.recent), tr("ui.start.recent"), words),
        "example": _named(
            "example", _names(window.core.examples()), tr("ui.start.examples"), words
        ),
        "model": (
            Option(f"model:{o.key}", o.title, tr("ui.key.model")) for o in search_models(text)
        ),
        "gpu": (Option(f"gpu:{o.key}", o.title, o.note) for o in search_gpus(text)),
        "part": _parts(words),
    }
    return [option for kind, options in found.items() for option in islice(options, _MOST[kind])]


def run(window: Frame, key: str) -> None:
    """Do what was chosen; where a command cannot run now, say why."""
    kind, _, id = key.partition(":")
    match kind:
        case "action" if not window.actions_by_id[id].isEnabled():
            window.notice.say(tr(f"ui.needs.{_NEEDS.get(id, 'plan')}"))
        case "action":
            window.actions_by_id[id].trigger()
        case "lesson":
            window.teach(id)
        case "file":
            window.open_path(Path(id))
        case "example":
            window.start_with("example", Path(id))
        case "part":
            _show_part(window, *id.split("/", 1))
        case _:
            screen: Any = window.screen_named("plan")
            getattr(screen.form, kind).chosen.emit(id)


def _named(kind: str, names: dict[str, str], note: str, words: list[str]) -> Iterator[Option]:
    for key, name in names.items():
        if all(word in plain(name) for word in words):
            yield Option(f"{kind}:{key}", name, note)


def _lessons() -> dict[str, str]:
    from trainwright.plan.lessons import LESSONS

    return {name: tr(f"lesson.{name}") for name in LESSONS}


def _names(paths: Any) -> dict[str, str]:
    return {str(path): path.name.removesuffix(file.SUFFIX) for path in paths}


def _parts(words: list[str]) -> Iterator[Option]:
    """Yield parts other than GPUs, which a plan takes at once."""
    from trainwright.catalog import list_parts
    from trainwright.ui.screens.catalog import KINDS

    for kind in KINDS:
        names = {f"{kind}/{part.id}": part.name for part in list_parts(kind)}
        if kind != "gpu":
            yield from _named("part", names, tr(f"pc.one.{kind}"), words)


def _show_part(window: Frame, kind: str, id: str) -> None:
    from trainwright.catalog import list_parts
    from trainwright.ui.screens.catalog import KINDS

    screen: Any = window.screen_named("catalog")
    parts = (part for each in KINDS if each == kind for part in list_parts(each))
    screen.show_part(next(part for part in parts if part.id == id))
