"""A command line as a record or a report of a crash may hold it."""

import re
from collections.abc import Sequence

from trainwright.diagnose.recorder.redact import SHADOW, is_option, is_secret

_PROGRAMS = re.compile(
    r"(?:i?python[\d.]*|torchrun|accelerate|deepspeed|mpirun|mpiexec|srun|bash|sh|uv|conda|poetry"
    r"|trainwright)(?:\.exe)?",
    re.IGNORECASE,
)
"""Programs that start trainings; others may be somebody's own."""


def command(words: Sequence[str]) -> str:
    """Return a command line with the names of its options and none of their values."""
    shown: list[str] = []
    hidden = False
    for at, word in enumerate(words):
        name, _, value = word.partition("=")
        if at == 0 and _PROGRAMS.fullmatch(base := re.split(r"[\\/]", word)[-1]):
            shown.append(base)
        elif not hidden and is_option(name):
            shown.append(name + (f"={SHADOW}" if value else ""))
            hidden = not value and is_secret(name)
            continue
        elif shown[-1:] != [SHADOW]:
            shown.append(SHADOW)
        hidden = False
    return " ".join(shown)
