"""Walls that keep the parts apart, beside those that the import contracts hold."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import trainwright

PACKAGE = Path(trainwright.__file__).parent
PROGRAMS = PACKAGE / "worker" / "programs"
MODULES = sorted(PACKAGE.rglob("*.py"))

HEAVY = ("torch", "transformers", "PySide6", "timm", "peft", "pynvml")
CORE = (
    "advise",
    "catalog",
    "cli.run",
    "estimate",
    "explain",
    "export",
    "machine",
    "messages",
    "plan.evaluate",
    "plan.file",
    "prices",
    "profile.store",
    "worker",
    "workload",
)

LINUX_ONLY = {
    "fcntl": None,
    "resource": None,
    "pwd": None,
    "grp": None,
    "termios": None,
    "os": {"fork", "killpg", "setsid", "getpgid", "geteuid", "getuid", "nice", "mkfifo"},
    "signal": {"SIGKILL", "SIGHUP", "SIGALRM", "SIGUSR1", "SIGUSR2", "SIGPIPE", "pthread_kill"},
}
"""Modules that Windows lacks (None: the whole module), and names that it lacks in others."""
LACKED = [name for module, names in LINUX_ONLY.items() for name in sorted(names or {module})]
MENTIONED = re.compile(rf"\b({'|'.join(LACKED)})\b")
EMPTY_NAMES = {"utils", "util", "helpers", "helper", "manager", "managers", "misc", "common"}


def test_the_core_loads_neither_torch_nor_qt():
    code = (
        f"import sys, {', '.join(f'trainwright.{name}' for name in CORE)}\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_modules_stay_short():
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert [path for path in MODULES if lines[path] > 500] == []


def methods_of(node):
    return [each for each in node.body if isinstance(each, ast.FunctionDef)]


def long_ones(tree):
    """Yield functions over 60 lines, and classes of more than 25 methods."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.end_lineno - node.lineno >= 60:
            yield node
        if isinstance(node, ast.ClassDef) and len(methods_of(node)) > 25:
            yield node


def test_long_functions_and_large_classes_say_why():
    for path in MODULES:
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        for node in long_ones(ast.parse(text)):
            first = min(each.lineno for each in (node, *node.decorator_list))
            assert "# Long: " in "".join(lines[first - 2 : node.lineno]), (path, node.name)


def test_names_say_what_is_inside():
    assert [path for path in MODULES if path.stem in EMPTY_NAMES] == []


def test_nobody_imports_the_child_programs():
    named = [path for path in MODULES if "programs" in path.read_text(encoding="utf-8")]
    assert named
    assert [path for path in named if "trainwright.worker.programs" in imports(path)] == []


def test_the_recorder_can_be_copied_alone():
    """It is put into runs whose Python has neither us nor our dependencies."""
    recorder = [path for path in MODULES if path.parent == PACKAGE / "diagnose" / "recorder"]
    absolute = {name.partition(".")[0] for path in recorder for name in imports(path, level=0)}
    assert absolute
    assert absolute <= sys.stdlib_module_names


def test_calls_that_windows_lacks_stand_behind_a_branch():
    texts = {path: path.read_text(encoding="utf-8") for path in MODULES}
    named = {path: text for path, text in texts.items() if MENTIONED.search(text)}
    assert {path: lines for path in named if (lines := unguarded(ast.parse(named[path])))} == {}


@pytest.mark.parametrize(
    "code",
    [
        "import fcntl",
        "import os\nos.fork()",
        "import signal\nsignal.SIGKILL",
        "from os import killpg",
        "import sys, os\nif sys.platform == 'win32':\n    pass\nos.fork()",
    ],
)
def test_the_scan_finds_calls_that_windows_lacks(code):
    assert unguarded(ast.parse(code))


@pytest.mark.parametrize(
    "code",
    [
        "import sys, os\nif sys.platform != 'win32':\n    os.fork()",
        "import os\nif hasattr(os, 'fork'):\n    os.fork()",
        "try:\n    import fcntl\nexcept ImportError:\n    fcntl = None",
        "import os\nif os.name == 'nt':\n    pass\nelse:\n    os.killpg(1, 9)",
        "import sys, os\ndef f():\n    if sys.platform == 'win32':\n        return\n    os.fork()",
    ],
)
def test_the_scan_accepts_branches(code):
    assert unguarded(ast.parse(code)) == []


def imports(path, level=None):
    """Return the dotted names that a module imports; ``level=0`` leaves relative ones out."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and level in (None, node.level):
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def unguarded(tree):
    """Return the lines of calls that Windows lacks and that no branch on the system guards."""
    return [line for node in tree.body for line in _lines(node, guarded=False)]


def _lines(node, guarded):
    if isinstance(node, ast.If | ast.IfExp | ast.BoolOp | ast.Try):
        test = getattr(node, "test", node)
        guarded = guarded or _asks_for_the_system(test)
    if not guarded and _lacking(node):
        yield node.lineno
    body = getattr(node, "body", None)
    if isinstance(node, ast.FunctionDef) and isinstance(body, list):
        # `if windows: return` guards what follows it in the same function.
        for statement in body:
            yield from _lines(statement, guarded)
            guarded = guarded or _turns_away(statement)
        return
    for child in ast.iter_child_nodes(node):
        yield from _lines(child, guarded)


def _turns_away(statement):
    leaves = isinstance(statement, ast.If) and isinstance(
        statement.body[-1], ast.Return | ast.Raise
    )
    return leaves and _asks_for_the_system(statement.test)


def _asks_for_the_system(test):
    text = ast.unparse(test)
    marks = ("sys.platform", "os.name", "hasattr(os", "hasattr(signal", "except ImportError")
    return any(mark in text for mark in (*marks, "except ModuleNotFoundError", "_WINDOWS"))


def _lacking(node):
    match node:
        case ast.Import(names=names):
            return any(name.name in LINUX_ONLY and not LINUX_ONLY[name.name] for name in names)
        case ast.ImportFrom(module=module, names=names) if module in LINUX_ONLY:
            lacking = LINUX_ONLY[module]
            return lacking is None or any(name.name in lacking for name in names)
        case ast.Attribute(value=ast.Name(id=module), attr=name):
            return module in LINUX_ONLY and name in (LINUX_ONLY[module] or ())
    return False


def test_programs_import_each_other_before_any_code_of_a_user_runs():
    """A user's ``models.py`` takes the name of ours: an import within a function would find it."""
    names = {path.stem for path in PROGRAMS.glob("*.py")}
    late = []
    for path in PROGRAMS.glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if node in tree.body or not isinstance(node, ast.Import | ast.ImportFrom):
                continue
            module = node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
            if module in names and path.stem not in ("trace", "verify"):  # they start the rest
                late.append(f"{path.name}:{node.lineno}")
    assert not late
