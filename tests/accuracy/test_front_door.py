"""One model by two routes has one memory and one time; tables of measured rows have that of a plan.

``make accuracy`` prints every preset beside the same model from timm or from its ``config.json``,
and measured step times beside what ``estimate`` says. ``python tests/accuracy/test_front_door.py
ROWS`` traces so many of the rows that no fit has seen, each from its plan, and prints them.
"""

import subprocess
import sys
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

import clockfit
import clockrows
import numpy as np
import pytest
import visionrows
from clockrows import Block, Step, blocks

from trainwright.estimate.time.efficiency import load
from trainwright.estimate.time.roofline import kernel_seconds, rates
from trainwright.plan.evaluate import Facts, Pending, evaluate, resolve
from trainwright.plan.report import Report
from trainwright.plan.schema import Plan
from trainwright.profile import store
from trainwright.profile.presets import presets
from trainwright.profile.profile import Floats
from trainwright.workload.settings import Framework

SAME = 1e-3
"""Share by which two routes may differ."""

BATCH, LENGTH = 16, 512


def plan_of(model: dict[str, Any], task: str = "full", **settings: Any) -> Plan:
    settings = {"precision": "bf16-mixed", "micro_batch": BATCH} | settings
    workload: dict[str, Any] = {"task": task, "inputs": settings.pop("inputs", {})}
    if task != "infer":
        workload["effective_batch"] = settings["micro_batch"]
    machine = {"gpus": [{"id": settings.pop("gpu", "rtx-3090")}]}
    return Plan.model_validate(
        {"model": model, "workload": workload, "machine": machine, "settings": settings}
    )


def answered(plan: Plan) -> Facts:
    """Return what ``estimate`` knows: what ships, else a trace at the plan's own point."""
    found = resolve(plan)
    if isinstance(found, Pending):
        return found.answered(store.trace(found.spec, at=found.point, keep=False))
    return found


def compared(name: str, one: Report, other: Report) -> None:
    """Print two reports of a model, and check that they say the same."""
    memory = [report.memory.allocated_peak.value for report in (one, other)]
    steps = [report.time.step_seconds.value for report in (one, other)]
    gib, ms = (f"{n / 2**30:9.3f}" for n in memory), (f"{n * 1e3:9.2f}" for n in steps)
    print(f"{name:44s}", *gib, "GiB", *ms, "ms")
    assert memory[1] == pytest.approx(memory[0], rel=SAME)
    assert steps[1] == pytest.approx(steps[0], rel=SAME)


# The same model by another route


def routes() -> list[Any]:
    """Return (preset, task) of all that timm or transformers have, too; the quick ones unmarked."""
    quick = {("resnet18", "full"), ("bert-base", "full")}
    return [
        pytest.param(preset.id, task, marks=() if (preset.id, task) in quick else pytest.mark.slow)
        for preset in presets().values()
        if preset.timm or preset.hf
        for task in dict.fromkeys("full" if t == "pretrain" else t for t in preset.tasks)
    ]


@pytest.mark.parametrize(("id", "task"), routes())
def test_a_preset_is_the_model_that_its_library_has(id: str, task: str) -> None:
    preset = presets()[id]
    if preset.timm:
        pytest.importorskip("timm")
    inputs = {"image_size": preset.image_size or None}
    if preset.sequence_length:
        length = min(LENGTH, preset.sequence_length) // 2
        inputs["prompt_tokens" if task == "infer" else "sequence_length"] = length
    shipped = resolve(plan_of({"preset": id}, task, inputs=inputs))
    if isinstance(shipped, Pending):
        pytest.skip("does not ship traced")
    (kind, name), *_ = preset.model().items()
    own = {"quantization": preset.packed} if task == "infer" and preset.packed else {}
    plans = [plan_of({"preset": id}, task, inputs=inputs),
             plan_of({kind: name}, task, inputs=inputs, **own)]  # fmt: skip
    compared(f"{id} {task} by {kind}", *(evaluate(plan, answered(plan)) for plan in plans))


@pytest.mark.slow
@pytest.mark.parametrize("channels_last", [False, True])
def test_a_large_batch_of_resnet50_takes_as_long_from_timm_as_from_its_preset(
    channels_last: bool,
) -> None:
    pytest.importorskip("timm")
    settings = {"precision": "fp16-mixed", "micro_batch": 512, "channels_last": channels_last}
    plans = [plan_of({kind: "resnet50"}, **settings) for kind in ("preset", "timm")]
    name = f"resnet50, 512 samples, {'nhwc' if channels_last else 'nchw'}"
    compared(name, *(evaluate(plan, answered(plan)) for plan in plans))


NET = """
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
            nn.Conv2d(64, 128, 3, 2, 1, groups=2, bias=False), nn.BatchNorm2d(128), nn.ReLU(),
            nn.Conv2d(128, 128, 3, 1, 1, groups=128), nn.GELU(), nn.Conv2d(128, 512, 1),
        )
        self.head = nn.Linear(512, 1000)

    def forward(self, image):
        return self.head(self.body(image).mean((2, 3)))
"""

EXPORT = """
import torch

batch = {0: torch.export.Dim("batch", min=2)}
made = torch.export.export(Net().train(), (torch.zeros(2, 3, 64, 64),), dynamic_shapes=(batch,))
torch.export.save(made, "net.pt2")
"""


@pytest.mark.slow
def test_a_file_and_the_program_made_from_it_are_one_model(tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    file.write_text(NET, encoding="utf-8")
    subprocess.run([sys.executable, "-c", NET + EXPORT], cwd=tmp_path, check=True)
    models: list[dict[str, Any]] = [
        {"python": {"file": str(file), "factory": "Net"}},
        {"pt2": str(tmp_path / "net.pt2")},
    ]
    plans = [plan_of(model, inputs={"image_size": 64}) for model in models]
    compared("a file and its program", *(evaluate(plan, answered(plan)) for plan in plans))


# What the tables of measured rows predict


def framework_of(step: Step) -> Framework:
    """Return the torch that ran a step, as a plan names it."""
    return "torch-1.12" if step.framework.startswith("torch 1.") else "torch-2.4"


def plan_of_row(step: Step, model: dict[str, str], **changed: str) -> Plan:
    """Return the plan that says how a measured step ran."""
    old = framework_of(step) == "torch-1.12"
    settings: dict[str, Any] = {
        "precision": step.precision,
        "micro_batch": step.batch,
        "channels_last": step.channels_last,
        "framework": framework_of(step),
        "attention": "eager" if old else "sdpa",
        "inputs": {"image_size": int(step.table.key.partition("@")[2].partition("/")[0])},
    }
    if step.trains:
        settings |= {"optimizer": "sgd", "optimizer_implementation": "for-loop"}
    task = "full" if step.trains else "infer"
    return plan_of(model, task, gpu=step.gpu.id, **(settings | changed))


def by_tables(block: Block) -> Floats:
    """Return the kernels' seconds of a block's steps, as ``estimate`` times their operators."""
    step = block.situation
    times = kernel_seconds(
        block.kernels,
        (block.kernels.group > 0).astype(float),
        rates(step.gpu, load(), tf32=step.precision == "bf16-mixed"),
        load().curves(channels_last=step.channels_last, framework=framework_of(step)),
        ("float32", "float16"),
    )
    return block.total(times.seconds)


def sampled() -> list[Any]:
    """Return training steps of some families, first that whose model ships."""
    steps = {(step.table.key, step.channels_last): step for step in clockrows.vision_steps()}
    chosen = (
        *("resnet50", "vit_small_patch16_224", "resnext50_32x4d", "tf_efficientnet_b0"),
        *("nfnet_l0", "xcit_nano_12_p16_224", "inception_v3", "densenet121"),
        "swin_tiny_patch4_window7_224",
    )
    found = []
    for model in chosen:
        key = f"{model}@{299 if model == 'inception_v3' else 224}/train/fp16-mixed/eager"
        for layout in (False, True):
            if (step := steps.get((key, layout))) is not None:
                ships = model == "resnet50" and not layout
                source = {"preset": model} if ships else {"timm": model}
                found.append(
                    pytest.param(
                        *(step, source),
                        marks=() if ships else pytest.mark.slow,
                        id=f"{model}-{'nhwc' if layout else 'nchw'}",
                    )
                )
    return found


@pytest.mark.parametrize(("step", "model"), sampled())
def test_a_table_takes_what_estimate_says_of_its_plan(step: Step, model: dict[str, str]) -> None:
    ships = {"optimizer_implementation": "foreach"}
    if "timm" in model:
        pytest.importorskip("timm")
    plan = plan_of_row(step, model, **({} if "timm" in model else ships))
    said = evaluate(plan, answered(plan)).time
    print(shown(step, said.step_seconds.value))
    stages = {stage.name: stage.seconds.value for stage in said.stages}
    (block,) = blocks([step])
    assert stages["forward"] + stages["backward"] == pytest.approx(by_tables(block)[0], rel=SAME)


def shown(step: Step, seconds: float) -> str:
    layout = "nhwc" if step.channels_last else "nchw"
    told = f"{1e3 * step.seconds:9.2f} ms measured, {1e3 * seconds:9.2f} estimated"
    return f"{step.model:36s} {layout} {told} {seconds / step.seconds - 1:+7.1%}"


def errors_by_tables(steps: Iterable[Step]) -> Floats:
    """Return |predicted / measured - 1| of steps, with the loop over tensors that updates."""
    reached = load().classes["foreach-optimizer"].memory
    found = blocks(steps)
    said = [by_tables(block) + clockfit.updates(block) / reached for block in found]
    return np.concatenate(
        [np.abs(s / block.seconds - 1) for s, block in zip(said, found, strict=True)]
    )


def line(name: str, errors: Floats) -> str:
    figures = (np.median(errors), errors.mean(), np.quantile(errors, 0.9))
    return f"{name:44s} {len(errors):4d}" + "".join(f" {100 * value:6.1f}" for value in figures)


GOALS = {"training, families not fitted": (0.06, 0.20), "forward, GPUs not fitted": (0.11, 0.25)}
"""Median and 90th percentile; measured are 0.060 and 0.183, 0.095 and 0.225."""


def test_estimates_of_steps_that_no_fit_has_seen_are_as_good_as_said() -> None:
    # The forward steps cast fp32 weights at each run. A plan of inference serves 16-bit weights,
    # which takes less: of them, the tables alone can be compared.
    gpus = visionrows.held_out()["gpu"]
    sets = {
        "training, families not fitted": clockrows.unseen_vision_steps(),
        "forward, GPUs not fitted": [s for s in clockrows.forward_steps() if s.gpu.id in gpus],
    }
    for name, steps in sets.items():
        errors = errors_by_tables(steps)
        print(line(name, errors))
        median, tail = GOALS[name]
        assert round(float(np.median(errors)), 3) <= median
        assert np.quantile(errors, 0.9) <= tail


def main(count: int) -> None:
    """Print measured steps of families that no fit has seen, each traced from its plan."""
    steps = sorted(clockrows.unseen_vision_steps(), key=lambda s: sha256(s.id.encode()).digest())
    errors = []
    for step in steps[:count]:
        plan = plan_of_row(step, {"timm": step.table.key.partition("@")[0]})
        seconds = evaluate(plan, answered(plan)).time.step_seconds.value
        errors.append(abs(seconds / step.seconds - 1))
        print(shown(step, seconds), flush=True)
    print(line("by their plans", np.array(errors)))
    print(line("by their tables", errors_by_tables(steps[:count])))


if __name__ == "__main__":
    main(int(sys.argv[1]))
