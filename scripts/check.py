"""Run the tests of what changed since ``main``, which ``make check`` does after lint.

A test is of a changed module if it has its name, imports it, or quotes the name in the folder of
its package, as tests of the worker's programs do. ``make test`` runs the others.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
ALWAYS = ("tests/unit/test_architecture.py", "tests/unit/test_prose.py")
OF_DATA = {
    "hardware_db/": "tests/unit/catalog",
    "resources/i18n/": "tests/unit/messages",
    "resources/presets/": "tests/unit/profile",
    "resources/export/": "tests/unit/export",
    "resources/diagnose/": "tests/unit/diagnose",
    "app/trainwright/ui/": "tests/ui/test_window.py",
}
"""Folder -> the tests of all that is in it."""
MOST = 12
"""Test files that one module may ask for, for 90 seconds on two cores: what much imports is left to
``make test`` but for its nearest tests."""


def changed() -> list[Path]:
    """Return what differs from where this branch left ``main``, or from the last commit on it."""
    base = _git("merge-base", "HEAD", "main") or ["HEAD"]
    edited = _git("diff", "--name-only", base[0])
    return [Path(name) for name in edited + _git("ls-files", "--others", "--exclude-standard")]


def _git(*words: str) -> list[str]:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.splitlines()


def tests_of(paths: Iterable[Path]) -> list[str]:
    """Return the tests of changed files: files and folders below ``tests``."""
    found = dict.fromkeys(ALWAYS)
    known = [_Test(ROOT / each) for each in sorted((ROOT / "tests").rglob("test_*.py"))]
    for path in paths:
        found |= dict.fromkeys(
            folder for start, folder in OF_DATA.items() if path.as_posix().startswith(start)
        )
        if path.suffix == ".py":
            own = [test for test in known if test.has(path)]
            if len(own) > MOST:
                own = sorted(own, key=lambda test: test.distance(path))[:MOST]
                print(f"{path}: imported by many tests; make test runs all of them")
            found |= dict.fromkeys(str(test.path.relative_to(ROOT)) for test in own)
    return list(found)


class _Test:
    """A file of tests: what it imports and says."""

    def __init__(self, path: Path) -> None:
        self.path, self.text = path, path.read_text(encoding="utf-8")
        self.imported = frozenset(_names(ast.parse(self.text)))

    def has(self, path: Path) -> bool:
        """Return whether it tests a file, given from the root."""
        if path.parts[0] == "tests":  # a helper is imported by its bare name
            return self.path == ROOT / path or path.stem in self.imported
        if path.parts[0] != "app" or not {"unit", "ui"} & set(self.path.parts):
            return False
        dotted = ".".join(path.with_suffix("").parts[1:]).removesuffix(".__init__")
        named = self.path.stem == f"test_{path.stem}" or dotted in self.imported
        quoted = re.search(rf"""["'/]{path.stem}["'.]""", self.text)
        return named or (path.parts[2] in self.path.parts and quoted is not None)

    def distance(self, path: Path) -> tuple[bool, bool]:
        """Return how far it is from a file: of its name, then of its package, then the others."""
        return self.path.stem != f"test_{path.stem}", path.parts[2] not in self.path.parts


def _names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{each.name}" for each in node.names)


if __name__ == "__main__":
    command = ["-m", "pytest", "-q", "-n", "auto", "--maxprocesses", "4", "-m", "not slow"]
    done = subprocess.run([sys.executable, *command, *tests_of(changed())], cwd=ROOT, check=False)
    sys.exit(done.returncode)
