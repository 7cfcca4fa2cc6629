"""From a plan to the structure that must be known of its model."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwright.data import resources
from trainwright.machine.resolve import catalogued
from trainwright.messages import UserError, render
from trainwright.plan import file
from trainwright.plan.edit import with_keys
from trainwright.plan.schema import Plan
from trainwright.plan.trace_request import Question, question
from trainwright.profile import shipped
from trainwright.workload import Inputs
from trainwright.workload.defaults import filled

EXAMPLE = file.read(resources("examples", "llama-8b-lora.plan.yaml"))


def plan(**values: Any) -> Plan:
    named = {key.replace("__", "."): value for key, value in values.items()}
    return with_keys(EXAMPLE, named)


def ask(asked: Plan) -> Question:
    record = catalogued(asked.machine).machine.gpu.record
    return question(asked, filled(asked.settings, asked.workload, record), record)


def refusal(asked: Plan) -> str:
    with pytest.raises(UserError) as error:
        ask(asked)
    assert len(render(error.value.message, "ko").splitlines()) == 1
    return str(error.value)


@pytest.mark.parametrize(
    ("gpu", "precision", "attention", "kernel"),
    [
        # torch's order of kernels: sdp_utils.cpp, check_sm_version and check_tensor_dtype.
        ("rtx-4090", "bf16-mixed", "sdpa", "flash"),
        ("rtx-4090", "fp16-mixed", "sdpa", "flash"),
        ("rtx-4090", "fp32", "sdpa", "efficient"),
        ("rtx-4090", "tf32", "sdpa", "efficient"),
        ("rtx-4090", "bf16-mixed", "flash", "flash"),
        ("rtx-4090", "bf16-mixed", "eager", "eager"),
        ("rtx-2080-ti", "fp16-mixed", "sdpa", "efficient"),
        ("a100-80gb", "bf16", "sdpa", "flash"),
    ],
)
def test_the_kernel_is_the_one_that_torch_takes(
    gpu: str, precision: str, attention: str, kernel: str
) -> None:
    asked = plan(
        machine={"gpus": [{"id": gpu}]},
        settings__precision=precision,
        settings__attention=attention,
    )
    assert ask(asked).spec.kernel == kernel


def test_what_only_the_search_changes_is_the_same_structure() -> None:
    first = ask(plan(settings__micro_batch=2)).spec
    for changes in (
        {"settings__micro_batch": 4},
        {"settings__checkpointing": "every-2"},
        {"settings__optimizer": "sgd"},
        {"workload__inputs__sequence_length": 4096},
        {"workload__effective_batch": 128},
    ):
        assert ask(plan(**{"settings__micro_batch": 2} | changes)).spec == first
    assert ask(plan(settings__micro_batch=1)).spec.single
    assert ask(plan(settings__checkpointing="selective")).spec.checkpointing == "selective"
    assert ask(plan(workload__lora={"rank": 8})).spec.lora == (8, ())


def test_only_what_changes_the_step_makes_another_structure() -> None:
    plain = ask(plan()).spec
    assert ask(plan(workload__lora={"variant": "rslora"})).spec == plain
    dora = ask(plan(workload__lora={"variant": "dora"})).spec
    dropped = ask(plan(workload__lora={"dropout": 0.05})).spec
    assert dora.method.dora
    assert dropped.method.dropout
    assert dropped == ask(plan(workload__lora={"dropout": 0.5})).spec
    assert shipped.place(plain)
    chunked = ask(plan(settings__cross_entropy="chunked")).spec
    assert chunked.method.cross_entropy == "chunked"
    for other in (dora, dropped, chunked):
        assert shipped.place(other) is None
        assert other.key(()) != plain.key(())


def test_frozen_parts_are_a_structure_of_their_own_in_any_order() -> None:
    full = {"workload__task": "full", "workload__lora": None}
    names = ["layers.0-3", "embed_tokens"]
    found = ask(plan(**full, workload__frozen=names)).spec
    assert found == ask(plan(**full, workload__frozen=[*reversed(names), *names])).spec
    assert found.method.frozen == ("embed_tokens", "layers.0-3")
    assert shipped.place(found) is None


def test_virtual_tokens_are_traced_and_take_positions() -> None:
    found = ask(plan(workload__task="prefix", workload__lora=None, settings__checkpointing=None))
    assert (found.spec.task, found.spec.method.virtual_tokens) == ("prefix", 20)
    values = {"workload__task": "prompt", "workload__lora": None, "workload__virtual_tokens": 8}
    assert ask(plan(**values)).spec.method.virtual_tokens == 8
    longest = {"workload__inputs": {"sequence_length": 131_072}}
    beyond = ask(plan(**values, **longest)).notes[-1]
    assert (beyond.id, beyond.values["length"]) == ("plan.note.beyond-positions", 131_080)
    table = {"model": {"preset": "gpt2"}, "workload__inputs": {"sequence_length": 1024}}
    assert "1,032" in refusal(plan(**values, **table))
    assert "choose lora or full" in refusal(
        plan(model={"timm": "resnet18"}, workload__inputs=None, workload__task="prompt")
    )
    chunked = {"model": {"timm": "resnet18"}, "workload__inputs": None, "workload__task": "full"}
    line = refusal(plan(**chunked, workload__lora=None, settings__cross_entropy="fused"))
    assert line.startswith("settings.cross_entropy: fused")


def test_pretraining_and_tuning_run_the_same_step() -> None:
    assert ask(plan(workload__task="pretrain")).spec == ask(plan(workload__task="full")).spec


def test_tf32_has_the_events_of_fp32_and_serving_no_master_copy() -> None:
    assert ask(plan(settings__precision="tf32")).spec.precision == "fp32"
    served = plan(workload__task="infer", settings__precision="bf16")
    assert ask(served).spec.precision == "bf16-mixed"


def test_missing_inputs_are_the_presets_and_guesses_are_told() -> None:
    found = ask(plan(workload__inputs=None))
    assert found.inputs.sequence_length == 2048
    assert found.notes == ()
    served = ask(plan(workload__task="infer", workload__inputs={}))
    assert served.inputs.prompt_tokens
    assert len(served.notes) == 2


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"model": {"preset": "llama-3.1-8bb"}}, "model.preset: "),
        ({"model": {"preset": "resnet50"}, "workload__inputs": {}}, "workload.task"),
        (
            {"model": {"preset": "resnet50"}, "workload__task": "full"},
            "workload.inputs.sequence_length",
        ),
        ({"workload__inputs": {"image_size": 224}}, "workload.inputs.image_size"),
        (
            {"model": {"preset": "gpt2"}, "workload__inputs": {"sequence_length": 2_000}},
            "1,024",
        ),
    ],
)
def test_what_does_not_suit_the_model_is_refused_by_key(changes: dict[str, Any], says: str) -> None:
    assert says in refusal(plan(**changes))


GPT2 = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_positions": 512}


def config(folder: Path, content: Any) -> Plan:
    path = folder / "config.json"
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    path.write_bytes(text)
    return plan(model={"hf": str(path)}, workload__inputs=None)


def test_a_configuration_gives_its_length_and_a_digest_of_its_own(tmp_path: Path) -> None:
    first = ask(config(tmp_path, GPT2))
    assert first.inputs.sequence_length == 512
    assert ask(plan(model={"hf": str(tmp_path)}, workload__inputs=None)).spec == first.spec
    other = ask(config(tmp_path, {**GPT2, "n_layer": 3}))
    assert other.spec.digest != first.spec.digest
    assert [note.values["value"] for note in first.notes] == [512]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "not valid JSON"),
        (b"\xff\xfe\x00", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        (b"[]", "describes no model"),
        (b"{}", "describes no model"),
        (b'{"model_type": 1e999}', None),
        (b" " * (2 << 20), "larger than"),
        ({**GPT2, "n_positions": "many"}, None),
        ({**GPT2, "n_positions": -1}, None),
    ],
)
def test_a_broken_or_hostile_configuration_is_a_line(
    tmp_path: Path, content: Any, says: str | None
) -> None:
    asked = config(tmp_path, content)
    if says is None:
        assert ask(asked).inputs.sequence_length
        return
    line = refusal(asked)
    assert line.startswith("model.hf: ")
    assert "config.json" in line
    assert says in line


@pytest.mark.parametrize("more", [{"auto_map": {"A": "b.C"}}, {"text_config": {"auto_map": {}}}])
def test_code_that_comes_with_a_model_is_said_not_to_run(tmp_path: Path, more: Any) -> None:
    asked = ask(config(tmp_path, GPT2 | more))
    assert "plan.note.code-not-run" in [note.id for note in asked.notes]


@pytest.mark.parametrize(
    "fields",
    [
        {"model_type": "resnet", "num_channels": 3},
        {"model_type": "resnet", "architectures": ["ResNetForImageClassification"]},
        {"model_type": "beit", "architectures": ["BeitForImageClassification"], "vocab_size": 8192},
    ],
)
def test_a_model_of_images_takes_a_size_and_no_length(
    tmp_path: Path, fields: dict[str, Any]
) -> None:
    asked = config(tmp_path, fields)
    assert ask(asked).inputs == Inputs(image_size=224)
    longer = asked.workload.model_copy(update={"inputs": Inputs(sequence_length=64)})
    assert "sequence_length" in refusal(asked.model_copy(update={"workload": longer}))


@pytest.mark.parametrize(
    ("fields", "length"),
    [
        # transformers 5.24: Fuyu's vocabulary is its text part's, and images are cut into tokens.
        ({"model_type": "fuyu", "architectures": ["FuyuForCausalLM"], "image_size": 300,
          "text_config": {"vocab_size": 262144}}, 2048),
        ({"_class_name": "StableAudioDiTModel", "sample_size": 512}, 512),
        ({"_class_name": "LongCatAudioDiTTransformer"}, 1024),
    ],
)  # fmt: skip
def test_a_model_of_text_or_sounds_takes_a_length_and_no_size(
    tmp_path: Path, fields: dict[str, Any], length: int
) -> None:
    asked = config(tmp_path, fields)
    assert ask(asked).inputs == Inputs(sequence_length=length)
    sized = asked.workload.model_copy(update={"inputs": Inputs(image_size=64)})
    assert "image_size" in refusal(asked.model_copy(update={"workload": sized}))


@pytest.mark.parametrize("path", ["nothing/here", "a\0b"])
def test_a_missing_configuration_names_the_path(path: str) -> None:
    assert "no such file" in refusal(plan(model={"hf": path}, workload__inputs=None))
    source = {"python": {"file": path, "factory": "build"}}
    line = refusal(plan(model=source, workload__task="full", workload__inputs=None))
    assert line.startswith("model.python.file: ")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


@given(
    st.dictionaries(
        st.sampled_from([*GPT2, "image_size", "vocab_size", "max_position_embeddings"]), JSON
    )
)
def test_any_configuration_is_a_question_or_a_line(
    tmp_path_factory: pytest.TempPathFactory, fields: dict[str, Any]
) -> None:
    asked = config(tmp_path_factory.mktemp("any"), fields)
    try:
        ask(asked)
    except UserError as error:
        line = str(error)
    else:
        line = "a question"
    assert len(line.splitlines()) == 1


def test_lengths_of_samples_are_checked() -> None:
    length = 2048
    given = {"sequence_length": length, "mean_tokens": 600, "batching": "packed"}
    inputs = ask(plan(workload__inputs=given)).inputs
    assert inputs.samples_a_row == length / 600
    assert "mean_tokens: packed rows" in refusal(
        plan(workload__inputs={"sequence_length": length, "batching": "packed"})
    )
    assert "raise that or lower this" in refusal(
        plan(workload__inputs={"sequence_length": length, "mean_tokens": 4096})
    )
    image = file.read(resources("examples", "resnet50-rtx3060.plan.yaml"))
    assert "mean_tokens" in refusal(with_keys(image, {"workload.inputs.mean_tokens": 600}))


def media(preset: str, task: str = "full", **inputs: Any) -> Plan:
    return plan(
        model={"preset": preset}, workload__task=task, workload__lora=None, workload__inputs=inputs
    )


def test_a_video_has_its_usual_frames_or_those_of_the_plan() -> None:
    usual = ask(media("cogvideox-2b"))
    assert (usual.inputs.image_size, usual.inputs.frames) == (480, 49)
    assert usual.spec.frames == 49
    assert ask(media("cogvideox-2b", frames=25)).spec.frames == 25


@pytest.mark.parametrize(
    ("preset", "inputs", "says"),
    [
        ("sd-1.5-unet", {"frames": 49}, "workload.inputs.frames"),
        ("whisper-tiny", {"image_size": 224}, "workload.inputs.image_size"),
        ("whisper-tiny", {"sequence_length": 449}, "448"),
        ("flux-dit", {"sequence_length": 512}, "workload.inputs.sequence_length"),
    ],
)
def test_inputs_of_another_kind_of_model_are_refused_by_key(
    preset: str, inputs: dict[str, Any], says: str
) -> None:
    assert says in refusal(media(preset, **inputs))


def test_images_within_text_are_asked_for_by_their_number(tmp_path: Path) -> None:
    vlm = config(tmp_path, {"model_type": "gemma3", "text_config": {}, "vision_config": {}})
    assert ask(vlm).spec.images == 0
    sees = with_keys(vlm, {"workload.inputs": {"images": 2, "image_size": 600}})
    assert (ask(sees).spec.images, ask(sees).spec.image_size) == (2, 600)
    assert ask(sees).spec.key(()) != ask(vlm).spec.key(())
    size_alone = with_keys(vlm, {"workload.inputs.image_size": 600})
    assert "workload.inputs.images" in refusal(size_alone)
    assert "workload.inputs.images" in refusal(plan(workload__inputs={"images": 1}))
    assert "text alone" in refusal(with_keys(sees, {"workload.task": "infer"}))


def test_what_an_estimate_takes_for_granted_is_said() -> None:
    said = {note.id for note in ask(media("flux-dit")).notes}
    assert said == {"preset.note.cached-latents"}
    assert {note.id for note in ask(media("wav2vec2-base")).notes} >= {"preset.note.audio-steps"}


def test_a_denoiser_may_come_from_its_own_config(tmp_path: Path) -> None:
    content = {"_class_name": "UVit2DModel", "sample_size": 16}
    found = ask(with_keys(config(tmp_path, content), {"workload.task": "full"}))
    assert dict(found.spec.model).keys() == {"diffusers"}
    assert found.inputs.image_size == 256


@pytest.mark.parametrize(
    ("content", "size", "frames"),
    [
        ({"_class_name": "WanTransformer3DModel"}, 512, 49),
        ({"_class_name": "AllegroTransformer3DModel", "sample_height": 90}, 720, 49),
        ({"_class_name": "UNetMotionModel", "motion_max_seq_length": 32}, 512, 32),
        ({"_class_name": "SanaTransformer2DModel", "sample_size": 32}, 1024, None),
        ({"_class_name": "UNet2DModel", "sample_size": 64}, 64, None),
    ],
)
def test_a_denoiser_has_its_own_size_and_a_video_frames_that_are_called_assumed(
    tmp_path: Path, content: dict[str, Any], size: int, frames: int | None
) -> None:
    found = ask(with_keys(config(tmp_path, content), {"workload.task": "full"}))
    assert (found.inputs.image_size, found.inputs.frames) == (size, frames)
    said = [note.values["key"] for note in found.notes if note.id == "plan.note.assumed-input"]
    assert ("workload.inputs.frames" in said) == (frames is not None)


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("cait_m36_384", 384),
        ("swinv2_base_window12to16_192to256", 256),
        ("eva02_large_patch14_448", 448),
        ("resnet50", 224),
        ("regnety_320", 224),
        ("resnetv2_101", 224),
    ],
)
def test_a_model_of_timm_has_the_size_in_its_name(name: str, size: int) -> None:
    values = {"model": {"timm": name}, "workload__task": "full", "workload__lora": None}
    assert ask(plan(**values, workload__inputs={})).inputs.image_size == size


def test_positions_that_hold_no_token_are_not_offered() -> None:
    # RoBERTa's table has 514 rows; its tokenizer's model_max_length is 512.
    roberta = {
        "model__preset": "roberta-base", "workload__task": "full", "workload__lora": None,
    }  # fmt: skip
    fits = plan(**roberta, workload__inputs={"sequence_length": 512})
    assert ask(fits).inputs.sequence_length == 512
    assert "512" in refusal(plan(**roberta, workload__inputs={"sequence_length": 513}))


@pytest.mark.parametrize(
    ("preset", "tokens", "attention", "window"),
    [
        ("gemma-3-1b", 2048, "sdpa", 512),
        ("gemma-3-1b", 256, "sdpa", 0),
        ("gemma-3-4b", 1023, "sdpa", 0),
        ("gemma-3-4b", 1024, "sdpa", 1024),
        ("gemma-3-4b", 1024, "eager", 0),
        ("gemma-2-2b", 8192, "sdpa", 0),
        ("phi-3.5-mini", 65536, "sdpa", 0),
        ("qwen-3-8b", 32768, "sdpa", 0),
        ("llama-3.1-8b", 32768, "sdpa", 0),
    ],
)
def test_from_a_sliding_window_on_another_structure_is_asked_for(
    preset: str, tokens: int, attention: str, window: int
) -> None:
    asked = plan(
        model__preset=preset,
        workload__inputs={"sequence_length": tokens},
        settings__attention=attention,
    )
    assert ask(asked).spec.beyond == window


def test_all_linear_asks_for_another_model_in_mixtures_alone() -> None:
    word = {"targets": ["all-linear"]}
    assert ask(plan(workload__lora=word)).spec == ask(plan(workload__lora={})).spec
    mixture = plan(workload__lora=word, model={"preset": "mixtral-8x7b"})
    assert ask(mixture).spec.lora == (16, ("all-linear",))


def test_layers_that_run_as_plain_code_are_said_to(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    for kind, id in (("qwen3_next", "plain-delta"), ("mamba2", "plain-scan"), ("llama", "")):
        path.write_text(json.dumps({"model_type": kind, "vocab_size": 128}), encoding="utf-8")
        said = [note.id for note in ask(plan(model={"hf": str(path)})).notes]
        assert (f"preset.note.{id}" in said) == bool(id)


def test_a_new_objective_takes_its_recipe_along_and_leaves_what_it_does_not_know() -> None:
    asked = plan(settings__recipe="trl-sft", workload__objective="dpo")
    assert asked.settings.recipe is None
    spec = ask(asked).spec
    assert (spec.method.reference, spec.method.cross_entropy) == ("adapter-off", "tiled")
    back = with_keys(with_keys(asked, {"workload.reference": "model"}), {"workload.task": "prompt"})
    assert (back.workload.objective, back.workload.reference) == (None, None)


def test_a_preference_needs_a_model_of_text() -> None:
    asked = {"model": {"preset": "vit-b16"}, "workload__task": "full", "workload__lora": None}
    images = plan(**asked, workload__inputs={}, workload__objective="dpo")
    assert "workload.objective" in refusal(images)


def test_answers_that_are_written_take_the_length_of_a_sample_apart() -> None:
    asked = plan(workload__objective="grpo")
    inputs = asked.workload.inputs
    assert (inputs.sequence_length, inputs.prompt_tokens, inputs.new_tokens) == (None, 1024, 1024)
    found = ask(with_keys(asked, {"settings.micro_batch": 1}))
    assert (found.spec.method.prompt, found.spec.single) == (1024, False)
    assert found.inputs.sequence_length == 2048
    assert not [note for note in found.notes if note.values.get("value") == 2048]
    back = with_keys(asked, {"workload.objective": None})
    assert back.workload.inputs == EXAMPLE.workload.inputs


@pytest.mark.parametrize(("named", "near"), [("kto", "dpo"), ("orpo", "dpo"), ("ppo", "grpo")])
def test_an_objective_that_is_not_planned_is_refused_with_the_nearest(
    named: str, near: str
) -> None:
    with pytest.raises(UserError, match=f"{named} is not planned.* {near}") as error:
        plan(workload__objective=named)
    assert len(render(error.value.message, "ko").splitlines()) == 1
