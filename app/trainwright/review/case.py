"""What the rules look at: the facts of the files, the plan they make, and the machine."""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from trainwright.catalog import GpuRecord
from trainwright.machine.machine import Machine
from trainwright.messages import Message
from trainwright.plan.report import Report
from trainwright.plan.schema import Plan
from trainwright.profile import presets
from trainwright.quoting import dotted, json_text, shell_word
from trainwright.review.facts import AUTO, Fact, Facts
from trainwright.review.files import Source
from trainwright.review.finding import Change, Finding, Level
from trainwright.review.interpret import Interpreted
from trainwright.review.kinds import declared
from trainwright.review.spans import SPANS
from trainwright.workload.settings import Effect
from trainwright.yamltext import Place


@dataclass(frozen=True, slots=True)
class Case:
    """One run, as far as it is known."""

    read: tuple[Interpreted, ...]
    facts: Facts
    plan: Plan | None = None
    machine: Machine | None = None
    report: Report | None = None

    @property
    def record(self) -> GpuRecord | None:
        """The GPU; None where no machine is known."""
        return self.machine.gpu.record if self.machine is not None else None

    @property
    def capability(self) -> tuple[int, int] | None:
        """The GPU's compute capability; None where it is not known, or has none."""
        return self.record.compute_capability if self.record is not None else None

    def of_model(self, name: str) -> int | None:
        """Return a number of the model, from its ``config.json`` or its preset's.

        ``name`` is ``heads``, ``kv_heads``, ``layers`` or ``positions``.
        """
        if (said := self.facts.value(name)) is not None:
            return int(said)
        config = self._config()
        return next((config[key] for key in _OF_CONFIG[name] if _positive(config.get(key))), None)

    @property
    def model_type(self) -> str | None:
        """What transformers calls the model; None where that is not known."""
        said = self.facts.value("model_type") or self._config().get("model_type")
        return str(said) if said is not None else None

    def _config(self) -> Mapping[str, Any]:
        """Return the configuration of the plan's preset; empty where it has none."""
        preset = self.plan.model.preset if self.plan is not None else None
        if preset is None or not (found := presets.find(preset)).hf:
            return {}
        config: Mapping[str, Any] = json.loads(found.definition())
        return config

    def has(self, *kinds: str) -> bool:
        """Return whether a file of one of the kinds is there."""
        return any(one.source.kind.name in kinds for one in self.read)

    def given(self, name: str) -> Fact | None:
        """Return the first fact that a file itself says."""
        return next(iter(self.facts.given(name)), None)

    def setting(self, name: str, value: Any) -> tuple[Change, ...]:
        """Return the change that makes the files say a fact; nothing where none can."""
        ways = self._saying(name, value)
        return next(((change,) for source, change in ways if source.format in SPANS), ())

    def by_hand(self, name: str, value: Any) -> str | None:
        """Return what a person writes into a file that is not changed in place."""
        for source, change in self._saying(name, value):
            return _in_words(source, change)
        return None

    def rewriting(self, fact: Fact, value: Any) -> tuple[Change, ...]:
        """Return the change of the key that says a fact; nothing where it stays as it is."""
        ways = self._resaying(fact, value)
        return next(((change,) for source, change in ways if source.format in SPANS), ())

    def _saying(self, name: str, value: Any) -> Iterator[tuple[Source, Change]]:
        said = (fact for fact in self.facts.given(name) if fact.value != AUTO)
        if (fact := next(said, None)) is not None:
            yield from self._resaying(fact, value)
            return
        # The trainer's own file before those of what it runs on, which would contradict it.
        below = ("deepspeed", "accelerate", "launch")
        sources = (one.source for one in self.read)
        for source in sorted(sources, key=lambda source: source.kind.name in below):
            kind = source.kind
            known = declared(kind.listed).keys if kind.listed is not None else kind.keys
            for key in kind.keys:
                place = tuple(key.split("."))
                if key in known:
                    yield from _written(source, key, name, place, value)

    def _resaying(self, fact: Fact, value: Any) -> Iterator[tuple[Source, Change]]:
        for source in (one.source for one in self.read):
            if (source.name, source.kind.name) == (fact.file, fact.kind):
                yield from _written(source, fact.key, fact.name, fact.place, value)


_OFF = ("none", "fp32", "full", False)
"""Values of facts that hold where all switches are off."""
_OF_CONFIG = {
    "heads": ("num_attention_heads", "n_head"),
    "kv_heads": ("num_key_value_heads",),
    "layers": ("num_hidden_layers", "n_layer"),
    "positions": ("max_position_embeddings", "n_positions"),
}


def _in_words(source: Source, change: Change) -> str:
    """Return a change as its file has it: an option, a Modelfile's line, or ``key=value``."""
    name, value = dotted(change.place), json_text(change.value)
    if source.format == "modelfile":
        return f"{' '.join(map(str, change.place))} {value}"
    if source.format == "words" and "." not in name:
        word = shell_word(str(change.value))
        return f"--{name}" if change.value is True else f"--{name} {word}"
    if source.format == "python":  # a server's options have dashes on command lines alone
        name = name.replace("-", "_")
    return f"{name}={value}"


def _positive(value: Any) -> bool:
    return isinstance(value, int) and value > 0


def _written(
    source: Source, key: str, name: str, place: Place, value: Any
) -> Iterator[tuple[Source, Change]]:
    """Yield the change that writes a value; nothing where the key cannot say it."""
    for meaning in source.kind.meanings(key):
        if meaning.fact == name and meaning.write is not None:
            with suppress(StopIteration, KeyError, ValueError):
                written = meaning.write(value)
                # Switches say nothing where they are off: not of another kind of what they switch.
                if meaning.read(written) in ((value, None) if value in _OFF else (value,)):
                    yield source, Change(source.name, place, written)


def found(
    rule: str,
    level: Level,
    fact: Fact | None = None,
    changes: tuple[Change, ...] = (),
    effect: Effect = Effect.SAME,
    **values: Any,
) -> Finding:
    """Return a finding whose sentence is ``review.rule.<rule>``, at the place of a fact."""
    message = Message.of(f"review.rule.{rule}", **values)
    if fact is None or not fact.given:
        return Finding(rule, level, message, changes=changes, effect=effect)
    return Finding(rule, level, message, fact.file, fact.line, fact.key, changes, effect)
