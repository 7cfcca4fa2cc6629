"""What one batch says of the work that is done for nothing: padding, and targets that are ignored.

Looked at once, on the processor: a mask of trailing positions, and no copy of the data.
"""

from collections.abc import Sequence
from typing import Any

SEQUENCE = 16
"""Positions from which rows are sequences, and what ends them alike may be padding; assumed."""
SIGNAL = 64
"""Positions from which rows of single numbers are: shorter ones are features; assumed."""
FULL = 0.1
"""Share of padding up to which the largest picture counts as whole; assumed."""
AROUND = 0.02
"""Share of pictures' sides up to which nothing is around them; assumed."""
COMMON = 0.2
"""Share of a row within which makes of a value that fills up one like any other; assumed."""
IGNORED = -100
"""Of torch's cross entropy: targets that no score is compared with."""
_OF_TARGETS = ("label", "target")
"""In the names of what a mapping has to compare with."""


def batch_facts(batch: Any) -> dict[str, Any]:
    """Return the share of a batch's positions that only fill rows up, and of ignored targets.

    What fills up: of whole numbers, the value that most rows end or begin with; of features,
    positions of zeros alone; of signals, zeros at their ends; of pictures, ends that the largest
    one has not, or that are not at their beginnings as well.
    """
    inputs, targets = _parted(batch)
    shares = [share for each in inputs if (share := padding(each)) is not None]
    found: dict[str, Any] = {"sequence_padding": max(shares)} if shares else {}
    whole = [each for each in targets if _is_whole(each) and bool((each == IGNORED).any())]
    if whole:
        ignored = sum(int((each == IGNORED).sum()) for each in whole)
        count = sum(int(each.numel()) for each in whole)
        found |= {"ignored_targets": ignored / count, "_targets": count}
    return found


def _parted(batch: Any) -> tuple[list[Any], list[Any]]:
    """Return the tensors that a model takes, and those that its answers are compared with."""
    if hasattr(batch, "items") and not hasattr(batch, "cumprod"):
        named = {key: any(word in str(key).lower() for word in _OF_TARGETS) for key in batch}
        inputs, targets = (
            [batch[key] for key, told in named.items() if told is wanted]
            for wanted in (False, True)
        )
        return _tensors(inputs), _tensors(targets)
    if isinstance(batch, (list, tuple)) and len(batch) > 1:
        return _tensors(batch[:-1]), _tensors(batch[-1])
    return _tensors(batch), []


def _tensors(batch: Any, depth: int = 0) -> list[Any]:
    """Return the tensors of a batch, which may be in lists and mappings."""
    if hasattr(batch, "cumprod") and hasattr(batch, "is_floating_point"):
        return [batch]
    inside = batch.values() if hasattr(batch, "values") else batch
    if depth > 3 or not (hasattr(batch, "values") or isinstance(batch, (list, tuple))):
        return []
    return [each for one in list(inside)[:16] for each in _tensors(one, depth + 1)]


def _is_whole(values: Any) -> bool:
    return not values.is_floating_point() and not values.is_complex()


def padding(values: Any) -> float | None:
    """Return the share of a tensor's positions that fill rows up; None where it has none."""
    if values.device.type != "cpu" or min(values.shape, default=0) < 1 or values.is_complex():
        return None
    if values.dim() == 4 and values.is_floating_point() and min(values.shape[2:]) >= SEQUENCE:
        return _margins(values)
    whole = _is_whole(values)
    if values.dim() not in ((2,) if whole else (2, 3)) or min(values.shape) < 2:
        return None
    if max(values.shape[1:]) < (SEQUENCE if whole or values.dim() == 3 else SIGNAL):
        return None
    if whole:
        if values.dtype.itemsize < 2 or int(values.max()) - int(values.min()) < 2:
            return None  # a mask, or what else is yes or no, says not which of both fills up
        return max(_fills(values == values[:, at].mode().values, back) for at, back in _ENDS)
    if values.dim() == 3:  # positions and what each has, or the other way round
        empty = ((values == 0).all(at) for at in (2, 1) if values.shape[3 - at] >= SEQUENCE)
        return max(_fills(each, back) for each in empty for _, back in _ENDS)
    return _fills(values == 0, True) or None  # a signal's end


_ENDS: Sequence[tuple[int, bool]] = ((-1, True), (0, False))


def _run(filling: Any, back: bool) -> Any:
    """Return which positions belong to a row's filled end, or to its filled beginning."""
    return (filling.flip(1) if back else filling).int().cumprod(1)


def _fills(filling: Any, back: bool) -> float:
    """Return the share of filled ends; 0 where the same is common within the rows as well."""
    ends, alike, count = int(_run(filling, back).sum()), int(filling.sum()), int(filling.numel())
    return ends / count if alike - ends <= COMMON * (count - ends) else 0.0


def _margins(pictures: Any) -> float | None:
    """Return the share of pictures below and right of what they show.

    What fills up is of one colour, that of the last corner. The largest has none of it, or none
    has it above and on the left, where it were a background.
    """
    plain = (pictures == pictures[:, :, -1:, -1:]).all(1)
    below, right, above, left = (
        _run(plain.all(at), back).float().mean(1) for back in (True, False) for at in (2, 1)
    )
    whole = max(float(below.min()), float(right.min())) <= FULL
    if not whole and max(float(above.mean()), float(left.mean())) > AROUND:
        return None
    return float((1 - (1 - below) * (1 - right)).mean()) or None
