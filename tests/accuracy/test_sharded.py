"""A step whose weights are shared out, against torch's own on two processes, and known figures."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from trainwright.advise import advise, make_it_fit
from trainwright.advise.aside import sharding
from trainwright.estimate.memory.livebytes import live_peak_bytes
from trainwright.plan.evaluate import Facts, Pending, resolve
from trainwright.plan.schema import Plan
from trainwright.profile import store
from trainwright.workload.settings import Effect

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 256,
    "intermediate_size": 704,
    "num_hidden_layers": 6,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 2048,
    "max_position_embeddings": 512,
    "tie_word_embeddings": False,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
UNEVEN = {"intermediate_size": 703, "vocab_size": 2047}
"""Sizes that two processes cannot halve."""
CASES: dict[str, dict[str, Any]] = {
    "fp32": {"precision": "fp32"},
    "fp32, kept after forward": {"precision": "fp32", "reshard": False},
    "bf16": {},
    "bf16, kept after forward": {"reshard": False},
    "bf16, checkpointing": {"checkpointing": "full", "batch": 16},
    "bf16, two micro-batches": {"accumulation": 2},
    "two copies, fp32": {"precision": "fp32", "copies": 2},
    "two copies, bf16, two micro-batches": {"accumulation": 2, "copies": 2},
    "uneven sizes, fp32": {"precision": "fp32", "config": UNEVEN, "within": 2e-4},
    "uneven sizes, bf16": {"config": UNEVEN, "within": 2e-4},
    "adapters, fp32": {"precision": "fp32", "adapters": True},
    "adapters, bf16": {"adapters": True},
    "whole copies, fp32": {"precision": "fp32", "strategy": "ddp"},
    "ZeRO-0, fp32": {"precision": "fp32", "strategy": "zero0"},
    "ZeRO-1, fp32": {"precision": "fp32", "strategy": "zero1"},
    "ZeRO-2, fp32": {"precision": "fp32", "strategy": "zero2", "within": 1e-3},
    "ZeRO-3, fp32": {"precision": "fp32", "strategy": "zero3"},
    "ZeRO-1, bf16": {"strategy": "zero1"},
    "ZeRO-2, bf16": {"strategy": "zero2", "within": 1e-3},
    "ZeRO-3, bf16": {"strategy": "zero3"},
    "split layers, fp32": {"precision": "fp32", "tensor": True},
    "split layers, bf16, checkpointing": {"checkpointing": "full", "batch": 16, "tensor": True},
    "split layers, fp32, four processes": {"precision": "fp32", "copies": 2, "tensor": True},
    "split layers, bf16, four processes": {"copies": 2, "tensor": True},
}
USUAL = {
    "precision": "bf16-mixed",
    "reshard": True,
    "checkpointing": "none",
    "accumulation": 1,
    "batch": 4,
    "sequence": 256,
    "copies": 1,
    "tensor": False,
    "strategy": "fsdp2",
    "adapters": False,
    "config": {},
    "within": 1e-4,
}
"""``within`` is the share by which a run on processes may differ from the estimate."""
AS_COUNTED = 0.01
"""By which torch's own count of the whole model may differ; its loss and its head are not ours."""


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a tiny Llama."""
    folder = tmp_path_factory.mktemp("tiny")
    (folder / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def measured(config: Path) -> dict[str, int]:
    """Return the peak of each case in a run of torch, on two processes for each copy."""
    return peaks(config, 1) | peaks(config, 2)


def peaks(config: Path, copies: int) -> dict[str, int]:
    """Return the peak of each case with so many copies."""
    asked, every = config / "cases.json", {name: USUAL | case for name, case in CASES.items()}
    cases = {name: case for name, case in every.items() if case["copies"] == copies}
    content = {"config": str(config), "cases": [*cases.values()]}
    asked.write_text(json.dumps(content), encoding="utf-8")
    program = str(Path(__file__).parent / "sharded_run.py")
    run = ["torch.distributed.run", "--standalone", "--nproc_per_node", str(2 * copies)]
    done = subprocess.run(
        [sys.executable, "-m", *run, program, str(asked)],
        capture_output=True,
        text=True,
        timeout=1500,
        check=False,
    )
    found = [int(line) for line in done.stdout.splitlines() if line.strip().isdigit()]
    assert len(found) == len(cases), done.stderr[-2000:]
    return dict(zip(cases, found, strict=True))


def facts(model: dict[str, str], count: int, case: dict[str, Any], gpu: str = "rtx-3090") -> Facts:
    """Return what the plan of a case resolves to; one trace at its own point."""
    shares = {"reshard_after_forward": case["reshard"]}
    shares |= {"tensor_degree": 2} if case["tensor"] else {"shard_degree": count // case["copies"]}
    adapters = {"lora": {"rank": 8, "alpha": 16, "targets": ["all-linear"]}}
    settings = {
        "precision": case["precision"],
        "strategy": "ddp" if case["strategy"] == "zero0" else case["strategy"],
        **(shares if case["strategy"] == "fsdp2" else {}),
        "micro_batch": case["batch"],
        "accumulation": case["accumulation"],
        "checkpointing": case["checkpointing"],
        "attention": case.get("attention", "eager"),
        "optimizer_implementation": "foreach",
    }
    effective = case["batch"] * case["accumulation"] * (count // 2 if case["tensor"] else count)
    inputs = {"sequence_length": case["sequence"]}
    plan = Plan.model_validate(
        {
            "model": model,
            "workload": {
                "task": "lora" if case["adapters"] else "full",
                **(adapters if case["adapters"] else {}),
                "inputs": inputs,
                "effective_batch": effective,
            },
            "machine": {"gpus": [{"id": gpu, "count": count}]},
            "settings": settings,
        }
    )
    found = resolve(plan)
    if isinstance(found, Pending):
        found = found.answered(store.trace(found.spec, at=found.point, keep=False))
    return found


def peak(found: Facts, case: dict[str, Any], count: int) -> int:
    """Return the live bytes of one of ``count`` GPUs."""
    return live_peak_bytes(
        found.profile, found.settings, case["batch"], case["sequence"], gpu_count=count
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_peak_is_that_of_torch_on_real_processes(
    name: str, config: Path, measured: dict[str, int]
) -> None:
    case = USUAL | CASES[name]
    count = 2 * case["copies"]
    shape = config / name.replace(" ", "-")
    shape.mkdir(exist_ok=True)
    (shape / "config.json").write_text(json.dumps(CONFIG | case["config"]), encoding="utf-8")
    # DeepSpeed sums up whole copies in place, where torch has buckets.
    buckets = 1 if case["strategy"] == "zero0" else count
    said = peak(facts({"hf": str(shape / "config.json")}, count, case), case, buckets)
    print(f"{name:36} {measured[name]:>12,} measured {said:>12,} {said / measured[name] - 1:+.2%}")
    assert said == pytest.approx(measured[name], rel=case["within"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "reshard", "known"), [(8, True, 21.84e9), (8, False, 35.64e9), (512, True, 9.82e9)]
)
def test_llama_8b_takes_what_torch_itself_counts(count: int, reshard: bool, known: float) -> None:
    """Of torch 2.13's own step under a fake process group: full checkpointing, one sample."""
    case = USUAL | {"batch": 1, "sequence": 4096, "checkpointing": "full", "reshard": reshard}
    found = facts({"preset": "llama-3.1-8b"}, 8, case | {"attention": "sdpa"}, "h100-80gb-sxm")
    said = peak(found, case, count)
    print(f"Llama 3.1 8B on {count} {known / 1e9:.2f} GB counted, {said / 1e9:.2f} GB")
    assert said == pytest.approx(known, rel=AS_COUNTED)


@pytest.mark.slow
def test_full_fine_tuning_of_8b_on_eight_h100_is_shared_out() -> None:
    """One H100 cannot hold it, eight together can, and nothing of the training changes."""
    plan = Plan.model_validate(
        {
            "model": {"preset": "llama-3.1-8b"},
            "workload": {
                "task": "full",
                "inputs": {"sequence_length": 4096},
                "effective_batch": 64,
            },
            "machine": {"gpus": [{"id": "h100-80gb-sxm", "count": 8}]},
        }
    )
    shared = sharding(plan)
    assert shared is not None
    for one in (plan, shared):
        if isinstance(found := resolve(one), Pending):
            store.trace(found.spec)
    whole = resolve(plan)
    assert isinstance(whole, Facts)
    best = advise(plan, whole, top=1).choices[0]
    assert (best.settings.strategy, best.settings.optimizer) == ("fsdp2", "adamw")
    assert best.effect is Effect.SAME
    assert make_it_fit(plan, advise(plan, whole, top=1)).settings == plan.settings
