"""Files of other trainers: what is said of them and written, and true defaults."""

import dataclasses
import json
from pathlib import Path

import pytest
import yaml
from trainerfiles import (
    ACCELERATE,
    AXOLOTL,
    DPO,
    FACTORY,
    GRPO,
    LIGHTNING,
    MEGATRON,
    RUN,
    SCRIPT,
    TITAN,
    TUNE,
    Files,
    args,
    deepspeed,
    reviewed,
)

from trainwright.messages import UserError, render
from trainwright.plan.evaluate import Facts, evaluate, resolve
from trainwright.plan.report import Report
from trainwright.plan.schema import Plan
from trainwright.review import modelsource, review, reviewing, sources
from trainwright.review.apply import write
from trainwright.review.case import Case
from trainwright.review.kinds import KINDS, declared


def test_an_engine_that_would_not_start_is_told_which_share_would_do(tmp_path: Path) -> None:
    line = "vllm serve {model} --max-model-len 4096 --gpu-memory-utilization {share}"

    def found(share: float) -> list[str]:
        model = "meta-llama/Llama-3.1-8B-Instruct"
        machine = {"gpus": [{"id": "rtx-4090", "count": 1}], "memory_gib": 64}
        command = line.format(model=model, share=share)

        def answer(plan: Plan) -> tuple[Facts, Report]:
            facts = resolve(plan)
            assert isinstance(facts, Facts)
            return facts, evaluate(plan, facts)

        rules = review(sources([command]), machine, answer).findings
        return [render(one.message, "en") for one in rules if one.rule == "share-small"]

    (said,) = found(0.5)
    assert found(float(said.split()[-3])) == []


def test_a_pickle_is_refused_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "training_args.bin").write_bytes(b"not even a pickle")
    with pytest.raises(UserError, match="runs code when it is read"):
        sources([str(tmp_path / "training_args.bin")])


def test_what_nobody_knows_is_listed(tmp_path: Path) -> None:
    found = reviewed(tmp_path, {"a.yml": AXOLOTL + "mystery: 3\n"}, "rtx-4090")
    assert [unread.key for unread in found.not_understood] == ["mystery"]


def test_a_model_that_is_not_known_is_named_with_its_place(tmp_path: Path) -> None:
    text = AXOLOTL.replace("meta-llama/Llama-3.2-1B", "acme/Llama-9-Omega")
    why = reviewed(tmp_path, {"a.yml": text}, "rtx-4090").unestimated
    assert why is not None
    assert "acme/Llama-9-Omega" in render(why, "en")
    assert "a.yml:1: base_model" in render(why, "en")


def test_a_model_of_images_is_not_asked_for_a_length(tmp_path: Path) -> None:
    sizes = {"hidden_size": 192, "num_hidden_layers": 2, "image_size": 224}
    config = json.dumps({"model_type": "vit", "architectures": ["ViTModel"], **sizes})
    found = reviewed(tmp_path, {"config.json": config, "a.json": args()}, "rtx-4090")
    asked = {one.key: one.taken for one in found.planned.asked}
    assert asked == {"workload.inputs.image_size": 224}


def test_a_run_that_writes_its_answers_is_asked_for_the_prompts_alone(tmp_path: Path) -> None:
    odd = GRPO + "gradient_accumulation_steps: 2\nsteps_per_generation: 3\n"
    found = reviewed(tmp_path, {"g.yaml": odd}, "rtx-4090", 1)
    keys = {one.key for one in found.planned.asked}
    assert keys == {"workload.inputs.prompt_tokens", "settings.micro_batch"}
    lost = [note for note in found.planned.not_planned if note.id.startswith("review.not-planned")]
    assert [note.values["updates"] for note in lost] == [2]


def test_a_model_with_a_number_that_nobody_believes_says_which(tmp_path: Path) -> None:
    config = '{"model_type": "gpt2", "n_layer": 2, "n_embd": 32, "vocab_size": 1' + "0" * 60 + "}"
    path = tmp_path / "huge.json"
    path.write_text(config, encoding="utf-8")

    def answer(plan: Plan) -> tuple[Facts, Report]:
        facts = resolve(plan)
        raise AssertionError(facts)

    found = review(sources([str(path)]), {"gpus": [{"id": "rtx-4090"}]}, answer)
    (error,) = found.errors
    assert "vocab_size" in render(error.message, "en")


def test_files_that_a_file_names_are_read_with_it(tmp_path: Path) -> None:
    (tmp_path / "z.json").write_text(deepspeed(), encoding="utf-8")
    found = reviewed(tmp_path, {"a.json": args(deepspeed="z.json")}, "rtx-4090")
    assert [source.kind.name for source in found.run.sources] == ["training-arguments", "deepspeed"]
    lost = reviewed(tmp_path, {"b.json": args(deepspeed="gone.json")}, "rtx-4090")
    assert len(lost.run.absent) == 1


COMMENTED = """\
# our run
base_model: gpt2   # small
micro_batch_size: 2
fp16: true         # as always
sequence_len: 512
gradient_checkpointing: true
gradient_checkpointing_kwargs:
  use_reentrant: true   # why?
"""


def test_changes_keep_comments_and_a_copy(tmp_path: Path) -> None:
    found = reviewed(tmp_path, {"a.yml": COMMENTED}, "rtx-4090")
    changed = reviewing.texts(found, reviewing.mended(found))
    ((path, backup),) = write(changed)
    assert backup.read_text() == COMMENTED
    assert (
        path.read_text()
        == COMMENTED.replace("fp16: true         # as", "fp16: false         # as").replace(
            "reentrant: true ", "reentrant: false "
        )
        + "bf16: true\n"
    )


def test_a_file_changed_meanwhile_is_not_written(tmp_path: Path) -> None:
    found = reviewed(tmp_path, {"a.yml": COMMENTED}, "rtx-4090")
    (tmp_path / "a.yml").write_text("base_model: other\n")
    with pytest.raises(UserError, match="changed since"):
        write(reviewing.texts(found, reviewing.mended(found)))
    assert (tmp_path / "a.yml").read_text() == "base_model: other\n"


@pytest.mark.parametrize("files", [
    {"a.json": args(evaluation_strategy="steps", overwrite_output_dir=True)},
    {"a.json": json.dumps(json.loads(args(evaluation_strategy="no")), indent=2)},
    {"t.toml": TITAN.replace("local_batch_size", "batch_size")},
    {"z.json": deepspeed(zero_optimization={"stage": 2})},
])  # fmt: skip
def test_a_written_change_leaves_nothing_to_change(tmp_path: Path, files: Files) -> None:
    found = reviewed(tmp_path, files, "rtx-4090", 8)
    before = reviewing.mended(found)
    assert before
    (changed,) = reviewing.texts(found, before).values()
    again = reviewed(tmp_path, {next(iter(files)): changed[1]}, "rtx-4090", 8)
    assert not reviewing.mended(again)


# Truth: the installed libraries' own defaults


@pytest.mark.slow
def test_defaults_are_those_of_transformers() -> None:
    from transformers import TrainingArguments

    ours = declared("training-arguments")
    own = {field.name: field for field in dataclasses.fields(TrainingArguments)}
    assert set(ours.keys) == set(own)
    for name, default in ours.defaults.items():
        assert own[name].default == default, name


@pytest.mark.slow
def test_defaults_are_those_of_accelerate_and_peft() -> None:
    from accelerate.commands.config.config_args import ClusterConfig
    from peft import LoraConfig

    for library, kind in ((ClusterConfig, "accelerate"), (LoraConfig, "peft")):
        own = {field.name: field for field in dataclasses.fields(library)}
        ours = declared(kind)
        assert set(own) <= set(ours.keys), kind
        for name, default in ours.defaults.items():
            if name in own:
                assert own[name].default == default, name


@pytest.mark.slow
def test_defaults_are_those_of_deepspeed() -> None:
    from deepspeed.runtime.zero.config import DeepSpeedZeroConfig

    ours = declared("deepspeed").defaults
    for name, field in DeepSpeedZeroConfig.model_fields.items():
        key = f"zero_optimization.{field.alias or name}"
        if key in ours:
            assert field.default == ours[key], key


def test_every_key_that_we_read_is_one_that_a_tool_declares() -> None:
    for kind in KINDS.values():
        if kind.listed is None or "" in kind.open:
            continue
        known = declared(kind.listed).keys | set(kind.moved) | set(kind.open)
        for key in kind.keys:
            above = {key.rsplit(".", n)[0] for n in range(key.count(".") + 1)}
            # Keys of SFTConfig are refused there.
            trl = kind.name in ("trl-dpo", "trl-reward", "trl-grpo", "trl-kto", "trl-rloo")
            assert above & known or trl, f"{kind.name}: {key}"


def test_what_a_file_says_of_sharding_is_planned(tmp_path: Path) -> None:
    text = ACCELERATE.replace("MULTI_GPU", "FSDP") + (
        "fsdp_config:\n  fsdp_version: 2\n  fsdp_reshard_after_forward: false\n"
        "  fsdp_offload_params: true\n"
    )
    found = reviewed(tmp_path, {"a.yaml": text, "t.py": SCRIPT}, "rtx-4090", 2)
    plan = found.planned.plan
    assert plan is not None
    settings = plan.settings
    assert (settings.strategy, settings.shard_offload) == ("fsdp2", True)
    assert settings.reshard_after_forward is False
    assert found.planned.not_planned == ()


def test_pairs_that_no_plan_knows_are_said_to_be_left_out(tmp_path: Path) -> None:
    shared = {"d.yaml": DPO, "a.yaml": ACCELERATE.replace("MULTI_GPU", "FSDP")}
    factory = {"f.yaml": FACTORY.replace("stage: sft", "stage: dpo")}
    for files, left_out in (({"d.yaml": DPO}, False), (shared, True), (factory, True)):
        found = reviewed(tmp_path, files, "rtx-4090", 2).planned.not_planned
        assert ("review.not-planned.objective" in [one.id for one in found]) is left_out


def test_a_saved_config_is_a_model_and_each_key_counts(tmp_path: Path) -> None:
    saved = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "vocab_size": 100,
             "intermediate_size": 128, "rms_norm_eps": 1e-6, "rope_parameters": {"rope_theta": 1e4},
             "pad_token_id": None, "tie_word_embeddings": False, "mlp_bias": False}  # fmt: skip
    found = reviewed(tmp_path, {"config.json": json.dumps(saved)}, "rtx-4090")
    assert found.no_part == ()
    assert found.planned.plan is not None


def test_a_command_line_may_change_what_its_file_says(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text(TUNE, encoding="utf-8")
    found = reviewed(
        tmp_path, {"r.sh": "tune run lora_finetune --config t.yaml batch_size=4\n"}, "rtx-4090"
    )
    assert "conflict" not in [finding.rule for finding in found.findings]


def test_files_without_processes_run_on_all_gpus_of_the_machine(tmp_path: Path) -> None:
    found = reviewed(tmp_path, {"a.yml": AXOLOTL}, "rtx-4090", 2)
    assert found.planned.plan is not None
    assert found.planned.plan.workload.effective_batch == 2 * 4 * 2


def test_what_changes_memory_and_no_plan_says_is_listed(tmp_path: Path) -> None:
    text = AXOLOTL + "lora_modules_to_save: [embed_tokens, lm_head]\n"
    found = reviewed(tmp_path, {"a.yml": text}, "rtx-4090")
    assert [one.values.get("keys") for one in found.planned.not_planned] == [
        ["lora_modules_to_save"]
    ]
    assert "lora_modules_to_save" not in [unread.key for unread in found.no_part]


def test_variables_of_variables_do_not_grow(tmp_path: Path) -> None:
    script = f"A={'x' * 9000}\ntorchrun t.py --seed {'$A' * 5000}\n"
    (tmp_path / "r.sh").write_text(script, encoding="utf-8")
    (source,) = sources([str(tmp_path / "r.sh")]).sources[1:]
    assert len(source.document.data["seed"]) < 1_100_000


def test_an_open_quotation_mark_spoils_its_line_alone(tmp_path: Path) -> None:
    script = f'#SBATCH --job-name="mine\necho "\ntorchrun train.py {RUN}\n'
    found = reviewed(tmp_path, {"r.sbatch": script}, "rtx-4090")
    assert found.planned.plan is not None


def test_where_output_goes_is_no_value_of_an_option(tmp_path: Path) -> None:
    script = f"torchrun --nproc_per_node 2 train.py {RUN} --max_length 2048 2>&1 | tee log.txt\n"
    found = reviewed(tmp_path, {"r.sh": script}, "rtx-4090", 2)
    assert found.planned.plan is not None
    assert found.planned.plan.workload.inputs.sequence_length == 2048


def test_options_of_a_script_are_not_said_to_have_no_part(tmp_path: Path) -> None:
    found = reviewed(tmp_path, {"m.sh": MEGATRON.rstrip() + " --num-layers 32"}, "rtx-4090", 4)
    assert [unread.key for unread in found.own] == ["num_layers"]
    assert found.no_part == ()


def test_deepspeeds_optimizer_and_scheduler_are_known(tmp_path: Path) -> None:
    text = deepspeed(
        optimizer={"type": "AdamW", "params": {"lr": 1e-4, "torch_adam": True}},
        scheduler={"type": "WarmupLR", "params": {"warmup_num_steps": 10}},
    )
    assert reviewed(tmp_path, {"z.json": text}, "rtx-4090").findings == ()


def test_a_key_is_renamed_where_it_stands(tmp_path: Path) -> None:
    text = "model_name_or_path: gpt2\nmax_seq_length: 512  # tokens\ndataset_name: d\n"
    found = reviewed(tmp_path, {"s.yaml": text}, "rtx-4090")
    ((_, changed),) = reviewing.texts(found, reviewing.mended(found)).values()
    assert changed == text.replace("max_seq_length", "max_length")


def test_a_key_of_a_section_is_renamed_with_its_value(tmp_path: Path) -> None:
    text = LIGHTNING.replace("devices:", "gpus:")
    found = reviewed(tmp_path, {"l.yaml": text}, "rtx-4090", 2)
    ((_, changed),) = reviewing.texts(found, reviewing.mended(found)).values()
    assert changed == LIGHTNING


FP16 = {"bf16": {"enabled": False}, "fp16": {"enabled": True}}


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.yaml", ACCELERATE, {"mixed_precision": "fp16"}),
        ("d.json", json.dumps({"bf16": {"enabled": True}, "zero_optimization": {}}), FP16),
        ("t.json", args(), {"bf16": False, "fp16": True}),
        ("t.yaml", f"{TUNE}dtype: bf16\n", {"dtype": "fp32"}),  # training/precision.py: no fp16
    ],
)
def test_a_gpu_without_bf16_is_given_what_both_it_and_the_tool_have(
    tmp_path: Path, name: str, text: str, said: dict[str, object]
) -> None:
    found = reviewed(tmp_path, {name: text}, "t4", 2)
    ((_, changed),) = reviewing.texts(found, reviewing.mended(found)).values()
    data = yaml.safe_load(changed)
    assert {key: data[key] for key in said} == said


def test_what_a_file_cannot_say_is_not_written_as_something_else(tmp_path: Path) -> None:
    def case(name: str, text: str) -> Case:
        found = reviewed(tmp_path, {name: text}, "rtx-4090", 2)
        return Case(found.read, found.facts)

    def written(name: str, text: str, precision: str) -> list[object]:
        return [change.value for change in case(name, text).setting("precision", precision)]

    # accelerate's and Lightning's bf16 is mixed, and accelerate refuses fp32 (PrecisionType)
    assert written("a.yaml", ACCELERATE, "bf16") == []
    assert written("a.yaml", ACCELERATE, "fp32") == ["no"]
    assert written("l.yaml", LIGHTNING, "bf16") == []
    assert written("l.yaml", LIGHTNING, "fp16-mixed") == ["16-mixed"]
    assert written("t.yaml", f"{TUNE}dtype: bf16\n", "bf16-mixed") == []
    assert written("x.yml", AXOLOTL.replace("auto", "true"), "fp16-mixed") == []


@pytest.mark.slow
def test_layers_left_to_peft_are_those_that_peft_takes() -> None:
    from peft.utils import constants

    own = constants.TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING
    assert {name: list(layers) for name, layers in modelsource.PEFT_TARGETS.items()} == {
        name: layers for name, layers in own.items() if isinstance(layers, list)
    }


@pytest.mark.parametrize(
    ("written", "nodes"),
    [
        ("fsdp_config:\n  fsdp_version: 1\n  fsdp_sharding_strategy: HYBRID_SHARD\n", 2),
        (
            "fsdp_config:\n  fsdp_version: 2\nparallelism_config:\n"
            "  parallelism_config_dp_replicate_size: 2\n"
            "  parallelism_config_dp_shard_size: 4\n",
            1,
        ),
    ],
)
def test_copies_of_shared_weights_are_planned(tmp_path: Path, written: str, nodes: int) -> None:
    text = ACCELERATE.replace("MULTI_GPU", "FSDP") + written
    text = text.replace("num_processes: 2", "num_processes: 8")
    text = text.replace("num_machines: 1", f"num_machines: {nodes}")
    plan = reviewed(tmp_path, {"a.yaml": text, "t.py": SCRIPT}, "a100-80gb", 8).planned.plan
    assert plan is not None
    assert (plan.settings.strategy, plan.settings.shard_degree) == ("fsdp2", 4)
