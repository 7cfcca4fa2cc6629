"""Models with recurrent layers: their memory is told, their time is not guessed."""

from functools import cache

import pytest

from trainwright.advise import advise
from trainwright.messages import LANGUAGES, render
from trainwright.plan.evaluate import Facts, evaluate, operators_of, resolve
from trainwright.plan.report import as_json
from trainwright.plan.schema import Plan
from trainwright.profile import store

pytest.importorskip("torch")

NETS = """
from torch import nn


class Tagger(nn.Module):
    def __init__(self, layer=nn.LSTM, width=64):
        super().__init__()
        self.embedding = nn.Embedding(1000, width)
        self.recurrent = layer(width, width, batch_first=True)
        self.head = nn.Linear(width, 1000)

    def forward(self, tokens):
        return self.head(self.recurrent(self.embedding(tokens))[0])


class Mostly(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(1000, 1024)
        self.body = nn.Sequential(*(nn.Linear(1024, 1024) for _ in range(24)))
        self.last = nn.GRU(1024, 16, batch_first=True)
        self.head = nn.Linear(16, 1000)

    def forward(self, tokens):
        states = self.body(self.embedding(tokens))
        return self.head(self.last(states[:, ::256])[0])


def gru():
    return Tagger(nn.GRU)


def rnn():
    return Tagger(nn.RNN)
"""


@pytest.fixture(scope="module")
def answered(tmp_path_factory):
    """Return what answers for a factory: the plan, its facts and its report."""
    path = tmp_path_factory.mktemp("nets") / "nets.py"
    path.write_text(NETS)

    @cache
    def answer(factory, batch=8, length=16):
        plan = Plan.model_validate(
            {
                "model": {"python": {"file": str(path), "factory": factory}},
                "workload": {
                    "task": "full",
                    "effective_batch": batch,
                    "samples": 1000,
                    "inputs": {"sequence_length": length},
                },
                "machine": {"gpus": [{"id": "rtx-4090"}]},
                "settings": {"micro_batch": batch},
            }
        )
        found = resolve(plan)
        if not isinstance(found, Facts):
            found = found.answered(store.trace(found.spec, at=found.point))
        return plan, found, evaluate(plan, found)

    return answer


@pytest.mark.parametrize("factory", ["Tagger", "gru", "rnn"])
def test_the_time_of_unrolled_layers_is_refused_and_their_memory_told(answered, factory):
    plan, facts, report = answered(factory)
    time = report.time
    assert facts.profile.model["recurrent"] == 1
    assert time.refusal is not None
    assert time.refusal.id == "time.recurrent-share"
    assert time.refusal in report.notes
    assert time.step_seconds is time.samples_per_second is time.bottleneck is None
    assert not time.stages
    assert not time.scaling
    assert report.memory.allocated_peak.value > 4 * 4 * facts.profile.model["parameters"]
    assert report.fits
    assert operators_of(plan, facts) is None
    for language in LANGUAGES:
        assert "time." not in render(time.refusal, language)


def test_the_json_has_its_keys_and_says_why_they_are_null(answered):
    _, _, report = answered("Tagger")
    found = as_json(report)["time"]
    figures = ("step_seconds", "samples_per_second", "tokens_per_second", "epoch_seconds")
    assert all(found[name] is None for name in (*figures, "run_seconds", "bottleneck"))
    assert found["stages"] == found["scaling"] == []
    assert "recurrent" in found["not_predicted"]


def test_advice_ranks_by_memory_and_says_that_it_does(answered):
    plan, facts, _ = answered("gru")
    found = advise(plan, facts)
    assert found.choices
    used = [choice.estimate.memory.allocated_peak.value for choice in found.choices]
    assert used == sorted(used)
    assert not found.pareto
    assert "advise.untimed" in [note.id for note in found.notes]


def test_a_layer_that_hardly_counts_leaves_the_time_predicted(answered):
    _, _, report = answered("Mostly", batch=64, length=512)
    assert report.time.refusal is None
    assert report.time.step_seconds is not None
    note = next(note for note in report.notes if note.id == "time.note.recurrent")
    assert 0 < note.values["share"] <= 0.02
    assert as_json(report)["time"]["not_predicted"] is None


@pytest.mark.parametrize(
    ("preset", "task"),
    [
        ("detr-r50", "full"),
        pytest.param("decision-transformer", "pretrain", marks=pytest.mark.slow),
        pytest.param("dreamer-v3-s", "pretrain", marks=pytest.mark.slow),
    ],
)
def test_presets_that_unroll_by_themselves_are_timed(preset, task):
    """Their loops run step by step on a GPU too; none has one of torch's recurrent layers."""
    plan = Plan.model_validate(
        {
            "model": {"preset": preset},
            "workload": {"task": task, "effective_batch": 4},
            "machine": {"gpus": [{"id": "rtx-4090"}]},
            "settings": {"micro_batch": 4},
        }
    )
    found = resolve(plan)
    if not isinstance(found, Facts):
        found = found.answered(store.trace(found.spec, at=found.point))
    assert evaluate(plan, found).time.step_seconds is not None
