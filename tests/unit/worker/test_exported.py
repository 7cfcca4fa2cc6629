"""Programs of torch.export: the same figures as the module itself, and clear limits."""

import json
import os
import subprocess
import sys

import pytest

from trainwright.messages import LANGUAGES, UserError, render
from trainwright.plan.evaluate import resolve
from trainwright.plan.schema import Plan
from trainwright.profile import store
from trainwright.profile.expand import training_events

pytest.importorskip("torch")
np = pytest.importorskip("numpy")

NETS = """
import torch
from torch import nn
from torch.export import Dim, export, save


class Pictures(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, 32, 3, 2), nn.BatchNorm2d(32)
        self.drop, self.head = nn.Dropout(0.1), nn.Linear(32, 10)

    def forward(self, x):
        y = self.norm(self.stem(x)).relu()
        y = y + torch.arange(32, device=x.device).view(1, -1, 1, 1)
        return self.head(self.drop(y.mean((2, 3))))


class Text(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(1000, 64), nn.Linear(64, 1000)
        self.layers = nn.ModuleList(nn.Sequential(
            nn.LayerNorm(64), nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64)) for _ in range(3))

    def forward(self, tokens):
        y = self.embedding(tokens)
        for layer in self.layers:
            y = y + layer(y)
        return self.head(y)
"""
EXPORTS = """
batch, length = Dim("batch", min=1, max=512), Dim("length", min=2, max=4096)
images, tokens = torch.zeros(4, 3, 32, 32), torch.zeros(4, 16, dtype=torch.long)
free = {"x": {0: batch}}
save(export(Pictures().train(), (images,), dynamic_shapes=free), "pictures.pt2")
save(export(Pictures().train(), (images,)), "fixed.pt2")
save(export(Pictures().eval(), (images,), dynamic_shapes=free), "served.pt2")
save(export(Text().train(), (tokens,), dynamic_shapes={"tokens": {0: batch, 1: length}}),
     "text.pt2")
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported")
    (folder / "nets.py").write_text(NETS)
    subprocess.run([sys.executable, "-c", NETS + EXPORTS], cwd=folder, check=True)
    return folder


def pending(model, *, batch=8, task="full", **inputs):
    workload = {"task": task, "inputs": inputs}
    if task != "infer":
        workload["effective_batch"] = batch
    return resolve(
        Plan.model_validate(
            {
                "model": model,
                "workload": workload,
                "machine": {"gpus": [{"id": "rtx-4090"}]},
                "settings": {"micro_batch": batch, "precision": "fp32"},
            }
        )
    )


def refused(found):
    with pytest.raises(UserError) as caught:
        store.trace(found.spec, at=found.point)
    for language in LANGUAGES:
        assert len(render(caught.value.message, language).splitlines()) == 1
    return caught.value.message


def peaks(profile, batch, sequence):
    """Return the highest living bytes of the steps."""
    setup, *steps = training_events(
        profile, batch, sequence, accumulation=1, checkpointing="none", optimizer="adamw"
    )
    living = int((np.sign(setup.storage) * setup.size).sum())
    found = []
    for step in steps:
        now = living + np.cumsum(np.sign(step.storage) * step.size)
        found.append(int(now.max()))
        living = int(now[-1])
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "factory", "inputs"),
    [("pictures", "Pictures", {"image_size": 32}), ("text", "Text", {"sequence_length": 64})],
)
def test_program_has_the_figures_of_its_module(files, name, factory, inputs):
    """The export drops a local variable of forward as soon as it is used: at most 2 % less."""
    program = pending({"pt2": str(files / f"{name}.pt2")}, **inputs)
    module = pending({"python": {"file": str(files / "nets.py"), "factory": factory}}, **inputs)
    ours, theirs = store.trace(program.spec), store.trace(module.spec)
    assert ours.exact
    assert theirs.exact
    assert ours.model["parameters"] == theirs.model["parameters"]
    for batch in (1, 8, 64):
        length = inputs.get("sequence_length", 0)
        for ours_now, theirs_now in zip(
            peaks(ours, batch, length), peaks(theirs, batch, length), strict=True
        ):
            print(f"{name} batch {batch}: program {ours_now:,} B, module {theirs_now:,} B")
            assert ours_now == pytest.approx(theirs_now, rel=0.02)


def test_fixed_batch_answers_for_itself_alone(files):
    source = {"pt2": str(files / "fixed.pt2")}
    message = refused(pending(source, batch=8))
    assert message.id == "worker.pt2-batch"
    assert message.values["batch"] == 4
    found = pending(source, batch=4)
    profile = store.trace(found.spec, at=found.point)
    assert profile.model["parameters"] == 32 * 28 + 2 * 32 + 330


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options", "id"),
    [
        ("served", {}, "pt2-trains"),
        ("pictures", {"task": "infer"}, "pt2-serves"),
        ("pictures", {"task": "lora"}, "pt2-task"),
        ("pictures", {"batch": 1024}, "pt2-range"),
        ("pictures", {"image_size": 64}, "pt2-size"),
        ("pictures", {"sequence_length": 64}, "pt2-length"),
        ("text", {}, "needs-length"),
    ],
)
def test_what_an_export_cannot_answer(files, name, options, id):
    assert refused(pending({"pt2": str(files / f"{name}.pt2")}, **options)).id == f"worker.{id}"


@pytest.mark.slow
@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut short", b"\x80\x04."])
def test_file_that_is_no_program(tmp_path, content):
    (tmp_path / "net.pt2").write_bytes(content)
    assert refused(pending({"pt2": str(tmp_path / "net.pt2")})).id == "worker.pt2-unreadable"


def test_file_that_changed_is_not_loaded(tmp_path):
    (tmp_path / "net.pt2").write_bytes(b"one")
    found = pending({"pt2": str(tmp_path / "net.pt2")})
    (tmp_path / "net.pt2").write_bytes(b"other")
    assert refused(found).id == "worker.code-changed"


@pytest.mark.skipif(sys.platform == "win32", reason="makes a pipe")
def test_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "net.pt2")
    with pytest.raises(UserError) as caught:
        pending({"pt2": str(tmp_path / "net.pt2")})
    assert caught.value.message.id == "reading.special"


def test_key_names_the_content_of_the_file(tmp_path):
    file = tmp_path / "net.pt2"
    file.write_bytes(b"one")
    first = pending({"pt2": str(file)}).spec
    file.write_bytes(b"other, longer")
    assert pending({"pt2": str(file)}).spec.digest != first.digest
    assert json.dumps(first.document())
