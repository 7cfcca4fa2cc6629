"""Compile ``hardware_db/gpu/*.yaml`` and write the JSON Schema that editors check it with.

Both results are committed, so that running the program needs no build step; a test checks
that they are fresh.
"""

import json
import sys
from pathlib import Path

from trainwright.catalog.compiled import to_json
from trainwright.catalog.compiler import compile_folder
from trainwright.catalog.gpu_file import GpuFile

ROOT = Path(__file__).parents[1]


def schema() -> str:
    """Return the text of the JSON Schema."""
    return json.dumps(GpuFile.model_json_schema(by_alias=True), indent=1) + "\n"


if __name__ == "__main__":
    compiled = compile_folder(ROOT / "hardware_db" / "gpu")
    for problem in compiled.problems:
        sys.stderr.write(f"{problem.id} {dict(problem.values)}\n")
    if compiled.problems:
        sys.exit(1)
    for name, text in (
        ("catalog/gpu.json", to_json(compiled)),
        ("schema/gpu.schema.json", schema()),
    ):
        path = ROOT / "resources" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
        sys.stdout.write(f"{name}\n")
