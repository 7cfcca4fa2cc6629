"""Lets exceptions leave overridden Qt methods without taking the program down.

Python 3.11 hands on what C code raises, such as the IndexError of ``()[0]``, without an exception
object. PySide6 looks into that object when the method was called from Python through Qt
(``Shiboken::Errors::storePythonOverrideErrorOrPrint``): a segmentation fault. Any handler that the
exception passes makes the object. Python 3.12 always has one.
"""

import sys
from collections.abc import Callable
from functools import wraps
from types import FunctionType
from typing import Any

from PySide6.QtCore import QObject


def make_safe() -> None:
    """Wrap the Qt methods that classes override from now on, where this Python needs it."""
    if sys.version_info < (3, 12):
        QObject.__init_subclass__ = classmethod(_wrap)  # type: ignore[assignment, method-assign]


def _wrap(cls: type, /, **more: Any) -> None:
    super(QObject, cls).__init_subclass__(**more)  # type: ignore[misc]  # bases such as Generic
    for name, method in list(vars(cls).items()):
        if isinstance(method, FunctionType) and _is_qts(name, cls):
            setattr(cls, name, _whole(method))


def _is_qts(name: str, cls: type) -> bool:
    bases = (base for base in cls.__mro__[1:] if base.__module__.startswith("PySide6."))
    return any(name in vars(base) for base in bases)


def _whole(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def call(*args: Any, **named: Any) -> Any:
        try:
            return method(*args, **named)
        except BaseException:
            raise

    return call
