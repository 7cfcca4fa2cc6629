"""Compile the sentences of each language into the catalogue that the program reads.

A checkout does so by itself after an edit; what is installed has it from its build.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "app"))

from trainwright import saving  # noqa: E402
from trainwright.messages import compiling  # noqa: E402


def main() -> None:
    """Write a ``.mo`` for each language."""
    for folder in sorted(each for each in (ROOT / "resources/i18n").iterdir() if each.is_dir()):
        goal = folder.with_suffix(".mo")
        saving.replace(goal, compiling.compiled(folder))  # whole, for what reads it just now
        sys.stdout.write(f"{goal.name}\n")


if __name__ == "__main__":
    main()
