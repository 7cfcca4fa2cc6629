"""What any number of files say together, as one ``Evidence``."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trainwright import ranges, reading
from trainwright.diagnose import budget, record
from trainwright.diagnose.evidence import RECORD, Evidence
from trainwright.diagnose.readers import files
from trainwright.diagnose.readers.files import FileRead
from trainwright.diagnose.readers.found import gpu_readings, in_use
from trainwright.messages import Message, UserError
from trainwright.quoting import one_line

MOST_FILES = 1000
"""Files of one run; assumed."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """What all files say together."""

    evidence: Evidence
    files: tuple[FileRead, ...]
    budget: budget.Budget | None


def gather(sources: Sequence[Path | str]) -> Gathered:
    """Return what files say together; ``-`` is standard input.

    Where two of them give the same reading, the first file's counts.

    Raises:
        UserError: a file cannot be read, is of no known format, or holds impossible figures.
    """
    if len(sources) > MOST_FILES:
        raise UserError.of("diagnose.file.too-many", limit=MOST_FILES)
    held, facts, gpus = [], dict[str, Any](), list[dict[str, Any]]()
    divided: list[budget.Budget] = []
    for source in sources:
        name = reading.STDIN if str(source) == "-" else one_line(str(source), 300)
        file, parts = files.read(source, name)
        again = bool(facts.get("steps")) and any("steps" in each.facts for each in parts)
        for found in parts:
            said = dict(found.facts)
            gpus = _joined_gpus(gpus, [*said.pop("gpus", []), *gpu_readings(found.gpus)])
            facts = _joined(facts, said)
            divided += [found.budget] if found.budget is not None and not again else []
        _evidence(facts, gpus, name)  # so that the file whose figures are impossible is named
        missed = Message.of("diagnose.file.steps-already")
        held.append(replace(file, missed=(*file.missed, missed)) if again else file)
    evidence = _evidence(facts, in_use(gpus), "")
    best = max(divided, key=lambda each: len(each.shares), default=budget.of(evidence))
    return Gathered(evidence, tuple(held), best)


_WHOLE = ("steps", "counters", "loading")
"""Parts whose figures belong together: they are taken from one file."""


def _joined(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Return both; where both say something, the first counts."""
    joined = dict(first)
    for key, value in second.items():
        held = joined.get(key)
        if not held:
            joined[key] = value
        elif isinstance(held, dict) and isinstance(value, dict) and key not in _WHOLE:
            joined[key] = _joined(held, value)
    return joined


def _joined_gpus(first: list[dict[str, Any]], second: list[dict[str, Any]]) -> list[dict[str, Any]]:
    longer = max(len(first), len(second))
    padded = [each + [{}] * (longer - len(each)) for each in (first, second)]
    return [_joined(one, other) for one, other in zip(*padded, strict=True)]


def _evidence(facts: dict[str, Any], gpus: list[dict[str, Any]], name: str) -> Evidence:
    """Return the evidence, judged as a record's is.

    Raises:
        UserError: a figure is impossible, such as a part that is longer than its step.
    """
    document = {"trainwright_record": RECORD, "made_by": "readings"} | facts
    if gpus:
        document["gpus"] = gpus
    if (odd := ranges.first_odd(document)) is not None:
        raise reading.odd_number(name, *odd)
    return record.parsed(json.dumps(document), name)
