"""How much of the plan's GPU each shipped model would take, as Plan would say it."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from trainwright.messages import Message, UserError
from trainwright.messages.units import count, number
from trainwright.plan.evaluate import Facts, Pending, at_once, memory_of
from trainwright.plan.judging import verdict
from trainwright.plan.report import Verdict
from trainwright.plan.schema import Plan
from trainwright.profile.presets import AREAS, Preset, presets
from trainwright.ui import plans
from trainwright.ui.figures import giga, unit_of_memory
from trainwright.ui.i18n import language, say, tr
from trainwright.ui.options import plain


@dataclass(frozen=True, slots=True)
class Glance:
    """A model on the plan's GPU; without figures where it must be traced or cannot be planned."""

    preset: str
    verdict: Verdict | None = None
    used_bytes: float = 0.0
    """Device use that is exceeded in 5 % of cases: what the verdict is decided on."""
    total_bytes: float = 0.0
    problem: Message | None = None

    @property
    def share(self) -> float:
        """Device use over what the card has."""
        return self.used_bytes / self.total_bytes if self.total_bytes else 0.0

    @property
    def text(self) -> str:
        """What it takes, in a few words."""
        if self.verdict is None:
            return tr(
                "ui.models.traced-when-chosen" if self.problem is None else "ui.models.not-so"
            )
        used, total = (
            number(round(value / giga(), 1)) for value in (self.used_bytes, self.total_bytes)
        )
        return tr("ui.models.of", used=used, total=total, unit=unit_of_memory())


Resolve = Callable[[Plan], Facts | Pending]


def glances(plan: Plan, ids: Iterable[str], resolve: Resolve) -> Iterator[Glance]:
    """Yield a glance for each of the models, in their order."""
    known = presets()
    for id in ids:
        yield glance(plan, known[id], resolve)


def glance(plan: Plan, preset: Preset, resolve: Resolve) -> Glance:
    """Return what choosing the model would say: the same plan that the choice would make."""
    try:
        changed = plans.for_preset(plan, preset)
        facts = resolve(changed)
        if isinstance(facts, Pending):
            return Glance(preset.id)
        _, memory = at_once(changed, facts, memory_of(changed, facts))
    except UserError as error:
        return Glance(preset.id, problem=error.message)
    decided = verdict(memory, facts.machine.system)
    return Glance(preset.id, decided, memory.device_used_p95.value, memory.device_total.value)


@dataclass(frozen=True, slots=True)
class Model:
    """A model in the list."""

    id: str
    area: str
    family: str
    name: str
    description: str
    parameters: str


@lru_cache(maxsize=4)
def models(spoken: str) -> tuple[Model, ...]:
    """Return all models as the picker shows them, families together, areas in their order."""
    made = [
        Model(
            preset.id, preset.area, preset.family, preset.name,
            say(preset.description), count(preset.parameters, language()),
        )
        for preset in presets().values()
    ]  # fmt: skip
    first = {model.family: place for place, model in reversed(list(enumerate(made)))}
    return tuple(sorted(made, key=lambda m: (AREAS.index(m.area), first[m.family])))


def matching(text: str, area: str, recent: tuple[str, ...]) -> list[Model]:
    """Return the models that match every word, of an area, of the recent ones, or of all.

    Searches name, family, aliases (Korean ones too) and the description.
    """
    words = [plain(word) for word in text.split()]
    found = [
        model for model in models(language()) if all(word in _searched(model) for word in words)
    ]
    if area == "recent":
        return sorted((m for m in found if m.id in recent), key=lambda m: recent.index(m.id))
    return [model for model in found if area in ("all", model.area)]


@lru_cache(maxsize=1024)
def _searched(model: Model) -> str:
    preset = presets()[model.id]
    parts = (model.id, model.name, model.family, *preset.aliases, model.description)
    return plain(" ".join((*parts, tr(f"ui.models.area.{model.area}"))))
