"""What the files in ``resources/calibration`` are made of."""

from pydantic import BaseModel, ConfigDict, Field


class Entry(BaseModel):
    """A part of a calibration file: whole, finite, and without keys that nobody reads."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Constant(Entry):
    """One number, in base units, and where it comes from."""

    value: float = Field(ge=0)
    source: str


class Positive(Constant):
    """A number that something is divided by, or whose logarithm is taken."""

    value: float = Field(gt=0)
