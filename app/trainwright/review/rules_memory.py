"""Rules about memory: what does not fit, hardly, perhaps, or as another run."""

from collections.abc import Sequence

from trainwright.advise import near
from trainwright.messages import Message
from trainwright.plan.report import Report, Verdict
from trainwright.plan.serving import (
    LAYERS_ASIDE,
    NO_TENSOR_PARALLEL,
    SHARE_SMALL,
    TENSOR_PARALLEL,
    WAITS,
)
from trainwright.review.case import Case, found
from trainwright.review.derived import heavier, lighter, offloads, precision_of, task
from trainwright.review.finding import Finding, Level
from trainwright.workload.settings import Effect

WIDE = "review.rule.memory-wide"
OF_ANOTHER_RUN = (
    *(TENSOR_PARALLEL, "review.rule.memory-absent", "review.rule.memory-absent-config"),
)
"""What makes the figures those of another run, so that changes to fit them are none."""

_OF_SAMPLES = ("activations", "logits")
"""Terms that grow with the sequences of a step."""


def rules(case: Case, absent: Sequence[Message]) -> list[Finding]:
    """Return the finding that it does not fit, hardly, or perhaps."""
    report = case.report
    if report is None:
        return []
    memory = report.memory
    values = {"used": memory.device_used_p95.value, "total": memory.device_total.value}
    doubtful = report.verdict is Verdict.NO or close(report)
    if doubtful and (rest := _elsewhere(case, absent)) is not None:
        id, path = rest
        return [Finding("memory", "risk", Message.of(id, path=path, **values))]
    more = wider(case) if report.fits else None
    if more is not None:
        wide: Level = "error" if values["used"] + more > values["total"] else "risk"
        return [Finding("memory", wide, Message.of(WIDE, more=more, **values))]
    if close(report):
        return [Finding("memory", "risk", Message.of("review.rule.memory-close", **values))]
    if report.fits and (objective := heavier(case.facts)) is not None:
        # Of two sequences in place of one, at least.
        more = sum(one.value for one in memory.terms if one.role in _OF_SAMPLES)
        if values["used"] + more > values["total"]:
            asked = Message.of("review.rule.memory-at-least", objective=objective, **values)
            return [Finding("memory", "risk", asked)]
    whole = (TENSOR_PARALLEL, NO_TENSOR_PARALLEL)
    split = next((note for note in report.notes if note.id in whole), None)
    shares = case.facts.value("tensor", 1) > 1  # what one GPU holds is not what the run needs
    if report.verdict is Verdict.CANNOT_CHECK and split is not None:
        return [Finding("memory", "risk", split)]
    if report.verdict is Verdict.QUEUES:
        wait = next(note for note in report.notes if note.id == WAITS)
        return [Finding("requests-wait", "risk", split if split and shares else wait)]
    if report.verdict not in (Verdict.NO, Verdict.TIGHT, Verdict.SPILLS):
        return []
    if offloads(case.facts):
        return [Finding("memory", "risk", Message.of("review.rule.memory-offload", **values))]
    if keys := lighter(case.facts, case.of_model("layers")):
        counted = Message.of("review.rule.memory-uncounted", keys=[*keys], **values)
        return [Finding("memory", "risk", counted)]
    aside = next((note for note in report.notes if note.id == LAYERS_ASIDE), None)
    if aside is not None and case.facts.value("engine") == "ollama":
        return [Finding("memory", "risk", aside)]
    level: Level = "error" if report.verdict is Verdict.NO else "risk"
    small = next((note for note in report.notes if note.id == SHARE_SMALL), None)
    if small is not None and (share := case.given("memory_share")) is not None:
        changes = case.setting("memory_share", float(str(small.values["least"])))
        return [found("share-small", level, share, changes, **small.values)]
    message = Message.of(f"review.rule.memory-{report.verdict.value}", **values)
    if split is not None and shares:
        message = split
    return [Finding("memory", level, message)]


def _elsewhere(case: Case, absent: Sequence[Message]) -> tuple[str, str] | None:
    """Return a sentence and the file that is not there, and which may turn the verdict.

    One of DeepSpeed or accelerate may share the model, and one of torchtune's own may checkpoint
    activations.
    """
    for one in absent:
        path = str(one.values.get("path"))
        if one.id == "review.absent-config" and not case.facts.given("checkpointing"):
            return "review.rule.memory-absent-config", path
        if one.id == "review.absent-file" and task(case.facts) != "infer":
            return "review.rule.memory-absent", path
    return None


def close(report: Report) -> bool:
    """Return whether what a nearby step leaves out may turn the verdict."""
    note = nearby(report)
    if note is None:
        return False
    memory, share = report.memory, float(note.values["share"])
    used, p95 = memory.device_used.value, memory.device_used_p95.value
    return used * (1 - share) <= memory.device_total.value <= p95 * (1 + share)


def nearby(report: Report) -> Message | None:
    """Return the note that the figures are those of a nearby step; None where they are its own."""
    return next((note for note in report.notes if note.id == near.NOTE), None)


_LOADED_BEFORE = ("from-pretrained", "unsloth")
"""Kinds of calls that load the model themselves."""


def loads_wide(case: Case) -> bool:
    """Return whether TRL loads the model in 32 bits.

    It does where a model is named and ``dtype`` says nothing (trl 1.16, trainer/utils.py,
    create_model_from_path), unlike transformers 5.
    """
    fact = case.facts.first("weights_dtype")
    said = {fact.kind for fact in case.facts.given("model")}
    named = "trainer" in said or all(one.source.format != "python" for one in case.read)
    ours = fact is not None and fact.kind.startswith("trl-") and fact.value == "fp32"
    return ours and named and not case.has(*_LOADED_BEFORE)


def wider(case: Case) -> float | None:
    """Return by how many bytes frozen weights are more than the figures count.

    None where they are not. A plan's LoRA keeps what is frozen in the 16 bits that it computes
    in. Autocast's copies come on top.
    """
    lora = case.report is not None and task(case.facts) == "lora" and loads_wide(case)
    if not lora or not str(precision_of(case.facts, "lora")).endswith("-mixed"):
        return None
    assert case.report is not None
    return sum(one.value for one in case.report.memory.terms if one.role == "parameters")


def narrowed(case: Case) -> list[Finding]:
    """Return the offer to load such weights in 16 bits; nothing where they are not so loaded."""
    if (more := wider(case)) is None or case.report is None:
        return []
    memory = case.report.memory
    fits = memory.device_used_p95.value + more <= memory.device_total.value
    level: Level = "gain" if fits else "way"
    changes = case.setting("weights_dtype", "bf16")
    beyond = () if changes else (case.by_hand("weights_dtype", "bf16") or "dtype=bfloat16",)
    message = Message.of("review.offer.narrow")
    return [
        Finding(
            level,
            level,
            message,
            changes=changes,
            effect=Effect.NEARLY,
            memory_bytes=-more,
            beyond=beyond,
        )
    ]
