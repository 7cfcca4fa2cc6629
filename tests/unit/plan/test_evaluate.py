"""The whole way from a plan to its report, on a shipped profile."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from trainwright.data import resources
from trainwright.explain import Quantity
from trainwright.messages import LANGUAGES, Message, UserError, render
from trainwright.plan import file
from trainwright.plan.edit import with_keys
from trainwright.plan.evaluate import Facts, Pending, evaluate, resolve
from trainwright.plan.judging import verdict
from trainwright.plan.report import Report, Verdict, as_json
from trainwright.plan.schema import Plan
from trainwright.probe import nvml
from trainwright.probe.reading import Missing
from trainwright.profile import codec, interpreter, store
from trainwright.profile.profile import Profile
from trainwright.profile.spec import TraceSpec

EXAMPLE = with_keys(
    file.read(resources("examples", "resnet50-rtx3060.plan.yaml")), {"model.preset": "resnet18"}
)


def plan(**values: Any) -> Plan:
    return with_keys(EXAMPLE, {key.replace("__", "."): value for key, value in values.items()})


def facts(asked: Plan) -> Facts:
    found = resolve(asked)
    assert isinstance(found, Facts)
    return found


def report(asked: Plan) -> Report:
    return evaluate(asked, facts(asked))


def notes(asked: Plan) -> list[str]:
    return [note.id for note in facts(asked).notes]


def test_windows_has_no_nccl() -> None:
    pair = [{"id": "rtx-3090", "count": 2}]
    assert "plan.note.no-nccl" in notes(plan(machine__gpus=pair, machine__system="windows"))
    assert "plan.note.no-nccl" not in notes(plan(machine__gpus=pair))
    assert "plan.note.no-nccl" not in notes(plan(machine__system="windows"))


def test_evaluation_is_pure() -> None:
    known = facts(EXAMPLE)
    assert as_json(evaluate(EXAMPLE, known)) == as_json(evaluate(EXAMPLE, known))


@pytest.mark.parametrize(
    ("gpus", "changes", "offered"),
    [
        ([{"id": "rtx-3060-12gb"}], {}, True),
        ([{"id": "rtx-3060-12gb"}], {"workload__effective_batch": 4096,
         "settings__micro_batch": 4096, "settings__checkpointing": "none"}, False),  # does not fit
        ([{"id": "rtx-3060-12gb", "count": 2}], {"settings__strategy": "single"}, False),
    ],
)  # fmt: skip
def test_a_second_gpu_is_offered_to_work_that_runs_on_one(
    gpus: list[dict[str, Any]], changes: dict[str, Any], offered: bool
) -> None:
    said = [note.id for note in report(plan(machine__gpus=gpus, **changes)).notes]
    assert any(id.startswith("time.note.scaling-offer") for id in said) == offered


def test_more_samples_at_once_take_more_memory() -> None:
    used = [
        report(plan(settings__micro_batch=batch)).memory.device_used.value
        for batch in (16, 64, 256)
    ]
    assert used == sorted(used)
    assert used[0] < used[-1]


def test_without_a_recipe_the_range_of_the_likely_ones_is_told() -> None:
    example = file.read(resources("examples", "llama-8b-qlora-rtx4060ti.plan.yaml"))
    found = evaluate(example, facts(example))
    low, high = as_json(found)["memory"]["likely_recipes_bytes"]
    assert low == round(found.memory.device_used.value)
    # Embedding and head in fp32 instead of bf16 alone, as PEFT's preparation casts them.
    assert high - low > 2 * 128_256 * 4096 * 2
    assert [note.id for note in found.notes if note.id.startswith("plan.note.recipes-")]
    stated = evaluate(asked := with_keys(example, {"settings.recipe": "plain"}), facts(asked))
    assert as_json(stated)["memory"]["likely_recipes_bytes"] is None
    assert stated.memory.device_used == found.memory.device_used


def test_a_larger_card_of_the_same_kind_leaves_more_free() -> None:
    small, large = (
        report(plan(machine={"gpus": [{"id": id}]})).memory.free.value
        for id in ("rtx-3060-12gb", "rtx-3090")
    )
    assert large > small


def test_what_was_decided_for_the_person_is_in_the_report() -> None:
    settings = report(EXAMPLE).settings
    assert settings.optimizer == "sgd"
    assert settings.precision == "bf16-mixed"
    assert settings.micro_batch * settings.accumulation == EXAMPLE.workload.effective_batch


def test_any_attention_kernel_will_do_where_there_is_no_attention() -> None:
    assert facts(plan(settings__attention="eager")).profile.kernels == {}
    assert facts(plan(machine={"gpus": [{"id": "rtx-2080-ti"}]})).profile.kernels == {}


def test_a_structure_that_nobody_traced_is_pending() -> None:
    found = resolve(plan(workload__inputs={"image_size": 320}))
    assert isinstance(found, Pending)
    assert found.spec.image_size == 320
    assert found.point == (64, 0)
    answered = found.answered(facts(EXAMPLE).profile)
    assert answered.settings == found.settings


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({"made_with": {"trainwright": "0.0.1"}}, "plan.note.made-with"),
        ({"made_with": {"torch": "1.0"}}, "plan.note.made-with"),
        ({"machine__gpus": [{"id": "rtx-3090"}, {"id": "rtx-4090"}]}, "plan.note.mixed-gpus"),
        (
            {"machine__gpus": [{"id": "rtx-3090", "count": 2}], "settings__strategy": "single"},
            "plan.note.idle-gpus",
        ),
        ({"machine__cpu": "a-processor-of-tomorrow"}, "machine.which-part"),
        ({"machine__memory": [{"id": "a-kit-of-tomorrow"}]}, "machine.which-part"),
        ({"machine__drives": [{"id": "a-drive-of-tomorrow"}]}, "machine.which-part"),
        ({"machine__gpus": [{"id": "rx-7900-xtx"}]}, "plan.note.other-maker"),
    ],
)
def test_what_limits_the_answer_is_noted(changes: dict[str, Any], note: str) -> None:
    assert note not in notes(EXAMPLE)
    asked = plan(**changes)
    assert note in notes(asked)
    for said in report(asked).notes:
        for language in LANGUAGES:
            assert render(said, language) != said.id


def test_parts_that_do_not_go_together_stand_in_the_report() -> None:
    """AMD: a Ryzen 9 9950X is AM5; the plan of cards alone is not judged."""
    assert report(EXAMPLE).checks == ()
    asked = plan(
        machine__cpu="ryzen-9-9950x",
        machine__board="msi-meg-x570-unify",
        machine__psu="corsair-rm1000x-2024",
    )
    found = report(asked).checks
    assert found[0].rule == "C1"
    assert found[0].verdict == "error"
    shown = as_json(report(asked))["checks"]
    assert {"rule", "verdict", "because", "remedy", "missing", "source"} == set(shown[0])
    assert as_json(report(EXAMPLE))["checks"] == []


def test_versions_that_have_not_changed_need_no_note() -> None:
    made = file.text_data(EXAMPLE) | {"made_with": {"torch": interpreter.torch_version()}}
    assert "plan.note.made-with" not in notes(Plan.model_validate(made))


def test_an_unknown_gpu_names_file_key_and_remedy() -> None:
    asked = plan(machine={"gpus": [{"id": "rtx-3061"}]})
    with pytest.raises(UserError) as error, file.naming("mine.plan.yaml"):
        resolve(asked)
    assert str(error.value).startswith("mine.plan.yaml: machine.gpus[0].id: ")
    assert "rtx-306" in str(error.value)


def test_this_computer_without_a_gpu_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "read", lambda **_: Missing(Message.of("probe.no-driver")))
    with pytest.raises(UserError, match="no NVIDIA driver found"):
        resolve(plan(machine={"local": True}))


def of(quantity: Quantity, value: float) -> Quantity:
    return replace(quantity, value=value)


@pytest.mark.parametrize(
    ("used", "p95", "replay_failed", "linux", "windows", "fits"),
    [
        (10, 11, False, "fits", "fits", True),
        (11, 11.9, False, "tight", "tight", True),
        (11, 12.5, False, "tight", "tight", False),
        (12.5, 13, False, "no", "spills", False),
        (11, 11.5, True, "no", "spills", False),
    ],
)
def test_the_verdict_is_decided_on_the_p95_and_the_replay(
    used: float, p95: float, replay_failed: bool, linux: str, windows: str, fits: bool
) -> None:
    found = report(EXAMPLE)
    memory = replace(
        found.memory,
        device_used=of(found.memory.device_used, used),
        device_used_p95=of(found.memory.device_used_p95, p95),
        device_total=of(found.memory.device_total, 12),
        out_of_memory=replay_failed,
    )
    assert verdict(memory, "linux") == linux
    assert verdict(memory, "windows") == windows
    assert replace(found, memory=memory, verdict=Verdict(linux)).fits is fits


def test_json_has_what_scripts_depend_on() -> None:
    answer = json.loads(json.dumps(as_json(report(EXAMPLE)), allow_nan=False))
    assert isinstance(answer["fits"], bool)
    memory, time = answer["memory"], answer["time"]
    for name in (
        "allocated_peak_bytes",
        "reserved_peak_bytes",
        "device_used_bytes",
        "device_used_p95_bytes",
        "device_total_bytes",
    ):
        assert isinstance(memory[name], int)
    assert sum(term["bytes"] for term in memory["terms"]) == memory["allocated_peak_bytes"]
    assert len({term["name"] for term in memory["terms"]}) == len(memory["terms"])
    assert memory["allocated_peak_bytes"] <= memory["reserved_peak_bytes"]
    assert memory["device_used_bytes"] <= memory["device_used_p95_bytes"]
    low, high = time["interval90"]
    assert low <= time["samples_per_second"] <= high
    assert time["step_seconds"] > 0
    assert time["tokens_per_second"] is None
    assert time["bottleneck"] in {
        "gpu", "launch", "storage", "decode", "transfer", "communication"
    }  # fmt: skip
    assert {"name", "seconds"} <= set(time["stages"][0])


def test_json_has_no_figure_where_there_is_none() -> None:
    found = report(EXAMPLE)
    unknown = replace(found.time.samples_per_second, value=float("nan"), interval=None)
    time = replace(found.time, samples_per_second=unknown, run_seconds=None)
    answer = as_json(replace(found, time=time))["time"]
    assert answer["samples_per_second"] is None
    assert answer["run_seconds"] is None
    assert answer["interval90"] is None
    json.dumps(answer, allow_nan=False)


def test_notes_tell_what_was_traced_and_what_was_not() -> None:
    """A picture has no length; an encoder that serves generates nothing."""
    known = facts(EXAMPLE)
    pending = Pending(known.machine, known.settings, SPEC, known.inputs, ())
    alone = replace(known.profile, exact=False, points=((8, 0),))
    assert [note.id for note in pending.answered(alone).notes] == ["plan.note.one-batch"]
    read = {"prefill": known.profile.segments["micro"]}
    encoder = replace(known.profile, segments=read, points=((8, 512),))
    assert [note.id for note in pending.answered(encoder).notes] == ["plan.note.one-pass"]


SPEC = TraceSpec((("preset", "resnet18"),), "", "full", "bf16-mixed", "flash")


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_of_different_gpus_the_smallest_decides_what_fits(order: tuple[int, int]) -> None:
    cards = [{"id": "rtx-4090"}, {"id": "rtx-3060-12gb"}]
    mixed = report(plan(machine={"gpus": [cards[index] for index in order]}))
    alone = report(plan(machine={"gpus": [cards[1]]}))
    assert mixed.memory.device_total == alone.memory.device_total
    assert alone.memory.device_total.value < 12 * 2**30


def without(profile: Profile, optimizer: str) -> Profile:
    segments = {name: one for name, one in profile.segments.items() if not name.endswith(optimizer)}
    return replace(profile, segments=segments)


def test_a_profile_that_lacks_the_optimizer_is_traced_for_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TRAINWRIGHT_CACHE", str(tmp_path))
    asked = plan(workload__inputs={"image_size": 320}, settings__optimizer="adafactor")
    pending = resolve(asked)
    assert isinstance(pending, Pending)
    path = store.cache_path(pending.spec)
    path.parent.mkdir(parents=True)
    known = without(facts(EXAMPLE).profile, "adafactor")
    path.write_bytes(codec.encode(known))
    again = resolve(asked)
    assert isinstance(again, Pending)
    assert again.spec.asked == "adafactor"
    assert isinstance(resolve(with_keys(asked, {"settings.optimizer": "adamw"})), Facts)
    # What is traced again keeps the updates that were known before.
    documents: list[dict[str, Any]] = []

    def started(_program: str, document: dict[str, Any], **_options: Any) -> None:
        documents.append(document)
        raise KeyboardInterrupt

    more = replace(pending.spec, optimizers=("adafactor",))
    with pytest.raises(KeyboardInterrupt):
        store.trace(more, run=started)
    assert set(documents[0]["optimizers"]) == {"adafactor", "adamw", "sgd"}


@pytest.mark.parametrize(
    ("changed", "points", "optimizers"),
    [
        ({}, 1, ("adamw",)),
        # Nothing of this layout ships, so that each estimate would trace it again.
        ({"settings__channels_last": True}, 3, ("adamw", "sgd", "adafactor")),
    ],
)
def test_the_first_answer_traces_only_what_is_asked(
    changed: dict[str, Any], points: int, optimizers: tuple[str, ...]
) -> None:
    size = {"image_size": 320}
    spec = resolve(plan(workload__inputs=size, settings__optimizer="adamw-8bit", **changed))
    assert isinstance(spec, Pending)
    documents: list[dict[str, Any]] = []

    def started(_program: str, document: dict[str, Any], **_options: Any) -> None:
        documents.append(document)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.trace(spec.spec, at=spec.point, run=started)
    assert documents[0]["optimizers"] == optimizers
    assert len(documents[0]["points"]) == points
    serving = replace(spec.spec, model=(("timm", "x"),), task="infer", sequence=True)
    with pytest.raises(KeyboardInterrupt):
        store.trace(serving, at=(1, 300), run=started)
    assert len({length for _, length in documents[1]["points"]}) > 1


def test_what_an_earlier_tracer_wrote_is_traced_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TRAINWRIGHT_CACHE", str(tmp_path))
    pending = resolve(plan(workload__inputs={"image_size": 320}))
    assert isinstance(pending, Pending)
    path, known = store.cache_path(pending.spec), facts(EXAMPLE).profile
    path.parent.mkdir(parents=True)
    path.write_bytes(codec.encode(known))
    assert store.load(pending.spec) is not None
    before = str(int(known.versions["tracer"]) - 1)
    path.write_bytes(codec.encode(replace(known, versions=known.versions | {"tracer": before})))
    os.utime(path, (0, 0))  # another time than the file before it
    assert store.load(pending.spec) is None


def test_steps_that_do_not_repeat_are_noted() -> None:
    pending = resolve(plan(workload__inputs={"image_size": 320}))
    assert isinstance(pending, Pending)
    restless = replace(facts(EXAMPLE).profile, exact=False, repeats=False)
    assert "plan.note.no-repeat" in [note.id for note in pending.answered(restless).notes]


def test_offloading_needs_the_systems_memory() -> None:
    offloaded = {"settings__optimizer_offload": "cpu", "settings__optimizer": "adamw"}
    gpus = {"gpus": [{"id": "rtx-3060-12gb"}]}
    unknown = report(plan(**offloaded, machine=gpus))
    need = unknown.memory.host
    assert need is not None
    weights = 4 * facts(EXAMPLE).profile.model["trainable"]
    # Copies of weights and gradients and two moments, but for tensors below 4,096 elements.
    assert 0.99 * 4 * weights < need.value <= 4 * weights
    assert as_json(unknown)["memory"]["host_bytes"] == round(need.value)
    assert as_json(report(EXAMPLE))["memory"]["host_bytes"] is None
    assert "plan.note.host-unknown" in [note.id for note in unknown.notes]
    enough = report(plan(**offloaded, machine=gpus | {"memory_gib": 64}))
    assert enough.fits
    # The system and Python with CUDA hold some of it, too.
    filled = report(plan(**offloaded, machine=gpus | {"memory_gib": need.value / 2**30 + 1}))
    assert filled.verdict is Verdict.NO
    assert filled.notes[0].values["total"] < need.value
    short = report(plan(**offloaded, machine=gpus | {"memory_gib": need.value / 2**30 / 2}))
    assert short.verdict is Verdict.NO
    assert not short.fits
    assert short.notes[0].id == "plan.note.host-short"
    for language in LANGUAGES:
        assert f"{need.value / 2**30:.2f}"[:3] in render(short.notes[0], language)


def test_weights_that_cannot_be_loaded_are_named() -> None:
    """from_pretrained reads 16 GB of weights into memory in each process; bitsandbytes does not."""

    def said(memory: float, **settings: Any) -> list[str]:
        example = file.read(resources("examples", "llama-8b-lora.plan.yaml"))
        machine = {"gpus": [{"id": "rtx-4090", "count": 2}], "memory_gib": memory}
        changed = {key.replace("__", "."): value for key, value in settings.items()}
        found = report(with_keys(example, {"machine": machine, **changed})).notes
        return [note.id for note in found if note.id.startswith("plan.note.load")]

    assert said(24) == ["plan.note.load-short"]
    assert said(24, settings__strategy="single") == []
    assert said(64) == []
    assert said(8, workload__task="qlora") == ["plan.note.load-streamed"]
    assert said(24, workload__task="qlora") == []


def test_offloaded_activations_leave_the_gpu_for_pinned_memory() -> None:
    example = file.read(resources("examples", "llama-8b-lora.plan.yaml"))
    kept = report(with_keys(example, {"settings.micro_batch": 2}))
    moved = report(
        with_keys(example, {"settings.micro_batch": 2, "settings.activation_offload": True})
    )
    each = 2 * 2048 * 4096 * 2  # samples, tokens, width, bytes of bf16: a power of two
    assert kept.memory.host is None
    assert moved.memory.host is not None
    assert moved.memory.host.value == 32 * each
    freed = kept.memory.allocated_peak.value - moved.memory.allocated_peak.value
    assert 31 * each <= freed <= 32 * each
    stages = {stage.name: stage.seconds.value for stage in moved.time.stages}
    fastest_link = 64e9  # PCIe 5.0 x16, either way
    assert stages["offload"] >= 2 * 32 * 32 * each / fastest_link
    assert "offload" not in {stage.name for stage in kept.time.stages}


def test_muon_says_what_it_leaves_to_adamw() -> None:
    pending = resolve(plan(settings__optimizer="muon"))
    assert isinstance(pending, Pending)
    assert pending.spec.optimizers[-1] == pending.spec.asked == "muon"
    known = facts(EXAMPLE).profile
    traced = replace(known, model=known.model | {"muon": 1000})
    (note,) = [one for one in pending.answered(traced).notes if one.id == "plan.note.muon"]
    assert note.values["rest"] == known.model["trainable"] - 1000


def test_compiling_is_between_bounds_that_are_told() -> None:
    plain = report(plan(settings__compile=False)).memory.allocated_peak
    fused = report(plan(settings__compile=True)).memory.allocated_peak
    assert plain.note is None
    assert fused.value < plain.value
    assert fused.interval is not None
    assert plain.interval is not None
    assert fused.interval.low < fused.value < plain.value < fused.interval.high
    wide, narrow = (one.high - one.low for one in (fused.interval, plain.interval))
    assert wide > 1.5 * narrow
    assert fused.note is not None
    assert fused.note.id == "memory.note.fusing"
    assert fused.note.values["high"] == pytest.approx(plain.value, rel=0.05)
    assert sum(part.value for part in fused.parts) == fused.value
