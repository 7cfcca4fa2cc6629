"""Samples of the exported programs: the right ones, in an order that survives a restart."""

import importlib
import json
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwright.data import resources


@pytest.fixture(scope="module")
def dataset() -> Iterator[ModuleType]:
    folders = [str(resources("export", part)) for part in ("shared", "run")]
    sys.path[:0] = folders
    yield importlib.import_module("dataset")
    for folder in folders:
        sys.path.remove(folder)
    for name in ("dataset", "strict", "folders"):
        sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def folders(dataset: ModuleType) -> ModuleType:
    return importlib.import_module("folders")


class Letters:
    """A tokenizer whose token of a letter is its code."""

    eos_token_id = 3
    pad_token_id = 0
    mask_token_id = 2

    def __call__(self, text: str, **_: Any) -> dict[str, list[int]]:
        return {"input_ids": [ord(letter) for letter in text]}


def text(dataset: ModuleType, form: str = "causal") -> Any:
    return dataset.Text(form, vocabulary=256, padding=0, mask=2, start=1)


def file(path: Path, content: Any) -> Path:
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif isinstance(content, str):
        path.write_text(content, encoding="utf-8")
    else:
        path.write_text("".join(json.dumps(line) + "\n" for line in content), encoding="utf-8")
    return path


sizes = st.integers(1, 30)


@given(size=sizes, share=st.integers(1, 5), world=st.integers(1, 4), start=st.integers(0, 9))
def test_processes_together_take_what_one_would(
    dataset: ModuleType, size: int, share: int, world: int, start: int
) -> None:
    effective = share * world
    whole = list(islice(dataset.Order(size, effective, 0, 1, 7, 0), effective * (start + 1)))
    parts = [
        key
        for rank in range(world)
        for key in islice(dataset.Order(size, effective, rank, world, 7, start), share)
    ]
    assert parts == whole[start * effective :]


@given(size=sizes, effective=st.integers(1, 12), seed=st.integers(0, 99))
def test_each_epoch_has_every_sample_once(
    dataset: ModuleType, size: int, effective: int, seed: int
) -> None:
    keys = list(islice(dataset.Order(size, effective, 0, 1, seed, 0), 2 * size))
    assert sorted(keys) == [(index, epoch) for index in range(size) for epoch in (0, 1)]
    assert [epoch for _, epoch in keys] == [0] * size + [1] * size


@pytest.mark.parametrize(("suffix", "dtype"), [(".npy", np.int32), (".bin", np.uint16)])
def test_token_arrays_are_cut_into_samples(
    dataset: ModuleType, tmp_path: Path, suffix: str, dtype: Any
) -> None:
    tokens = np.arange(50, dtype=dtype)
    path = tmp_path / f"토큰{suffix}"
    if suffix == ".npy":
        np.save(path, tokens)
    else:
        tokens.tofile(path)
    samples = dataset.open_text(path, 16, text(dataset), None)
    assert len(samples) == 3
    assert samples[2, 5]["input_ids"].tolist() == list(range(32, 48))


def test_bare_tokens_of_a_large_vocabulary_are_32_bits_wide(
    dataset: ModuleType, tmp_path: Path
) -> None:
    path = tmp_path / "tokens.bin"
    np.array([70_000, 1, 2, 3], dtype=np.uint32).tofile(path)
    large = dataset.Text("causal", vocabulary=128_256, padding=0, mask=2, start=1)
    assert dataset.open_text(path, 4, large, None)[0]["input_ids"].tolist() == [70_000, 1, 2, 3]


def test_only_the_completion_counts(dataset: ModuleType, tmp_path: Path) -> None:
    lines = [{"prompt": "ab", "completion": "c"}, {"text": "xyz"}, {"input_ids": [5, 6]}]
    samples = dataset.open_text(file(tmp_path / "a.jsonl", lines), 16, text(dataset), Letters())
    assert samples[0]["input_ids"].tolist() == [97, 98, 99, 3]
    assert samples[0]["labels"].tolist() == [-100, -100, 99, 3]
    batch = dataset.collator(text(dataset))([samples[0], samples[2]])
    assert batch["input_ids"].tolist() == [[97, 98, 99, 3], [5, 6, 0, 0]]
    assert batch["labels"].tolist() == [[-100, -100, 99, 3], [5, 6, -100, -100]]
    assert "attention_mask" not in batch


def test_a_decoder_is_given_what_came_before(dataset: ModuleType, tmp_path: Path) -> None:
    lines = [{"prompt": "ab", "completion": "cd"}, {"prompt": "a", "completion": "c"}]
    form = text(dataset, "seq2seq")
    samples = dataset.open_text(file(tmp_path / "a.jsonl", lines), 16, form, Letters())
    batch = dataset.collator(form)([samples[0], samples[1]])
    assert batch["labels"].tolist() == [[99, 100, 3], [99, 3, -100]]
    assert batch["decoder_input_ids"].tolist() == [[1, 99, 100], [1, 99, 3]]
    assert batch["attention_mask"].tolist() == [[1, 1], [1, 0]]


def test_masked_tokens_are_the_ones_to_guess(dataset: ModuleType) -> None:
    form = text(dataset, "masked")
    ids = dataset.torch.arange(10, 210)
    samples = [{"input_ids": ids, "labels": ids}, {"input_ids": ids[:50], "labels": ids[:50]}]
    batch = dataset.collator(form)(samples)
    guessed = batch["labels"] != -100
    assert (batch["input_ids"][guessed] == 2).all()
    assert batch["labels"][0][guessed[0]].tolist() == ids[guessed[0]].tolist()
    assert 10 < int(guessed[0].sum()) < 60
    assert not guessed[1, 50:].any()


def test_pictures_come_with_their_folder_as_class(folders: ModuleType, tmp_path: Path) -> None:
    from PIL import Image

    for number, name in enumerate(["고양이", "강아지"]):
        (tmp_path / name).mkdir()
        colour = (255 * number, 0, 0)
        Image.new("RGB", (40, 30), colour).save(tmp_path / name / "1.png")
    samples = folders.open_images(tmp_path, "x", 16, seed=0)
    assert samples.classes == ["강아지", "고양이"]
    first, again = samples[0, 3], samples[0, 3]
    assert first["inputs"]["x"].shape == (3, 16, 16)
    assert first["inputs"]["x"].equal(again["inputs"]["x"])
    assert [int(samples[i]["labels"]) for i in (0, 1)] == [0, 1]
    # The dog is red: (1 - mean) / spread of ImageNet's red.
    assert float(first["inputs"]["x"][0].mean()) == pytest.approx((1 - 0.485) / 0.229, rel=1e-5)


def test_other_samples_are_named_arrays(folders: ModuleType, tmp_path: Path) -> None:
    arrays = {
        "x": np.ones(3),
        "labels.a": np.zeros(2),
        "labels.b": np.ones(1),
        "more.y": np.ones(4),
    }
    np.savez(tmp_path / "0.npz", **arrays)
    sample = folders.open_arrays(tmp_path)[0]
    assert sample["inputs"].keys() == {"x", "more"}
    assert sample["labels"].keys() == {"a", "b"}


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.txt", "말", "text needs a tokenizer"),
        ("a.csv", "1,2", "holds no .npy, .bin, .jsonl or .txt"),
        ("a.jsonl", [{"words": 1}], "has none of input_ids, text"),
        ("a.jsonl", [{"text": "x"}], "name a tokenizer"),
        ("a.jsonl", [[1, 2]], "has none of input_ids, text"),
        ("a.jsonl", "", "too short"),
        ("a.jsonl", b"\xff\xfe\x00\n", "not valid JSON"),
        ("a.npy", b"junk", "not readable"),
        ("a.jsonl", [{"input_ids": "no"}], "input_ids"),
        ("a.jsonl", [{"input_ids": [1, 2], "labels": [1]}], "labels"),
        ("a.jsonl", [{"input_ids": [1, 999]}], "vocabulary"),
        ("a.jsonl", [{"input_ids": []}], "no tokens"),
    ],
)
def test_what_is_no_text_is_named(
    dataset: ModuleType, tmp_path: Path, name: str, content: Any, says: str
) -> None:
    path = file(tmp_path / name, content)
    with pytest.raises(dataset.InputError) as caught:
        dataset.open_text(path, 16, text(dataset), None)[0]
    assert says in str(caught.value)
    assert name in str(caught.value)


def test_packed_rows_hold_every_token_once(dataset: ModuleType, tmp_path: Path) -> None:
    lines = [{"text": letters} for letters in ("abc", "d", "efghijkl", "mno")]
    made = dataset.open_text(
        file(tmp_path / "x.jsonl", lines), 9, text(dataset), Letters(), packed=True
    )
    rows = [made[index]["input_ids"].tolist() for index in range(len(made))]
    end = Letters.eos_token_id
    whole = [token for line in lines for token in (*map(ord, line["text"]), end)]
    assert rows == [whole[:9], whole[9:18]]  # one token is left over
    for index, row in enumerate(rows):
        assert made[(index, 0)]["labels"].tolist() == row


def test_only_what_predicts_the_next_token_is_packed(dataset: ModuleType, tmp_path: Path) -> None:
    path = file(tmp_path / "x.jsonl", [{"text": "abc"}])
    with pytest.raises(Exception, match="predict the next token"):
        dataset.open_text(path, 4, text(dataset, "masked"), Letters(), packed=True)
