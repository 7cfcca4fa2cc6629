"""A file of the user's, with code in it, as a plan's model."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from trainwright import reading
from trainwright.messages import UserError
from trainwright.plan.schema import Plan
from trainwright.workload import Inputs, ModelSource, PythonSource, Workload

Takes = Literal["images", "tokens", "neither"]
SUFFIXES = (".py", ".pt2")
BATCH = 16
"""Samples an optimizer step where the plan had none; assumed."""
_NAMED = re.compile(r"^(?:def|class) +([A-Za-z]\w*)", re.MULTILINE)
_READ = 1 << 20
"""Bytes that are looked at for names; as many as the tracer reads."""


@dataclass(frozen=True, slots=True)
class Code:
    """What a person answered about a file."""

    file: Path
    factory: str
    """Empty for an exported program."""
    takes: Takes
    size: int
    """Pixels a side, or tokens."""

    @property
    def source(self) -> ModelSource:
        """The model's source in a plan."""
        if not self.factory:
            return ModelSource(pt2=str(self.file))
        return ModelSource(python=PythonSource(file=str(self.file), factory=self.factory))

    @property
    def inputs(self) -> Inputs:
        """What one sample is."""
        match self.takes:
            case "images":
                return Inputs(image_size=self.size)
            case "tokens":
                return Inputs(sequence_length=self.size)
            case "neither":
                return Inputs()


def factories(file: Path) -> list[str]:
    """Return what a Python file defines at its top, read and not run; builders first."""
    try:
        with reading.opened(file, str(file)) as opened:
            text = opened.read(_READ).decode("utf-8", errors="replace")
    except UserError:
        return []
    found = list(dict.fromkeys(_NAMED.findall(text.replace("\r", "\n"))))
    return sorted(found, key=lambda name: not name.lower().startswith(("build", "make", "create")))


def for_code(plan: Plan, code: Code) -> Plan:
    """Return the plan with that model, trained in full, with every setting free."""
    old = plan.workload
    workload = Workload(
        task="full",
        inputs=code.inputs,
        effective_batch=old.effective_batch or BATCH,
        samples=old.samples,
        epochs=old.epochs,
        dataset=old.dataset,
    )
    settings = type(plan.settings)()
    return plan.model_copy(
        update={"model": code.source, "workload": workload, "settings": settings}
    )
