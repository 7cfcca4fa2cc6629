"""The jobs file: what wants to run on instances, by plan or by plain needs."""

from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from trainwright.catalog.problems import brief, expected
from trainwright.catalog.yaml_file import read_document
from trainwright.messages import Message, UserError
from trainwright.mig.packing import MOST_JOBS
from trainwright.quoting import dotted, one_line
from trainwright.yamltext import Document


class Need(BaseModel):
    """One job, or several alike."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: Annotated[str, Field(min_length=1, max_length=100)]
    count: Annotated[int, Field(ge=1, le=100_000)] = 1
    priority: Annotated[int, Field(ge=-1000, le=1000)] = 0
    """Higher is more urgent."""
    plan: str | None = None
    """A plan file, from the jobs file's folder; memory and time on each instance are estimated."""
    memory_gib: Annotated[float, Field(gt=0, le=100_000)] | None = None
    """Of a job without a plan: what it takes, the CUDA context included."""
    hours: Annotated[float, Field(gt=0, le=1e6)] | None = None
    """Of a job without a plan: on the whole GPU alone; assumed to grow as processors shrink."""

    @model_validator(mode="after")
    def _plan_or_needs(self) -> Self:
        if not self.name.strip():
            raise PydanticCustomError("mig.blank-name", "blank")
        if (self.plan is None) == (self.memory_gib is None):
            raise PydanticCustomError("mig.plan-or-memory", "either plan, or memory_gib")
        if self.plan is not None and self.hours is not None:
            raise PydanticCustomError("mig.hours-of-plan", "hours only beside memory_gib")
        return self


class _Jobs(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    jobs: tuple[Need, ...]


def read(path: Path) -> tuple[Need, ...]:
    """Return the jobs of a file.

    Raises:
        UserError: the file cannot be read, or a key of it is wrong, which is named with its line;
            or it asks for no job, or for more than are planned at once.
    """
    document, name = read_document(path), one_line(str(path), 300)
    try:
        needs = _Jobs.model_validate(document.data).jobs
    except ValidationError as error:
        raise _explained(error, document, name) from None
    if not needs:
        raise UserError.of("mig.no-jobs", file=name)
    total = sum(need.count for need in needs)
    if total > MOST_JOBS:
        problem = Message.of("mig.too-many-jobs", asked=total, most=MOST_JOBS)
        raise UserError.of("mig.in-file", file=name, problem=problem)
    return needs


def wrong(error: ErrorDetails) -> Message:
    """Return what is wrong at a key of a file."""
    match error["type"]:
        case "missing":
            return Message.of("mig.key-missing")
        case "extra_forbidden":
            return Message.of("mig.key-unknown")
        case _ if error["input"] is None:
            return Message.of("mig.key-empty")
    return Message.of("mig.key-wrong", given=brief(error["input"]), expected=expected(error))


def _explained(error: ValidationError, document: Document, name: str) -> UserError:
    first: Any = error.errors()[0]
    place = first["loc"]
    ours = first["type"].startswith("mig.")
    return UserError.of(
        "mig.bad-jobs",
        file=document.where(name, place),
        key=dotted(place) or "jobs",
        problem=Message.of(first["type"]) if ours else wrong(first),
    )
