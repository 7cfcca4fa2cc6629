"""The page to share: what it says, and that it asks nothing of anybody."""

import re
from datetime import date
from html.parser import HTMLParser

import pytest
from foreign import ORDERS

from trainwright.data import resources
from trainwright.export.page import page
from trainwright.messages import LANGUAGES, render
from trainwright.plan import file
from trainwright.plan.edit import with_keys
from trainwright.plan.evaluate import evaluate, resolve
from trainwright.plan.sentences import bottleneck, verdict

DAY = date(2026, 11, 29)
QUIET = {"html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "b", "table", "tr",
         "td", "span", "br", "ul", "li", "pre"}  # fmt: skip


class Read(HTMLParser):
    """What a browser sees of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.links, self.texts = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.links += [value for name, value in attributes if name in ("src", "href", "action")]

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def said(self):
        return "".join(self.texts)


@pytest.fixture(scope="module")
def answered():
    plan = file.read(resources("examples", "llama-8b-lora.plan.yaml"))
    facts = resolve(plan)
    return plan, facts, evaluate(plan, facts)


@pytest.mark.parametrize("language", LANGUAGES)
def test_it_says_the_verdict_the_figures_with_intervals_and_the_plan(answered, language):
    plan, facts, report = answered
    said = Read(page(plan, facts, report, language, DAY)).said
    assert render(verdict(report), language) in said
    for name in ("Llama 3.1 8B", "GeForce RTX 4090", "2,048", "torch 2.", "2026-11-29"):
        assert name in said
    assert re.search(r"~\S+ samples/s|~\S+ 샘플/초", said)
    assert render(bottleneck(report), language) in said
    assert "settings." not in said.split("trainwright: 1")[0]
    assert " – " in said
    assert "preset: llama-3.1-8b" in said
    assert not re.search(r"\b(?:ui|cli|memory|time)\.[a-z]+[.-]", said)


def test_scaling_input_and_serving_stand_on_it_as_in_the_terminal():
    def said(example, **keys):
        plan = with_keys(file.read(resources("examples", f"{example}.plan.yaml")), keys)
        facts = resolve(plan)
        return Read(page(plan, facts, evaluate(plan, facts), "en", DAY)).said

    two = said("llama-1b-full-rtx3090", **{"machine.gpus": [{"id": "rtx-3090", "count": 2}]})
    assert "Efficiency" in two
    assert "Time, if there were memory enough" in said("llama-1b-full-rtx3090")
    assert "Slowest" in said("resnet50-rtx3060")
    assert "irst token" in said("llama-8b-serve-rtx4090")


def test_sources_are_korean_where_they_are_words_of_ours(answered):
    said = Read(page(*answered, "ko", DAY)).said
    sources = said.split("출처", 1)[1].split("계획", 1)[0]
    names = r"[\w-]*[./#][\w./#-]*|torch\S*|pytorch|PyTorch"
    left = re.sub(names, " ", sources)
    assert not re.search(r"[a-z]{3,} [a-z]{3,}", left), left


def test_it_loads_nothing(answered):
    found = Read(text := page(*answered, "en", DAY))
    assert found.links == []
    assert found.tags <= QUIET
    assert "url(" not in text
    assert "default-src 'none'" in text


@pytest.mark.parametrize("name", ORDERS)
def test_a_name_stays_text(answered, name):
    plan, facts, report = answered
    named = plan.model_copy(update={"name": name})
    found = Read(page(named, facts, report, "en", DAY))
    assert found.tags <= QUIET
    assert found.links == []


def test_why_the_search_chose_a_setting_stands_beside_it(answered):
    plan, facts, report = answered
    because = {"value": 2, "because": "advise.accumulation.exact",
               "values": {"micro": 2, "accumulation": 8, "gpus": 1, "effective": 16}}  # fmt: skip
    freed = plan.model_dump(exclude_none=True) | {"chosen": {"accumulation": because}}
    freed["settings"].pop("accumulation", None)
    chosen = type(plan).model_validate(freed)
    said = Read(page(chosen, facts, report, "en", DAY)).said
    assert "the effective batch is kept exactly" in said
