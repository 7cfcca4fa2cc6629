"""Counts how many first verdicts of each confidence were right, for the app to say.

    python scripts/count_verdicts.py           # write resources/calibration/verdicts.csv
    python scripts/count_verdicts.py --check   # say whether the shipped counts are these

To be run after a batch of situations was scored. The newest ten batches count, as they were
scored by rules that are most like today's.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "accuracy"))

from situationscores import NEWEST, of, scored  # noqa: E402

from trainwright.data import resources  # noqa: E402
from trainwright.diagnose.reliability import RECORDED, REPORTED, kind_of  # noqa: E402
from trainwright.diagnose.verdict import Cause, Confidence  # noqa: E402
from trainwright.saving import write  # noqa: E402


def text() -> str:
    """Return the counts as a file's text."""
    named = [each for each in of(scored()[-NEWEST:]) if each.verdict.cause is not Cause.UNKNOWN]
    kinds = [kind_of(each.situation.evidence) for each in named]
    lines = ["kind,confidence,right,of"]
    for kind in (RECORDED, REPORTED):
        for confidence in Confidence:
            rights = [
                each.right
                for each, its in zip(named, kinds, strict=True)
                if its == kind and each.verdict.confidence is confidence
            ]
            lines.append(f"{kind},{confidence},{sum(rights)},{len(rights)}")
    return "\n".join(lines) + "\n"


def main() -> int:
    path = resources("calibration", "verdicts.csv")
    if "--check" not in sys.argv[1:]:
        write(path, text())
        return 0
    shipped = path.read_text(encoding="utf-8")
    if shipped != text():
        print("other counts: run scripts/count_verdicts.py")
    return int(shipped != text())


if __name__ == "__main__":
    sys.exit(main())
