"""Single keys set by name: ``settings.micro_batch=8``, as ``--set`` and the form do it."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainwright.messages import UserError
from trainwright.plan import problems
from trainwright.quoting import dotted, one_line
from trainwright.yamltext import Place, parse


@dataclass(frozen=True, slots=True)
class Change:
    """A key and the value that it is to take; None takes the key away."""

    place: Place
    value: Any
    text: str
    """What errors call it: the option as the person wrote it, or the key alone."""

    def touches(self, place: Place) -> bool:
        """Return whether the place lies within what the change sets."""
        return place[: len(self.place)] == self.place


def parse_change(text: str) -> Change:
    """Return the change written as ``key=value``; the value is a YAML scalar or ``{}``/``[]``.

    Raises:
        UserError: no ``=``, no such key, or a value that is not YAML.
    """
    key, equals, value = text.partition("=")
    if not equals:
        raise UserError.of("plan.change-without-value", text=one_line(text, 80))
    place = place_of(key.strip(), "--set ")
    option = f"--set {one_line(text, 80)}"
    return Change(place, parse(value, option, above=place).data, option)


def changes_of(values: Mapping[str, Any]) -> list[Change]:
    """Return the changes of plain data by dotted key.

    Raises:
        UserError: no such key, a value that is not plain data, or an object for a whole section,
            which would drop the section's other keys.
    """
    return [_change(str(key), value) for key, value in values.items()]


def _change(key: str, value: Any) -> Change:
    place = place_of(key)
    if len(place) == 1 and isinstance(value, Mapping):
        inner = next(iter(value), next(iter(problems.known_keys(place)), "key"))
        example = one_line(f"{key}.{inner}", 80)
        raise UserError.of("plan.section-replaced", key=key, example=example)
    try:
        plain = json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        kind = type(value).__name__
        raise UserError.of("plan.value-not-data", key=key, kind=kind) from None
    return Change(place, plain, dotted(place))


def place_of(key: str, option: str = "") -> Place:
    """Return the place that a dotted key names; ``machine.gpus[0].count`` or ``.0.count``.

    ``option`` is what errors put before the key.

    Raises:
        UserError: the schema has no such key.
    """
    named = option + one_line(key, 80)
    place: list[str | int] = []
    bracketed = re.sub(r"\.([0-9]{1,3})(?=\.|$)", r"[\1]", key)  # gpus.0.id, as jq has it
    for part in bracketed.split("."):
        name = part.partition("[")[0]
        positions = part[len(name) :]
        if not name or not re.fullmatch(r"(\[[0-9]{1,3}\])*", positions):
            raise UserError.of("plan.odd-change-key", key=named)
        place.append(name)
        place.extend(int(number) for number in re.findall(r"[0-9]+", positions))
    for length in range(1, len(place) + 1):
        *above, last = place[:length]
        keys = problems.known_keys(tuple(above))
        if isinstance(last, str) and keys and last not in keys:
            problem = problems.unknown_key((*above, last))
            raise UserError.of("plan.invalid-key", key=named, problem=problem, more="")
    return tuple(place)


def apply(data: dict[str, Any], change: Change) -> None:
    """Carry out the change on plain data, in place.

    Raises:
        UserError: the key goes through something that holds no keys, or past a list's end.
    """
    holder: Any = data
    for part, following in zip(change.place, change.place[1:], strict=False):
        holder = _step(holder, part, [] if isinstance(following, int) else {}, change)
    last = change.place[-1]
    if change.value is None and isinstance(holder, dict):
        holder.pop(last, None)
    elif isinstance(holder, list) and isinstance(last, int) and last == len(holder):
        holder.append(change.value)
    else:
        _step(holder, last, change.value, change)
        holder[last] = change.value


def _step(holder: Any, part: str | int, new: Any, change: Change) -> Any:
    """Return what the holder has under the part, putting ``new`` where it has nothing."""
    if isinstance(holder, dict) and isinstance(part, str):
        if holder.get(part) is None:
            holder[part] = new
        return holder[part]
    if isinstance(holder, list) and isinstance(part, int):
        if part == len(holder):
            holder.append(new)
        if part < len(holder):
            return holder[part]
    raise UserError.of("plan.change-nowhere", key=dotted(change.place), text=change.text)
