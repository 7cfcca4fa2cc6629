"""One model by two routes has one memory and one time; tables of measured rows have that of a plan.

``make accuracy`` prints every preset beside the same model from timm or from its ``config.json``.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

import clockrows
import pytest
from clockrows import Step, blocks

from trainwright.estimate.clock import Clock, Situation
from trainwright.estimate.efficiency import load
from trainwright.estimate.roofline import kernel_seconds
from trainwright.plan.evaluate import Facts, Pending, evaluate, resolve
from trainwright.plan.report import Report
from trainwright.plan.schema import Plan
from trainwright.profile import store
from trainwright.profile.presets import presets

SAME = 1e-3
"""Share by which two routes may differ."""

BATCH, LENGTH = 16, 512


def plan_of(model: dict[str, Any], task: str = "full", **settings: Any) -> Plan:
    settings = {"precision": "bf16-mixed", "micro_batch": BATCH} | settings
    workload: dict[str, Any] = {"task": task, "inputs": settings.pop("inputs", {})}
    if task != "infer":
        workload["effective_batch"] = settings["micro_batch"]
    machine = {"gpus": [{"id": "rtx-3090"}]}
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
    quick = {("resnet18", "full"), ("smollm2-135m", "full"), ("smollm2-135m", "infer")}
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
    plans = [plan_of(model, task, inputs=inputs) for model in ({"preset": id}, {kind: name})]
    compared(f"{id} {task} by {kind}", *(evaluate(plan, answered(plan)) for plan in plans))


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
    """Of the same constants: those of today's torch, on the GPU as it is in a plan."""
    if "timm" in model:
        pytest.importorskip("timm")
    plan = plan_of(
        *(model, "full"),
        inputs={"image_size": int(step.table.key.partition("@")[2].partition("/")[0])},
        precision=step.precision,
        micro_batch=step.batch,
        attention="eager",
        channels_last=step.channels_last,
    )
    facts = answered(plan)
    clock = Clock(Situation(facts.machine.gpu, 1, plan.workload, 0))
    said = clock.terms(facts.profile, facts.settings, step.batch).gpu
    (block,) = blocks([step])
    times = kernel_seconds(
        block.kernels,
        (block.kernels.group > 0).astype(float),
        clock.rates(step.precision),
        load().curves(channels_last=step.channels_last),
        ("float32", "float16"),
    )
    predicted = float(block.total(times.seconds)[0])
    print(f"{step.model:24s} {1e3 * predicted:9.2f} ms by its table", said)
    assert said["forward"] + said["backward"] == pytest.approx(predicted, rel=SAME)
