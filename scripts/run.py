"""``make run``: open the app; where there is no display, plan the examples on the command line."""

import os
import subprocess
import sys
from pathlib import Path

from trainwright.cli import display

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "resources" / "examples"
EXPORTED = "llama-8b-lora"
OUT = Path("build") / "example"


def main() -> int:
    os.chdir(ROOT)
    if display.present():
        return run("scripts/system_packages.py", "--for", "window") or trainwright()
    say("There is no display here, so the app cannot open.")
    say("The examples are planned on the command line instead.")
    refused = 0
    for plan in sorted(EXAMPLES.glob("*.plan.yaml")):
        path = str(plan.relative_to(ROOT))
        say(f"\n$ trainwright estimate {path}")
        refused += trainwright("estimate", path) not in (0, 1)
    plan = str((EXAMPLES / f"{EXPORTED}.plan.yaml").relative_to(ROOT))
    command = ("export", plan, "--to", "plain", "--out", str(OUT), "--overwrite")
    say(f"\n$ trainwright {' '.join(command)}")
    return trainwright(*command) or bool(refused)


def trainwright(*arguments: str) -> int:
    """Run the program as a person would, and return its exit code."""
    return run("-m", "trainwright", *arguments)


def run(*arguments: str) -> int:
    return subprocess.run([sys.executable, *arguments], check=False).returncode


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
