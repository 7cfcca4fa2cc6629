"""A person's own GPU files: they add, they win, and a broken one hides nothing."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from trainwright.catalog import catalog, find_gpu, list_gpus, overlay_folder
from trainwright.catalog.check import check
from trainwright.catalog.compiler import compile_folder
from trainwright.messages import render

CARD = {
    "id": "my-card",
    "name": "My Card 9000",
    "vendor": "NVIDIA",
    "segment": "workstation",
    "architecture": "Ada",
    "compute_capability": "8.9",
    "source": "my own measurement",
    "confidence": "medium",
    "memory_gib": 48,
    "bandwidth_gb_s": 900,
}


def write(folder, file="mine.yaml", **changes):
    card = {key: value for key, value in (CARD | changes).items() if value is not None}
    text = yaml.safe_dump({"schema": 1, "gpus": [card]}, allow_unicode=True)
    (folder / file).write_text(text, encoding="utf-8")


def problems():
    return [render(problem, "en") for problem in catalog().problems]


def test_the_variable_names_the_folder(overlay):
    assert overlay_folder() == overlay


def test_an_own_card_is_found_beside_the_shipped_ones(overlay):
    write(overlay, aliases=["내 그래픽 카드"])
    assert find_gpu("my card 9000").record.memory_bytes.source == "my own measurement"
    assert find_gpu("내 그래픽 카드").record.id == "my-card"
    assert "my-card" in {gpu.id for gpu in list_gpus()}
    assert find_gpu("4090").record.id == "rtx-4090"
    assert problems() == []


def test_an_own_record_replaces_the_shipped_one(overlay):
    write(overlay, id="rtx-4090", name="GeForce RTX 4090", memory_gib=96)
    assert find_gpu("지포스 RTX 4090").record.memory_bytes.value == 96 << 30
    assert len([gpu for gpu in list_gpus() if gpu.id == "rtx-4090"]) == 1


def test_an_edit_is_seen_at_the_next_question(overlay):
    write(overlay)
    assert find_gpu("my-card").record.memory_bytes.value == 48 << 30
    write(overlay, memory_gib=640, notes="soldered by hand")
    assert find_gpu("my-card").record.memory_bytes.value == 640 << 30


def test_folders_with_spaces_and_hangul_work(tmp_path, monkeypatch):
    base = tmp_path / "내 하드웨어 목록"
    (base / "gpu").mkdir(parents=True)
    write(base / "gpu", "내 카드.yaml")
    monkeypatch.setenv("TRAINWRIGHT_HARDWARE", str(base))
    assert find_gpu("my-card").record.name == "My Card 9000"


def test_bandwidth_and_tflops_follow_from_formulas_when_not_stated(overlay):
    write(
        overlay,
        bandwidth_gb_s=None,
        memory_bus_bits=384,
        memory_gbps=20,
        sm=100,
        boost_mhz=2000,
        per_clock={"bf16_fp32": 1024},
    )
    gpu = find_gpu("my-card").record
    assert gpu.bandwidth_bytes_per_s.value == 960e9
    assert gpu.bandwidth_bytes_per_s.source.startswith("formula: 384 bit x 20 Gbit/s")
    assert gpu.flops["bf16_fp32"].value == pytest.approx(204.8e12)
    assert "100 SM x 1024 FLOP/clock x 2000 MHz" in gpu.flops["bf16_fp32"].source
    assert gpu.flops["bf16_fp32"].confidence == "medium"


def test_a_value_may_have_a_source_of_its_own(overlay):
    write(overlay, tdp_w={"value": 300, "source": "wall meter", "confidence": "high"})
    gpu = find_gpu("my-card").record
    assert (gpu.tdp_w.source, gpu.tdp_w.confidence) == ("wall meter", "high")
    assert (gpu.memory_bytes.source, gpu.memory_bytes.confidence) == (
        "my own measurement",
        "medium",
    )


def test_a_default_keeps_its_own_source_beside_a_record_with_another(overlay):
    text = """
schema: 1
defaults:
  {vendor: AMD, segment: consumer, architecture: RDNA 4, l2_mib: 8, source: sheet, confidence: high}
gpus:
  - {id: one, name: One, source: hearsay, confidence: low, memory_gib: 16, bandwidth_gb_s: 600}
"""
    (overlay / "mine.yaml").write_text(text)
    gpu = find_gpu("one").record
    assert (gpu.l2_bytes.source, gpu.l2_bytes.confidence) == ("sheet", "high")
    assert (gpu.memory_bytes.source, gpu.memory_bytes.confidence) == ("hearsay", "low")


BROKEN = {
    "tag": ("gpus: !!python/object/apply:os.system [echo]", ["broken.yaml:1", "python/object"]),
    "bomb": (
        "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: [*c, *c]",
        ["broken.yaml:1", "anchors"],
    ),
    "depth": ("[" * 500, ["broken.yaml:1", "nested"]),
    "documents": ("schema: 1\n---\nschema: 1", ["broken.yaml:2", "second document"]),
    "no yaml": ("schema: 1\ngpus: [", ["broken.yaml:2", "not valid YAML"]),
    "binary": (b"\x00\xff\xfe\x01", ["UTF-8"]),
    "control": (b"\x07\x08", ["UTF-8"]),
    "impossible date": ("schema: 1\nlaunch: 2020-13-41", ["launch"]),
    "empty": ("", ["gpus"]),
    "a list": ("- 1\n- 2", ["mapping"]),
    "only text": ("hello", ["mapping"]),
    "future schema": ("schema: 2\ngpus: []", ["schema", "1"]),
    "no gpus": ("schema: 1\ngpus: []", ["gpus", "at least one"]),
    "twice": ("schema: 1\nschema: 1", ["broken.yaml:2", "second time"]),
    "key no text": ("{[1]: 2}", ["broken.yaml:1", "plain text"]),
}


@pytest.mark.parametrize(("content", "told"), BROKEN.values(), ids=BROKEN)
def test_a_broken_file_is_told_and_hides_nothing(overlay, content, told):
    write(overlay, "good.yaml")
    data = content if isinstance(content, bytes) else content.encode()
    (overlay / "broken.yaml").write_bytes(data)
    assert find_gpu("4090").record.id == "rtx-4090"
    assert find_gpu("my-card").record.id == "my-card"
    text = " ".join(problems())
    assert "broken.yaml" in text
    for word in told:
        assert word in text
    assert not check().ok


WRONG = {
    "text for a number": ({"tdp_w": "much"}, "my-card.tdp_w is much, but must be a positive"),
    "negative": ({"memory_gib": -1}, "my-card.memory_gib is -1, but must be a positive"),
    "zero": ({"memory_gib": 0}, "my-card.memory_gib is 0, but must be a positive"),
    "nan": ({"bandwidth_gb_s": float("nan")}, "gpus[0].bandwidth_gb_s: .nan is not a number"),
    "infinite": ({"bandwidth_gb_s": float("inf")}, "gpus[0].bandwidth_gb_s: .inf is not a number"),
    "absurd": ({"memory_gib": 1e12}, "must be at most"),
    "true for a number": ({"tdp_w": True}, "my-card.tdp_w is True"),
    "a list for a number": ({"tdp_w": [1, 2]}, "my-card.tdp_w"),
    "unknown key": (
        {"memroy_gib": 4},
        "my-card.memroy_gib is not a known key. Did you mean memory_gib?",
    ),
    "unknown dtype": ({"tflops": {"bf61_fp32": 1}}, "Did you mean bf16_fp32?"),
    "unknown vendor": ({"vendor": "NVIDEA"}, "must be one of NVIDIA, AMD, Intel, Apple"),
    "capability unquoted": ({"compute_capability": 8.9}, 'must be quoted, such as "8.9"'),
    "no vendor": ({"vendor": None}, "my-card.vendor is missing"),
    "no bandwidth": ({"bandwidth_gb_s": None}, "my-card.bandwidth_gb_s is missing"),
    "no source": ({"source": None, "confidence": None}, "source, confidence is missing"),
    "half a source": (
        {"tdp_w": {"value": 3, "source": "x"}},
        "source and confidence must stand together",
    ),
    "shouted id": ({"id": "My Card"}, "such as rtx-4090"),
    "no date": ({"launch": "soon"}, "my-card.launch is soon, but must be a date"),
    "long name": ({"name": "x" * 5000}, "my-card.name"),
}


@pytest.mark.parametrize(("change", "told"), WRONG.values(), ids=WRONG)
def test_a_wrong_value_is_told_by_file_record_and_key(overlay, change, told):
    write(overlay, **change)
    [problem] = problems()
    assert problem.startswith("mine.yaml:")
    assert told in problem
    assert len(problem) < 400
    assert all(render(message, "ko") for message in catalog().problems)
    assert find_gpu("4090").record.id == "rtx-4090"


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from([*CARD, "gpus", "defaults", "x"]), inner, max_size=4)
    ),
    max_leaves=12,
)
anything = (
    st.binary(max_size=200)
    | st.text(max_size=200).map(str.encode)
    | plain.map(lambda data: yaml.safe_dump(data).encode())
    | plain.map(lambda data: yaml.safe_dump({"schema": 1, "gpus": [data]}).encode())
    | st.tuples(st.sampled_from([*CARD, "tflops", "sources", "launch"]), plain).map(
        lambda change: yaml.safe_dump({"schema": 1, "gpus": [CARD | dict([change])]}).encode()
    )
)


@given(anything)
def test_any_file_gives_records_or_plain_sentences(content):
    with TemporaryDirectory() as folder:
        Path(folder, "mine.yaml").write_bytes(content)
        compiled = compile_folder(Path(folder))
    assert compiled.records or compiled.problems
    for problem in compiled.problems:
        for language in ("en", "ko"):
            sentence = render(problem, language)
            assert sentence.startswith("mine.yaml")
            assert "\n" not in sentence


def test_what_is_wrong_with_a_card_is_told_by_its_line(overlay):
    text = "schema: 1\ngpus:\n- id: one\n  name: One\n  memory_gib: much\n  tdpw: 3\n"
    (overlay / "mine.yaml").write_text(text)
    assert {problem.split(" is ")[0] for problem in problems()} == {
        "mine.yaml:5: one.memory_gib",
        "mine.yaml:6: one.tdpw",
    }
    (overlay / "mine.yaml").write_text("gpus:\n- {id: one, name: One, memory_gib: 8}\nschema: 1\n")
    assert problems()[0].startswith("mine.yaml:2: one.")


def test_a_huge_file_is_not_read(overlay):
    with (overlay / "huge.yaml").open("wb") as file:
        file.truncate(100 << 20)
    assert find_gpu("4090").record.id == "rtx-4090"
    assert "larger than" in problems()[0]


def test_two_records_of_one_name_are_told(overlay):
    write(overlay, "a.yaml", aliases=["Brick"])
    write(overlay, "b.yaml", id="other-card", name="Other Card", aliases=["brick"])
    [problem] = problems()
    assert "my-card" in problem
    assert "other-card" in problem


def test_two_records_of_one_id_are_told(overlay):
    write(overlay, "a.yaml")
    write(overlay, "b.yaml", name="Another")
    assert "id my-card is taken" in problems()[0]


IMPLAUSIBLE = {
    "bandwidth": {"memory_bus_bits": 384, "memory_gbps": 21, "bandwidth_gb_s": 2016},
    "fp32": {"cores": 1000, "boost_mhz": 1000, "tflops": {"fp32": 9}},
    "sparse among dense": {"tflops": {"bf16_fp32": 100, "fp8_fp32": 400}},
    "driver total": {"nvml_total_mib": 24576},
}


@pytest.mark.parametrize("change", IMPLAUSIBLE.values(), ids=IMPLAUSIBLE)
def test_values_that_contradict_each_other_are_told(overlay, change):
    write(overlay, **change)
    [message] = check().implausible
    assert message.values["gpu"] == "my-card"
    assert "my-card" in render(message, "en")
    assert "my-card" in render(message, "ko")


def test_a_check_counts_the_persons_own_values(overlay):
    before = check()
    write(overlay)
    after = check()
    assert (after.records, after.values) == (before.records + 1, before.values + 2)
    assert "high confidence" in render(after.messages[0], "en")
