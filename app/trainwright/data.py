"""Where the shipped data folders are, in a checkout and in a wheel."""

from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).parent
_CHECKOUT = _PACKAGE.parents[1]


@cache
def folder(name: str) -> Path:
    """Return the folder ``hardware_db`` or ``resources``.

    A checkout wins over ``_data``: an editable install leaves a stale copy of the
    data beside the package, and people edit the folders at the top.
    """
    checkout = _CHECKOUT / name
    return checkout if checkout.is_dir() and edited() else _PACKAGE / "_data" / name


@cache
def edited() -> bool:
    """Return whether the data are those of a checkout, which people edit."""
    return (_CHECKOUT / "pyproject.toml").is_file()


def resources(*parts: str) -> Path:
    """Return a path below ``resources/``."""
    return folder("resources").joinpath(*parts)


def hardware_db(*parts: str) -> Path:
    """Return a path below ``hardware_db/``."""
    return folder("hardware_db").joinpath(*parts)
