"""Several exported programs as one file that is read from top to bottom.

Each part keeps its text. Imports are gathered at the head; what nothing reaches is left out.
Names at the top level must differ between the parts, which a test holds.
"""

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

WIDTH = 100


@dataclass(frozen=True, slots=True)
class _Piece:
    """One definition with the comments above it and the docstring below it."""

    text: str
    defines: frozenset[str]
    uses: frozenset[str]
    block: bool
    """Whether it is a function or class, which two empty lines set apart."""
    gap: int
    """Empty lines above it in its part, at most two."""


@dataclass(frozen=True, slots=True)
class _Part:
    """What a module holds."""

    doc: str
    title: str
    """The first line of ``doc``."""
    imports: tuple[ast.Import | ast.ImportFrom, ...]
    pieces: tuple[_Piece, ...]


def bundle(parts: Mapping[str, str], main: str, early: str = "") -> str:
    """Return the parts, by module name in the order of their imports, as one program.

    Args:
        parts: Text by module name; nothing in a part is used by those before it.
        main: The module whose last statement starts the program; its docstring is the head.
        early: Statement that must run before libraries are imported, with its comment.
    """
    inside = frozenset(parts)
    read = {name: _part(text, inside) for name, text in parts.items()}
    kept = _reached([piece for part in read.values() for piece in part.pieces])
    uses = frozenset[str]().union(*(piece.uses for piece in kept))
    imports = (node for part in read.values() for node in part.imports)
    standard, others = _imports(imports, inside, uses)
    head = [f'"""{read[main].doc}"""\n', *filter(None, (standard, early, others))]
    body: list[str] = []
    for part in read.values():
        chosen = [piece for piece in part.pieces if piece in kept]
        if chosen:
            body.append(f"# {part.title}\n{_joined(chosen)}")
    return "\n".join(head) + "\n" + "\n\n".join(body)


@lru_cache(maxsize=256)  # a preview bundles the same programs after each edit
def _part(text: str, inside: frozenset[str]) -> _Part:
    tree = ast.parse(text)
    imports = tuple(node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom)))
    doc, title = (ast.get_docstring(tree, clean=clean) or "" for clean in (False, True))
    return _Part(doc, title.split("\n")[0], imports, tuple(_pieces(text, tree, inside)))


def _pieces(text: str, tree: ast.Module, inside: frozenset[str]) -> Iterator[_Piece]:
    """Yield what the module defines, without its docstring and imports."""
    lines = text.split("\n")
    dropped = {
        number
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom)) and (_within(node, inside))
        for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    body, end = tree.body, 0
    for number, node in enumerate(body):
        above, end = end, node.end_lineno or node.lineno
        if isinstance(node, (ast.Import, ast.ImportFrom)) or _is_text(node):
            continue
        if number + 1 < len(body) and _is_text(body[number + 1]):
            end = body[number + 1].end_lineno or end
        kept = [lines[at - 1] for at in range(above + 1, end + 1) if at not in dropped]
        own = "\n".join(kept).lstrip("\n")
        yield _Piece(
            own + "\n",
            frozenset(_defined(node)),
            frozenset(one.id for one in ast.walk(node) if isinstance(one, ast.Name)),
            isinstance(node, (ast.FunctionDef, ast.ClassDef)),
            min(2, len(kept) - len(own.split("\n"))),
        )


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _defined(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, (ast.Assign, ast.AnnAssign)):
        goals = node.targets if isinstance(node, ast.Assign) else [node.target]
        for goal in goals:
            yield from (one.id for one in ast.walk(goal) if isinstance(one, ast.Name))


def _reached(pieces: Sequence[_Piece]) -> frozenset[_Piece]:
    """Return the pieces that statements run or that others use."""
    kept: set[int] = set()
    wanted = [number for number, piece in enumerate(pieces) if not piece.defines]
    where = {name: number for number, piece in enumerate(pieces) for name in piece.defines}
    while wanted:
        number = wanted.pop()
        if number not in kept:
            kept.add(number)
            wanted += [where[name] for name in pieces[number].uses if name in where]
    return frozenset(pieces[number] for number in kept)


def _joined(pieces: Sequence[_Piece]) -> str:
    text = ""
    for number, piece in enumerate(pieces):
        before = pieces[number - 1] if number else None
        apart = 2 if piece.block or before is None or before.block else piece.gap
        text += "\n" * apart + piece.text
    return text


def _within(node: ast.Import | ast.ImportFrom, inside: frozenset[str]) -> bool:
    if isinstance(node, ast.ImportFrom):
        return str(node.module) in inside
    return all(alias.name in inside for alias in node.names)


def _imports(
    nodes: Iterable[ast.Import | ast.ImportFrom], inside: frozenset[str], uses: frozenset[str]
) -> tuple[str, str]:
    """Return the imports that are used: of the standard library, and of others."""
    whole: set[str] = set()
    parts: dict[str, set[str]] = {}
    for node in nodes:
        if _within(node, inside):
            continue
        for alias in node.names:
            if (alias.asname or alias.name.partition(".")[0]) not in uses:
                continue
            if isinstance(node, ast.Import):
                whole.add(alias.name + (f" as {alias.asname}" if alias.asname else ""))
            else:
                parts.setdefault(str(node.module), set()).add(alias.name)
    found: tuple[list[str], list[str]] = ([], [])
    for name in sorted(whole):
        found[_is_foreign(name)].append(f"import {name}\n")
    for module, names in sorted(parts.items()):
        found[_is_foreign(module)].append(_from(module, sorted(names, key=_import_order)))
    return "".join(found[0]), "".join(found[1])


def _is_foreign(module: str) -> bool:
    return module.partition(".")[0].split(" ")[0] not in sys.stdlib_module_names


def _import_order(name: str) -> tuple[int, str]:
    """Return where linters sort a name: constants, classes, functions."""
    return (0 if name.isupper() and len(name) > 1 else 1 if name[0].isupper() else 2), name


def _from(module: str, names: Sequence[str]) -> str:
    line = f"from {module} import {', '.join(names)}\n"
    if len(line) <= WIDTH:
        return line
    return f"from {module} import (\n" + "".join(f"    {name},\n" for name in names) + ")\n"
