"""What files say, in words of our own: one vocabulary for all tools.

Names that a plan's settings have mean the same here. The others:
``model`` (hub id or path), ``adapter`` (none, lora, qlora), ``objective`` (sft, dpo, ...),
``global_batch``, ``processes`` (GPUs of all nodes), ``tensor``, ``pipeline``, ``length`` (tokens
a sample), ``packing``, ``reentrant``, ``use_cache``, ``bucket_size`` (elements),
``offload_params``, ``offload_optimizer``, ``device_map``, ``rank``, ``alpha``, ``dropout``,
``targets``, ``variant``, ``precomputed`` (the reference's log-probabilities), ``context`` (most
tokens of a server).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from trainwright.yamltext import Place

AUTO = "auto"
"""What DeepSpeed's file says where another file of the run is to decide."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that a file says, or that its tool does where the file is silent."""

    name: str
    value: Any
    file: str
    """What errors call the file."""
    kind: str
    key: str
    """As the file writes it: ``zero_optimization.stage``."""
    place: Place
    line: int | None
    given: bool
    """False for the tool's own default."""


def _weight(fact: Fact) -> int:
    """Return less for what holds: given, PEFT's own default, another's, which leaves it to PEFT."""
    return 0 if fact.given else 1 if fact.kind == "peft" else 2


@dataclass(frozen=True, slots=True)
class Facts:
    """All that the files of one run say: what is given before what is a default."""

    all: tuple[Fact, ...]

    def first(self, name: str) -> Fact | None:
        """Return the fact that holds: the first that is given, else the first default."""
        found = (fact for fact in self.all if fact.name == name and fact.value != AUTO)
        return min(found, key=_weight, default=None)

    def value(self, name: str, otherwise: Any = None) -> Any:
        """Return what holds, or ``otherwise`` where nothing says it."""
        found = self.first(name)
        return otherwise if found is None else found.value

    def given(self, name: str) -> tuple[Fact, ...]:
        """Return what the files themselves say, in the order of the files."""
        return tuple(fact for fact in self.all if fact.name == name and fact.given)

    @property
    def values(self) -> Mapping[str, Any]:
        """What holds, by name."""
        return {name: self.value(name) for name in dict.fromkeys(f.name for f in self.all)}

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of the files."""
        return frozenset(fact.kind for fact in self.all)


def joined(parts: Iterable[Iterable[Fact]]) -> Facts:
    """Return the facts of several files; of two that say the same, the earlier one holds."""
    return Facts(tuple(fact for part in parts for fact in part))
