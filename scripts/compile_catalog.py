"""Compile ``hardware_db/*/*.yaml`` and write the JSON Schema that editors check GPUs with.

The schema is committed, and a test checks that it is fresh. What is compiled is not: a build and
the tests make it, and a program that lacks it makes a copy in the user's cache.
"""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "app"))

from trainwright import saving  # noqa: E402
from trainwright.catalog.compiled import Compiled, from_json, sources_hash, to_json  # noqa: E402
from trainwright.catalog.compiler import compile_folder  # noqa: E402
from trainwright.catalog.gpu_file import GpuFile  # noqa: E402
from trainwright.catalog.part_kinds import KINDS, PartKind  # noqa: E402

ALL: tuple[PartKind, ...] = ("gpu", *KINDS)
CATALOG = ROOT / "resources" / "catalog"


def stale(kind: PartKind) -> bool:
    """Return whether the compiled records of a kind are absent, or of other sources."""
    return from_json(CATALOG / f"{kind}.json", sources_hash(ROOT / "hardware_db" / kind)) is None


def refresh() -> None:
    """Compile the kinds whose records are stale; files with problems are left to the tests."""
    for kind in filter(stale, ALL):
        write(CATALOG / f"{kind}.json", to_json(compiled(kind)))


def compiled(kind: PartKind) -> Compiled:
    """Return what the files of a kind say."""
    return compile_folder(ROOT / "hardware_db" / kind, kind)


def schema() -> str:
    """Return the text of the JSON Schema."""
    return json.dumps(GpuFile.model_json_schema(by_alias=True), indent=1) + "\n"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    saving.replace(path, text.encode())  # whole, for what reads it just now


def main() -> int:
    """Compile every kind, and say what was written or what is wrong."""
    found = {CATALOG / f"{kind}.json": compiled(kind) for kind in ALL}
    problems = [problem for each in found.values() for problem in each.problems]
    for problem in problems:
        sys.stderr.write(f"{problem.id} {dict(problem.values)}\n")
    if problems:
        return 1
    texts = {path: to_json(each) for path, each in found.items()}
    for path, text in (texts | {ROOT / "resources/schema/gpu.schema.json": schema()}).items():
        write(path, text)
        sys.stdout.write(f"{path.relative_to(ROOT)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
