"""What a program says when it cannot go on: a message id and its values, never a traceback."""

from typing import Any


class Refusal(Exception):  # noqa: N818
    """A reason that the person can act on, by its id in the catalogue."""

    def __init__(self, id: str, **values: Any) -> None:
        super().__init__(id)
        self.id = id
        self.values = values
