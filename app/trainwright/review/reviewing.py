"""A review: what the files say, the plan they make, and what to know about it."""

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trainwright.advise import near
from trainwright.advise.whatif import WhatIf
from trainwright.machine.choice import MachineChoice
from trainwright.machine.machine import Machine
from trainwright.machine.resolve import catalogued
from trainwright.messages import Message, UserError
from trainwright.plan import overrides
from trainwright.plan.evaluate import Facts as PlanFacts
from trainwright.plan.report import Report, Verdict
from trainwright.plan.schema import Plan
from trainwright.plan.serving import TENSOR_PARALLEL
from trainwright.review import rules_keys, rules_memory, rules_model, rules_run
from trainwright.review.case import Case
from trainwright.review.derived import task
from trainwright.review.edits import edited
from trainwright.review.facts import Facts, joined
from trainwright.review.files import Run, Source
from trainwright.review.finding import Change, Finding, Level
from trainwright.review.interpret import Interpreted, Unread, interpreted
from trainwright.review.machines import asked_gpus, machine_of
from trainwright.review.offers import other_model, takes_checkpoint, title
from trainwright.review.planning import Planned, planned
from trainwright.workload.settings import Effect, Settings, effect

Answer = Callable[[Plan], tuple[PlanFacts, Report]]
"""Looks a plan up, tracing where it must, and evaluates it."""
WhatIfs = Callable[[Plan, PlanFacts, Report], tuple[Sequence[WhatIf], bool]]
"""Tries changes; returns those worth knowing, and whether there was time for all."""

_LEVELS = ("error", "risk", "way", "gain")
_NAMES = {
    "sequence_length": "length",
    "micro_batch": "micro_batch",
    "checkpointing": "checkpointing",
    "optimizer": "optimizer",
    "compile": "compile",
    "attention": "attention",
    "precision": "precision",
    "loader.num_workers": "num_workers",
    "loader.pin_memory": "pin_memory",
    "accumulation": "accumulation",
    "cross_entropy": "cross_entropy",
    "activation_offload": "activation_offload",
    "context": "context",
    "concurrent": "most_requests",
    "memory_share": "memory_share",
    "kv_cache": "kv_cache",
    "quantization": "weights",
    "tensor_degree": "tensor",
}
"""Key of a plan -> fact, where a file can say it."""
_ELSEWHERE = {
    ("allocator", "expandable"): "PYTORCH_ALLOC_CONF=expandable_segments:True",
    ("task", "lora"): "peft.LoraConfig",
    ("task", "qlora"): "peft.LoraConfig, BitsAndBytesConfig(load_in_4bit=True)",
}
"""What is set in the environment or in the script, whatever the tool."""
_LENGTHS = ("workload.inputs.sequence_length", "workload.inputs.prompt_tokens")
_IMPLIED = (
    *("quantization", "double_quantization", "optimizer_implementation", "adapter_dtype"),
    "input_gradients",
)
"""Settings that come with the task, or with another setting."""


@dataclass(frozen=True, slots=True)
class Review:
    """Everything that is known about the files of one run."""

    run: Run
    read: tuple[Interpreted, ...]
    facts: Facts
    planned: Planned
    findings: tuple[Finding, ...]
    """Errors first, then risks, then ways out, then gains."""
    report: Report | None
    unestimated: Message | None
    """Why there is no report."""
    no_way: Message | None = None
    """Of a run that does not fit, what was tried in vain."""

    @property
    def errors(self) -> tuple[Finding, ...]:
        """What keeps the run from running as the files say."""
        return tuple(finding for finding in self.findings if finding.level == "error")

    @property
    def undecided(self) -> Message | None:
        """Why nobody can tell whether the run fits, though there are figures; None where they do.

        Those of a nearby step may be too close, what is offloaded is counted, and a server's
        split over several GPUs is not.
        """
        ids = (
            *("review.rule.memory-close", "review.rule.memory-offload", TENSOR_PARALLEL),
            *("review.rule.memory-absent", "review.rule.memory-uncounted"),
            *("review.rule.memory-at-least", "review.rule.memory-absent-config"),
        )
        of_memory = (one.message for one in self.findings if one.rule == "memory")
        return next((message for message in of_memory if message.id in ids), None)

    @property
    def wider(self) -> Message | None:
        """Why the run does not fit, though its figures do; None where that is not so."""
        of_memory = (one.message for one in self.errors if one.rule == "memory")
        return next((message for message in of_memory if message.id == rules_memory.WIDE), None)

    @property
    def not_understood(self) -> tuple[Unread, ...]:
        """Keys that nobody knows, or whose value is not known."""
        whys = ("unknown", "value", "computed")
        return tuple(u for one in self.read for u in one.unread if u.why in whys)

    @property
    def computed(self) -> tuple[Unread, ...]:
        """Keys whose value only a run knows; what else is not understood is a finding."""
        return tuple(unread for unread in self.not_understood if unread.why == "computed")

    @property
    def own(self) -> tuple[Unread, ...]:
        """Options of a script of somebody's own, which may mean anything."""
        return tuple(u for one in self.read for u in one.unread if u.why == "own")

    @property
    def no_part(self) -> tuple[Unread, ...]:
        """Keys that have no part in memory or time."""
        return tuple(u for one in self.read for u in one.unread if u.why == "no-part")


# Long: half of it is what it takes, and the one value that it returns.
def review(
    run: Run,
    machine: Mapping[str, Any],
    answer: Answer,
    *,
    changes: Sequence[str] = (),
    whatifs: WhatIfs | None = None,
) -> Review:
    """Return the review of the files of one run on a machine.

    Args:
        run: the files.
        machine: the plan's section ``machine``; a GPU without a count stands for as many as the
            files use.
        answer: makes the estimate.
        changes: what a person answered, ``key=value`` of the plan.
        whatifs: tries changes; None for no gains.

    Raises:
        UserError: one of the changes is not a key of a plan, or a part of the machine is not known.
    """
    read = interpreted(run.sources)
    facts = joined(one.facts for one in read)
    section = machine_of(machine, facts)
    found, why = _machine(section)
    made = planned(facts, run.sources, section, changes)
    made = replace(made, asked=(*made.asked, *asked_gpus(machine, section)))
    plan_facts, report = None, None
    if made.plan is None:
        why = made.refused or made.unknown or Message.of("review.no-model")
    elif found is not None:
        plan_facts, report, why = _estimated(made.plan, answer)
    case = Case(read, facts, made.plan, found, report)
    findings = [
        *rules_keys.rules(case),
        *rules_run.rules(case),
        *rules_model.rules(case),
        *rules_memory.rules(case, run.absent),
    ]
    refused = made.refused or (why if made.plan is not None and _of_plan(why) else None)
    if (
        refused is not None
        and not _unplanned(refused)
        and not any(f.level == "error" for f in findings)
    ):
        findings.append(Finding("refused", "error", refused))
    no_way = None
    elsewhere = any(one.message.id in rules_memory.OF_ANOTHER_RUN for one in findings)
    if (
        whatifs is not None
        and not elsewhere
        and made.plan
        and plan_facts is not None
        and report is not None
    ):
        wants_room = _wants_room(report)
        asked = replace(report, verdict=Verdict.NO) if wants_room else report
        tried, all_of_them = whatifs(made.plan, plan_facts, asked)
        gains = _gains(case, tried)
        findings += gains
        if wants_room and not any(one.level == "way" for one in gains):
            no_way = _no_way(made.plan, plan_facts, all_of_them)
    findings += rules_memory.narrowed(case)
    findings.sort(key=lambda finding: _LEVELS.index(finding.level))
    return Review(run, read, facts, made, tuple(findings), report, why, no_way)


def _no_way(plan: Plan, facts: PlanFacts, all_of_them: bool) -> Message:
    """Return what was tried to make a run fit, where nothing did."""
    if not all_of_them:
        return Message.of("review.no-way-unfinished")
    if not plan.workload.trains:
        return Message.of("review.no-way-serving")
    # A step that was traced for this batch and length alone tells nothing of smaller ones.
    compared = facts.profile.exact and isinstance(near.resolved(plan), PlanFacts)
    return Message.of("review.no-way" if compared else "review.no-way-untraced")


def _of_plan(why: Message | None) -> bool:
    """Return whether it is the run itself that is refused, and not a tracer that fails."""
    ours = why is not None and why.id.partition(".")[0] in ("plan", "reading", "workload")
    return ours and not _unplanned(why)


def _unplanned(why: Message | None) -> bool:
    """Return whether it is a limit of plans, which says nothing of the run itself."""
    return why is not None and why.id in _UNPLANNED


_UNPLANNED = frozenset({
    *("workload.not-yet", "workload.objective-needs", "workload.objective-unplanned"),
    *("workload.fp8-training", "workload.stages-with", "workload.sharded-optimizer"),
    *("plan.task-of-preset", "plan.packing-unknown", "plan.packing-original"),
})  # fmt: skip


def _estimated(
    plan: Plan, answer: Answer
) -> tuple[PlanFacts | None, Report | None, Message | None]:
    try:
        plan_facts, report = answer(plan)
    except UserError as error:
        return None, None, error.message
    return plan_facts, report, None


def _machine(section: Mapping[str, Any]) -> tuple[Machine | None, Message | None]:
    """Return the machine; of a computer without a GPU, why there is none.

    Raises:
        UserError: a part that is named is not known.
    """
    if not section.get("local"):
        return catalogued(MachineChoice.model_validate(section)).machine, None
    from trainwright.probe import snapshot  # loads the drivers' libraries

    try:
        return snapshot.resolved(snapshot.take(anew=False)).machine, None
    except UserError as error:
        if error.message.id == "probe.no-gpu":
            return None, Message.of("review.no-gpu", **error.message.values)
        return None, error.message


def _wants_room(report: Report) -> bool:
    """Return whether ways to take less memory are worth knowing."""
    memory = report.memory
    if report.verdict is Verdict.CANNOT_CHECK:
        return False  # as of a model that GPUs share in a way that is not planned
    return rules_memory.close(report) or memory.device_used_p95.value > memory.device_total.value


def _gains(case: Case, found: Sequence[WhatIf]) -> list[Finding]:
    """Return the ways out of a run that does not fit, and the changes that make it faster."""
    fits = case.report is not None and not _wants_room(case.report)
    gains: list[Finding] = []
    named: list[tuple[Any, ...]] = []
    for one in found:
        way = one.kind == "way"
        if not way and (one.kind == "part" or not one.fits or one.same or one.gain is None):
            continue
        if not way and fits and (one.gain or 0.0) <= 0:
            continue
        if way and not one.patch:
            continue
        if not way and not fits and (one.memory_bytes or 0.0) >= 0:
            continue  # no way out of a run that may not fit
        patch = _of_run(case, one.patch)
        changes, beyond = _in_files(case, patch)
        if (smaller := one.patch.get("model.preset")) is not None:
            beyond += (other_model(case, smaller),)
        what = (changes, beyond, patch.get("quantization"))
        if what in named:
            continue  # a way that was named already
        named.append(what)
        # What fits in place of a run that does not is a way out of it.
        level: Level = "gain" if fits else "way"
        gains.append(
            Finding(
                level,
                level,
                title(case, one.change, _told(case, patch)),
                changes=changes,
                effect=max(
                    (_effect(case, key, value) for key, value in one.patch.items()),
                    default=Effect.SAME,
                ),
                gain=None if way else one.gain,
                memory_bytes=one.memory_bytes,
                beyond=beyond,
            )
        )
    return gains


def _of_run(case: Case, patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return the changes but those of machine and model, which are not keys of a trainer's file.

    Servers have one length, of prompt and answer together.
    """
    found = {
        key.rpartition(".")[2]: value
        for key, value in patch.items()
        if not key.startswith(("machine.", "model."))
    }
    if "prompt_tokens" in found and case.plan is not None:
        answer = case.plan.workload.inputs.new_tokens or 0
        found["context"] = found.pop("prompt_tokens") + answer
    return found


def _effect(case: Case, key: str, value: Any) -> Effect:
    if key == "workload.task":
        return Effect.NEARLY if task(case.facts) == "lora" else Effect.DIFFERENT
    if key in _LENGTHS or key.startswith("model."):
        return Effect.DIFFERENT
    name = key.removeprefix("settings.")
    return effect(name, value) if name in Settings.model_fields else Effect.SAME


def _in_files(case: Case, patch: Mapping[str, Any]) -> tuple[tuple[Change, ...], tuple[str, ...]]:
    """Return a patch of the plan as changes of the files, and what they cannot say."""
    changes: list[Change] = []
    beyond: list[str] = []
    for key, value in patch.items():
        name = _NAMES.get(key, "")
        made = _task(case, value) if key == "task" else case.setting(name, value)
        changes += made
        if not made and key in _told(case, patch) and not takes_checkpoint(case, key, value):
            elsewhere = _ELSEWHERE.get((key, value), f"{key}={value}")
            beyond.append(case.by_hand(name, value) or elsewhere)
    # A file that says the whole batch says the accumulation with it.
    whole = case.facts.given("global_batch") and not case.facts.given("accumulation")
    if "micro_batch" in patch and "accumulation" not in patch and case.plan and not whole:
        micro = case.facts.value("micro_batch", 1)
        steps = case.facts.value("accumulation", 1) * micro // patch["micro_batch"]
        made = case.setting("accumulation", steps)
        changes += made
        said = case.by_hand("accumulation", steps) or f"accumulation={steps}"
        beyond += () if made else (said,)
    return tuple(changes), tuple(beyond)


def _told(case: Case, patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return the changes that are worth a word: not those that come with another one."""
    implied = () if _serves(case) else _IMPLIED
    return {k: v for k, v in patch.items() if k not in implied and v is not None}


def _serves(case: Case) -> bool:
    return case.plan is not None and not case.plan.workload.trains


def _task(case: Case, wanted: str) -> tuple[Change, ...]:
    """Return the changes that make the files train adapters, on 4-bit weights for QLoRA."""
    given = case.setting("adapter", wanted) or case.setting("adapter", "lora")
    if given and rules_memory.loads_wide(case):
        given += case.setting("weights_dtype", "bf16")
    if wanted != "qlora":
        return given
    bits = case.setting("quantization", "nf4")
    known = given or case.facts.value("adapter", "none") != "none"
    return (*given, *bits) if bits and known else ()


def plan_of(run: Run, changes: Sequence[str] = ()) -> Plan:
    """Return the plan that files make on this computer, or on the machine of the changes.

    Raises:
        UserError: they do not say enough for one, or one of the changes is not a key of a plan.
    """
    facts = joined(one.facts for one in interpreted(run.sources))
    data: dict[str, Any] = {}
    others = [change for change in changes if not change.startswith("machine.")]
    for change in changes:
        if change not in others:  # how many GPUs there are decides the batch
            overrides.apply(data, overrides.parse_change(change))
    machine = data.get("machine") or {}
    section = machine_of(machine, facts) if machine.get("gpus") else {"local": True} | machine
    made = planned(facts, run.sources, section, others)
    if made.plan is None:
        why = made.refused or made.unknown or Message.of("review.no-model")
        raise UserError.of("review.no-plan", why=why)
    return made.plan


# Changes of files


def texts(found: Review, taken: Sequence[Finding]) -> dict[str, tuple[Source, str]]:
    """Return the new text of each file that the findings change, by its name.

    Raises:
        UserError: a change cannot be made in a file without touching what it must not.
    """
    changed: dict[str, tuple[Source, str]] = {}
    for source in found.run.sources:
        changes = [c for finding in taken for c in finding.changes if c.file == source.name]
        if changes and source.path is not None and source.name not in changed:
            changed[source.name] = (source, edited(source.text, source.format, changes))
    return {name: pair for name, pair in changed.items() if pair[1] != pair[0].text}


def diff(found: Review, taken: Sequence[Finding]) -> str:
    """Return the changes as a unified diff."""
    lines: list[str] = []
    for name, (source, text) in texts(found, taken).items():
        lines += difflib.unified_diff(
            source.text.splitlines(keepends=True),
            text.splitlines(keepends=True),
            name,
            name,
        )
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def mended(found: Review) -> tuple[Finding, ...]:
    """Return the findings that ``--write`` puts right: errors and risks, with the same result.

    Not those whose change would touch other lines of the file.
    """
    return tuple(
        finding
        for finding in found.findings
        if finding.level in ("error", "risk") and finding.changes and finding.effect is Effect.SAME
        if _can_change(found, finding)
    )


def _can_change(found: Review, finding: Finding) -> bool:
    try:
        texts(found, (finding,))
    except UserError:
        return False
    return True


def offers(found: Review) -> tuple[Finding, ...]:
    """Return the ways out and the gains, in the order of their numbers for ``--take``."""
    return tuple(finding for finding in found.findings if finding.level in ("way", "gain"))


def taken(found: Review, numbers: Sequence[int]) -> tuple[Finding, ...]:
    """Return what ``mended`` does, with the offers of the numbers, counted from 1.

    Raises:
        UserError: there is no such offer, or the files have no key for it.
    """
    each = offers(found)
    for number in numbers:
        if not 1 <= number <= len(each):
            raise UserError.of("review.no-offer", number=number, count=len(each))
        if not each[number - 1].changes:
            raise UserError.of("review.offer-beyond", number=number)
    return (*mended(found), *(each[number - 1] for number in numbers))
