"""Both languages are complete: every id has its sentence, with the same values in it."""

import ast
import gettext
import io
import os
import re
from functools import cache
from pathlib import Path
from string import Formatter

import pytest
from babel.messages.pofile import read_po

import trainwright
from trainwright.data import resources
from trainwright.messages import LANGUAGES, Message, compiling, particles, render
from trainwright.messages.units import FORMATS

PACKAGE = Path(trainwright.__file__).parent
I18N = resources("i18n")
AREAS = sorted(path.stem for path in (I18N / "en").glob("*.po"))
OWN_TEXT = {"limits"}
"""Areas whose ids are the English sentences, which the code holds: no file says them in English."""
ID = re.compile(r"[a-z][a-z_0-9]*(\.[a-z0-9][a-z0-9_.-]*)+")
SPEAKING = {"of", "say", "tr", "Message"}
"""Calls whose first argument is an id."""
WRITTEN_OUT = re.compile(rf"\b({'|'.join(SPEAKING)})\(\s*['\"]")


@cache
def entries(language, area):
    with (I18N / language / f"{area}.po").open("rb") as file:
        return {message.id: message for message in read_po(file) if message.id}


def plain(id):
    return id[0] if isinstance(id, tuple) else id


def forms(message):
    return message.string if isinstance(message.string, tuple) else (message.string,)


def placeholders(text):
    return {(name, spec) for _, name, spec, _ in Formatter().parse(text) if name is not None}


def ids_in_code():
    """Yield (id, file) of every id that is written out where a message is made."""
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if WRITTEN_OUT.search(text) else ():
            if not isinstance(node, ast.Call) or not node.args:
                continue
            name = getattr(node.func, "attr", getattr(node.func, "id", None))
            first = node.args[0]
            text = first.value if isinstance(first, ast.Constant) else None
            if name in SPEAKING and isinstance(text, str) and ID.fullmatch(text):
                yield text, path.relative_to(PACKAGE).as_posix()


def test_both_languages_have_the_same_areas():
    assert {path.stem for path in (I18N / "ko").glob("*.po")} == {*AREAS, *OWN_TEXT}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("area", AREAS)
def test_no_sentence_stands_in_a_file_twice(language, area):
    """Where two versions of a file were put together, the older sentence may win unseen."""
    lines = (I18N / language / f"{area}.po").read_text(encoding="utf-8").splitlines()
    ids = [line for line in lines if line.startswith("msgid ")]
    assert [id for id in set(ids) if ids.count(id) > 1] == []


@pytest.mark.parametrize("area", AREAS)
def test_both_languages_have_the_same_ids(area):
    english, korean = entries("en", area), entries("ko", area)
    assert english.keys() == korean.keys()


@pytest.mark.parametrize("area", AREAS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_no_sentence_is_empty(language, area):
    empty = [plain(m.id) for m in entries(language, area).values() if not all(forms(m))]
    assert empty == []


@pytest.mark.parametrize("area", AREAS)
def test_both_languages_take_the_same_values(area):
    english, korean = entries("en", area), entries("ko", area)
    for id in english.keys() & korean.keys():
        names = [
            {name for form in forms(entry[id]) for name, _ in placeholders(form)}
            for entry in (english, korean)
        ]
        assert names[0] == names[1], plain(id)


@pytest.mark.parametrize("area", AREAS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_units_in_sentences_are_ours(language, area):
    for message in entries(language, area).values():
        for form in forms(message):
            for name, spec in placeholders(form):
                known = spec in FORMATS or re.fullmatch(r"|(\.\d)?[efg]", spec)
                assert known, f"{plain(message.id)}: {{{name}:{spec}}}"


@pytest.mark.parametrize("area", AREAS)
def test_korean_sentences_are_korean(area):
    korean = entries("ko", area)
    for message in entries("en", area).values():
        words = re.findall(r"\b[a-z]{2,}\b", re.sub(r"\{[^}]*\}", "", forms(message)[0]))
        if len(words) >= 3 and message.id in korean:
            assert re.search("[가-힣]", forms(korean[message.id])[0]), plain(message.id)


@pytest.mark.parametrize("area", AREAS)
def test_a_pair_of_korean_particles_stands_where_it_is_settled(area):
    """Directly behind a value, or behind what is in quotation marks or brackets after it."""
    for message in entries("ko", area).values():
        for form in forms(message):
            said = particles.settled(re.sub(r"\{[^}]*\}", "GPU", form))
            assert not re.search(r"\([을를은는이가와과으라로]\)", said), plain(message.id)


def test_every_id_in_the_code_has_its_sentence():
    known = {plain(id) for area in AREAS for id in entries("en", area)}
    missing = sorted({(id, file) for id, file in ids_in_code() if id not in known})
    assert missing == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_compiled_is_what_babel_reads(language):
    """One ``msgstr`` too many, which Babel passes over, would show here."""
    ours = gettext.GNUTranslations(io.BytesIO(compiling.compiled(I18N / language)))
    for message in (each for area in AREAS for each in entries(language, area).values()):
        if isinstance(message.id, str):
            assert ours.gettext(message.id) == message.string
        else:
            said = {ours.ngettext(*message.id, count) for count in (0, 1, 2)}
            assert said == set(message.string)


def test_an_edited_sentence_is_read_at_the_next_start(tmp_path):
    source, goal = tmp_path / "en" / "a.po", tmp_path / "en.mo"
    source.parent.mkdir()
    for text in ("first", "second"):
        source.write_text(f'msgid "a.b"\nmsgstr ""\n"{text} "\n"line\\n"\n', encoding="utf-8")
        later = goal.stat().st_mtime_ns + 1 if goal.exists() else 0
        os.utime(source, ns=(later, later))
        content = compiling.fresh(tmp_path / "en")
        assert gettext.GNUTranslations(io.BytesIO(content)).gettext("a.b") == f"{text} line\n"
        assert goal.read_bytes() == compiling.fresh(tmp_path / "en") == content


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_sentence_with_one_form_is_said_for_every_count(language):
    """weights.files-missing counts files and has no plural of its own."""
    for count in (1, 3):
        message = Message.of("weights.files-missing", file="a", count=count, of=4, first="b")
        assert "weights.files-missing" not in render(message, language)
