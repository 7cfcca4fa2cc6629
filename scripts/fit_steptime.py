"""Fit the clock's constants to the measured rows and write resources/calibration/steptime.json.

Deterministic: about half a minute, and three more with ``--spread``, which fits again without
each sixth of the families and sets the interval from what these fits miss by.
``tests/accuracy/test_clock.py`` fits again and compares.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "app"), str(ROOT / "tests/accuracy")]

import clockfit  # noqa: E402
import clockrows  # noqa: E402
import mpt  # noqa: E402
import spreadfit  # noqa: E402

FILE = ROOT / "resources/calibration/steptime.json"


def main() -> None:
    """Fit and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spread", action="store_true", help="fit the interval, too")
    options = parser.parse_args()
    steps = clockrows.fitted_steps()
    fitted = clockfit.fit(clockrows.blocks(steps))
    known = json.loads(FILE.read_text(encoding="utf-8"))
    known.update(clockfit.entries(fitted, known))
    stack = mpt.fit(mpt.fitted_steps(), fitted)
    known["ceilings"] |= mpt.ceilings(stack, known["ceilings"])
    if options.spread:
        training = [step for step in steps if step.trains]
        beside = [step for step in steps if not step.trains]
        found = spreadfit.crossed(training, beside, fitted)
        work = spreadfit.work(found)
        quantile = float(np.quantile(spreadfit.ratios(found, work), 0.9))
        known["spread"]["work"] = work
        known["spread"]["quantile"]["value"] = round(quantile, 3)
    FILE.write_text(json.dumps(known, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
