"""MIG files (``*.mig.yaml``): the layouts that somebody drew, and the jobs for them."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from trainwright import __version__
from trainwright.catalog.yaml_file import read_document
from trainwright.messages import UserError
from trainwright.mig import board
from trainwright.mig.board import Sketch
from trainwright.mig.boards import MOST_GPUS, Boards
from trainwright.mig.jobs import Need, wrong
from trainwright.mig.layout import Instance
from trainwright.quoting import dotted, one_line
from trainwright.yamltext import dump

SUFFIX = ".mig.yaml"
FORMAT: Literal[1] = 1
_Typed = Annotated[str, Field(max_length=10_000)]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Typed(_Frozen):
    """A job as somebody typed it, not checked yet."""

    name: _Typed = ""
    memory: _Typed = ""
    hours: _Typed = ""
    number: Annotated[int, Field(ge=1, le=100_000)] = 1


class Placed(_Frozen):
    """An instance, and the job that runs on it."""

    profile: str
    start: Annotated[int, Field(ge=0)]
    job: str | None = None


Placements = Annotated[tuple[tuple[Placed, ...], ...], Field(min_length=1, max_length=MOST_GPUS)]


class Drawing(_Frozen):
    """All that was drawn and typed."""

    trainwright_mig: Literal[1] = FORMAT
    gpu: str
    """Id of the GPU that is looked at."""
    boards: Mapping[
        str, Annotated[tuple[tuple[Placed, ...], ...], Field(min_length=1, max_length=MOST_GPUS)]
    ]
    """By the GPU's id: the instances of each of them."""
    rows: tuple[Typed, ...] = ()
    file: str | None = None
    """The jobs file that ``needs`` are from."""
    needs: tuple[Need, ...] = ()


def read(path: Path) -> Drawing:
    """Return the drawing in a file.

    Raises:
        UserError: the file cannot be read, is of a later version, or a key of it is wrong.
    """
    document, name = read_document(path), one_line(str(path), 300)
    data = document.data
    version = data.get("trainwright_mig") if isinstance(data, dict) else None
    if isinstance(version, int) and version > FORMAT:
        raise UserError.of("mig.newer", file=name, version=version, program=__version__)
    if version is None:
        raise UserError.of("mig.not-a-drawing", file=name)
    try:
        drawing = Drawing.model_validate(data)
    except ValidationError as error:
        first: Any = error.errors()[0]
        file, key = document.where(name, first["loc"]), dotted(first["loc"]) or "trainwright_mig"
        raise UserError.of("mig.bad-file", file=file, key=key, problem=wrong(first)) from None
    if drawing.file is None:
        return drawing
    return drawing.model_copy(update={"file": os.path.abspath(path.parent / drawing.file)})


def text_of(drawing: Drawing, folder: Path | None = None) -> str:
    """Return the drawing as the text of a file; a jobs file below ``folder`` is relative to it."""
    jobs = Path(drawing.file or "")
    if drawing.file is not None and folder is not None and jobs.is_relative_to(folder):
        drawing = drawing.model_copy(update={"file": jobs.relative_to(folder).as_posix()})
    data = drawing.model_dump(mode="json", exclude_defaults=True, exclude_none=True)
    data = {"trainwright_mig": FORMAT} | data
    return dump(data, frozenset({"boards"}))


def placed(boards: Boards) -> tuple[tuple[Placed, ...], ...]:
    """Return the instances of each GPU."""
    return tuple(tuple(_placed(sketch)) for sketch in boards.sketches)


def _placed(sketch: Sketch) -> Iterator[Placed]:
    for each in sketch.layout:
        if each.start is not None:
            job = sketch.drawn.jobs.get(each)
            yield Placed(profile=each.profile, start=each.start, job=job)


def drawn(blank: Sequence[Sketch], instances: Sequence[Sequence[Placed]]) -> Boards:
    """Return boards with these instances, drawn on ``blank`` sketches in one step.

    Raises:
        UserError: an instance has no place there.
    """
    sketches = []
    for sketch, wanted in zip(blank, instances, strict=True):
        made = board.replaced(sketch, (), {})
        for each in wanted:
            made = board.add(made, each.profile, each.start)
        jobs = {Instance(each.profile, each.start): each.job for each in wanted if each.job}
        sketches.append(board.replaced(made, made.layout, jobs))
    return Boards(tuple(sketches), (tuple(blank),))
