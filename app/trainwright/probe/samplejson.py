"""Samples as JSON: a missing reading is ``{"missing": id, ...}`` with what its sentence needs.

For people and their programs ``"because"`` says it in English as well.
"""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache, partial
from types import MappingProxyType, UnionType
from typing import Any, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

from trainwright.messages import Message, render
from trainwright.probe.reading import Missing
from trainwright.probe.sample import NOT_READ, GpuSample, Sample

T = TypeVar("T")


Gpus = tuple[GpuSample, ...] | Missing


def as_document(sample: Sample, *, because: bool = False) -> dict[str, Any]:
    """Return a sample as JSON; readings that nobody took are left out.

    With ``because``, each missing reading has its reason in English too.
    """
    return cast("dict[str, Any]", _written(sample, because))


def gpus_as_document(gpus: Gpus) -> Any:
    """Return the GPUs of a sample as JSON."""
    return _written(gpus)


def gpus_of(document: Any) -> Gpus:
    """Return the GPUs that a document holds.

    Raises:
        ValueError: it does not hold any; says where and what was found.
    """
    return cast("Gpus", _value(Gpus, document, "gpus"))


def sample_of(document: Mapping[str, Any]) -> Sample:
    """Return the sample that a document holds.

    Raises:
        ValueError: the document is none of a sample; says where and what was found.
    """
    return _read(Sample, document, "sample")


def _written(value: Any, because: bool = False) -> Any:
    write = partial(_written, because=because)
    match value:
        case Missing(reason=reason):
            said = {"because": render(reason, "en")} if because else {}
            return {"missing": reason.id, **_plain(reason.values), **said}
        case frozenset():
            return sorted(value)
        case tuple():
            return [write(item) for item in value]
        case _ if is_dataclass(value):
            pairs = ((field.name, getattr(value, field.name)) for field in fields(value))
            written = {name: write(item) for name, item in pairs if item != NOT_READ}
            return {name: item for name, item in written.items() if item != {}}
    return value


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: value if isinstance(value, int | float | str) else str(value)
        for key, value in values.items()
    }


def _read(kind: type[T], document: Any, where: str) -> T:
    """Return a dataclass from the object that holds its fields; further keys are ignored."""
    if not isinstance(document, Mapping):
        raise ValueError(f"{where}: an object is needed here, not {document!r:.40}")
    hints = _hints(cast("Any", kind))
    known = {
        name: _value(hint, document[name], f"{where}.{name}")
        for name, hint in hints.items()
        if name in document
    }
    try:
        return kind(**known)
    except TypeError as error:
        raise ValueError(f"{where}: {error}") from None


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _value(hint: Any, value: Any, where: str) -> Any:
    wanted = get_args(hint) if get_origin(hint) is UnionType else (hint,)
    if isinstance(value, Mapping) and "missing" in value and Missing in wanted:
        values = {key: item for key, item in value.items() if key not in ("missing", "because")}
        return Missing(Message(str(value["missing"]), MappingProxyType(values)))
    kind = next(each for each in wanted if each is not Missing)
    origin = get_origin(kind)
    if is_dataclass(kind):
        return _read(cast("type[Any]", kind), value, where)
    if origin in (tuple, frozenset) and isinstance(value, list):
        inner = get_args(kind)[0]
        return origin(_value(inner, item, where) for item in value)
    if origin is Literal and value in get_args(kind):
        return value
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(kind, type) and type(value) is kind:
        return value
    raise ValueError(f"{where}: not {value!r:.40}")
