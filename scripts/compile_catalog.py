"""Compile ``hardware_db/*/*.yaml`` and write the JSON Schema that editors check GPUs with.

The results are committed, so that running the program needs no build step; a test checks
that they are fresh.
"""

import json
import sys
from pathlib import Path

from trainwright.catalog.compiled import to_json
from trainwright.catalog.compiler import compile_folder
from trainwright.catalog.gpu_file import GpuFile
from trainwright.catalog.part_kinds import KINDS, PartKind

ROOT = Path(__file__).parents[1]


def schema() -> str:
    """Return the text of the JSON Schema."""
    return json.dumps(GpuFile.model_json_schema(by_alias=True), indent=1) + "\n"


def write(name: str, text: str) -> None:
    """Write a file of ``resources/`` and say so."""
    path = ROOT / "resources" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")
    sys.stdout.write(f"{name}\n")


if __name__ == "__main__":
    kinds: tuple[PartKind, ...] = ("gpu", *KINDS)
    compiled = {kind: compile_folder(ROOT / "hardware_db" / kind, kind) for kind in kinds}
    problems = [problem for each in compiled.values() for problem in each.problems]
    for problem in problems:
        sys.stderr.write(f"{problem.id} {dict(problem.values)}\n")
    if problems:
        sys.exit(1)
    for kind, each in compiled.items():
        write(f"catalog/{kind}.json", to_json(each))
    write("schema/gpu.schema.json", schema())
