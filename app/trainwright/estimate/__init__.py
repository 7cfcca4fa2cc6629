"""Memory, time and verdicts from a profile and a machine."""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _Package(ModuleType):
    """The package, callable: ``trainwright.estimate(plan)`` is ``trainwright.api.estimate(plan)``.

    The function of the Python interface has the package's name, and Python binds the package to
    it wherever one of its modules is imported.
    """

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Return what ``trainwright.api.estimate`` returns; a layer above, so imported late."""
        return import_module("trainwright.api").estimate(*arguments, **named)


sys.modules[__name__].__class__ = _Package
