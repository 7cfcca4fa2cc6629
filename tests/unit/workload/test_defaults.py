"""What is filled in where a plan leaves keys free, and what is refused."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwright.catalog import Fact, GpuRecord
from trainwright.messages import LANGUAGES, UserError, render
from trainwright.workload import FullSettings, Settings, Workload
from trainwright.workload.defaults import NOT_YET, filled
from trainwright.workload.meaning import meaningless


def gpu(capability: tuple[int, int] | None, **values: Any) -> GpuRecord:
    fact = Fact(value=1.0, source="test", confidence="high")
    return GpuRecord(
        id="test",
        name="Test 1",
        vendor="NVIDIA" if capability else "AMD",
        segment="consumer",
        architecture="",
        compute_capability=capability,
        memory_bytes=fact,
        bandwidth_bytes_per_s=fact,
        **values,
    )


ADA = gpu((8, 9))
TURING = gpu((7, 5))
PASCAL = gpu((6, 1))


def settle(
    settings: dict[str, Any] | None = None,
    *,
    task: str = "full",
    record: GpuRecord = ADA,
    gpus: int = 1,
    cores: int | None = None,
    **workload: Any,
) -> FullSettings:
    if task != "infer":
        workload.setdefault("effective_batch", 64)
    return filled(
        Settings.model_validate(settings or {}),
        Workload.model_validate({"task": task, **workload}),
        record,
        gpus,
        cores,
    )


def test_a_preference_is_trained_by_trls_own_step() -> None:
    settings = settle(objective="dpo")
    assert settings.recipe == "trl-dpo"
    assert (settings.cross_entropy, settings.checkpointing) == ("tiled", "full")
    assert settle({"checkpointing": "none"}, objective="dpo").checkpointing == "none"
    policy = settle({"generation": "vllm"}, objective="grpo")
    assert (policy.recipe, policy.beside) == ("trl-grpo", 0.3)
    assert settle(objective="grpo").beside == 0
    reward = settle(objective="reward")
    assert (reward.recipe, reward.cross_entropy) == ("trl-reward", "full")


@pytest.mark.parametrize(
    ("task", "reference", "compared"),
    [
        ("full", None, "model"),
        ("lora", None, "adapter-off"),
        ("qlora", "precomputed", "precomputed"),
        ("lora", "model", "model"),
    ],
)
def test_what_a_policy_is_compared_with_follows_from_the_task(
    task: Any, reference: Any, compared: str
) -> None:
    workload = Workload(task=task, effective_batch=8, objective="dpo", reference=reference)
    assert workload.compared == compared


@pytest.mark.parametrize(
    ("settings", "rest", "said"),
    [
        ({}, {"task": "prompt", "objective": "dpo"}, "workload.objective"),
        ({}, {"task": "pretrain", "objective": "dpo"}, "workload.objective"),
        ({}, {"task": "lora", "reference": "model"}, "workload.reference"),
        ({}, {"objective": "dpo", "reference": "adapter-off"}, "workload.reference"),
        ({"recipe": "trl-dpo"}, {}, "settings.recipe"),
        ({"recipe": "hf-trainer"}, {"objective": "dpo"}, "trl-dpo"),
        ({"cross_entropy": "chunked"}, {"objective": "dpo"}, "tiled"),
        ({"cross_entropy": "tiled"}, {"objective": "reward"}, "full"),
        ({"recipe": "trl-dpo"}, {"objective": "reward"}, "trl-reward"),
        ({}, {"objective": "reward", "reference": "model"}, "workload.reference"),
        ({"strategy": "fsdp2"}, {"objective": "dpo", "gpus": 2}, "single, ddp"),
        ({}, {"objective": "dpo", "inputs": {"batching": "packed"}}, "padded"),
        ({}, {"objective": "dpo", "inputs": {"images": 1}}, "workload.inputs.images"),
        ({}, {"objective": "grpo", "effective_batch": 12}, "take 8, 16"),
        ({}, {"objective": "grpo", "reference": "precomputed"}, "workload.reference"),
        ({}, {"objective": "grpo", "task": "lora", "reference": "model"}, "workload.reference"),
        ({}, {"objective": "grpo", "inputs": {"sequence_length": 8}}, "prompt_tokens"),
        ({"memory_share": 0.4}, {"objective": "grpo"}, "settings.memory_share"),
        ({"generation": "vllm"}, {"objective": "dpo"}, "settings.generation"),
        ({}, {"inputs": {"new_tokens": 8}}, "workload.inputs.new_tokens"),
        ({}, {"rollout": {"generations": 4}}, "set workload.objective: grpo"),
    ],
)
def test_what_an_objective_does_not_go_with_is_refused_in_one_line(
    settings: dict[str, Any], rest: dict[str, Any], said: str
) -> None:
    assert said in refusal(settings, **rest)


@pytest.mark.parametrize(
    ("settings", "rest", "batches", "groups"),
    [
        ({"micro_batch": 8}, {"effective_batch": 64}, [48, 72], [4, 8]),
        ({"micro_batch": 8}, {"effective_batch": 66}, [48, 72], []),
        ({"accumulation": 4}, {"effective_batch": 64, "gpus": 2}, [48, 72], [4, 8]),
        ({}, {"effective_batch": 33, "gpus": 2, "rollout": {"generations": 3}}, [30, 36], []),
        ({"micro_batch": 8, "accumulation": 8}, {"effective_batch": 64}, [], [4, 8]),
        ({}, {"effective_batch": 1}, [6], []),
    ],
)
def test_a_refused_batch_of_answers_names_what_is_then_accepted(
    settings: dict[str, Any], rest: dict[str, Any], batches: list[int], groups: list[int]
) -> None:
    asked = {"objective": "grpo", "rollout": {"generations": 6}} | rest
    said = refusal(settings, **asked)
    assert not batches or f"{', '.join(map(str, batches))}" in said
    assert not groups or f"generations to one of: {', '.join(map(str, groups))}" in said
    for batch in batches:
        settle(settings, **asked | {"effective_batch": batch})
    for group in groups:
        settle(settings, **asked | {"rollout": {"generations": group}})


def refusal(settings: dict[str, Any] | None = None, **rest: Any) -> str:
    with pytest.raises(UserError) as error:
        settle(settings, **rest)
    for language in LANGUAGES:
        assert len(render(error.value.message, language).splitlines()) == 1
    return str(error.value)


@pytest.mark.parametrize(
    ("record", "training", "serving"),
    [
        (ADA, "bf16-mixed", "bf16"),
        (gpu((8, 0)), "bf16-mixed", "bf16"),
        (TURING, "fp16-mixed", "fp16"),
        (gpu((7, 0)), "fp16-mixed", "fp16"),
        (PASCAL, "fp32", "fp32"),
        (gpu(None), "fp32", "fp32"),
    ],
)
def test_precision_follows_the_compute_capability(
    record: GpuRecord, training: str, serving: str
) -> None:
    assert settle(record=record).precision == training
    assert settle(record=record, task="infer").precision == serving


def test_other_makers_get_bf16_where_they_have_units_for_it() -> None:
    units = {"bf16_fp32": Fact(value=1e14, source="test", confidence="high")}
    assert settle(record=gpu(None, flops=units)).precision == "bf16-mixed"


@pytest.mark.parametrize("precision", ["bf16", "bf16-mixed", "tf32"])
def test_a_precision_without_hardware_is_refused_with_the_better_one(precision: str) -> None:
    line = refusal({"precision": precision}, record=TURING)
    assert "settings.precision" in line
    assert "7.5" in line
    assert "fp16-mixed" in line
    assert settle({"precision": precision}).precision == precision


@pytest.mark.parametrize(("key", "value"), NOT_YET)
def test_what_is_not_planned_yet_is_refused_by_name(key: str, value: str) -> None:
    line = refusal({key: value})
    assert f"settings.{key}: {value} is not planned yet; use " in line


@pytest.mark.parametrize(
    ("effective", "gpus", "settings", "expected"),
    [
        (64, 1, {}, (8, 8)),
        (64, 2, {}, (8, 4)),
        (7, 1, {}, (7, 1)),
        (13, 1, {}, (1, 13)),
        (12, 1, {}, (6, 2)),
        (64, 1, {"micro_batch": 2}, (2, 32)),
        (64, 4, {"micro_batch": 16}, (16, 1)),
        (64, 1, {"accumulation": 4}, (16, 4)),
        (64, 2, {"micro_batch": 8, "accumulation": 4}, (8, 4)),
        (64, 2, {"strategy": "single"}, (8, 8)),
    ],
)
def test_the_effective_batch_is_kept(
    effective: int, gpus: int, settings: dict[str, Any], expected: tuple[int, int]
) -> None:
    found = settle(settings, gpus=gpus, effective_batch=effective)
    assert (found.micro_batch, found.accumulation) == expected


@given(st.integers(1, 5000), st.integers(1, 9), st.integers(1, 40), st.integers(1, 40))
def test_batches_multiply_to_the_effective_batch_or_say_what_would(
    effective: int, gpus: int, micro: int, steps: int
) -> None:
    for settings in ({}, {"micro_batch": micro}, {"accumulation": steps}):
        try:
            found = settle(settings, gpus=gpus, effective_batch=effective)
        except UserError as error:
            nearest = error.message.values["nearest"]
        else:
            assert found.micro_batch * found.accumulation * gpus == effective
            continue
        for exact in nearest:
            found = settle(settings, gpus=gpus, effective_batch=exact)
            assert found.micro_batch * found.accumulation * gpus == exact


def test_an_inexact_batch_names_the_nearest_exact_ones() -> None:
    line = refusal({"micro_batch": 5})
    assert "settings.micro_batch" in line
    assert "4, 8" in line
    assert "60, 65" in line
    assert "3 GPUs; the nearest that do are 63, 66" in refusal(gpus=3)
    assert "effective_batch: 48" in refusal({"micro_batch": 6, "accumulation": 8})


@pytest.mark.parametrize(
    ("task", "rest", "key"),
    [
        ("infer", {"settings": {"optimizer": "sgd"}}, "settings.optimizer"),
        ("infer", {"settings": {"accumulation": 2}}, "settings.accumulation"),
        ("infer", {"settings": {"checkpointing": "full"}}, "settings.checkpointing"),
        ("infer", {"settings": {"cross_entropy": "chunked"}}, "settings.cross_entropy"),
        ("infer", {"settings": {"activation_offload": True}}, "settings.activation_offload"),
        ("prefix", {"settings": {"activation_offload": True}}, "settings.activation_offload"),
        ("infer", {"effective_batch": 8}, "workload.effective_batch"),
        ("infer", {"inputs": {"sequence_length": 8}}, "workload.inputs.sequence_length"),
        ("full", {"settings": {"kv_cache": "bf16"}}, "settings.kv_cache"),
        ("full", {"settings": {"engine": "vllm"}}, "settings.engine"),
        ("full", {"inputs": {"new_tokens": 8}}, "workload.inputs.new_tokens"),
        ("full", {"inputs": {"concurrent": 8}}, "workload.inputs.concurrent"),
        ("full", {"lora": {"rank": 8}}, "workload.lora"),
        ("infer", {"lora": {"rank": 8}}, "workload.lora"),
        ("prompt", {"lora": {"rank": 8}}, "workload.lora"),
        ("lora", {"frozen": ["lm_head"]}, "workload.frozen"),
        ("infer", {"frozen": ["lm_head"]}, "workload.frozen"),
        ("lora", {"virtual_tokens": 8}, "workload.virtual_tokens"),
        ("prefix", {"settings": {"checkpointing": "full"}}, "settings.checkpointing"),
        ("infer", {"settings": {"recipe": "hf-trainer"}}, "settings.recipe"),
        ("lora", {"settings": {"kbit_preparation": "all"}}, "settings.kbit_preparation"),
        ("full", {"settings": {"adapter_dtype": "weights"}}, "settings.adapter_dtype"),
        ("full", {"settings": {"input_gradients": True}}, "settings.input_gradients"),
        ("infer", {"settings": {"double_quantization": False}}, "settings.double_quantization"),
        ("full", {"settings": {"momentum": 0}}, "settings.momentum"),
        (
            "full",
            {"settings": {"optimizer": "lion", "optimizer_implementation": "fused"}},
            "settings.optimizer_implementation",
        ),
    ],
)
def test_a_key_that_means_nothing_to_the_task_is_refused(
    task: str, rest: dict[str, Any], key: str
) -> None:
    assert refusal(task=task, **rest).startswith(key)


def test_nothing_is_meaningless_in_a_plain_workload() -> None:
    for task in ("full", "lora", "infer"):
        batch = {} if task == "infer" else {"effective_batch": 8}
        workload = Workload.model_validate({"task": task, **batch})
        assert list(meaningless(Settings(), workload)) == []


def test_what_moves_kept_activations_needs_some_that_are_kept() -> None:
    assert settle({"activation_offload": True}).checkpointing == "full"
    assert settle({"activation_offload": True, "checkpointing": "every-2"}).activation_offload
    for kept in ("none", "selective"):
        line = refusal({"activation_offload": True, "checkpointing": kept})
        assert line.startswith("settings.activation_offload")
        assert "every-K" in line


def test_quantisation_follows_the_task() -> None:
    assert settle(task="qlora").quantization == "nf4"
    assert settle(task="lora").quantization == "none"
    assert settle({"quantization": "nf4"}, task="infer").quantization == "nf4"
    assert "task qlora" in refusal({"quantization": "nf4"}, task="lora")
    assert settle({"quantization": "int8"}, task="qlora").quantization == "int8"
    for unfit in ("none", "int4", "fp8"):
        assert "nf4 or int8" in refusal({"quantization": unfit}, task="qlora")
    assert "cannot be trained by task full" in refusal({"quantization": "int8"}, task="full")


def test_the_cache_has_the_type_of_the_weights() -> None:
    assert settle(task="infer").kv_cache == "bf16"
    assert settle({"precision": "fp32"}, task="infer").kv_cache == "fp32"
    assert "settings.kv_cache" in refusal({"kv_cache": "fp32"}, task="infer")


def test_requests_at_once_are_the_batch_of_serving() -> None:
    assert settle(task="infer", inputs={"concurrent": 16}).micro_batch == 16
    assert settle({"micro_batch": 4}, task="infer").micro_batch == 4
    assert settle(task="infer").micro_batch == 1
    assert "concurrent" in refusal({"micro_batch": 4}, task="infer", inputs={"concurrent": 8})


def test_flash_attention_needs_16_bits_and_ampere() -> None:
    assert settle({"attention": "flash"}).attention == "flash"
    assert "16 bits" in refusal({"attention": "flash", "precision": "fp32"})
    assert "Test 1" in refusal({"attention": "flash"}, record=TURING)


@pytest.mark.parametrize(
    ("cores", "gpus", "workers"), [(None, 1, 4), (16, 1, 8), (8, 1, 7), (8, 2, 3), (2, 1, 2)]
)
def test_workers_leave_a_core_for_each_gpu(cores: int | None, gpus: int, workers: int) -> None:
    assert settle(cores=cores, gpus=gpus).num_workers == workers


def test_loader_settings_agree_with_each_other() -> None:
    found = settle({"loader": {"num_workers": 0}})
    assert (found.num_workers, found.persistent_workers) == (0, False)
    assert settle().persistent_workers
    for key, value in (("prefetch_factor", 2), ("persistent_workers", True)):
        assert f"settings.loader.{key}" in refusal({"loader": {"num_workers": 0, key: value}})


def test_strategy_follows_the_number_of_gpus() -> None:
    assert settle().strategy == "single"
    assert settle(gpus=2).strategy == "ddp"
    assert settle({"strategy": "single"}, gpus=2).strategy == "single"


BACKWARD = {"optimizer_in_backward": True}
OFFLOAD = {"optimizer_offload": "cpu"}


def test_an_update_within_backward_takes_the_batch_at_once() -> None:
    found = settle(BACKWARD, effective_batch=48)
    assert (found.micro_batch, found.accumulation) == (48, 1)
    assert "accumulation: optimizer_in_backward" in refusal(BACKWARD | {"accumulation": 2})
    said = refusal(BACKWARD | {"micro_batch": 4}, effective_batch=32)
    assert said.startswith("settings.micro_batch")
    assert "set 32" in said


@pytest.mark.parametrize("early", [BACKWARD, OFFLOAD])
def test_what_moves_parameters_early_cannot_scale_or_average(early: dict[str, Any]) -> None:
    key = f"settings.{next(iter(early))}"
    assert refusal(early | {"precision": "fp16-mixed"}).startswith(f"{key}: the loss scaling")
    assert "settings.strategy: single" in refusal(early, gpus=2)
    assert settle(early | {"strategy": "single"}, gpus=2).strategy == "single"


@pytest.mark.parametrize("optimizer", ["adamw-4bit", "adamw-8bit", "lion", "muon", "adafactor"])
def test_only_torchs_large_states_are_offloaded(optimizer: str) -> None:
    assert f"not with {optimizer}" in refusal(OFFLOAD | {"optimizer": optimizer})
    assert "remove one of the two" in refusal(OFFLOAD | BACKWARD)
    assert settle(OFFLOAD).optimizer_offload == "cpu"
    assert "settings.optimizer_offload" in refusal(OFFLOAD, task="infer")


def test_a_recipe_sets_defaults_that_the_plan_overrules() -> None:
    recipe = {"recipe": "peft-script"}
    found = settle(recipe, task="qlora")
    assert (found.kbit_preparation, found.double_quantization) == ("all", False)
    assert (found.optimizer_implementation, found.output_kept) == ("foreach", "next")
    assert settle(recipe, task="lora").kbit_preparation == "none"
    assert settle({**recipe, "kbit_preparation": "none"}, task="qlora").kbit_preparation == "none"
    assert settle({**recipe, "optimizer": "adafactor"}).optimizer_implementation is None
    assert (
        settle().model_dump()
        == settle({"recipe": "plain"}).model_copy(update={"recipe": None}).model_dump()
    )


@pytest.mark.parametrize(
    ("settings", "update"),
    [
        ({}, "adamw"),
        ({"optimizer_implementation": "foreach"}, "adamw-foreach"),
        ({"optimizer": "sgd"}, "sgd"),
        ({"optimizer": "sgd", "momentum": 0}, "sgd-plain"),
        (
            {"optimizer": "sgd", "momentum": 0, "optimizer_implementation": "fused"},
            "sgd-plain-fused",
        ),
        ({"optimizer": "paged-adamw"}, "paged-adamw"),
        ({"optimizer_offload": "cpu", "optimizer_implementation": "foreach"}, "adamw"),
    ],
)
def test_an_update_is_traced_as_it_runs(settings: dict[str, Any], update: str) -> None:
    assert settle(settings).update == update


def test_every_value_of_every_setting_has_one_effect():
    from typing import get_args

    from trainwright.workload.settings import Effect, Optimizer, effect

    assert {effect("optimizer", name) for name in get_args(Optimizer)} == set(Effect)
    assert effect("optimizer", "adamw-8bit") is Effect.NEARLY
    assert effect("precision", "fp8") is Effect.NEARLY
    assert effect("precision", "bf16") is Effect.DIFFERENT
    assert effect("optimizer_in_backward", True) is Effect.DIFFERENT
    for name in ("checkpointing", "cross_entropy", "allocator", "activation_offload", "attention"):
        assert effect(name, "full") is Effect.SAME


def test_a_plan_with_the_earlier_name_of_a_recipe_still_opens():
    assert Settings.model_validate({"recipe": "hf-trainer-4.45"}).recipe == "hf-trainer-4.46"
