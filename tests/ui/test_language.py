"""What people read is in their language: Qt's own words, digits, names and sentences."""

import re
from typing import get_args

import pytest
import yaml
from babel import numbers
from babel.messages.pofile import read_po
from PySide6.QtWidgets import QAbstractButton, QFileDialog, QLabel, QLineEdit
from walk import SCREENS, settle, texts

from trainwright.catalog.parts import PartKind, list_parts
from trainwright.data import hardware_db, resources
from trainwright.messages import LANGUAGES, Message, keys, units
from trainwright.profile.presets import presets
from trainwright.ui import filedialogs, i18n, money
from trainwright.ui.i18n import say
from trainwright.workload import Settings


@pytest.fixture(autouse=True)
def english_afterwards():
    yield
    i18n.use("en")


def test_file_dialogs_and_menus_of_fields_speak_korean_and_english_again(qtbot, monkeypatch):
    def said():
        shown = {}

        def look(dialog):
            parts = (*dialog.findChildren(QLabel), *dialog.findChildren(QAbstractButton))
            shown.update({part.text(): "" for part in parts if part.text()})
            return 0

        monkeypatch.setattr(QFileDialog, "exec", look)
        field = QLineEdit("text")
        qtbot.addWidget(field)
        assert filedialogs.file_to_read(field, "", "(*.yaml)") is None
        menu = field.createStandardContextMenu()
        return [*shown, *(action.text() for action in menu.actions() if action.text())]

    i18n.use("ko")
    korean = said()
    assert len(korean) >= 10
    assert [text for text in korean if not any("가" <= letter <= "힣" for letter in text)] == []
    i18n.use("en")
    assert not any("가" <= letter <= "힣" for text in said() for letter in text)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("value", [7, 999, 1450, 2421850, 1234567.4])
def test_digits_are_grouped_as_in_cldr(language, value):
    assert units.number(value, language) == numbers.format_decimal(round(value), locale=language)


def test_won_and_dollars_are_written_as_people_of_the_language_do():
    i18n.use("ko")
    assert money.amount(2_421_850, "KRW") == "2,421,850원"
    assert money.exact(129.99, "USD") == "$129.99"
    i18n.use("en")
    assert money.amount(2_421_850, "KRW") == numbers.format_currency(2421850, "KRW", locale="en")
    assert money.exact(1299, "EUR") == "€1,299"


KEY = re.compile(r"\b(?:settings|workload|machine|limits)\.[a-z_]+|\b[a-z]+_[a-z_]+\b")
ID = re.compile(
    r"\b(?:ui|pc|time|memory|plan|advise|probe|mig|bench|verify|review)\.[a-z]+[.-][a-z]"
)
WORD = re.compile(r"(?<![\w./~-])[A-Za-z][a-z]{2,}(?![\w/]|[.-]\w)")
NAMES = """
GiB MiB KiB Gbit TFLOPS ECC PCIe NVLink CUDA PyTorch Python Transformers Accelerate DeepSpeed
Kubernetes Docker Slurm Linux Windows NVIDIA Apple Intel Trainwright Hugging Face Markdown
LoRA QLoRA DoRA rsLoRA AdamW Lion Muon Adafactor torch transformers diffusers timm peft torchao
bitsandbytes torchrun amdgpu eager sdpa flash plain axolotl accelerate lightning nanogpt torchvision
Kubeflow Trainer Unsloth Ollama torchtitan dstack fused foreach adamw bit pin item python fio iostat
Compose gen Debian Delete Alt Ctrl Shift English Max Mini Micro Ray Train
"""
"""What Korean texts call so too: names, units, keys of a keyboard, words of PyTorch's options."""


def names_of_the_catalogue():
    """Return the words of all that the catalogue and the presets call by name."""
    named = [record.name for kind in get_args(PartKind) for record in list_parts(kind)]
    named += [gpu.architecture for gpu in list_parts("gpu")]
    named += [text for preset in presets().values() for text in (preset.name, preset.family)]
    return {word for text in named for word in re.findall(r"[A-Za-z]+", text)}


def said_in(window):
    """Return what every place says, with the place."""
    for place in SCREENS:
        window.go(place)
        settle(window)
        yield from ((place, text) for text in set(texts(window)))
    for action in window.actions_by_id.values():
        yield from (("menu", text) for text in (action.text(), action.toolTip()))


def quoted():
    """Return what is quoted as it was said: commands, code, and where a price was read."""
    found = {"CUDA out of memory", "from trainwright.diagnose.callback", "trainwright diagnose --"}
    for file in hardware_db("price").glob("*.yaml"):
        rules = yaml.safe_load(file.read_text(encoding="utf-8"))["prices"]
        found |= {rule["basis"] for rule in rules if "basis" in rule}
    return found


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_place_says_an_id_a_key_or_a_word_of_the_other_language(opened, preferences, language):
    preferences.language = language
    said = list(said_in(opened()))
    assert len(said) > 700
    assert [one for one in said if KEY.search(one[1]) or ID.search(one[1])] == []
    if language == "ko":
        sources, known = quoted(), set(NAMES.split()) | names_of_the_catalogue()
        own = [one for one in said if not any(text in one[1] for text in sources)]
        words = [(*one, word) for one in own for word in WORD.findall(one[1])]
        assert [one for one in words if one[-1] not in known] == []
    else:
        korean = {text for _, text in said if re.search("[가-힣]", text)}
        assert korean == {"한국어"}  # how a language is found by who reads no other


def sentences(language):
    catalogue = resources("i18n", language)
    for file in sorted(catalogue.glob("*.po")):
        with file.open("rb") as opened_file:
            for entry in read_po(opened_file):
                texts = entry.string if isinstance(entry.string, tuple) else (entry.string,)
                yield from ((entry.id, text) for text in texts if text)


@pytest.mark.parametrize("language", LANGUAGES)
def test_sentences_of_the_window_have_labels_where_files_have_keys(language):
    settings = [f"settings.{name}" for name in Settings.model_fields if name != "loader"]
    shown = [keys.spelled_out(text, language) for _, text in sentences(language)]
    left = {key for key in settings for text in shown if re.search(rf"{key}\b", text)}
    assert left == set()


@pytest.mark.parametrize(("language", "word"), [("ko", "플랜"), ("en", "is no record")])
def test_words_that_gave_way_to_clearer_ones_are_gone(language, word):
    assert [entry for entry, text in sentences(language) if word in text] == []


def test_undo_and_advice_name_settings_and_values_as_the_form_does(opened, qtbot):
    window = opened()
    window.session.set_key("settings.optimizer", "adamw-8bit")
    assert say(window.session.undo_label) == "Optimizer AdamW 8-bit"
    window.session.set_key("workload.inputs.mean_tokens", 700)
    assert say(window.session.undo_label) == "Mean length 700"
    window.session.set_key("settings.compile", True)
    assert say(window.session.undo_label) == "torch.compile on"
    message = Message.of("advise.relax.setting", setting="checkpointing", value="every-2",
                         used=1 << 30, total=1 << 31)  # fmt: skip
    assert say(message).startswith("Set Checkpointing to Every 2 blocks")
    untraced = [Message.of("advise.value", setting="cross_entropy", value="chunked")]
    said = say(Message.of("advise.not-considered", values=untraced))
    assert said.endswith("traced with it: Loss: Chunks.")
