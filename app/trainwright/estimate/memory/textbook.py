"""The textbook line, ``M = P·D_param + G·D_grad + B·A·D_act + O·D_opt + rest``, in numbers.

The form is that of "Reducing Activation Recomputation in Large Transformer Models" (arXiv
2205.05198) and of the Hugging Face guide to the anatomy of a model's memory; here every
factor follows from this model's traced bytes, at the moment of its peak.
"""

from trainwright.explain import Kind, Quantity, Unit
from trainwright.messages import Message
from trainwright.profile.profile import Profile

LINE = "M = P·D_param + G·D_grad + B·A·D_act + O·D_opt + rest"

_GROUPS = {
    "parameters": ("parameters", "casts"),
    "gradients": ("gradients", "buckets"),
    "activations": ("activations", "logits"),
    "optimizer": ("optimizer",),
}
_FACTORS = {
    "parameters": ("P", "D_param"),
    "gradients": ("G", "D_grad"),
    "optimizer": ("O", "D_opt"),
}
_FULL_WIDTH = {"fp32", "tf32"}


def textbook_line(
    profile: Profile, terms: tuple[Quantity, ...], precision: str, batch: int
) -> Quantity:
    """Return the allocated peak as the textbook's sum; every term stands in one group."""
    by_role = {term.role: term for term in terms}
    grouped: list[Quantity] = []
    for name, roles in _GROUPS.items():
        members = tuple(by_role.pop(role) for role in roles if role in by_role)
        if members:
            factors = (
                _activation_factors(members, precision, batch)
                if name == "activations"
                else _weight_factors(profile, name, members)
            )
            grouped.append(_group(name, members, factors))
    if by_role:
        grouped.append(_group("rest", tuple(by_role.values()), ("rest", ())))
    return Quantity(
        Message.of("memory.textbook"),
        sum(term.value for term in terms),
        Unit.BYTES,
        Kind.ESTIMATED,
        formula=LINE,
        parts=tuple(grouped),
        role="textbook",
    )


_Factors = tuple[str, tuple[Quantity, ...]]


def _group(name: str, members: tuple[Quantity, ...], factors: _Factors) -> Quantity:
    text, known = factors
    return Quantity(
        Message.of(f"memory.textbook.{name}"),
        sum(member.value for member in members),
        Unit.BYTES,
        Kind.ESTIMATED,
        formula=text,
        parts=(*known, *members),
        role=f"textbook-{name}",
    )


def _weight_factors(profile: Profile, name: str, members: tuple[Quantity, ...]) -> _Factors:
    """Return parameters and bytes for each of them, as they come out at the peak."""
    count, each = _FACTORS[name]
    key = "parameters" if name == "parameters" else "trainable"
    number = profile.model.get(key) or profile.model.get("parameters")
    if not number:
        return f"{count}·{each}", ()
    width = sum(member.value for member in members) / float(number)
    factors = (
        _factor(f"{key}-count", float(number), Unit.COUNT),
        _factor("bytes-each", width, Unit.COUNT),
    )
    return f"{count}·{each} = {_short(float(number))} · {width:.3g} B", factors


def _activation_factors(members: tuple[Quantity, ...], precision: str, batch: int) -> _Factors:
    """Return samples, and elements a sample if all were of the compute precision's width."""
    width = 4 if precision in _FULL_WIDTH else 2
    elements = sum(member.value for member in members) / (batch * width)
    factors = (
        _factor("batch", float(batch), Unit.COUNT, Kind.YOURS),
        _factor("elements-each", elements, Unit.COUNT),
        _factor("bytes-element", float(width), Unit.COUNT),
    )
    return f"B·A·D_act = {batch} · {_short(elements)} · {width} B", factors


def _factor(name: str, value: float, unit: Unit, kind: Kind = Kind.ESTIMATED) -> Quantity:
    return Quantity(
        Message.of(f"memory.factor.{name}"),
        value,
        unit,
        kind,
        source="" if kind is Kind.YOURS else "trace",
    )


def _short(value: float) -> str:
    """Return the number with three figures and a power of ten where it is large."""
    for size, suffix in ((1e9, "·10⁹"), (1e6, "·10⁶"), (1e3, "·10³")):
        if value >= size:
            return f"{value / size:.3g}{suffix}"
    return f"{value:.3g}"
