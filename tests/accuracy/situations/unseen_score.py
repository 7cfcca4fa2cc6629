"""Scores ``trainwright diagnose --try`` on the programs of ``unseen.py``.

    python unseen_score.py --into /tmp/answers [NAME...]

Prints a line for each run and the sum, and keeps each answer as ``NAME.json``. Names of
``programs.py`` are run too, but have no truth here and do not count.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

from programs import SITUATIONS
from unseen import TRUTH

HERE = Path(__file__).parent
LIMIT = 600.0
"""Seconds for one run and its trial. Assumed."""


def first_cause(name: str, into: Path) -> str:
    """Return the first verdict on one run, or why there is none."""
    program = HERE / ("unseen.py" if name in TRUTH else "programs.py")
    command = [sys.executable, "-m", "trainwright", "diagnose", "--try", "--json", "--lang", "en"]
    command += ["--", sys.executable, str(program), name, "--fault"]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return f"no answer in {LIMIT:.0f} s"
    (into / f"{name}.json").write_text(run.stdout, encoding="utf-8")
    (into / f"{name}.log").write_text(run.stderr, encoding="utf-8")
    try:
        return str(json.loads(run.stdout)["verdict"]["cause"])
    except (ValueError, KeyError, TypeError):
        return f"no answer, exit code {run.returncode}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--into", type=Path, required=True)
    options = parser.parse_args()
    if unknown := set(options.names) - TRUTH.keys() - SITUATIONS.keys():
        parser.error(f"no such run: {', '.join(sorted(unknown))}")
    options.into.mkdir(parents=True, exist_ok=True)
    right = judged = 0
    for name in options.names or TRUTH:
        given = first_cause(name, options.into)
        if name not in TRUTH:
            print(f"{name}: {given}", flush=True)
            continue
        cause = TRUTH[name][0]
        good = given == cause
        right, judged = right + good, judged + 1
        print(f"{'right' if good else 'WRONG'} {name}: {given}, truth {cause}", flush=True)
    print(f"{right} of {judged} right")


if __name__ == "__main__":
    main()
