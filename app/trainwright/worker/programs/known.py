"""Numbers that stay known in a trace: tokens of a text, grids of images, and what follows.

Models of text and images size what they make by such numbers. What is computed from known whole
numbers and truth values alone is computed for real too, on the host, and answers what is asked.
"""

import math
from typing import Any

import torch
from autocast import tensors
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import _disable_current_modes

LARGEST = 1 << 22
"""Elements of a tensor that is followed; assumed: as many as a mask of 2,048 tokens has."""
_MADE = {"arange", "zeros", "ones", "full", "new_zeros", "new_ones", "new_full"}
"""Operators whose result depends on no tensor's content."""

_forgotten: list[Any] = []
"""Storages into which unknown numbers were written; held, so that no other is taken for one."""


def install() -> None:
    """Let lists of known numbers be made without a look at each."""
    original = FakeTensor.tolist

    def tolist(tensor: FakeTensor) -> Any:
        found = value(tensor)
        return original(tensor) if found is None else found.tolist()

    FakeTensor.tolist = tolist


def whole(numbers: Any) -> torch.Tensor:
    """Return a tensor of whole numbers on the host, which a trace knows."""
    made = torch.tensor(numbers)
    remember(made, numbers)
    return made


def remember(made: torch.Tensor, numbers: Any) -> None:
    """Note on a tensor that was made of Python's numbers what it holds."""
    if isinstance(made, FakeTensor) and not made.is_floating_point():
        with _disable_current_modes():
            made._known = torch.tensor(numbers, dtype=made.dtype)


def value(tensor: Any) -> torch.Tensor | None:
    """Return what a fake tensor holds; None where nobody knows."""
    found: torch.Tensor | None = getattr(tensor, "_known", None)
    if found is None:
        return getattr(tensor, "constant", None)
    storage = found.untyped_storage()
    return None if any(storage.data_ptr() == one.data_ptr() for one in _forgotten) else found


def note(out: Any, real: Any) -> None:
    """Note on what an operator made what it holds."""
    for fake, found in zip(tensors(out), tensors(real), strict=True):
        if isinstance(fake, FakeTensor) and not found.is_floating_point():
            fake._known = found


def follow(func: Any, args: Any, kwargs: Any) -> Any:
    """Return an operator's result on known whole numbers; None where some are not known."""
    name = func._schema.name.split("::")[-1]
    given = list(tensors((args, kwargs)))
    if name in _MADE:
        known = _counts(name, args, kwargs)
    else:
        known = bool(given) and not any(one.is_floating_point() for one in given)
        known = known and all(value(one) is not None for one in given)
    if not known:
        if func._schema.is_mutable and given and (lost := value(given[0])) is not None:
            _forgotten.append(lost.untyped_storage())
        return None
    options = {key: _real(each) for key, each in kwargs.items() if key != "pin_memory"}
    if options.get("device") is not None:
        options["device"] = torch.device("cpu")
    with _disable_current_modes():
        return func(*map(_real, args), **options)


def made(func: Any, args: Any, real: Any) -> tuple[bool, Any]:
    """Return (True, result) of an operator whose form depends on numbers that are known."""
    if isinstance(real, (bool, int)):
        return True, real
    if real is None or torch.Tag.dynamic_output_shape not in func.tags:
        return False, None
    source = next(tensors(args))
    found = [source.new_empty(each.shape, dtype=each.dtype) for each in tensors(real)]
    return True, found[0] if isinstance(real, torch.Tensor) else tuple(found)


def copied(source: torch.Tensor, kwargs: dict[str, Any]) -> Any:
    """Return the fake copy; fake tensors would make a real one of a number that they know.

    So of the window that transformers' sliding cache moves to the device.
    """
    found = getattr(source, "constant", None)
    if found is None or kwargs.get("device") is None:
        return torch.ops.aten._to_copy.default(source, **kwargs)
    source.constant = None
    try:
        return torch.ops.aten._to_copy.default(source, **kwargs)
    finally:
        source.constant = found


def _counts(name: str, args: Any, kwargs: Any) -> bool:
    """Return whether a tensor that is made has whole numbers, and not too many."""
    dtype = kwargs.get("dtype")
    if name == "arange":
        return (dtype is None or not dtype.is_floating_point) and all(
            isinstance(each, int) for each in args
        )
    if name.startswith("new_"):
        dtype, args = dtype or args[0].dtype, args[1:]
    if name == "full" and dtype is None and isinstance(args[1], int):
        dtype = torch.int64
    return dtype is not None and not dtype.is_floating_point and math.prod(args[0]) <= LARGEST


def _real(given: Any) -> Any:
    if isinstance(given, torch.Tensor):
        found = value(given)
        return torch.empty((), dtype=given.dtype) if found is None else found  # a form to make
    return type(given)(map(_real, given)) if isinstance(given, (list, tuple)) else given
