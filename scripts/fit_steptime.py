"""Fit the clock's constants to the measured rows and write resources/calibration/steptime.json.

Deterministic; about a minute. ``tests/accuracy/test_clock.py`` fits again and compares.
"""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "app"), str(ROOT / "tests/accuracy")]

import clockfit  # noqa: E402
import clockrows  # noqa: E402

FILE = ROOT / "resources/calibration/steptime.json"


def main() -> None:
    """Fit and write."""
    fitted = clockfit.fit(clockrows.blocks(clockrows.fitted_vision_steps()))
    known = json.loads(FILE.read_text(encoding="utf-8"))
    known.update(clockfit.entries(fitted, known))
    FILE.write_text(json.dumps(known, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
