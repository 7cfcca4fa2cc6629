"""Rules about keys: moved, unknown, in vain, and against each other."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from difflib import get_close_matches
from typing import Any

from trainwright.quoting import one_line
from trainwright.review.case import Case, found
from trainwright.review.facts import AUTO, Fact
from trainwright.review.files import Source
from trainwright.review.finding import Change, Finding, Level, Removed, Renamed
from trainwright.review.interpret import Unread
from trainwright.review.kinds import declared
from trainwright.review.kinds.huggingface import TRL_KINDS
from trainwright.review.spans import SPANS, bare, twice

TRAINERS = (
    *("training-arguments", *TRL_KINDS),
    *("llamafactory", "axolotl", "script", "unsloth"),
)
"""Kinds whose Trainer fills DeepSpeed's "auto" in."""


_MISTYPED = 0.9
"""Likeness from which a key is one that was mistyped; assumed."""


def rules(case: Case) -> Iterator[Finding]:
    """Yield what is wrong with keys."""
    for one in case.read:
        for unread in one.unread:
            if (finding := _unread(case, unread)) is not None:
                yield finding
    yield from _conflicts(case)
    yield from _unlike_defaults(case)
    yield from _auto(case)
    yield from _in_vain(case)
    yield from _evaluation(case)
    yield from _two_of_one(case)
    for one in case.read:
        yield from _of_source(case, one.source)


def _unread(case: Case, unread: Unread) -> Finding | None:
    kind = unread.source.kind
    values: dict[str, Any] = {
        "key": one_line(unread.key, 100),
        "tool": kind.tool,
        "instead": unread.instead or "",
    }
    version = " ".join(
        f"{package} {version}"
        for package, version in (declared(kind.listed).read_from if kind.listed else {}).items()
    )
    at = Fact("", None, unread.source.name, kind.name, unread.key, unread.place, unread.line, True)
    level: Level = "error" if kind.strict else "risk"
    match unread.why:
        case "moved" if _of_fsdp_1(case, unread):
            return None
        case "moved" if kind.name == "trainer" and case.has("unsloth"):
            return None
        case "moved" | "gone" if unread.source.version:
            return found("key-of-later", "risk", at, version=unread.source.tool, **values)
        case "moved" if kind.name == "script":
            return found("key-moved-own", "risk", at, version=version, **values)
        case "moved":
            changes = _renamed(unread)
            return found("key-moved", "error", at, changes, version=version or kind.tool, **values)
        case "gone":
            rule = "key-gone" if kind.strict else "key-in-vain"
            changes = _removed(unread)
            return found(rule, level, at, changes, version=version or kind.tool, **values)
        case "deprecated" if unread.instead is None:
            return found("key-deprecated-gone", "risk", at, **values)
        case "deprecated":
            return found("key-deprecated", "risk", at, **values)
        case "unknown" if kind.name == "torchtitan" and unread.source.format == "python":
            return None  # a registry is of a checkout, whose keys differ from the release's
        case "unknown" if unread.key.startswith("_") and _only_shares(unread.source):
            return None  # ms-swift's, whose notes begin so
        case "unknown":
            if kind.complete:
                level = "error"
            rule = "key-ignored" if level == "risk" else "key-unknown"
            near = "-near" if unread.instead else ""
            if kind.extended and not _typed(unread):
                rule, near, level = "key-own", "", "risk"
            return found(rule + near, level, at, version=version or kind.tool, **values)
        case "value":
            return found("value-unknown", "risk", at, value=one_line(str(unread.value)), **values)
        case _:
            return None


def _only_shares(source: Source) -> bool:
    """Return whether a file says how FSDP shares and nothing else, its notes aside."""
    keys = {str(key) for key in source.document.data}
    return {key for key in keys if not key.startswith("_")} <= {"fsdp", "fsdp_config"}


_OF_HANDBOOK = ("dataset_configs", "dataset_splits")
"""Keys that alignment-handbook and open-r1 declare beside TRL's, which has ``dataset_config``."""


def _typed(unread: Unread) -> bool:
    """Return whether a key is so near to a known one that it was mistyped."""
    if unread.key in _OF_HANDBOOK:
        return False
    return bool(get_close_matches(unread.key, [unread.instead or ""], cutoff=_MISTYPED))


def _of_fsdp_1(case: Case, unread: Unread) -> bool:
    """Keys of FSDP 1 are moved only where version 2 is asked for."""
    words = ("fsdp_sharding_strategy", "fsdp_backward_prefetch", "use_orig", "sync_module")
    if not any(word in unread.key for word in words):
        return False
    return bool(case.facts.value("fsdp_version", 1) != 2)


def _renamed(unread: Unread) -> tuple[Change, ...]:
    """Return the key under its new name, where its value means the same there."""
    simple = (
        *("eval_strategy", "max_length", "use_cpu", "dtype", "local_batch_size", "micro_batch"),
        "devices",
    )
    new = unread.instead or ""
    source = unread.source
    if source.format not in SPANS or not new.rpartition(".")[2].startswith(simple):
        return ()
    *above, last = new.split(".")
    if (*above, last) in source.document.lines:
        return _removed(unread)  # both names are there, and the new one holds
    if tuple(above) == unread.place[:-1]:
        return (Change(source.name, unread.place, Renamed(last)),)
    return (
        Change(source.name, unread.place, Removed.KEY),
        Change(source.name, (*above, last), unread.value),
    )


def _removed(unread: Unread) -> tuple[Change, ...]:
    if unread.source.format not in SPANS:
        return ()
    return (Change(unread.source.name, unread.place, Removed.KEY),)


def _conflicts(case: Case) -> Iterator[Finding]:
    """Yield what two files of one run say differently."""
    for name in (*_MATCHED, "processes"):
        given = [fact for fact in case.facts.given(name) if fact.value != AUTO]
        for other in given[1:]:
            first = given[0]
            if _overrides(case, first, other):
                continue
            if other.file != first.file and other.value != first.value:
                yield found(
                    "conflict",
                    "error",
                    other,
                    case.rewriting(other, first.value),
                    key=other.key,
                    value=str(other.value),
                    other=first.key,
                    file=first.file,
                    first=str(first.value),
                )


def _unlike_defaults(case: Case) -> Iterator[Finding]:
    """Yield what DeepSpeed's file says unlike the Trainer's default.

    ``integrations/deepspeed.py`` of transformers 5.24, trainer_config_process: both must agree,
    and what nobody sets is the default.
    """
    for name in _MATCHED:
        theirs, both = case.facts.first(name), case.facts.given(name)
        default = next(
            (fact for fact in case.facts.all
             if fact.name == name and fact.kind in TRAINERS and not fact.given), None
        )  # fmt: skip
        said = [fact for fact in both if fact.kind == "deepspeed" and fact.value != AUTO]
        if default is None or theirs is None or not said or len(both) > 1:
            continue
        if said[0].value != default.value:
            values: dict[str, Any] = {"key": said[0].key, "value": str(said[0].value)}
            values |= {"other": default.key or name, "first": str(default.value)}
            yield found("unlike-default", "error", said[0], **values)


_MATCHED = (
    *("micro_batch", "accumulation", "precision", "learning_rate", "weight_decay"),
    "clipping",
)


def _overrides(case: Case, first: Fact, other: Fact) -> bool:
    """Return whether a command line changes what its own tool's file says, as it is there to do.

    In our exports plan.json says it all, and a launcher's file only what is its own.
    """
    if first.kind == "exported":
        return True
    words = {one.source.name for one in case.read if one.source.format == "words"}
    pair = (first.kind, other.kind)
    return first.file in words and (pair[0] == pair[1] or pair == ("launch", "accelerate"))


def _auto(case: Case) -> Iterator[Finding]:
    """Yield DeepSpeed's "auto" where no Trainer is there to fill it in."""
    auto = [fact for fact in case.facts.all if fact.given and fact.value == AUTO]
    others = {one.source.kind.name for one in case.read} - {"deepspeed", "launch", "devices"}
    if auto and others and not others & {*TRAINERS, "accelerate", "llamafactory-v1"}:
        keys = [fact.key for fact in auto]
        yield found("auto-unfilled", "risk", auto[0], count=len(keys), keys=keys[:3])


def _in_vain(case: Case) -> Iterator[Finding]:
    """Yield keys that do nothing beside others, or that the library refuses beside them."""
    facts = case.facts
    workers = facts.value("num_workers")
    for name in ("prefetch_factor", "persistent_workers"):
        fact = case.given(name)
        if fact is not None and fact.value and workers == 0:
            changes = case.setting("num_workers", 4)
            yield found("needs-workers", "error", fact, changes, key=fact.key)
    streams = facts.value("objective") == "pretrain"  # axolotl needs max_steps there
    steps, epochs = case.given("max_steps"), case.given("epochs")
    if steps is not None and epochs is not None and not streams:
        yield found("steps-over-epochs", "risk", steps, key=steps.key, other=epochs.key)
    if (group := case.given("grouping")) and group.value and facts.value("packing"):
        yield found("grouping-packed", "risk", group, key=group.key)
    reentrant = case.given("reentrant")
    if reentrant is not None and facts.value("checkpointing") == "none":
        yield found("reentrant-in-vain", "risk", reentrant, key=reentrant.key)
    offload = case.given("activation_offload")
    if offload is not None and offload.value and facts.value("checkpointing") == "none":
        refused = case.has("torchtune")  # its recipes' __init__
        rule = "offload-refused" if refused else "offload-in-vain"
        yield found(rule, "error" if refused else "risk", offload, key=offload.key)


def _evaluation(case: Case) -> Iterator[Finding]:
    """``training_args.py``, __post_init__: what must go together for the best model."""
    facts = case.facts
    evaluates = facts.value("eval_strategy", "no")
    steps = case.given("eval_steps")
    if steps and steps.kind in TRAINERS and evaluates == "no" and not case.has("axolotl"):
        yield found("eval-steps-in-vain", "risk", steps, key=steps.key)
    best = case.given("load_best")
    if best is None or not best.value:
        return
    saves = facts.value("save_strategy", "steps")
    if evaluates != saves and saves != "best" and not case.has("axolotl"):
        yield found("best-model", "error", best, evaluates=str(evaluates), saves=str(saves))
    elif evaluates == saves == "steps":
        every, save = facts.value("eval_steps"), facts.value("save_steps", 500)
        if every and save and every >= 1 and save >= 1 and save % every:
            yield found("best-model-steps", "error", best, every=every, save=save)


def _of_source(case: Case, source: Source) -> Iterator[Finding]:
    """Yield keys that a tool refuses together, and values that it no longer takes."""

    def at(key: str) -> Fact:
        place = tuple(key.split("."))
        line = source.document.line(place)
        return Fact("", None, source.name, source.kind.name, key, place, line, True)

    def said(key: str) -> Any:
        value: Any = source.document.data
        for part in key.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        return value

    if source.kind.name == "deepspeed" and source.format == "json":
        yield from _hjson(case, source, at)
    if source.kind.name == "training-arguments" and source.format in SPANS:
        yield from _texts(source, at, said)
    for first, second in source.kind.exclusive:
        if said(first) and said(second):
            yield found("exclusive", "error", at(second), key=second, other=first)
    for key, values in source.kind.gone_values.items():
        if (now := values.get(str(said(key)))) is not None:
            place = tuple(key.split("."))
            changes = (Change(source.name, place, now),) if source.format in SPANS else ()
            names: dict[str, Any] = {
                "key": key,
                "value": str(said(key)),
                "now": now,
                "tool": source.tool,
            }
            yield found("value-gone", "error", at(key), changes, **names)


def _texts(
    source: Source, at: Callable[[str], Fact], said: Callable[[str], Any]
) -> Iterator[Finding]:
    """Yield numbers that HfArgumentParser leaves as text: of JSON, and YAML 1.1's ``2e-4``."""
    lines = source.text.splitlines()
    for key in ("learning_rate", "weight_decay", "max_grad_norm"):
        value, place = said(key), at(key)
        if value is None or place.line is None:
            continue
        written = lines[place.line - 1].partition(":")[2].partition("#")[0].strip()
        bare = source.format == "yaml" and "e" in written.lower() and "." not in written
        with suppress(ValueError, TypeError):
            if isinstance(value, str) or (bare and not written.startswith(("'", '"'))):
                changes = (Change(source.name, (key,), float(value)),)
                values: dict[str, Any] = {"key": key, "value": str(value)}
                yield found("number-text", "error", place, changes, **values)


def _hjson(case: Case, source: Source, at: Callable[[str], Fact]) -> Iterator[Finding]:
    """Yield what DeepSpeed and the JSON of Trainers read differently.

    DeepSpeed 0.19, runtime/config.py; accelerate 1.15, utils/deepspeed.py.
    """
    others = case.has(*TRAINERS, "accelerate")
    for name in twice(source.text):
        yield found("key-twice", "risk" if others else "error", at(name), key=name)
    if others and bare(source.text) != source.text:
        yield found("json-comments", "error", at(""))


def _two_of_one(case: Case) -> Iterator[Finding]:
    """Yield switches of one file of which at most one may be on."""
    for name in ("precision", "quantization"):
        by_file: dict[str, list[Fact]] = {}
        for fact in case.facts.given(name):
            if fact.value != AUTO:
                by_file.setdefault(fact.file, []).append(fact)
        for facts in by_file.values():
            if len({fact.value for fact in facts}) > 1 and len({fact.kind for fact in facts}) == 1:
                first, second = facts[0], facts[1]
                if name == "precision" and "fp8" in (first.value, second.value):
                    continue
                if {first.value, second.value} == {"bf16-mixed", "bf16"}:
                    continue
                yield found("one-of", "error", second, key=second.key, other=first.key)
