"""A plan with one key changed: what the form and the search's "apply" do."""

from typing import Any

from trainwright.plan.file import text_data, validated
from trainwright.plan.overrides import Change, apply, place_of
from trainwright.plan.schema import Plan
from trainwright.quoting import dotted
from trainwright.workload.defaults import LARGEST_DEFAULT_BATCH
from trainwright.workload.meaning import meaningless
from trainwright.yamltext import Place

_SHARED_BY_GPUS = (
    "strategy",
    "shard_offload",
    "reshard_after_forward",
    "micro_batch",
    "accumulation",
)
"""What a search chooses for a number of GPUs: with the choices for one, three more would idle."""


def with_key(plan: Plan, key: str, value: Any) -> Plan:
    """Return the plan with ``settings.micro_batch`` or another dotted key set.

    None frees the key. A new task or objective drops the keys that mean nothing to it, and another
    number of GPUs what was chosen for the number before.

    Raises:
        UserError: no such key, or a value that it cannot take.
    """
    return with_keys(plan, {key: value})


def with_keys(plan: Plan, values: dict[str, Any]) -> Plan:
    """Return the plan with several dotted keys set at once; it must be valid only in the end.

    Raises:
        UserError: no such key, or a value that it cannot take.
    """
    data = text_data(plan)
    for key, value in values.items():
        apply(data, Change(place_of(key), value, key))
        data.get("chosen", {}).pop(key.removeprefix("settings."), None)  # it is theirs now
    workload = data.get("workload")
    if isinstance(workload, dict) and workload.get("task") != "infer":
        workload.setdefault("effective_batch", LARGEST_DEFAULT_BATCH)
    changed = validated(data, _where)
    if _kind(changed) != _kind(plan):
        for key in tuple(meaningless(changed.settings, changed.workload)):
            apply(data, Change(place_of(key), None, key))
        if changed.workload.objective != plan.workload.objective:
            apply(data, Change(place_of("settings.recipe"), None, "settings.recipe"))
            _keep_length(data, plan, changed)
        data.pop("chosen", None)  # for another kind of work
        changed = validated(data, _where)
    elif changed.chosen and changed.machine.gpu_count != plan.machine.gpu_count:
        for key in _SHARED_BY_GPUS:
            data["chosen"].pop(key, None)
        changed = validated(data, _where)
    return changed


def _keep_length(data: dict[str, Any], plan: Plan, changed: Plan) -> None:
    """Split the tokens of a sample into a prompt and its answer, or add them up again."""
    before, inputs = plan.workload.inputs, {}
    written = (before.prompt_tokens or 0) + (before.new_tokens or 0)
    if changed.workload.writes is not None and before.sequence_length:
        answer = max(before.sequence_length // 2, 1)
        prompt = max(before.sequence_length - answer, 1)
        inputs = {"prompt_tokens": prompt, "new_tokens": answer}
    elif plan.workload.writes is not None and changed.workload.trains and written:
        inputs = {"sequence_length": written}
    for name, tokens in inputs.items():
        key = f"workload.inputs.{name}"
        apply(data, Change(place_of(key), tokens, key))


def _kind(plan: Plan) -> tuple[str, str | None]:
    return plan.workload.task, plan.workload.objective


def _where(place: Place) -> str:
    """Name the place of a key that no file holds."""
    return dotted(place[:1]) or "plan"
