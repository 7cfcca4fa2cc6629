"""Every preset whose profile ships answers, in both languages and as JSON, in words."""

import json
import re

import pytest

from trainwright.messages import render
from trainwright.profile import shipped
from trainwright.profile.presets import presets

GPU = "b200-180gb"
RAW = re.compile(
    r"\b(advise|cli|explain|export|memory|plan|preset|report|time|worker)\.[a-z]+-?[a-z]"
)
"""What an untranslated message looks like."""


def ships(preset):
    return any(name.startswith("full-bf16-mixed-") for name in shipped.names(preset.id))


@pytest.mark.parametrize("id", [id for id, preset in presets().items() if ships(preset)])
def test_the_traced_weights_are_the_published_ones(id):
    full = [name for name in shipped.names(id) if name.startswith("full-")]
    profiles = [shipped.profile(id, name) for name in full if "-single" not in name]
    counts = {profile.model["parameters"] for profile in profiles}
    assert len(counts) == 1
    assert counts.pop() == pytest.approx(presets()[id].parameters, rel=1e-3)


@pytest.mark.parametrize("language", ["en", "ko"])
def test_every_preset_is_described(language):
    described = [render(preset.description, language) for preset in presets().values()]
    assert not [text for text in described if RAW.search(text) or not text.strip()]


@pytest.mark.parametrize("id", [id for id, preset in presets().items() if ships(preset)])
def test_a_preset_answers_in_words(inside, plan_file, id):
    preset = presets()[id]
    task = next(task for task in preset.tasks if task in ("full", "pretrain"))
    path = plan_file(
        f"""\
trainwright: 1
model: {{preset: {id}}}
workload: {{task: {task}, effective_batch: 2}}
machine: {{gpus: [{{id: {GPU}}}]}}
settings: {{precision: bf16-mixed, micro_batch: 2}}
""",
        name=f"{id}.plan.yaml",
    )
    report = json.loads(inside("estimate", path, "--json").out)
    assert report["memory"]["terms"]
    for language in ("en", "ko"):
        shown = inside("estimate", path, "--lang", language)
        assert shown.err == ""
        assert not RAW.search(shown.out.replace(str(path), "")), RAW.search(shown.out)
