"""``trainwright doctor``: versions, paths, and what works here and why not."""

import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainwright import __version__, crashes, data
from trainwright.catalog.part_kinds import NAMES
from trainwright.cli import display, options, qt_libraries
from trainwright.cli.answer import Answer, Exit
from trainwright.cli.finding import Finding
from trainwright.cli.parsing import Command
from trainwright.messages import Message, UserError, render
from trainwright.probe.privacy import from_home, without_names

if TYPE_CHECKING:
    from trainwright.cli.screen import Screen

PACKAGES = (
    "torch",
    "transformers",
    "timm",
    "peft",
    "diffusers",
    "PySide6_Essentials",
    "numpy",
    "pydantic",
)


HANGUL = ("Pretendard", "Noto Sans KR", "Noto Sans CJK KR", "NanumGothic")
"""Korean families that the window asks for, in its order."""


@click.command(cls=Command, help="cli.doctor.summary")
@options.common
def command() -> Answer:
    """Look at everything, change nothing."""
    from trainwright.cli import devices  # loads the drivers' libraries
    from trainwright.probe.snapshot import take

    return answer([*(check() for check in CHECKS), *devices.findings(take())])


def answer(findings: list[Finding]) -> Answer:
    """Return the findings as an answer; exit 1 where a needed one fails."""
    versions = {name: installed(name) for name in PACKAGES}
    folders = {
        "program": Path(__file__).parents[1],
        "hardware_db": data.folder("hardware_db"),
        "resources": data.folder("resources"),
        "cache": cache_folder(),
        "crashes": crashes.folder(),
    }
    paths = {name: from_home(folder) for name, folder in folders.items()}
    document = {
        "trainwright": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "packages": versions,
        "paths": paths,
        "checks": [
            {
                "check": finding.check,
                "works": finding.works,
                "because": render(finding.because, "en"),
            }
            for finding in findings
        ],
    }
    broken = any(finding.needed and finding.works is False for finding in findings)

    def show(screen: "Screen") -> None:
        screen.line(f"Trainwright {__version__}, Python {platform.python_version()}", "bold")
        screen.line(platform.platform())
        screen.line()
        screen.table(_rows(findings), title=Message.of("cli.doctor.findings"))
        absent = Message.of("cli.doctor.absent")
        screen.table(
            ((name, version or absent) for name, version in versions.items()),
            title=Message.of("cli.doctor.packages"),
        )
        screen.table(paths.items(), title=Message.of("cli.doctor.paths"))

    return Answer(document, show, Exit.NO if broken else Exit.DONE)


def _rows(findings: list[Finding]) -> list[tuple[str | Message, ...]]:
    marks = {True: "✓", False: "✗", None: "?"}
    return [
        (marks[each.works], Message.of(f"cli.doctor.{each.check}"), each.because)
        for each in findings
    ]


def installed(package: str) -> str | None:
    """Return a package's version without importing it."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def cache_folder() -> Path:
    """Return where traced profiles are kept."""
    from trainwright.profile import store

    return store.cache_folder()


def _data() -> Finding:
    catalog = [data.hardware_db(kind) for kind in NAMES]
    wanted = [*catalog, data.resources("profiles"), data.resources("i18n")]
    absent = [from_home(folder) for folder in wanted if not folder.is_dir()]
    if absent:
        return Finding("data", False, Message.of("cli.doctor.data-absent", paths=absent), True)
    return Finding("data", True, Message.of("cli.doctor.data-found"), True)


def _cache() -> Finding:
    folder = cache_folder()
    probe = folder / ".write-test"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        because = Message.of(
            "cli.doctor.cache-refused", path=from_home(folder), detail=error.strerror
        )
        return Finding("cache", False, because)
    free = shutil.disk_usage(folder).free
    return Finding("cache", True, Message.of("cli.doctor.cache-free", free=free))


def _tracing() -> Finding:
    from trainwright.profile import interpreter

    if interpreter.chosen() != sys.executable:
        try:
            found = interpreter.current()
        except UserError as error:
            return Finding("tracing", False, error.message)
        torch = found.version("torch")
        path = without_names(found.path)
        because = Message.of("cli.doctor.torch-of", version=torch, path=path)
        return Finding("tracing", True, because)
    try:
        version = interpreter.tracing().version("torch")
    except UserError as error:
        return Finding("tracing", False, error.message)
    return Finding("tracing", True, Message.of("cli.doctor.torch", version=version))


def _models() -> Finding:
    sources = {"hf": installed("transformers"), "timm": installed("timm")}
    absent = [name for name, version in sources.items() if version is None]
    if absent:
        return Finding("models", None, Message.of("cli.doctor.models-some", absent=absent))
    return Finding("models", True, Message.of("cli.doctor.models-all"))


def _window() -> Finding:
    if installed("PySide6_Essentials") is None:
        return Finding("window", False, Message.of("cli.doctor.no-qt"))
    missing = qt_libraries.missing()
    if packages := qt_libraries.packages(missing):
        because = Message.of("cli.qt-packages", packages=" ".join(packages))
        return Finding("window", False, because)
    if missing:
        return Finding("window", False, Message.of("cli.qt-libraries", names=missing))
    if not display.present():
        return Finding("window", False, Message.of("cli.doctor.no-display"))
    return Finding("window", True, Message.of("cli.doctor.window-opens"))


def _hangul() -> Finding:
    if sys.platform in ("win32", "darwin"):  # both ship a Korean font
        return Finding("hangul", True, Message.of("cli.doctor.hangul-system"))
    program = shutil.which("fc-list")
    if program is None:
        return Finding("hangul", None, Message.of("cli.doctor.hangul-unknown"))
    run = subprocess.run(
        [program, ":lang=ko", "family"], capture_output=True, text=True, timeout=15, check=False
    )
    if not run.stdout.strip():
        return Finding("hangul", False, Message.of("cli.doctor.hangul-absent"))
    found = {line.split(",")[0] for line in run.stdout.splitlines()}
    family = next((each for each in HANGUL if each in found), min(found))
    return Finding("hangul", True, Message.of("cli.doctor.hangul-found", family=family))


CHECKS: tuple[Callable[[], Finding], ...] = (
    _data,
    _cache,
    _tracing,
    _models,
    _window,
    _hangul,
)
