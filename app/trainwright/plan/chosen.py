"""What a search chose for keys that a plan leaves open: values with their reasons.

They hold until the next search, or until the key is fixed. What a person fixes goes before them.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from trainwright.messages import Message, render
from trainwright.messages.catalogue import known
from trainwright.workload.settings import Frozen, Loader, Settings

_Word = Annotated[str, Field(max_length=200)]
Plain = bool | int | float | _Word
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
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
        with_values(Settings(), {key: one.value for key, one in found.items()})
    except (ValueError, LookupError):
        raise PydanticCustomError("plan.problem.odd-choice", "no such setting or value") from None


def with_values(settings: Settings, values: Mapping[str, Any]) -> Settings:
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
