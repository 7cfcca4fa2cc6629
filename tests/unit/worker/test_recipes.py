"""Each recipe's step has the traced peak that the library's own loop has.

The truth is torch's log of its CPU allocator in runs of the libraries themselves
(``recipe_runs.py``): nothing of the step that is traced runs there.
"""

import json
import subprocess
import sys
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from trainwright.estimate.loops import loop_of
from trainwright.plan.method import method
from trainwright.profile import trace
from trainwright.profile.expand import training_events
from trainwright.profile.fit import fit
from trainwright.worker import client
from trainwright.workload import FullSettings, Settings, Workload
from trainwright.workload.defaults import by_recipe
from trainwright.workload.recipes import RECIPES

HERE = Path(__file__).parent
LLAMA = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 1000,
    "hidden_size": 128, "intermediate_size": 448, "num_hidden_layers": 3,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 256,
}  # fmt: skip
BATCH, LENGTH = 4, 96
CASES = {
    "hf-trainer": ("hf-trainer", "full", {}),
    "hf-trainer-checkpointed": ("hf-trainer", "full", {"checkpointing": "full"}),
    "hf-trainer-lora": ("hf-trainer", "lora", {}),
    "llama-factory": ("llama-factory", "full", {}),
    "llama-factory-lora": ("llama-factory", "lora", {}),
    "llama-factory-qlora": ("llama-factory", "qlora", {"precision": "bf16"}),
    "axolotl-lora": ("axolotl", "lora", {}),
    "axolotl-qlora": ("axolotl", "qlora", {"precision": "bf16"}),
    "accelerate": ("accelerate", "full", {}),
    "accelerate-for-loop": ("accelerate", "full", {"optimizer_implementation": "for-loop"}),
    "peft-script": ("peft-script", "qlora", {"checkpointing": "full", "precision": "bf16"}),
    "nanogpt": ("nanogpt", "full", {}),
    "lightning": ("lightning", "full", {}),
    "torchvision": ("torchvision", "full", {"optimizer": "sgd", "scores_upcast": "none"}),
    "zeroing": ("plain", "full", {"gradients_cleared": "zeroed"}),
}
"""Case -> recipe, task, settings of the plan."""
NEEDS = {"lightning": "lightning", "qlora": "bitsandbytes"}
"""Recipe or task -> what it cannot run without."""
CASES = {
    name: (recipe, task, given)
    for name, (recipe, task, given) in CASES.items()
    if all(find_spec(NEEDS.get(word, "torch")) for word in (recipe, task))
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Return {case: (real peak, traced peak)} in bytes."""
    path = tmp_path_factory.mktemp("model") / "config.json"
    path.write_text(json.dumps(LLAMA))
    settings = {name: settings_of(*case) for name, case in CASES.items()}
    asked = {
        name: {
            "loop": name if name == "zeroing" else recipe,
            "task": task,
            "config": LLAMA,
            "batch": BATCH,
            "sequence": LENGTH,
            "checkpointing": settings[name].checkpointing,
            "optimizer_implementation": settings[name].optimizer_implementation,
        }
        for name, (recipe, task, _) in CASES.items()
    }
    real = ran("recipe_runs.py", asked)
    specs = {name: spec(path, CASES[name][1], one) for name, one in settings.items()}
    traced = ran("truth_runs.py", specs, "traced")
    return {name: (real[name], expanded(traced[name], settings[name])) for name in CASES}


def settings_of(recipe, task, given):
    """Return the decided settings of a plan that names the recipe."""
    workload = Workload(task=task, effective_batch=BATCH)
    named = by_recipe(Settings(recipe=recipe, **given), workload)
    decided = {k: v for k, v in named.model_dump(exclude={"loader"}).items() if v is not None}
    return FullSettings.model_validate(PLAIN | decided)


PLAIN = {
    "precision": "fp32", "quantization": "none", "kv_cache": "fp32", "micro_batch": BATCH,
    "accumulation": 1, "checkpointing": "none", "optimizer": "adamw", "attention": "eager",
    "compile": False, "channels_last": False, "allocator": "native", "strategy": "single",
    "learning_rate": None, "warmup": None, "num_workers": 0, "prefetch_factor": 2,
    "pin_memory": False, "persistent_workers": False,
}  # fmt: skip


def spec(path, task, settings):
    workload = Workload(task=task, effective_batch=BATCH)
    return {
        "model": {"hf": str(path)}, "task": task, "precision": settings.precision,
        "kernel": "eager",
        "channels_last": False, "checkpointing": "none", "quantization": "none",
        "lora": [8, []], "image_size": 0, "sequence": True, "points": [[BATCH, LENGTH]],
        "optimizers": [settings.update],
        "method": asdict(method(workload, settings, has_sequence=True)),
    }  # fmt: skip


def ran(program, cases, *options):
    command = [sys.executable, str(HERE / program), *options, str(client.PROGRAMS)]
    done = subprocess.run(
        command, input=json.dumps(cases), capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def expanded(result, settings):
    """Return the peak of three steps, written out from the trace as the app does it."""
    parts = training_events(
        fit(trace.parse(result)), BATCH, LENGTH, accumulation=1, steps=3,
        checkpointing=settings.checkpointing, optimizer=settings.update, loop=loop_of(settings),
    )  # fmt: skip
    return int(np.cumsum(np.concatenate([part.signed for part in parts])).max())


@pytest.mark.parametrize("case", CASES)
@pytest.mark.slow
def test_the_librarys_own_loop_has_the_traced_peak(runs, case):
    real, traced = runs[case]
    print(f"{case}: real {real:,} B, traced {traced:,} B, {traced / real - 1:+.3%}")
    assert abs(traced / real - 1) <= 0.005


def test_every_recipe_says_which_library_and_where() -> None:
    for recipe in RECIPES.values():
        assert recipe.library
        assert recipe.source
        for task in ("full", "lora", "qlora"):
            assert set(recipe.defaults(task)) <= set(Settings.model_fields)
