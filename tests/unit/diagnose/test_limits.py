"""Where the limits of a diagnosis come from is said in the reader's language."""

from dataclasses import replace

import pytest
from babel.messages.pofile import read_po

from trainwright.data import resources
from trainwright.diagnose import symptoms
from trainwright.diagnose.causes import nothing_wrong
from trainwright.diagnose.decide import RULES
from trainwright.diagnose.likeness import FITTED_TO
from trainwright.diagnose.verdict import Cause, Signal
from trainwright.messages import render

SIGNAL = Signal(Cause.INPUT, "", "steps.data_seconds", 0.3, "share", 2, 0.05, True, "assumed")


def sources() -> set[str]:
    """Return where limits and likeness come from, without the word ``assumed``."""
    rules = (*RULES.values(), nothing_wrong.RULES, symptoms.RULES)
    found = {level.source for of in rules for rule in of for level in rule.levels}
    return {text.removeprefix("assumed: ") for text in found - {"assumed"}} | {FITTED_TO}


def korean() -> set[str]:
    with resources("i18n", "ko", "limits.po").open("rb") as file:
        return {str(message.id) for message in read_po(file) if message.id}


def test_every_source_of_a_limit_has_korean_words_and_none_is_left_over() -> None:
    assert sources() - korean() == set()
    assert korean() - sources() == set()


@pytest.mark.parametrize(
    ("source", "english", "said"),
    [
        ("assumed: the device rests", "assumed: the device rests", "가정: 장치가 쉰다"),
        ("cuBLAS: dgemm kernels", "cuBLAS: dgemm kernels", "cuBLAS: dgemm 커널"),
        ("assumed", "assumed", "가정"),
    ],
)
def test_a_limit_says_where_it_comes_from(source: str, english: str, said: str) -> None:
    signal = replace(SIGNAL, source=source)
    assert render(signal.sourced, "en") == english
    assert render(signal.sourced, "ko") == said
