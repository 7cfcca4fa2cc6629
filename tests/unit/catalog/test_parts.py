"""Parts beside GPUs: found by what people type, and a person's own records among them."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from trainwright.catalog import (
    find_board,
    find_cpu,
    find_drive,
    find_part,
    list_gpus,
    list_parts,
)
from trainwright.catalog.check import check
from trainwright.catalog.compiler import compile_folder
from trainwright.catalog.part_kinds import KINDS
from trainwright.messages import UserError, render

BOARD = """\
schema: 1
defaults: {vendor: Acme, source: my manual, confidence: medium, memory_type: ddr5}
boards:
  - id: acme-one
    name: Acme One Pro
    aliases: [내 메인보드]
    socket: AM5
    form_factor: atx
    memory_slots: 4
    slots:
      - {id: PCIEX16_1, length: x16, source: cpu, generation: 5, lanes: 16}
    sources:
      memory_slots: {source: counted, confidence: high}
  - id: acme-two
    name: Acme Two
    socket: AM5
    form_factor: atx
    memory_slots: 2
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """The folder that holds a folder for each kind."""
    folder = tmp_path / "hardware"
    for kind in KINDS:
        (folder / kind).mkdir(parents=True)
    return folder


def board(own: Path, text: str, file: str = "mine.yaml") -> None:
    (own / "board" / file).write_text(text, encoding="utf-8")


def problems() -> list[str]:
    return [render(problem, "en") for problem in check().problems]


def test_an_own_board_is_found_by_id_name_bare_name_and_alias(own: Path) -> None:
    board(own, BOARD)
    for text in ("acme-one", "ACME One PRO", "one pro", "내 메인보드"):
        found = find_board(text)
        assert found is not None, text
        assert found.id == "acme-one"
    assert "acme-two" in {each.id for each in list_parts("board")}
    assert problems() == []


def test_each_value_knows_its_source(own: Path) -> None:
    board(own, BOARD)
    found = find_board("acme-one")
    assert found is not None
    assert found.provenance("memory_slots").source == "counted"
    assert (found.provenance("socket").source, found.provenance("socket").confidence) == (
        "my manual",
        "medium",
    )


def test_a_broken_record_is_named_with_line_and_key_and_the_rest_loads(own: Path) -> None:
    board(own, BOARD.replace("memory_slots: 4", "memory_slots: many"))
    [problem] = problems()
    assert problem.startswith("board/mine.yaml:9: acme-one.memory_slots is many")
    assert find_board("acme-one") is None
    assert find_board("acme-two") is not None


WRONG = {
    "unknown key": ("    socket: AM5\n    form_factor: atx\n    memory_slots: 4",
                    "    sockt: AM5\n    form_factor: atx\n    memory_slots: 4",
                    ["board/mine.yaml:7: acme-one.sockt is not a known key", "mean socket"]),
    "within a slot": ("lanes: 16", "lanes: wide", ["board/mine.yaml:11: acme-one.slots[0].lanes"]),
    "unknown within a slot": ("lanes: 16", "lane: 16",
                              ["board/mine.yaml:11: acme-one.slots[0].lane is no", "mean lanes"]),
    "no such form": ("form_factor: atx\n    memory_slots: 4", "form_factor: huge\n"
                     "    memory_slots: 4", ["board/mine.yaml:8", "must be one of", "eeb"]),
    "bad id": ("id: acme-one", "id: Acme One", ["board/mine.yaml:4: Acme One.id", "hyphens"]),
    "no id": ("id: acme-one\n    name", "name", ["board/mine.yaml:4: boards[0].id is missing"]),
    "in the defaults": ("memory_type: ddr5", "memory_type: ddr9",
                        ["board/mine.yaml:2: acme-one.memory_type is ddr9"]),
    "a list key": ("boards:", "board:",
                   ["board/mine.yaml: boards is missing", "Did you mean boards"]),
    "no record": ("schema: 1", "schema: 7", ["board/mine.yaml:1: schema is 7"]),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "told"), WRONG.values(), ids=WRONG)
def test_a_mistake_is_told_by_line_and_key(own: Path, old: str, new: str, told: list[str]) -> None:
    assert old in BOARD
    board(own, BOARD.replace(old, new, 1))
    text = " ".join(problems())
    for words in told:
        assert words in text


def test_a_file_that_is_no_yaml_hides_no_other(own: Path) -> None:
    board(own, BOARD)
    board(own, "boards: [", "broken.yaml")
    assert "board/broken.yaml:1" in problems()[0]
    assert find_board("acme-two") is not None


def test_two_records_of_one_id_are_told_and_the_first_counts(own: Path) -> None:
    board(own, BOARD, "a.yaml")
    board(own, BOARD.replace("Acme One Pro", "Another").replace("내 메인보드", "x"), "b.yaml")
    said = " ".join(problems())
    assert "board/b.yaml:4: the id acme-one is taken" in said
    found = find_board("acme-one")
    assert found is not None
    assert found.name == "Acme One Pro"


def test_two_records_of_one_name_are_told(own: Path) -> None:
    board(own, BOARD.replace("name: Acme Two", "name: Acme One Pro"))
    [problem] = problems()
    assert "acme-one" in problem
    assert "acme-two" in problem


def test_an_own_record_wins_over_the_shipped_one(own: Path) -> None:
    shipped = find_drive("samsung-990-pro-2tb")
    assert shipped is not None
    (own / "storage" / "mine.yaml").write_text(
        "drives: [{id: samsung-990-pro-2tb, name: Samsung 990 Pro 2TB, interface: nvme,"
        " read_mb_s: 5000, source: fio, confidence: high}]"
    )
    found = find_drive("Samsung SSD 990 PRO 2TB")
    assert found is not None
    assert found.read_mb_s == 5000
    assert [each.id for each in list_parts("storage")].count("samsung-990-pro-2tb") == 1


def test_an_unknown_part_names_the_nearest() -> None:
    with pytest.raises(UserError, match="ryzen-9-9950x"):
        find_part("cpu", "ryzen 9 9950")
    with pytest.raises(UserError, match="trainwright catalog list storage"):
        find_part("storage", "zzzz")
    with pytest.raises(UserError, match="No GPU named"):
        find_part("gpu", "zzzz")
    assert find_part("cpu", "Ryzen 9 9950X") == find_cpu("ryzen-9-9950x")
    assert {part.id for part in list_parts("gpu")} == {gpu.id for gpu in list_gpus()}


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20) | st.floats(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "name", "boards", "defaults", "sources", "slots", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)


@given(plain, plain)
def test_any_file_gives_records_or_plain_sentences(entry: object, defaults: object) -> None:
    with TemporaryDirectory() as folder:
        text = yaml.safe_dump({"defaults": defaults, "boards": [entry]})
        Path(folder, "mine.yaml").write_text(text, encoding="utf-8")
        compiled = compile_folder(Path(folder), "board")
    assert compiled.records or compiled.problems
    for problem in compiled.problems:
        for language in ("en", "ko"):
            sentence = render(problem, language)
            assert sentence.startswith("board/mine.yaml")
            assert "\n" not in sentence
