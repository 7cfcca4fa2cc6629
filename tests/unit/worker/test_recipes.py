"""Each recipe's step has the traced peak that the library's own loop has.

The truth is torch's log of its CPU allocator in runs of the libraries themselves
(``recipe_runs.py``): nothing of the step that is traced runs there. Recipes of older libraries
run where ``OLD_LIBRARIES`` names the folder that ``scripts/old_libraries.sh`` fills, which
``make recipes`` does.
"""

import json
import os
import subprocess
import sys
from dataclasses import asdict
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from trainwright.estimate.memory.layout import loop_of
from trainwright.plan.method import method
from trainwright.plan.rollout import answers_of, with_answers
from trainwright.profile import trace
from trainwright.profile.expand import PHASE, training_events
from trainwright.profile.fit import fit
from trainwright.worker import client
from trainwright.workload import FullSettings, Inputs, Settings, Workload
from trainwright.workload.objectives import RECIPE
from trainwright.workload.recipes import RECIPES, by_recipe

HERE = Path(__file__).parent
LLAMA = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 1000,
    "hidden_size": 256, "intermediate_size": 896, "num_hidden_layers": 3,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 256,
}  # fmt: skip
UNET = {
    "_class_name": "UNet2DConditionModel", "sample_size": 16, "block_out_channels": [64, 128],
    "down_block_types": ["CrossAttnDownBlock2D", "DownBlock2D"],
    "up_block_types": ["UpBlock2D", "CrossAttnUpBlock2D"],
    "cross_attention_dim": 64, "attention_head_dim": 8, "layers_per_block": 1,
}  # fmt: skip
GPT2 = {
    "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 1000, "n_embd": 256,
    "n_layer": 3, "n_head": 4, "n_positions": 256,
    "attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0,
}  # fmt: skip
CONFIGS = {"llama": LLAMA, "diffusers-script": UNET, "hf-trainer-4.3": GPT2}
"""Recipe -> its model; of the others the first."""
BATCH, LENGTH = 2, 96
PROMPT = 32
"""Tokens of a row before the answer that the model itself writes, where it does."""
PHASES = ("forward", "backward", "optimizer")
BEFORE = {"prefill": "writing", "decode": "writing", "score": "scoring"}
"""What comes before a micro-batch of answers that the model itself writes."""
LOSS = {"trl-sft-0.9": {"scores_upcast": "returned"}}
"""Recipe -> its loss in the older transformers that it runs with here."""
CASES = {
    "hf-trainer": ("hf-trainer", "full", {}),
    "hf-trainer-checkpointed": ("hf-trainer", "full", {"checkpointing": "full"}),
    "hf-trainer-lora": ("hf-trainer", "lora", {}),
    "llama-factory": ("llama-factory", "full", {}),
    "llama-factory-once": ("llama-factory", "full", {"reentrant": False}),
    "llama-factory-lora": ("llama-factory", "lora", {}),
    "llama-factory-mixed": ("llama-factory", "full", {"precision": "bf16-mixed"}),
    "llama-factory-lora-mixed": ("llama-factory", "lora", {"precision": "bf16-mixed"}),
    "llama-factory-qlora": ("llama-factory", "qlora", {"precision": "bf16-mixed"}),
    "axolotl": ("axolotl", "full", {}),
    "axolotl-lora": ("axolotl", "lora", {}),
    "axolotl-qlora": ("axolotl", "qlora", {"precision": "bf16-mixed"}),
    "trl-sft": ("trl-sft", "full", {}),
    "trl-sft-tiles": ("trl-sft", "full", {}),
    "trl-sft-lora": ("trl-sft", "lora", {"checkpointing": "none"}),
    "trl-sft-qlora": ("trl-sft", "qlora", {"precision": "bf16"}),
    "trl-dpo": ("trl-dpo", "full", {}),
    "trl-dpo-mixed": ("trl-dpo", "full", {"precision": "bf16-mixed"}),
    "trl-dpo-tiles": ("trl-dpo", "full", {"checkpointing": "none"}),
    "trl-dpo-precomputed": ("trl-dpo", "full", {}),
    "trl-dpo-lora": ("trl-dpo", "lora", {"checkpointing": "none"}),
    "trl-dpo-lora-checkpointed": ("trl-dpo", "lora", {}),
    "trl-dpo-lora-precomputed": ("trl-dpo", "lora", {}),
    "trl-dpo-lora-model": ("trl-dpo", "lora", {}),
    "trl-dpo-qlora": ("trl-dpo", "qlora", {"precision": "bf16"}),
    "trl-reward": ("trl-reward", "full", {}),
    "trl-reward-mixed": ("trl-reward", "full", {"precision": "bf16-mixed"}),
    "trl-reward-lora": ("trl-reward", "lora", {"checkpointing": "none"}),
    "trl-grpo": ("trl-grpo", "full", {}),
    "trl-grpo-mixed": ("trl-grpo", "full", {"precision": "bf16-mixed"}),
    "trl-grpo-many": ("trl-grpo", "full", {"accumulation": 16}),
    "trl-grpo-again": ("trl-grpo", "full", {"checkpointing": "none"}),
    "trl-grpo-tiles": ("trl-grpo", "full", {"checkpointing": "none"}),
    "trl-grpo-reference": ("trl-grpo", "full", {}),
    "trl-grpo-lora": ("trl-grpo", "lora", {"checkpointing": "none"}),
    "trl-grpo-lora-many": ("trl-grpo", "lora", {"accumulation": 16}),
    "trl-grpo-lora-reference": ("trl-grpo", "lora", {}),
    "accelerate": ("accelerate", "full", {}),
    "accelerate-for-loop": ("accelerate", "full", {"optimizer_implementation": "for-loop"}),
    "peft-script-lora": ("peft-script", "lora", {}),
    "peft-script-lora-checkpointed": ("peft-script", "lora", {"checkpointing": "full"}),
    "peft-script": ("peft-script", "qlora", {"checkpointing": "full", "precision": "bf16"}),
    "nanogpt": ("nanogpt", "full", {}),
    "lightning": ("lightning", "full", {}),
    "torchvision": ("torchvision", "full", {"optimizer": "sgd", "scores_upcast": "none"}),
    "diffusers-script": ("diffusers-script", "full", {}),
    "plain": ("plain", "full", {}),
    "zeroing": ("plain", "full", {"gradients_cleared": "zeroed"}),
    **{
        f"{recipe}{suffix}": (recipe, task, given | LOSS.get(recipe, {}))
        for recipe in ("hf-trainer-4.46", "hf-trainer-4.41", "hf-trainer-4.30", "trl-sft-0.9")
        for suffix, task, given in (
            ("", "full", {"attention": "sdpa"}),
            ("-checkpointed", "full", {"attention": "sdpa", "checkpointing": "full"}),
            ("-lora", "lora", {"attention": "sdpa"}),
            ("-lora-checkpointed", "lora", {"attention": "sdpa", "checkpointing": "full"}),
            ("-mixed", "full", {"attention": "sdpa", "precision": "bf16-mixed"}),
        )
    },
    # Today's torch runs it, whose softmax does not keep its input.
    "hf-trainer-4.3": ("hf-trainer-4.3", "full", {"softmax_inputs": False}),
    "trl-sft-0.9-qlora-checkpointed": (
        *("trl-sft-0.9", "qlora"),
        {"attention": "sdpa", "precision": "bf16-mixed", "checkpointing": "full"}
        | LOSS["trl-sft-0.9"],
    ),
    "trl-sft-0.9-qlora": (
        *("trl-sft-0.9", "qlora"),
        {"attention": "sdpa", "precision": "bf16-mixed"} | LOSS["trl-sft-0.9"],
    ),
}
"""Case -> recipe, task, settings of the plan."""
TILES = dict.fromkeys(("trl-sft-tiles", "trl-dpo-tiles", "trl-grpo-tiles"), 100)
"""Cases whose loss is made in several tiles -> tokens of each; in a plan they are 4,096."""
REFERENCES = {
    "trl-dpo-precomputed": "precomputed",
    "trl-dpo-lora-precomputed": "precomputed",
    "trl-dpo-lora-model": "model",
    "trl-grpo-reference": "model",
    "trl-grpo-lora-reference": "adapter-off",
}
"""Cases whose policy is not compared with what its task has by default."""
ROLLOUTS = {"trl-grpo-again": {"generations": 2, "iterations": 2}}
"""Cases whose answers are written in another way than a group for each step."""
NEEDS = {
    "lightning": "lightning",
    "qlora": "bitsandbytes",
    "trl-sft": "trl",
    "trl-dpo": "trl",
    "trl-reward": "trl",
    "trl-grpo": "trl",
    "diffusers-script": "diffusers",
}
"""Recipe or task -> what it cannot run without."""
OLD = {
    "hf-trainer-4.46": "transformers-4.47",
    "hf-trainer-4.41": "transformers-4.45",
    "hf-trainer-4.30": "transformers-4.40",
    "hf-trainer-4.3": "transformers-4.6",
    "trl-sft-0.9": "trl-0.9",
    "llama-factory": "llama-factory",
    "axolotl": "axolotl",
}
"""Recipe -> the set of ``scripts/old_libraries.sh`` that runs it."""


def libraries_of(case):
    """Return the set that a case runs in; an empty name is the environment itself."""
    recipe, task, _ = CASES[case]
    if recipe in OLD:
        return OLD[recipe]
    lacking = [word for word in (recipe, task) if not find_spec(NEEDS.get(word, "torch"))]
    return "today" if lacking else ""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Return a function of a case: real peaks, traced peaks, in bytes, at all and by phase."""
    folder = tmp_path_factory.mktemp("models")
    for name, config in CONFIGS.items():
        (folder / f"{name}.json").write_text(json.dumps(config))

    @cache
    def of_set(libraries):
        return compared(folder, libraries)

    return lambda case: of_set(libraries_of(case))[case]


def compared(folder, libraries):
    """Return {case: (real peaks, traced peaks)} of the cases that a set of libraries runs."""
    cases = {name: case for name, case in CASES.items() if libraries_of(name) == libraries}
    settings = {name: settings_of(name, *case) for name, case in cases.items()}
    asked = {
        name: {
            "loop": name if name == "zeroing" else recipe,
            "task": task,
            "config": CONFIGS.get(recipe, LLAMA),
            "batch": settings[name].micro_batch,
            "sequence": LENGTH,
            "checkpointing": settings[name].checkpointing,
            "optimizer_implementation": settings[name].optimizer_implementation,
            "reentrant": settings[name].reentrant,
            "input_gradients": settings[name].input_gradients,
            "attention": settings[name].attention,
            "precision": settings[name].precision,
            "tile": TILES.get(name, 0),
            "accumulation": settings[name].accumulation,
            **asked_of(workload_of(name, recipe, task)),
        }
        for name, (recipe, task, _) in cases.items()
    }
    real = ran("recipe_runs.py", asked, libraries=libraries)
    specs = {name: spec(folder, name, *cases[name][:2], one) for name, one in settings.items()}
    for name in TILES.keys() & cases.keys():
        specs[name]["method"]["tile"] = TILES[name]
    # Steps are traced with the environment's own libraries, and what it lacks of today's.
    traced = ran("truth_runs.py", specs, "traced", libraries="today" * (libraries == "today"))
    return {
        name: (real[name], expanded(traced[name], settings[name], workload_of(name, *case[:2])))
        for name, case in cases.items()
    }


def workload_of(case, recipe, task):
    objective = {own: name for name, own in RECIPE.items()}.get(recipe)
    rollout = ROLLOUTS.get(case, {"generations": 2}) if objective == "grpo" else None
    return Workload(
        task=task,
        effective_batch=BATCH * CASES.get(case, ("", "", {}))[2].get("accumulation", 1),
        objective=objective,
        reference=REFERENCES.get(case),
        rollout=rollout,
    )


def asked_of(workload):
    """Return what a library's loop is asked of the objective."""
    rollout = workload.writes.model_dump() if workload.writes else None
    return {"reference": workload.compared, "rollout": rollout, "prompt": PROMPT}


def samples(workload):
    """Return the samples of a micro-batch: all cases have as many rows."""
    return BATCH // workload.rows


def settings_of(case, recipe, task, given):
    """Return the decided settings of a plan that names the recipe."""
    workload = workload_of(case, recipe, task)
    named = by_recipe(Settings(recipe=recipe, **given), workload)
    decided = {k: v for k, v in named.model_dump(exclude={"loader"}).items() if v is not None}
    return FullSettings.model_validate(PLAIN | decided | {"micro_batch": samples(workload)})


PLAIN = {
    "precision": "fp32", "quantization": "none", "kv_cache": "fp32",
    "accumulation": 1, "checkpointing": "none", "optimizer": "adamw", "attention": "eager",
    "compile": False, "channels_last": False, "allocator": "native", "strategy": "single",
    "learning_rate": None, "warmup": None, "num_workers": 0, "prefetch_factor": 2,
    "pin_memory": False, "persistent_workers": False,
}  # fmt: skip


def spec(folder, case, recipe, task, settings):
    workload = workload_of(case, recipe, task)
    name = recipe if recipe in CONFIGS else "llama"
    kind = "diffusers" if recipe == "diffusers-script" else "hf"
    length = LENGTH if kind == "hf" else None
    prompt = PROMPT if workload.writes else 0
    return {
        "model": {kind: str(folder / f"{name}.json")}, "task": task,
        "kernel": "cpu" if settings.attention == "sdpa" else "eager",
        "precision": settings.precision, "channels_last": False, "checkpointing": "none",
        "quantization": "none", "lora": [8, []], "image_size": 0, "sequence": length is not None,
        "points": points_of(workload, settings, length or 0), "optimizers": [settings.update],
        "method": asdict(method(workload, settings, "", length, prompt)),
    }  # fmt: skip


def points_of(workload, settings, length):
    """Return where to trace: answers are written at other sizes than those of an update."""
    if workload.writes is None:
        return [[settings.micro_batch, length]]
    lengths = (length, length - 16, length - 8)
    return [[batch, tokens] for tokens in lengths for batch in (2, 3)] + [[5, length - 4]]


def ran(program, cases, *options, libraries=""):
    command = [sys.executable, str(HERE / program), *options, str(client.PROGRAMS)]
    old = {"PYTHONPATH": str(old_libraries(libraries))} if libraries else {}
    done = subprocess.run(
        command, input=json.dumps(cases), env=os.environ | old,
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def old_libraries(name):
    return Path(os.environ.get("OLD_LIBRARIES", "")).absolute() / name / "site-packages"


def expanded(result, settings, workload):
    """Return the peak of three steps, written out from the trace as the app does it."""
    inputs = Inputs(prompt_tokens=PROMPT, new_tokens=LENGTH - PROMPT)
    answers = answers_of(workload, settings, inputs, 1)
    profile = with_answers(fit(trace.parse(result)), answers)
    parts = training_events(
        profile, settings.micro_batch, LENGTH, accumulation=settings.accumulation, steps=3,
        checkpointing=settings.recomputing, optimizer=settings.update, loop=loop_of(settings),
    )  # fmt: skip
    events = [np.concatenate(column) for column in zip(*map(columns, parts), strict=True)]
    signed, phase, op = events
    living = np.cumsum(signed)
    born, last = signed > 0, phase == PHASE["optimizer"]
    most = np.where(last, np.maximum(living, living - signed), np.where(born, living, 0))
    clipping = np.append(np.array(profile.ops.phase) == "clip", False)[op]
    phase[clipping] = PHASE["forward"]  # in a library's loop it is just not its optimizer
    later = np.arange(len(signed)) >= len(parts[0].signed) + len(parts[1].signed)
    found = {"all": int(living.max())}
    for name in (*PHASES, *(BEFORE if workload.writes else ())):
        of_phase = int(most[later & (phase == PHASE[name])].max(initial=0))
        if of_phase:  # answers are not always scored
            found[BEFORE.get(name, name)] = max(found.get(BEFORE.get(name, name), 0), of_phase)
    return found


def columns(part):
    return part.signed, part.phase.copy(), part.op


@pytest.mark.parametrize("case", CASES)
@pytest.mark.slow
def test_the_librarys_own_loop_has_the_traced_peak(run, case):
    libraries = libraries_of(case)
    if libraries and not ("OLD_LIBRARIES" in os.environ and old_libraries(libraries).is_dir()):
        pytest.skip(f"needs {libraries}: make recipes installs it")
    real, traced = run(case)
    real = {phase: real[phase] for phase in traced}
    for phase in real:
        error = traced[phase] / real[phase] - 1
        print(f"{case}, {phase}: real {real[phase]:,} B, traced {traced[phase]:,} B, {error:+.3%}")
    assert traced == pytest.approx(real, rel=0.005)


def test_a_micro_batch_of_many_tokens_is_cut_into_tiles() -> None:
    workload = Workload(task="full", effective_batch=BATCH)
    settings = settings_of("", "trl-sft", "full", {})
    own = Workload(task="full", effective_batch=BATCH, objective="grpo")
    assert method(own, settings, "", 3048, 1000).tile == 0
    assert method(own, settings, "", 3049, 1000).tile == 4096
    assert method(workload, settings, "", 2049).tile == 0
    assert method(workload, settings, "", 2050).tile == 4096
    assert method(workload, settings_of("", "hf-trainer", "full", {}), "", 2050).tile == 0


def test_every_recipe_says_which_library_and_where() -> None:
    for recipe in RECIPES.values():
        assert recipe.library
        assert recipe.source
        for task in ("full", "lora", "qlora"):
            known = recipe.defaults(task, checkpointed=True)
            assert set(known) <= set(Settings.model_fields)
