"""What is written for TRL, LLaMA-Factory and axolotl trains in them, for two steps on the CPU.

Two of them need older libraries, which ``OLD_LIBRARIES`` points to: ``make recipes`` installs them.
"""

import argparse
import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from exporting import plan, put, settings, start

from trainwright.plan.edit import with_keys

pytestmark = pytest.mark.slow
OLD = os.environ.get("OLD_LIBRARIES")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Rows with all columns that one of the tools reads."""
    (tmp_path / "data").mkdir()
    words = [" ".join(str(1 + row * word % 63) for word in range(12)) for row in range(40)]
    rows = [{"text": one, "prompt": one[:9], "completion": one[9:]} for one in words]
    text = "\n".join(map(json.dumps, rows))
    (tmp_path / "data" / "train.jsonl").write_text(text, encoding="utf-8")
    return tmp_path / "data"


def written(folder: Path, target: str, model: Path, data: Path, task: str) -> Path:
    asked = plan({"hf": str(model / "config.json")}, task)
    given = with_keys(asked, {"workload.dataset": {"path": str(data)}})
    return put(folder / "내 실험", target, given, settings(checkpointing="full"))


def steps_of(folder: Path) -> int:
    state = folder / "checkpoints" / "checkpoint-2" / "trainer_state.json"
    return int(json.loads(state.read_text(encoding="utf-8"))["global_step"])


@pytest.mark.parametrize("task", ["full", "lora"])
def test_trl_trains_by_its_file(tmp_path: Path, model: Path, data: Path, task: str) -> None:
    pytest.importorskip("trl")
    folder = written(tmp_path, "trl", model, data, task)
    program = [sys.executable, "-m", "trl.scripts.sft", "--config", "sft.yaml"]
    done = start([*program, "--max_steps", "2", "--use_cpu", "true"], folder)
    assert done.returncode == 0, done.stderr[-2000:]
    assert steps_of(folder) == 2


@pytest.mark.skipif(OLD is None, reason="make recipes installs LLaMA-Factory")
@pytest.mark.parametrize("task", ["pretrain", "full", "lora"])
def test_llama_factory_trains_by_its_file(
    tmp_path: Path, model: Path, data: Path, task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = written(tmp_path, "llamafactory", model, data, task)
    site = Path(str(OLD)) / "llama-factory" / "site-packages"
    (tmp_path / "sound").mkdir()
    (tmp_path / "sound" / "torchaudio.py").touch()  # imported, and used for sound alone
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(site), str(tmp_path / "sound")]))
    monkeypatch.setenv("DISABLE_VERSION_CHECK", "1")
    program = [sys.executable, "-m", "llamafactory.cli", "train", "llamafactory.yaml"]
    done = start([*program, "max_steps=2", "use_cpu=true"], folder)
    assert done.returncode == 0, done.stderr[-2000:]
    assert steps_of(folder) == 2


@pytest.mark.parametrize(
    "changed",
    [
        {"strategy": "single"},
        {"strategy": "ddp", "compile": True},
        {"strategy": "fsdp2", "checkpointing": "selective", "optimizer_in_backward": False},
        {"strategy": "fsdp2", "checkpointing": "full", "shard_offload": True, "precision": "bf16"},
    ],
    ids=lambda changed: changed["strategy"],
)
def test_torchtitan_reads_its_file(tmp_path: Path, changed: dict[str, object]) -> None:
    """Its own reader refuses a key that it does not know; 0.2.2 reads TOML."""
    config = pytest.importorskip("torchtitan.config", reason="pip install torchtitan==0.2.2")
    given = plan({"preset": "llama-3.1-8b"}, "full")
    folder = put(
        tmp_path / "files", "torchtitan", given, settings(**({"precision": "bf16-mixed"} | changed))
    )
    read = config.ConfigManager().parse_args(["--job.config_file", str(folder / "torchtitan.toml")])
    assert (read.model.name, read.model.flavor) == ("llama3", "8B")
    assert read.training.local_batch_size == 2
    assert read.activation_checkpoint.mode == changed.get("checkpointing", "none")
    assert read.compile.enable is bool(changed.get("compile"))
    assert read.training.enable_cpu_offload is bool(changed.get("shard_offload"))


def of_vllm() -> Any:
    """Return vLLM's own parser, which asks for a device; any will do."""
    platforms = pytest.importorskip("vllm.platforms")
    platforms._current_platform = pytest.importorskip("vllm.platforms.cpu").CpuPlatform()
    words = pytest.importorskip("vllm.engine.arg_utils")
    parser = pytest.importorskip("vllm.utils.argparse_utils").FlexibleArgumentParser()
    return words.AsyncEngineArgs.add_cli_args(parser)


def of_sglang() -> Any:
    """Return SGLang's own parser."""
    parser = argparse.ArgumentParser()
    pytest.importorskip("sglang.srt.server_args").ServerArgs.add_cli_args(parser)
    return parser


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("engine", ["vllm", "sglang"])
@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"kv_cache": "fp8", "quantization": "fp8"},
        {"tensor_degree": 2, "memory_share": 0.85, "micro_batch": 16},
        {"precision": "fp16", "quantization": "int4"},
    ],
    ids=["plain", "fp8", "split", "int4"],
)
def test_an_engine_takes_the_line_that_serves(
    tmp_path: Path, engine: str, changed: dict[str, object]
) -> None:
    parser = {"vllm": of_vllm, "sglang": of_sglang}[engine]()
    inputs = {"prompt_tokens": 1000, "new_tokens": 300}
    four = {"gpus": [{"id": "h100-80gb-sxm", "count": 4}]}
    given = plan({"preset": "qwen-3-30b-a3b"}, "infer", machine=four)
    given = with_keys(given, {"workload.inputs": inputs, "workload.effective_batch": None})
    asked = settings(**({"engine": engine, "precision": "bf16"} | changed))
    line = (put(tmp_path / "files", engine, given, asked) / "serve.sh").read_text(encoding="utf-8")
    words = shlex.split(line.replace("\\\n", ""), comments=True)
    words = ["--model", *words[2:]] if engine == "vllm" else words[3:]
    read = parser.parse_args(words)
    assert (read.model if engine == "vllm" else read.model_path) == "Qwen/Qwen3-30B-A3B"
    degree = read.tensor_parallel_size if engine == "vllm" else read.tp_size
    assert degree == changed.get("tensor_degree", 1)
    assert (read.kv_cache_dtype == "auto") is ("kv_cache" not in changed)
