"""What a search chose for keys that a plan leaves open: values with their reasons.

They hold until the next search, or until the key is fixed. What a person fixes goes before them.
"""

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from trainwright.catalog import GpuRecord
from trainwright.messages import Message, UserError, render
from trainwright.messages.catalogue import known
from trainwright.workload.defaults import filled
from trainwright.workload.settings import Frozen, FullSettings, Loader, Settings

if TYPE_CHECKING:
    from trainwright.plan.schema import Plan

_Word = Annotated[str, Field(max_length=200)]
Plain = bool | int | float | _Word
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_BATCH = ("micro_batch", "accumulation")
_MOST_VALUES = 20
"""Of a reason; assumed, ours have at most eight."""


class Chosen(Frozen):
    """One value that a search chose, and why."""

    value: Plain
    because: Annotated[str, Field(pattern=r"^advise\.[a-z0-9.-]{1,80}$")]
    """Id of the reason in the catalogue of sentences."""
    values: dict[str, Plain] = Field(default_factory=dict)
    """What the sentence's placeholders take."""
    source: _Word = "estimate"
    """Where the rule comes from."""

    @model_validator(mode="after")
    def _can_be_said(self) -> "Chosen":
        odd = [name for name in self.values if not _NAME.fullmatch(name)]
        if odd or len(self.values) > _MOST_VALUES or not _said(self.reason):
            raise PydanticCustomError("plan.problem.unknown-reason", "no such reason")
        return self

    @property
    def reason(self) -> Message:
        """Return the reason as a sentence."""
        return Message.of(self.because, **self.values)


def _said(reason: Message) -> bool:
    """Return whether the catalogue has the sentence, and the values are those that it takes."""
    try:
        return known(reason.id) and bool(render(reason, "en"))
    except (KeyError, ValueError, TypeError, AttributeError, IndexError, OverflowError):
        return False


def check(found: Mapping[str, Chosen]) -> None:
    """Refuse a key that is not a setting, and a value that it cannot take.

    Raises:
        PydanticCustomError: for the reader of a file.
    """
    try:
        _with(Settings(), {key: one.value for key, one in found.items()})
    except (ValueError, LookupError):
        raise PydanticCustomError("plan.problem.odd-choice", "no such setting or value") from None


def in_force(plan: "Plan") -> Settings:
    """Return the settings with what was chosen for the keys that are open."""
    return _with(plan.settings, {key: one.value for key, one in open_choices(plan)})


def open_choices(plan: "Plan") -> Iterator[tuple[str, Chosen]]:
    """Yield what was chosen for keys that the plan does not fix."""
    for key, one in plan.chosen.items():
        section, _, name = key.rpartition(".")
        if getattr(plan.settings.loader if section else plan.settings, name) is None:
            yield key, one


def completed(
    plan: "Plan", record: GpuRecord, gpu_count: int, cores: int | None
) -> tuple[FullSettings, tuple[Message, ...]]:
    """Return the complete settings, and what must be said of choices that were left out.

    After an edit a choice may not go with the plan any more: first the batch gives way, then all.

    Raises:
        UserError: what the plan fixes contradicts itself, the workload or the GPU.
    """
    values = {key: one.value for key, one in open_choices(plan)}
    rest = {key: value for key, value in values.items() if key not in _BATCH}
    for kept in (values, rest) if values else ():
        try:
            settings = _with(plan.settings, kept)
            full = filled(settings, plan.workload, record, gpu_count, cores, plan.machine.nodes)
        except UserError:
            continue
        dropped = Message.of("plan.note.choices-dropped")
        return full, () if kept is values else (dropped,)
    full = filled(plan.settings, plan.workload, record, gpu_count, cores, plan.machine.nodes)
    return full, (Message.of("plan.note.choices-dropped"),) if values else ()


def completed_with(
    plan: "Plan", values: Mapping[str, Any], record: GpuRecord, gpu_count: int, cores: int | None
) -> FullSettings:
    """Return the complete settings with values for keys that the plan leaves open.

    Raises:
        UserError: they contradict the rest, the workload or the GPU.
    """
    open_ = {key: one for key, one in values.items() if getattr(plan.settings, key) is None}
    settings = _with(plan.settings, open_)
    return filled(settings, plan.workload, record, gpu_count, cores, plan.machine.nodes)


def _with(settings: Settings, values: Mapping[str, Any]) -> Settings:
    """Return settings with further keys, ``loader.num_workers`` among them, each validated."""
    own = {key: value for key, value in values.items() if "." not in key}
    fed = {key.removeprefix("loader."): v for key, v in values.items() if key.startswith("loader.")}
    if len(own) + len(fed) != len(values) or "loader" in own:
        raise LookupError
    if not values:
        return settings
    data = settings.model_dump(exclude_unset=True, exclude={"loader"}) | own
    loader = settings.loader.model_dump(exclude_unset=True) | fed
    return Settings.model_validate({**data, "loader": Loader.model_validate(loader)}, strict=True)
