"""Whatever stands in a plan file: a plan, or one line with file, key and remedy."""

import time
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from trainwright.data import resources
from trainwright.messages import LANGUAGES, UserError, render
from trainwright.plan import file
from trainwright.plan.schema import Plan

EXAMPLE = (
    resources("examples", "llama-8b-lora.plan.yaml")
    .read_text(encoding="utf-8")
    .replace("micro_batch: 1", "micro_batch: 2")
)


def refusal(text: str) -> str:
    """Return the one line that a person reads."""
    with pytest.raises(UserError) as error:
        file.parsed(text, "mine.plan.yaml")
    line = str(error.value)
    assert "\n" not in line
    assert len(line) < 600
    return line


def changed(old: str, new: str) -> str:
    assert old in EXAMPLE
    return EXAMPLE.replace(old, new)


@pytest.mark.parametrize(
    ("old", "new", "key", "remedy"),
    [
        ("micro_batch: 2", "micro_bach: 2", "settings.micro_bach", "did you mean micro_batch?"),
        ("model:", "modle:", "modle", "did you mean model?"),
        ("micro_batch: 2", "num_workers: 2", "num_workers", "settings.loader.num_workers"),
        ("micro_batch: 2", "rank: 2", "settings.rank", "workload.lora.rank"),
        ("id: rtx-4090,", "name: rtx-4090,", "machine.gpus[0].name", "known here: id, count"),
        ("micro_batch: 2", "micro_batch: two", "settings.micro_batch", "a whole number"),
        ("micro_batch: 2", "micro_batch: 2.5", "settings.micro_batch", "a whole number, not 2.5"),
        ("micro_batch: 2", "micro_batch: '2'", "settings.micro_batch", 'not the text "2"'),
        ("micro_batch: 2", "micro_batch: true", "settings.micro_batch", "a whole number, not true"),
        ("micro_batch: 2", "micro_batch: [2]", "settings.micro_batch", "not a list"),
        ("micro_batch: 2", "micro_batch: -2", "settings.micro_batch", "at least 1, not -2"),
        ("micro_batch: 2", "micro_batch: 0", "settings.micro_batch", "at least 1, not 0"),
        ("micro_batch: 2", "tensor_degree: 1", "settings.tensor_degree", "Remove the key"),
        ("micro_batch: 2", "quantization: awq", "settings.quantization", "must be int4"),
        ("micro_batch: 2", "quantization: gptq", "settings.quantization", "must be int4"),
        ("micro_batch: 2", "micro_batch: 10000000", "settings.micro_batch", "at most 1000000"),
        ("micro_batch: 2", "micro_batch: .nan", "settings.micro_batch", "finite"),
        ("micro_batch: 2", "learning_rate: .inf", "settings.learning_rate", "finite"),
        ("micro_batch: 2", "learning_rate: 1e999", "settings.learning_rate", "finite"),
        ("micro_batch: 2", f"micro_batch: {'9' * 5000}", "settings.micro_batch", "18 digits"),
        ("micro_batch: 2", "compile: yes", "settings.compile", "true or false"),
        ("memory_gib: 64", "memory_gib: 64 GB", "machine.memory_gib", "a number"),
        ("memory_gib: 64", "memory_gib: 0", "machine.memory_gib", "more than 0, not 0"),
        (
            "trainwright: 1",
            "trainwright: 1\nlimits: {budget: 3000}",
            "limits.budget",
            "like 3000 USD",
        ),
        ("count: 1", "count: 65", "machine.gpus[0].count", "at most 64"),
        ("  samples: 52000", "  frozen: ['a b']", "workload.frozen", "layers.0-11"),
        ("  samples: 52000", "  frozen: lm_head", "workload.frozen", "a list"),
        ("rank: 16", "variant: dorra", "workload.lora.variant", "did you mean dora?"),
        ("rank: 16", "dropout: 1", "workload.lora.dropout", "less than 1"),
        ("task: lora", "task: qlorra", "workload.task", "did you mean qlora?"),
        ("checkpointing: full", "checkpointing: every", "settings.checkpointing", "every-2"),
        ("precision: bf16-mixed", "precision: bf16_mixed", "settings.precision", "bf16-mixed?"),
        ("gpus: [{id: rtx-4090, count: 1}]", "gpus: rtx-4090", "machine.gpus", "a list"),
        ("gpus: [{id: rtx-4090, count: 1}]", "gpus: []", "machine", "local: true"),
        ("memory_gib: 64", "local: true", "machine", "one of the three"),
        ("{preset: llama-3.1-8b}", "llama", "model", "keys with values"),
        ("{preset: llama-3.1-8b}", "{}", "model", "exactly one of preset, hf, timm, python"),
        ("{preset: llama-3.1-8b}", "{preset: a, timm: b}", "model", "exactly one"),
        ("  effective_batch: 64\n", "", "workload", "effective_batch: 32"),
        ("  task: lora\n", "", "workload.task", "is required"),
        ("trainwright: 1\n", "", "trainwright", "trainwright: 1"),
        ("trainwright: 1", "trainwright: 2", "trainwright", "update Trainwright"),
        ("trainwright: 1", "trainwright: 0", "trainwright", "must be 1"),
        ("trainwright: 1", "trainwright: one", "trainwright", "must be 1"),
        ("samples: 52000", "dataset: {sample_kb: 110}", "dataset.sample_kb", "sample_kib"),
        ("samples: 52000", "dataset: fake", "workload.dataset", "synthetic"),
        ("  epochs: 3", "  samples: 3", "workload.samples", "second time"),
        ("name: llama-8b-lora", "name: 12", "name", "in quotes"),
        ("name: llama-8b-lora", f"name: {'x' * 300}", "name", "200 characters"),
    ],
)
def test_the_line_names_file_key_and_remedy(old: str, new: str, key: str, remedy: str) -> None:
    line = refusal(changed(old, new))
    assert line.startswith("mine.plan.yaml")
    assert key in line
    assert remedy in line


def test_the_line_says_where_in_the_file() -> None:
    assert refusal(changed("micro_batch: 2", "micro_bach: 2")).startswith("mine.plan.yaml:17: ")


def test_several_problems_are_counted() -> None:
    line = refusal(changed("micro_batch: 2", "micro_bach: 2\n  chckpointing: full"))
    assert line.endswith("(and 1 more problem)")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "empty"),
        (b"# only a comment\n", "empty"),
        (b"- a\n- b\n", "holds no keys"),
        (b"just text", "holds no keys"),
        (b"\x7fELF\x02\x01\x01\x00\x00\x00", "UTF-8"),
        (b"\xff\xfet\x00r\x00", "UTF-8"),
        (bytes(range(256)) * 100, "UTF-8"),
        (b"PK\x03\x04\x14\x00\x08", "UTF-8"),
    ],
)
def test_what_is_no_plan_at_all_says_what_to_open(
    tmp_path: Path, content: bytes, says: str
) -> None:
    path = tmp_path / "a.plan.yaml"
    path.write_bytes(content)
    with pytest.raises(UserError, match=says) as error:
        file.read(path)
    assert str(path) in str(error.value)


def test_a_huge_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.plan.yaml"
    with path.open("wb") as sparse:
        sparse.truncate(100 << 20)
    start = time.perf_counter()
    with pytest.raises(UserError, match="larger than"):
        file.read(path)
    assert time.perf_counter() - start < 0.5


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="only Unix has /dev/zero")
def test_a_device_without_end_is_refused() -> None:
    with pytest.raises(UserError, match="a device"):
        file.read("/dev/zero")


@pytest.mark.parametrize("name", ["no such file.yaml", "a\0b", "없는 파일.plan.yaml", "x" * 5000])
def test_a_missing_file_says_so(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match="check the path"):
        file.read(f"{tmp_path}/{name}")


def test_a_folder_is_no_plan(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="folder"):
        file.read(tmp_path)


# Fuzzing

TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner),
    max_leaves=20,
)


def outcome(text: str) -> None:
    """Assert that the text is a plan, or is refused with one line in both languages."""
    try:
        plan = file.parsed(text, "fuzz.plan.yaml")
    except UserError as error:
        refused = error.message
    else:
        assert isinstance(plan, Plan)
        return
    for language in LANGUAGES:
        line = render(refused, language)
        assert line.startswith("fuzz.plan.yaml")
        assert len(line.splitlines()) == 1


@given(st.text())
def test_any_text_is_a_plan_or_a_line(text: str) -> None:
    outcome(text)


@given(st.binary(max_size=400))
def test_any_bytes_are_a_plan_or_a_line(content: bytes) -> None:
    outcome(content.decode("latin-1"))


@given(TREES)
def test_any_yaml_is_a_plan_or_a_line(tree: object) -> None:
    outcome(yaml.safe_dump(tree, allow_unicode=True))


def paths(tree: object, above: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    """Return every place in a tree."""
    items = (
        tree.items()
        if isinstance(tree, dict)
        else enumerate(tree)
        if isinstance(tree, list)
        else ()
    )
    found = [above] if above else []
    for key, value in items:
        found += paths(value, (*above, key))
    return found


VALID = yaml.safe_load(EXAMPLE)
PLACES = paths(VALID)


@settings(max_examples=300)
@given(
    st.sampled_from(PLACES), TREES, st.sampled_from(["set", "drop", "rename"]), st.text(max_size=8)
)
def test_a_valid_plan_with_any_change_is_a_plan_or_a_line(
    place: tuple[object, ...], value: object, how: str, name: str
) -> None:
    tree = yaml.safe_load(EXAMPLE)
    holder = tree
    for part in place[:-1]:
        holder = holder[part]
    if how == "set" or isinstance(holder, list):
        holder[place[-1]] = value
    elif how == "drop":
        del holder[place[-1]]
    else:
        holder[name] = holder.pop(place[-1])
    outcome(yaml.safe_dump(tree, allow_unicode=True))


@settings(max_examples=300)
@given(st.integers(0, len(EXAMPLE)), st.integers(0, 12), st.text(max_size=6))
def test_a_valid_text_with_any_edit_is_a_plan_or_a_line(at: int, cut: int, put: str) -> None:
    outcome(EXAMPLE[:at] + put + EXAMPLE[at + cut :])
