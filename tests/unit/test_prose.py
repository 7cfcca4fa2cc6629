"""What people read is plain English: short sentences, and none of the turns that we unlearned."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted({ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"}
               | set((ROOT / "docs").glob("*.md")))  # fmt: skip
SENTENCES = sorted((ROOT / "resources" / "i18n" / "en").glob("*.po"))
UNLEARNED = re.compile(
    r"\b(?:anew|beside|(?:is|are) told|(?:is|are) no (?!longer|more|faster|slower|thicker))\b"
)
"""Turns that read as translated: "this is no JSON" for "this is not JSON"."""
THERE = re.compile(r"there (?:is|are) no\b", re.IGNORECASE)
PLACEHOLDER = re.compile(r"\{[^}]*\}")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_pages_are_sentences_and_not_chains(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    text = re.sub(r"`[^`]*`", "", text)
    assert text.count(";") <= 2 * len(text.split()) / 1000 + 1
    found = UNLEARNED.findall(THERE.sub("", text))
    assert not found


@pytest.mark.parametrize("catalogue", SENTENCES, ids=lambda path: path.stem)
def test_sentences_of_the_app_are_plain(catalogue):
    lines = catalogue.read_text(encoding="utf-8").splitlines()
    said = [line for line in lines if line.startswith(("msgstr", '"'))]
    assert [
        line for line in said if UNLEARNED.search(THERE.sub("", PLACEHOLDER.sub("", line)))
    ] == []
