"""The programs around the step are one file: whole, without what its plan does not need."""

import ast
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from exporting import llama, on_two_gpus, plan, put, settings

from trainwright import export
from trainwright.export.bundle import bundle
from trainwright.plan.schema import Plan

IMAGE = {"task": "pretrain", "inputs": {"image_size": 32}, "effective_batch": 8}


def exported(kind: str, folder: Path) -> Plan:
    if kind == "hf":
        return llama(folder)
    if kind == "python":
        (folder / "net.py").write_text("def build():\n    return None\n", encoding="utf-8")
        return plan({"python": {"file": str(folder / "net.py"), "factory": "build"}})
    models: dict[str, dict[str, Any]] = {
        "diffusers": {"preset": "sdxl-unet"},
        "timm": {"timm": "resnet18"},
        "builtin": {"preset": "unet"},
    }
    return plan(models[kind], workload=IMAGE)


def test_a_qlora_export_is_a_program_and_what_it_reads(tmp_path: Path) -> None:
    chosen = settings(quantization="nf4")
    files = export.files("plain", llama(tmp_path, "qlora"), chosen, {}, "en")
    assert [*files] == ["train.py", "plan.json", "model/config.json"]
    names = {node.name for node in ast.walk(ast.parse(files["train.py"]))
             if isinstance(node, (ast.FunctionDef, ast.ClassDef))}  # fmt: skip
    assert {"main", "micro_step", "adapted", "report"} <= names
    assert not names & {"UNet", "_timm", "_diffusers", "Latents", "ppo_loss"}


def test_a_program_of_one_gpu_for_text_holds_neither_processes_nor_pictures(
    tmp_path: Path,
) -> None:
    alone = export.files("plain", llama(tmp_path), settings(), {}, "en")["train.py"]
    unused = r"torch\.distributed|DistributedDataParallel|fully_shard|PIL|LoraConfig|PromptTuning"
    assert not re.search(unused, alone)
    several = settings(strategy="fsdp2", accumulation=2)
    shared = export.files("plain", on_two_gpus(llama(tmp_path)), several, {}, "en")["train.py"]
    assert re.search(r"fully_shard", shared)
    seen = llama(tmp_path, architectures=["ViTForImageClassification"], model_type="vit")
    pictures = export.files("plain", seen, settings(), {}, "en")["train.py"]
    assert "PIL" in pictures
    assert "AutoTokenizer" not in pictures


KINDS = ("hf", "timm", "diffusers", "builtin", "python")


@pytest.mark.parametrize(
    ("target", "kind"),
    [*(("plain", kind) for kind in KINDS), ("accelerate", "hf"), ("deepspeed", "hf")],
)
def test_the_file_is_clean_and_names_nothing_twice(tmp_path: Path, target: str, kind: str) -> None:
    folder = put(tmp_path / "run", target, exported(kind, tmp_path))
    text = (folder / "train.py").read_text(encoding="utf-8")
    defined = Counter(
        node.name
        for node in ast.parse(text).body
        if isinstance(node, (ast.FunctionDef, ast.ClassDef))
    )
    assert defined.most_common(1)[0][1] == 1
    assert {path.name for path in folder.glob("*.py")} <= {"train.py", "check_config.py"}
    lint = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "E,F,I,B,UP"]
    lint += ["--line-length", "100", "--target-version", "py310", str(folder / "train.py")]
    done = subprocess.run(lint, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_parts_keep_their_text_and_what_nothing_uses_goes() -> None:
    parts = {
        "tools": '"""Tools."""\n\nimport math\nimport json\n\n\ndef used():\n'
        "    return math.pi  # as it stands\n\n\ndef unused():\n    return json.dumps(1)\n",
        "train": '"""Trains."""\n\nfrom tools import used\n\n\ndef main():\n    print(used())\n'
        "\n\nmain()\n",
    }
    assert bundle(parts, "train") == (
        '"""Trains."""\n\nimport math\n\n# Tools.\n\n\ndef used():\n'
        "    return math.pi  # as it stands\n\n\n# Trains.\n\n\ndef main():\n"
        "    print(used())\n\n\nmain()\n"
    )
