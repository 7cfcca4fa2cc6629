"""A run that does not fit: ways out in the files' own keys, at once and without a trace."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from trainwright.cli.run import run
from trainwright.messages import Message, UserError, render
from trainwright.profile import store

AXOLOTL = """\
base_model: meta-llama/Llama-3.1-8B
adapter: lora
lora_r: 16
lora_target_linear: true
sequence_len: 4096
micro_batch_size: 8   # as before
gradient_accumulation_steps: 1
optimizer: adamw_torch_fused
bf16: auto
dataloader_num_workers: 4
"""
Reviewed = Callable[..., tuple[int, str]]
ARGUMENTS = {"output_dir": "out", "per_device_train_batch_size": 8, "bf16": True}


@pytest.fixture(autouse=True)
def _untraced(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_args: object, **_named: object) -> None:
        raise AssertionError("a trace takes too long for a review")

    monkeypatch.setattr(store, "trace", refused)


@pytest.fixture
def reviewed(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Return the exit code and the output of ``trainwright review`` with --json."""

    def reviewing(*words: str) -> tuple[int, str]:
        code = run(["review", *words, "--json"], lambda _path: 0)
        return code, capsys.readouterr().out

    return reviewing


def test_a_misfit_lists_ways_out_in_its_own_keys(tmp_path: Path, reviewed: Reviewed) -> None:
    path = tmp_path / "a.yml"
    path.write_text(AXOLOTL, encoding="utf-8")
    found = json.loads(reviewed(str(path), "--machine", "rtx-3090")[1])
    assert [one["rule"] for one in found["findings"] if one["level"] == "error"] == ["memory"]
    ways = [one for one in found["findings"] if one["level"] == "way"]
    named = [ways[0]["message"].find(key) for key in ("micro_batch", "checkpointing", "cross_")]
    assert -1 not in named
    assert named == sorted(named)  # the largest first
    keys = {change["key"]: change["value"] for change in ways[0]["changes"]}
    assert keys["gradient_checkpointing"] is True
    assert keys["micro_batch_size"] * keys["gradient_accumulation_steps"] == 8


def test_another_gpu_or_model_comes_with_the_settings_that_it_needs(
    tmp_path: Path, reviewed: Reviewed
) -> None:
    path = tmp_path / "a.yml"
    path.write_text(AXOLOTL, encoding="utf-8")
    found = json.loads(reviewed(str(path), "--machine", "rtx-3060-12gb")[1])
    ways = [one for one in found["findings"] if one["level"] == "way"]
    assert ways
    for one in ways:
        assert "gradient_checkpointing" in [change["key"] for change in one["changes"]]
        assert ("of the same family" in one["message"]) is any(
            "model." in key for key in one["beyond"]
        )


def test_a_way_is_written_only_where_it_is_taken(tmp_path: Path, reviewed: Reviewed) -> None:
    path = tmp_path / "a.yml"
    path.write_text(AXOLOTL, encoding="utf-8")
    reviewed(str(path), "--machine", "rtx-3090", "--write")
    assert path.read_text(encoding="utf-8") == AXOLOTL
    taken = reviewed(str(path), "--machine", "rtx-3090", "--take", "1", "--write")
    after = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert after["gradient_checkpointing"] is True
    assert "# as before" in path.read_text(encoding="utf-8")
    assert json.loads(taken[1])["written"]
    assert reviewed(str(path), "--machine", "rtx-3090", "--take", "99")[0] == 2


def test_figures_of_a_nearby_step_say_so(tmp_path: Path, reviewed: Reviewed) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(ARGUMENTS), encoding="utf-8")
    _, text = reviewed(str(path), "--machine", "rtx-3090", "--set", "model.preset=gpt2")
    found = json.loads(text)
    assert any("loss_in_model" in note for note in found["estimate"]["notes"])


def test_a_way_out_leaves_auto_to_the_file_of_the_trainer(
    tmp_path: Path, reviewed: Reviewed
) -> None:
    auto = {"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 0}}
    (tmp_path / "z.json").write_text(json.dumps(auto), encoding="utf-8")
    large = ARGUMENTS | {"per_device_train_batch_size": 16}
    (tmp_path / "a.json").write_text(json.dumps(large), encoding="utf-8")
    names = [str(tmp_path / name) for name in ("z.json", "a.json")]
    model = ("--set", "model.preset=gpt2")
    _, text = reviewed(*names, "--machine", "rtx-3060-12gb", *model)
    changes = [
        change
        for one in json.loads(text)["findings"]
        if one["level"] == "way"
        for change in one["changes"]
    ]
    assert changes
    assert all(change["file"] == names[1] for change in changes)


def test_a_way_out_of_a_command_line_is_in_its_own_options(reviewed: Reviewed) -> None:
    words = "torchrun --nproc_per_node 1 run.py --model_name_or_path gpt2 --bf16 --do_train "
    _, text = reviewed(words + "--per_device_train_batch_size 64", "--machine", "rtx-3060-12gb")
    ways = [one for one in json.loads(text)["findings"] if one["level"] == "way"]
    assert any(key.startswith("--per_device_train_batch_size ") for key in ways[0]["beyond"])


@pytest.mark.parametrize("machine", ["rtx-9090", "rtx-4090:0"])
def test_a_machine_that_is_not_known_is_refused(
    tmp_path: Path, reviewed: Reviewed, machine: str
) -> None:
    path = tmp_path / "a.yml"
    path.write_text(AXOLOTL, encoding="utf-8")
    assert reviewed(str(path), "--machine", machine)[0] == 2


def test_numbers_out_of_range_are_refused_in_plain_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.yml"
    path.write_text(AXOLOTL, encoding="utf-8")
    assert run(["review", str(path), "--machine", "rtx-3090:0"], lambda _path: 0) == 2
    assert "must be at least 1" in " ".join(capsys.readouterr().err.split())
    assert "1 way or gain" in render(Message.of("review.no-offer", number=9, count=1), "en")


SERVED = "vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 65536"


def test_a_server_that_does_not_fit_gets_its_own_options(reviewed: Reviewed) -> None:
    _, text = reviewed(SERVED, "--machine", "rtx-4090")
    ways = [one for one in json.loads(text)["findings"] if one["level"] == "way"]
    said = {key.partition(" ")[0]: one["effect"] for one in ways for key in one["beyond"]}
    assert said["--max-model-len"] == "different"
    assert said["--quantization"] == said["--kv-cache-dtype"] == "nearly"


def test_ways_out_of_a_server_are_in_the_words_of_its_engine(reviewed: Reviewed) -> None:
    line = "vllm serve Qwen/Qwen2.5-32B --max-model-len 4096"
    found = json.loads(reviewed(line, "--machine", "rtx-4090")[1])["findings"]
    ways = [one for one in found if one["level"] == "way"]
    said = "checkpoint of the model in 4 bits (AWQ, GPTQ)"
    assert sum(said in one["message"] for one in ways) == 1
    beyond = [key for one in ways for key in one["beyond"]]
    assert "--model Qwen/Qwen2.5-7B" in beyond
    assert not [key for key in beyond if key.startswith(("quantization=", "model."))]


def test_a_small_share_is_enlarged_with_the_weights_that_need_it(reviewed: Reviewed) -> None:
    line = "vllm serve Qwen/Qwen2.5-14B --max-model-len 16384 --gpu-memory-utilization 0.5"
    _, text = reviewed(line, "--machine", "rtx-4090")
    ways = [one for one in json.loads(text)["findings"] if one["level"] == "way"]
    kept = [one["beyond"] for one in ways if not any("model." in key for key in one["beyond"])]
    assert any("--gpu-memory-utilization" in key for keys in kept for key in keys)


@pytest.mark.parametrize(
    ("name", "weights"),
    [
        ("Qwen/Qwen2.5-7B-Instruct-AWQ", "int4"),
        ("Qwen/Qwen2.5-7B-Instruct-GPTQ-Int8", "int8"),
        ("neuralmagic/Meta-Llama-3.1-8B-Instruct-FP8", "fp8"),
        ("unsloth/Meta-Llama-3.1-8B-Instruct-bnb-4bit", "nf4"),
        ("nm/Meta-Llama-3.1-8B-Instruct-w4a16", "int4"),
    ],
)
def test_weights_in_the_name_of_a_served_model_count(
    reviewed: Reviewed, name: str, weights: str
) -> None:
    line = f"vllm serve {name} --max-model-len 4096"
    said = json.loads(reviewed(line, "--machine", "rtx-4090")[1])
    assert said["plan"]["settings"]["quantization"] == weights
    assert "settings.quantization" in [one["key"] for one in said["asked"]]


def test_tensor_parallel_serving_is_not_judged_by_one_gpu(reviewed: Reviewed) -> None:
    line = "vllm serve Qwen/Qwen2.5-14B --tensor-parallel-size 2 --max-model-len 4096"
    code, text = reviewed(line, "--machine", "rtx-4090:2")
    said = json.loads(text)
    assert (code, said["estimate"]["verdict"]) == (0, "fits")
    assert said["plan"]["settings"]["tensor_degree"] == 2
    assert not said["not_planned"]
    larger = json.loads(reviewed(line.replace("14B", "32B"), "--machine", "rtx-4090:2")[1])
    assert larger["estimate"]["verdict"] == "no"


@pytest.mark.parametrize(
    ("line", "option"),
    [
        ("vllm serve meta-llama/Llama-3.1-70B --max-model-len 8192", "--tensor-parallel-size 2"),
        ("python -m sglang.launch_server --model-path meta-llama/Llama-3.1-70B", "--tp-size 2"),
        ("vllm serve meta-llama/Llama-3.1-70B --max-model-len 8192 -tp 2", None),
        ("vllm serve meta-llama/Llama-3.1-8B --max-model-len 8192", None),
        # text-generation-inference, docs of the launcher: it shards over all GPUs that it sees
        ("text-generation-launcher --model-id meta-llama/Llama-3.1-70B", None),
    ],
)
def test_a_model_larger_than_a_gpu_needs_the_option_that_splits_it(
    reviewed: Reviewed, line: str, option: str | None
) -> None:
    """131 GiB of weights; vllm serve --help: --tensor-parallel-size, default 1."""
    code, text = reviewed(line, "--machine", "h100-80gb:8")
    errors = [one for one in json.loads(text)["findings"] if one["level"] == "error"]
    assert (code, [one["rule"] for one in errors]) == ((1, ["unsplit"]) if option else (0, []))
    assert not option or option in errors[0]["message"]
    assert "tensor_degree=" not in text  # no server has such an option


@pytest.mark.parametrize(
    ("options", "copies"),
    [
        ("", 8),
        ("--data-parallel-size 8", None),
        ("-tp 2", 4),
        ("-tp 2 -dp 4", None),
        ("-tp 8", None),
    ],
)
def test_a_server_that_runs_fewer_copies_than_are_counted_is_named(
    reviewed: Reviewed, options: str, copies: int | None
) -> None:
    """vllm serve --help: --data-parallel-size, default 1."""
    line = f"vllm serve meta-llama/Llama-3.1-8B --max-model-len 8192 --max-num-seqs 64 {options}"
    asked = ("--machine", "h100-80gb:8", "--set", "workload.inputs.concurrent=64")
    found = json.loads(reviewed(line, *asked)[1])["findings"]
    said = [one["message"] for one in found if one["rule"] == "few-copies"]
    assert len(said) == (copies is not None)
    assert not copies or f"--data-parallel-size {copies}" in said[0]


@pytest.mark.parametrize(("layers", "decided"), [("99", True), ("33", True), ("20", False)])
def test_all_layers_on_the_gpu_are_the_whole_model(
    reviewed: Reviewed, layers: str, decided: bool
) -> None:
    """Llama 3.1 8B has 32 layers (config.json); llama.cpp counts the head as one more."""
    line = f"llama-server -m Llama-3.1-8B-Instruct-Q8_0.gguf -c 8192 -ngl {layers}"
    code, text = reviewed(line, "--machine", "rtx-4060")
    levels = [one["level"] for one in json.loads(text)["findings"] if one["rule"] == "memory"]
    assert (code, levels) == (1, ["error" if decided else "risk"])


def test_a_model_published_in_four_bits_is_served_so(reviewed: Reviewed) -> None:
    """openai/gpt-oss-20b: 13.76 GB of MXFP4, which vLLM serves on 24 GB (its recipe of gpt-oss)."""
    line = "vllm serve openai/gpt-oss-20b --max-model-len 32768"
    code, text = reviewed(line, "--machine", "rtx-4090")
    assert (code, json.loads(text)["estimate"]["verdict"]) == (0, "fits")


def test_the_most_requests_of_a_server_are_those_at_once(reviewed: Reviewed) -> None:
    line = SERVED.replace("65536", "4096")
    said = json.loads(reviewed(f"{line} --max-num-seqs 8", "--machine", "h100-80gb")[1])
    assert said["plan"]["workload"]["inputs"]["concurrent"] == 8
    assert not said["not_planned"]
    most = json.loads(reviewed(f"{line} --max-num-seqs 200000", "--machine", "h100-80gb")[1])
    assert not [one for one in most["findings"] if one["level"] == "error"]


def test_where_a_nearby_step_cannot_decide_the_answer_is_not_yes(
    tmp_path: Path, reviewed: Reviewed
) -> None:
    text = AXOLOTL.replace("adapter: lora", "adapter: qlora\nload_in_4bit: true")
    text = text.replace("batch_size: 8", "batch_size: 2").replace("lora_r: 16", "lora_r: 32")
    path = tmp_path / "a.yml"
    path.write_text(text + "flash_attention: true\nsample_packing: true\n"
                    "gradient_checkpointing: true\n", encoding="utf-8")  # fmt: skip
    code, answer = reviewed(str(path), "--machine", "rtx-4090")
    found = json.loads(answer)["findings"]
    assert [one["rule"] for one in found if one["level"] == "risk"] == ["memory"]
    assert code == 1


def test_what_deepspeed_offloads_is_not_held_against_a_run(
    tmp_path: Path, reviewed: Reviewed
) -> None:
    aside = {"offload_param": {"device": "cpu"}, "offload_optimizer": {"device": "cpu"}}
    zero = {"zero_optimization": {"stage": 3, "reduce_bucket_size": 10_000_000, **aside}}
    (tmp_path / "z.json").write_text(json.dumps(zero), encoding="utf-8")
    (tmp_path / "a.json").write_text(json.dumps(ARGUMENTS), encoding="utf-8")
    names = [str(tmp_path / name) for name in ("z.json", "a.json")]
    model = ("--set", "model.preset=qwen-2.5-7b", "--set", "machine.memory_gib=512")
    code, text = reviewed(*names, "--machine", "rtx-4090:2", *model)
    found = json.loads(text)["findings"]
    assert [one["level"] for one in found if one["rule"] == "memory"] == ["risk"]
    assert code == 1


def test_a_computer_without_a_gpu_is_told_of_the_option(
    tmp_path: Path, reviewed: Reviewed, monkeypatch: pytest.MonkeyPatch
) -> None:
    from trainwright.probe import snapshot

    def none(_snapshot: object) -> None:
        raise UserError.of("probe.no-gpu", reason="no driver")

    monkeypatch.setattr(snapshot, "resolved", none)
    said = json.loads(reviewed("vllm serve openai-community/gpt2 --dtype half")[1])
    assert "--machine rtx-4090" in said["not_estimated"]
