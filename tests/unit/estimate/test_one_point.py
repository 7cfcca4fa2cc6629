"""A trace at one batch and length times the step as the fit over many does.

A kernel's time depends on what is a weight and what grows with the batch, on channels and on the
gradients that are asked for. At one point no polynomial tells them apart: the tracer must.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trainwright.estimate.time.clock import Clock
from trainwright.estimate.time.operator_clock import Situation
from trainwright.plan.evaluate import Pending, resolve
from trainwright.plan.schema import Plan
from trainwright.profile import codec, presets, shipped, store
from trainwright.profile.profile import Profile, monomials
from trainwright.profile.spec import TRACER_VERSION

NETS = """
import torch
from torch import nn
from torch.nn import functional as F


class Standardised(nn.Conv2d):
    def forward(self, x):
        flat = self.weight.reshape(1, self.out_channels, -1)
        weight = F.batch_norm(flat, None, None, training=True).reshape_as(self.weight)
        return self._conv_forward(x, weight, self.bias)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 64, 4, 4)
        self.first = nn.InstanceNorm2d(64, affine=True)
        self.apart = nn.Conv2d(64, 64, 3, 2, groups=64)
        self.few = nn.Conv2d(64, 128, 3, padding=1, groups=2, bias=False)
        self.norm = nn.BatchNorm2d(128)
        self.same = Standardised(128, 128, 3, padding=1)
        self.back = nn.ConvTranspose2d(128, 32, 4, 2, 1)
        self.head = nn.Linear(32, 1000)

    def forward(self, image):
        x = self.apart(F.pad(self.first(self.stem(image)), (0, 1, 0, 1)))
        x = self.back(self.same(torch.relu(self.norm(self.few(x)))))
        return self.head(x.mean((2, 3)))


def frozen():
    net = Net()
    net.norm.eval().requires_grad_(False)
    net.norm.train = lambda mode=True: net.norm
    net.stem.requires_grad_(False)
    return net


class Text(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(3000, 256)
        self.places = nn.Parameter(torch.zeros(512, 256))
        self.mix = nn.Linear(256, 768)
        self.experts = nn.Parameter(torch.zeros(4, 256, 256))
        self.head = nn.Linear(256, 3000, bias=False)

    def forward(self, tokens):
        x = self.embed(tokens) + self.places[: tokens.shape[1]]
        query, key, value = self.mix(x).chunk(3, -1)
        scores = torch.softmax(query @ key.transpose(1, 2), -1)
        x = x + scores @ value
        spread = x.flatten(0, 1).expand(4, -1, -1) @ self.experts
        return self.head(spread.sum(0).view_as(x))
"""


BATCH = 6


def plan_of(model: dict[str, Any], task: str = "full", **changed: Any) -> Plan:
    settings = {"precision": "bf16-mixed", "micro_batch": BATCH, "accumulation": 2} | changed
    workload: dict[str, Any] = {"task": task, "inputs": settings.pop("inputs", {})}
    if task != "infer":
        workload["effective_batch"] = 2 * BATCH
    else:
        del settings["accumulation"]
    machine = {"gpus": [{"id": "rtx-3090"}]}
    return Plan.model_validate(
        {"model": model, "workload": workload, "machine": machine, "settings": settings}
    )


def stages(profile: Profile, plan: Plan) -> dict[str, float]:
    """Return the seconds of each stage, and of launching it all."""
    found = resolve(plan)
    length = found.inputs.sequence_length or 0
    situation = Situation(found.machine.gpu, 1, plan.workload, length)
    terms = Clock(situation).terms(profile, found.settings, found.settings.micro_batch)
    return terms.gpu | {"launches": terms.host}


def alone(profile: Profile, batch: int, length: int) -> Profile:
    """Return the profile as a trace at one point would have it: nothing is known to grow."""

    def there(table: Any) -> Any:
        constant = np.zeros_like(table)
        constant[..., 0] = table @ monomials(batch, length)
        return constant

    tables = ("flops", "bytes_read", "bytes_written", "dims")
    ops = replace(profile.ops, **{name: there(getattr(profile.ops, name)) for name in tables})
    return replace(profile, ops=ops, points=((batch, length),), exact=False)


SHIPPED = [preset for preset in presets.presets() if shipped.names(preset)]


@pytest.mark.parametrize("preset", SHIPPED)
def test_what_ships_times_one_point_without_knowing_what_grows(preset: str) -> None:
    for name in (name for name in shipped.names(preset) if "-bf16-mixed-" in name):
        profile, task = shipped.profile(preset, name), name.partition("-")[0]
        if task == "infer" or not profile.exact or len({b for b, _ in profile.points}) == 1:
            continue
        takes, length = presets.find(preset).takes(task), profile.points[0][1]
        inputs = {"sequence_length": length} if length else {}
        plan = plan_of({"preset": preset}, task if takes else "pretrain", inputs=inputs)
        known = alone(profile, BATCH, length)
        assert stages(known, plan) == pytest.approx(stages(profile, plan), rel=1e-9), name


def test_what_ships_in_mixed_precision_tells_casts_of_weights_by_identity() -> None:
    """What merely has the size of one batch is not a copy of a weight."""
    named = [(preset, name) for preset in SHIPPED for name in shipped.names(preset)]
    for preset, name in (one for one in named if "-mixed-" in one[1]):
        profile = codec.decode(shipped.content(preset, name))
        assert profile.versions["tracer"] == str(TRACER_VERSION), (preset, name)
        if not name.startswith("infer"):
            assert "cast" in profile.category.values(), (preset, name)


@pytest.fixture(scope="module")
def nets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("nets") / "nets.py"
    path.write_text(NETS, encoding="utf-8")
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("factory", "changed"),
    [
        ("Net", {}),
        ("Net", {"channels_last": True, "precision": "fp16-mixed"}),
        ("frozen", {}),
        ("Text", {}),
        ("Text", {"optimizer": "adafactor"}),
    ],
)
def test_the_first_trace_of_a_model_times_it_as_the_full_one_does(
    nets: Path, factory: str, changed: dict[str, Any]
) -> None:
    inputs = {"sequence_length": 256} if factory == "Text" else {"image_size": 64}
    plan = plan_of({"python": {"file": str(nets), "factory": factory}}, inputs=inputs, **changed)
    found = resolve(plan)
    assert isinstance(found, Pending)
    whole = store.trace(found.spec, keep=False)
    first = store.trace(found.spec, at=found.point, keep=False)
    assert whole.exact
    assert first.exact == found.settings.channels_last
    assert stages(first, plan) == pytest.approx(stages(whole, plan), rel=1e-9)
    assert stages(alone(whole, *found.point), plan) == pytest.approx(stages(whole, plan), rel=1e-9)


@pytest.mark.slow
def test_an_image_model_served_in_mixed_precision_computes_in_16_bits(nets: Path) -> None:
    model = {"python": {"file": str(nets), "factory": "Net"}}
    found = []
    for precision in ("fp16-mixed", "fp16"):
        plan = plan_of(model, "infer", inputs={"image_size": 64}, precision=precision)
        asked = resolve(plan)
        assert isinstance(asked, Pending)
        profile = store.trace(asked.spec, at=asked.point, keep=False)
        names, dtypes = profile.ops.name, profile.ops.dtype
        products = {d for n, d in zip(names, dtypes, strict=True) if "convolution" in n}
        assert products == {"float16"}
        found.append(stages(profile, plan))
    assert found[0] == pytest.approx(found[1], rel=1e-9)
