"""Models from the user's own file: what a factory may return, and what is assumed of the rest."""

import textwrap

import pytest

from trainwright.messages import UserError
from trainwright.plan.evaluate import resolve
from trainwright.plan.schema import Plan
from trainwright.profile import store
from trainwright.workload.sourcefiles import python_sources

pytest.importorskip("torch")

NETS = """
import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self, width=16, classes=10):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 4, 4)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        return self.head(self.stem(x).mean((2, 3)))


class Language(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(100, 16), nn.Linear(16, 100)

    def forward(self, tokens):
        return self.head(self.embedding(tokens))


class Two(Classifier):
    def forward(self, left, right):
        return super().forward(left) + super().forward(right)
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "nets.py"

    def write(factory):
        path.write_text(NETS + textwrap.dedent(factory))
        return path

    return write


def planned(file, inputs=None, **source):
    model = {"python": {"file": str(file), "factory": "build", **source}}
    return Plan.model_validate(
        {
            "model": model,
            "workload": {"task": "full", "effective_batch": 4, "inputs": inputs or {}},
            "machine": {"gpus": [{"id": "rtx-4090"}]},
        }
    )


def pending(file, inputs=None, **source):
    return resolve(planned(file, inputs, **source))


def traced(found):
    return store.trace(found.spec, at=found.point)


def notes(found, profile):
    return [note.id for note in found.answered(profile).notes if "guessed" in note.id]


def test_bare_image_classifier_and_its_arguments(file):
    found = pending(file("build = Classifier"), {"image_size": 64}, args={"width": 24})
    profile = traced(found)
    assert profile.model["parameters"] == 24 * (3 * 16 + 1) + 10 * (24 + 1)
    assert profile.model["guessed_shape"] == "3×64×64"
    assert notes(found, profile) == ["plan.note.guessed-images", "plan.note.guessed-classes"]


@pytest.mark.slow
def test_bare_language_model_takes_any_length(file):
    found = pending(file("build = Language"), {"sequence_length": 128})
    profile = store.trace(found.spec)
    assert profile.exact
    assert {length for _, length in profile.points} > {128}
    assert max(length for _, length in profile.points) == 128  # no longer than the plan's
    assert notes(found, profile) == ["plan.note.guessed-tokens", "plan.note.guessed-classes"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("factory", "inputs", "id"),
    [
        ("build = Language", {}, "worker.needs-length"),
        ("build = Two", {}, "worker.inputs-unknown"),
        ("build = nn.ReLU", {}, "worker.inputs-unknown"),
        (
            "class Dict(Classifier):\n    def forward(self, x): return {'y': super().forward(x)}\n"
            "build = Dict", {}, "worker.loss-unknown",
        ),
        (
            "class Ask(Classifier):\n"
            "    def forward(self, x): return super().forward(x) if x.sum().item() else x\n"
            "build = Ask", {}, "worker.loss-unknown",
        ),
        ("def build(): return {'model': Two(), 'inputs': 3}", {}, "worker.not-callable"),
        ("def build(): return {'model': Two(), 'inputs': lambda batch: [1, 2]}", {},
         "worker.not-tensors"),
        ("def build(): return {'model': Two(), 'inputs': lambda batch: (torch.ones(1),) * 3}", {},
         "worker.too-many-inputs"),
        ("def build(): return {'model': Two(), 'inputs': lambda batch, image_size: 1}", {},
         "worker.needs-size"),
    ],
)  # fmt: skip
def test_what_cannot_be_guessed_says_what_to_add(file, factory, inputs, id):
    with pytest.raises(UserError) as caught:
        traced(pending(file(factory), inputs))
    assert caught.value.message.id == id


@pytest.mark.slow
def test_everything_may_be_said(file):
    factory = """
        class Parts:
            model = Two()
            example_inputs = {"left": torch.ones(7, 3, 32, 32), "right": torch.ones(7, 3, 32, 32)}

            @staticmethod
            def labels(batch):
                return {"target": torch.zeros(batch, 10)}

            @staticmethod
            def loss(output, labels):
                return (output - labels["target"]).square().mean()

        def build():
            return Parts
    """
    found = pending(file(factory))
    profile = store.trace(found.spec)
    assert profile.exact
    assert notes(found, profile) == []


@pytest.mark.slow
def test_model_of_transformers_that_own_code_builds(file):
    factory = """
        from transformers import LlamaConfig, LlamaForCausalLM

        def build(layers):
            return LlamaForCausalLM(LlamaConfig(
                vocab_size=100, hidden_size=32, intermediate_size=64, num_hidden_layers=layers,
                num_attention_heads=2))
    """
    profile = traced(pending(file(factory), {"sequence_length": 32}, args={"layers": 2}))
    assert profile.model["stack"] == "transformers"
    assert profile.model["layers"] == 2


@pytest.mark.slow
def test_file_within_a_package_imports_its_siblings(tmp_path):
    package = tmp_path / "project" / "nets"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "parts.py").write_text(NETS)
    (package / "model.py").write_text("from .parts import Classifier as build\n")
    assert traced(pending(package / "model.py")).model["family"] == "Classifier"


def test_an_edit_of_a_neighbour_is_another_question(tmp_path):
    (tmp_path / "net.py").write_text("import parts\nfrom torch import nn\n")
    (tmp_path / "parts.py").write_text("import more.inner\n")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "__init__.py").write_text("")
    (tmp_path / "more" / "inner.py").write_text("X = 1\n")
    (tmp_path / "other.py").write_text("")
    before = python_sources(tmp_path / "net.py", "key")
    assert sorted(before.hashes) == ["more/__init__.py", "more/inner.py", "net.py", "parts.py"]
    (tmp_path / "other.py").write_text("nobody imports it")
    assert python_sources(tmp_path / "net.py", "key") == before
    (tmp_path / "more" / "inner.py").write_text("X = 2\n")
    assert python_sources(tmp_path / "net.py", "key") != before
