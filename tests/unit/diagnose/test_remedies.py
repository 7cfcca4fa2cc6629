"""Remedies of an out-of-memory error are evaluated on the plan of the run."""

from typing import Any

import pytest

from trainwright.advise.advice import SAME
from trainwright.diagnose.memory_remedies import Help, Remedy, help_for
from trainwright.diagnose.outofmemory import explain
from trainwright.diagnose.report import explanation_as_json
from trainwright.messages import LANGUAGES, render
from trainwright.plan.edit import with_keys
from trainwright.plan.evaluate import Facts, evaluate, resolve
from trainwright.plan.schema import Plan
from trainwright.workload.settings import Effect

GIB = 1 << 30
VISION = {"task": "full", "inputs": {"image_size": 224}, "effective_batch": 512}


def plan(gpu: str = "rtx-4090", **changes: Any) -> Plan:
    workload = {"task": "full", "inputs": {"sequence_length": 1024}, "effective_batch": 64}
    settings = {"precision": "bf16-mixed", "micro_batch": 16, "checkpointing": "full"}
    return Plan.model_validate(
        {
            "trainwright": 1,
            "name": "run",
            "model": {"preset": changes.pop("preset", "gpt2")},
            "workload": workload | changes.pop("workload", {}),
            "machine": {"gpus": [{"id": gpu}], "memory_gib": changes.pop("memory_gib", 128)},
            "settings": settings | changes,
        }
    )


def full(missing_gib: float, total: float = 23.52) -> str:
    asked = 1 + missing_gib
    return (
        f"CUDA out of memory. Tried to allocate {asked:.2f} GiB. GPU 0 has a total capacity of "
        f"{total} GiB of which 1.00 GiB is free. Including non-PyTorch memory, this process has "
        f"{total - 1} GiB memory in use. Of the allocated memory {total - 1.5} GiB is allocated by "
        "PyTorch, and 0 bytes is reserved by PyTorch but unallocated."
    )


def found(text: str, run: Plan) -> Help:
    facts = resolve(run)
    assert isinstance(facts, Facts)
    return help_for(explain(text), run, facts)


@pytest.mark.parametrize("missing", [0.25, 2.0])
@pytest.mark.parametrize("run", [plan(), plan(checkpointing="none")])
def test_each_remedy_is_not_in_place_and_saves_what_was_missing(run: Plan, missing: float) -> None:
    remedies = found(full(missing), run).remedies
    facts = resolve(run)
    assert isinstance(facts, Facts)
    before = evaluate(run, facts).memory.device_used.value
    assert remedies
    for one in remedies:
        changed = with_keys(run, one.patch)
        assert changed != run
        other = resolve(changed)
        assert isinstance(other, Facts)
        assert other.settings != facts.settings or changed.workload != run.workload
        assert before - evaluate(changed, other).memory.device_used.value >= missing * GIB
    for effect in Effect:  # of those that do the same to the result, the cheapest first
        costs = [max(one.slower, SAME) for one in remedies if one.effect is effect and one.slower]
        assert costs == sorted(costs)


def test_checkpointing_that_is_on_and_an_optimizer_with_more_state_are_not_proposed() -> None:
    patches = [one.patch for one in found(full(0.25), plan(optimizer="adafactor")).remedies]
    assert patches
    assert not any({"settings.checkpointing"} == set(patch) for patch in patches)
    assert not any("settings.optimizer" in patch for patch in patches)


LLAMA = {"task": "lora", "inputs": {"sequence_length": 2048}, "effective_batch": 64}


OF_ITS_OWN = plan(preset="llama-3.1-8b", workload=LLAMA, micro_batch=2)
"""Needs about what the GPU of ``full`` has."""


def changes(remedies: tuple[Remedy, ...]) -> list[tuple[str, Any]]:
    """Return the first key and value of each remedy, in order."""
    return [min(one.patch.items()) for one in remedies]


def test_a_large_vocabulary_loses_its_scores_before_it_loses_the_task() -> None:
    run = plan(preset="llama-3.1-8b", workload=LLAMA, micro_batch=4, checkpointing="none")
    help_ = found(full(0.96), run)
    listed = changes(help_.remedies)
    assert listed[:2] == [("settings.micro_batch", 2), ("settings.cross_entropy", "chunked")]
    assert listed[-1] == ("workload.task", "qlora")
    effects = [one.effect for one in help_.remedies[:-1]]
    assert effects == sorted(effects)
    assert "nearly the same result" in render(help_.remedies[-1].sentence, "en")
    assert any("Liger" in render(note, "en") for note in help_.notes)  # it has to be traced first


def test_where_blocks_are_checkpointed_the_loss_comes_before_what_changes_numerics() -> None:
    run = plan(preset="llama-3.1-8b", workload=LLAMA, micro_batch=2)
    keys = [key for key, _ in changes(found(full(0.96), run).remedies)]
    assert "settings.checkpointing" not in keys
    assert keys.index("settings.cross_entropy") < keys.index("settings.optimizer")
    assert keys[-1] == "workload.task"


def test_a_vision_model_is_told_of_no_loss_and_keeps_its_batch() -> None:
    run = plan("rtx-3060-12gb", preset="vit-b16", workload=VISION, micro_batch=128,
               checkpointing="none")  # fmt: skip
    remedies = found(full(0.5, total=11.66), run).remedies
    micro, *rest = remedies
    assert micro.patch["settings.micro_batch"] == 64
    assert "8 accumulated" in render(micro.sentence, "en")
    assert "settings.cross_entropy" not in dict(changes(remedies))
    assert ("settings.checkpointing", "every-2") in changes(tuple(rest))


def test_another_allocator_saves_no_more_than_what_lay_unused() -> None:
    text = full(0.25).replace("0 bytes is reserved", "100 MiB is reserved")
    assert "settings.allocator" not in dict(changes(found(text, plan()).remedies))


def test_on_shared_memory_nothing_is_offloaded() -> None:
    run = plan(gpu="gb10-dgx-spark", checkpointing="none")
    remedies = found(full(0.1, total=121.7), run).remedies
    assert remedies
    assert not any("offload" in key for one in remedies for key in one.patch)


def test_what_no_setting_saves_is_said_with_the_most_that_one_does() -> None:
    help_ = found(full(60, total=79.0), plan(gpu="a100-80gb"))
    assert not help_.remedies
    [note] = [note for note in help_.notes if note.id == "diagnose.oom.nothing-enough"]
    assert 0 < note.values["most"] < note.values["missing"] == 60 * GIB


def test_changes_that_are_enough_only_together_are_joined() -> None:
    run = plan(checkpointing="none")
    notes = found(full(200), run).notes
    [most] = [note.values["most"] for note in notes if note.id == "diagnose.oom.nothing-enough"]
    [joined] = found(full(most / GIB + 0.1), run).remedies
    assert len(joined.says) > 1
    assert joined.saved >= most + 0.09 * GIB


def test_a_run_on_another_gpu_than_the_plans_is_said() -> None:
    ids = {said.id for said in found(full(0.25, total=79.0), plan()).differs}
    assert "diagnose.oom.other-gpu" in ids
    assert "diagnose.oom.other-gpu" not in {said.id for said in found(full(0.25), plan()).differs}


SHARED = (
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of {} GiB of "
    "which 1.00 GiB is free. Process 4711 has 60.00 GiB memory in use. Including non-PyTorch "
    "memory, this process has 2.00 GiB memory in use. Of the allocated memory {} GiB is allocated "
    "by PyTorch, and 0 bytes is reserved by PyTorch but unallocated."
)


def test_an_error_that_cannot_be_the_plans_run_is_said() -> None:
    def said(text: str) -> set[str]:
        return {each.id for each in found(text, plan()).differs}

    assert said(SHARED.format("79.25", "1.50")) == {"diagnose.oom.other-gpu"}
    assert said(full(0.25)) == {"diagnose.oom.other-run"}  # gpt2 does not fill 22 GiB
    computed = full(0.25).replace("allocate 1.25 GiB", "allocate 900000.00 GiB")
    assert said(computed.replace("22.02 GiB is alloc", "1.00 GiB is alloc")) == set()


def test_changes_are_not_called_enough_for_the_error_of_another_run() -> None:
    text = full(0.25).replace("0 bytes is reserved", "4.81 GiB is reserved")
    run = plan("rtx-3060-12gb", preset="llama-3.1-8b", micro_batch=1, checkpointing="none",
               workload={"effective_batch": 8})  # fmt: skip
    help_ = found(text, run)
    assert [said.id.removeprefix("diagnose.oom.") for said in help_.differs] == [
        "other-gpu", "other-need"
    ]  # fmt: skip
    assert help_.remedies
    assert "enough" not in render(help_.title, "en")
    assert "diagnose.oom.only-together" not in {note.id for note in help_.notes}
    assert not [one for one in help_.remedies if abs(one.saved / GIB - 4.81) < 0.01]
    assert next(iter(explanation_as_json(explain(text), help_))) == "differs"


def test_system_memory_is_given_back_by_what_takes_it() -> None:
    run = plan(optimizer_offload="cpu")
    patches = [one.patch for one in found("train.sh: line 1: 7 Killed python x.py", run).remedies]
    assert {"settings.optimizer_offload": "none"} in patches
    assert not any("settings.micro_batch" in patch for patch in patches)


UNSIZED = (
    "RuntimeError: CUDA error: out of memory",
    "ncclUnhandledCudaError: Call to CUDA function failed. Cuda failure 2 'out of memory'",
    "Error out of memory at line 351 in file /home/user/bitsandbytes/csrc/pythonInterface.c",
    "ValueError: No available memory for the cache blocks. Try increasing it.",
)


@pytest.mark.parametrize("text", UNSIZED)
def test_what_lowers_the_peak_is_not_called_enough_where_no_size_is_told(text: str) -> None:
    help_ = found(text, plan())
    assert help_.remedies
    assert "enough" not in render(help_.title, "en")
    assert "diagnose.oom.unsized" in [note.id for note in help_.notes]
    assert "are enough" in render(found(full(0.96), OF_ITS_OWN).title, "en")


@pytest.mark.parametrize(
    "text",
    ["Reason: OOMKilled", "requires more system memory (97.5 GiB) than is available (1 GiB)"],
)
def test_system_memory_that_no_setting_saves_is_not_sought_on_the_gpu(text: str) -> None:
    run = plan(loader={"num_workers": 0})
    said = [render(note, "en") for note in found(text, run).notes]
    assert any("system memory" in each for each in said)
    assert not any("GPU" in each or "sequence" in each or "50 MiB" in each for each in said)


def test_without_a_plan_the_advice_is_general_and_the_missing_facts_are_named() -> None:
    help_ = help_for(explain(full(1)))
    assert not help_.remedies
    assert [need.id for need in help_.needs] == ["diagnose.oom.needs-plan"]
    assert [each.says.id for each in help_.fixes] == ["diagnose.fix.lower-peak"]
    assert not [each for each in found(full(1), plan()).fixes if "lower-peak" in each.says.id]
    assert help_for(explain("nothing of the kind")) == Help()


def test_without_a_plan_a_process_that_the_system_killed_asks_for_no_gpu() -> None:
    killed = "RuntimeError: DataLoader worker (pid 4711) is killed by signal: Killed."
    for text in (killed, "train.sh: line 1: 7 Killed python x.py"):
        assert explain(text).kind in ("host", "worker")
        assert not help_for(explain(text)).needs
        assert help_for(explain(text)).fixes


@pytest.mark.parametrize("text", ["", " \n\n"])
def test_a_text_without_words_is_called_empty(text: str) -> None:
    assert "no text" in render(explain(text).says, "en")


def test_help_is_said_in_both_languages() -> None:
    help_ = found(full(1), plan())
    for language in LANGUAGES:
        for message in (*(one.sentence for one in help_.remedies), *help_.notes, *help_.differs):
            said = render(message, language)
            assert "diagnose." not in said
            assert "advise." not in said
