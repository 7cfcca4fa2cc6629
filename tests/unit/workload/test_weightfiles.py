"""Headers of weights: what the library itself accepts is read, what lies is refused whole."""

import json
import os
import struct
import sys
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwright.messages import LANGUAGES, UserError, render
from trainwright.workload import weightfiles
from trainwright.workload.weightfiles import weights

safetensors = pytest.importorskip("safetensors")
from safetensors.numpy import save_file  # noqa: E402

F32 = {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}


def packed(header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def library_reads(path):
    try:
        with safetensors.safe_open(path, framework="np") as file:
            list(file.keys())
    except Exception:
        return False
    return True


def test_files_that_the_library_writes(tmp_path):
    tensors = {
        "model.embed.weight": np.zeros((10, 4), np.float16),
        "model.layer.weight": np.zeros((4, 4), np.float32),
        "model.norm.running_mean": np.zeros(4, np.float32),
        "model.positions": np.zeros(7, np.int64),
        "model.scalar": np.zeros((), np.float32),
        "model.empty": np.zeros((0, 3), np.float32),
    }
    save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "np"})
    found = weights(tmp_path)
    assert found.parameters == 40 + 16 + 1
    assert found.bytes == sum(tensor.nbytes for tensor in tensors.values())
    assert found.by_type == (("F16", 80), ("F32", 68))
    assert not found.quantised
    assert weights(tmp_path / "model.safetensors") == weights(tmp_path / "config.json") == found


HEADER = {"a": F32}
BYTES = bytes(24)
LIES = {
    "nothing": (b"", "cut-short"),
    "seven bytes": (bytes(7), "cut-short"),
    "length beyond the file": (packed(HEADER, BYTES, length=10_000), "cut-short"),
    "length beyond any file": (packed(HEADER, BYTES, length=2**64 - 1), "cut-short"),
    "no object": (packed(b"[1]"), "header-broken"),
    "no JSON": (packed(b"{oh"), "header-broken"),
    "not UTF-8": (packed(b'{"\xff": 1}'), "header-broken"),
    "NaN": (packed(b'{"a": NaN}'), "header-broken"),
    "deep": (packed(b'{"a":' * 100_000), "header-broken"),
    "doubled": (
        packed(b'{"a":%b,"a":%b}' % ((json.dumps(F32).encode(),) * 2), BYTES), "header-broken",
    ),
    "metadata": (packed({"__metadata__": {"a": 1}, **HEADER}, BYTES), "header-broken"),
    "no fields": (packed({"a": {}}), "tensor-broken"),
    "no object inside": (packed({"a": 3}), "tensor-broken"),
    "type": (packed({"a": F32 | {"dtype": "F99"}}, BYTES), "tensor-broken"),
    "negative": (packed({"a": F32 | {"shape": [-2, -3]}}, BYTES), "tensor-broken"),
    "true": (packed({"a": F32 | {"shape": [True, 6]}}, BYTES), "tensor-broken"),
    "huge": (packed({"a": F32 | {"shape": [1 << 62] * 9}}, BYTES), "tensor-broken"),
    "backwards": (packed({"a": F32 | {"data_offsets": [24, 0]}}, BYTES), "tensor-broken"),
    "three offsets": (packed({"a": F32 | {"data_offsets": [0, 24, 3]}}, BYTES), "tensor-broken"),
    "too few bytes": (packed({"a": F32 | {"data_offsets": [0, 20]}}, bytes(20)), "tensor-broken"),
    "overlap": (packed({"a": F32, "b": F32}, BYTES), "tensor-place"),
    "gap": (
        packed({"a": F32, "b": F32 | {"data_offsets": [30, 54]}}, bytes(54)), "tensor-place",
    ),
    "cut": (packed(HEADER, BYTES[:-1]), "cut-short"),
    "more": (packed(HEADER, BYTES + b"!"), "cut-short"),
}  # fmt: skip


STRICTER = {"doubled"}
"""What the library reads (0.8), taking the last of two."""


@pytest.mark.parametrize("case", LIES)
def test_header_that_lies_is_refused_as_the_library_refuses_it(tmp_path, case):
    content, id = LIES[case]
    file = tmp_path / "model.safetensors"
    file.write_bytes(content)
    with pytest.raises(UserError) as caught:
        weights(file)
    assert caught.value.message.id == f"weights.{id}"
    for language in LANGUAGES:
        assert len(render(caught.value.message, language).splitlines()) == 1
    assert library_reads(file) is (case in STRICTER)


def test_header_of_more_than_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(weightfiles, "HEADER_BYTES", 100)
    (tmp_path / "model.safetensors").write_bytes(packed(b" " * 200))
    with pytest.raises(UserError) as caught:
        weights(tmp_path)
    assert caught.value.message.id == "weights.header-long"


@given(st.binary(max_size=200), st.integers(0, 300))
def test_any_bytes_are_read_or_refused(tmp_path_factory, content, length):
    file = tmp_path_factory.mktemp("any") / "model.safetensors"
    file.write_bytes(packed(b"{" + content, length=length))
    with suppress(UserError):
        assert weights(file).files == 1


def shards(folder, places=None):
    save_file({"a": np.zeros(3, np.float32)}, folder / "model-1.safetensors")
    save_file({"b": np.zeros(4, np.float16)}, folder / "model-2.safetensors")
    places = places or {"a": "model-1.safetensors", "b": "model-2.safetensors"}
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 20}, "weight_map": places}))
    return index


def test_index_adds_its_files_up(tmp_path):
    found = weights(shards(tmp_path))
    assert (found.parameters, found.bytes, found.files) == (7, 20, 2)


@pytest.mark.parametrize(
    ("places", "id"),
    [
        ({"a": "model-1.safetensors"}, None),
        ({"a": "model-1.safetensors", "c": "model-2.safetensors"}, "tensor-missing"),
        ({"a": "model-1.safetensors", "b": "model-3.safetensors"}, "files-missing"),
        ({"a": "../model-1.safetensors"}, "index-broken"),
        ({"a": "/etc/passwd"}, "index-broken"),
        ({"a": 3}, "index-broken"),
        ({}, None),
    ],
)
def test_index_that_does_not_agree(tmp_path, places, id):
    index = shards(tmp_path, places)
    if places == {}:
        index.write_text('{"weight_map": {}}')
        id = "index-broken"
    if id is None:
        assert weights(index).files == 1
        return
    with pytest.raises(UserError) as caught:
        weights(index)
    assert caught.value.message.id == f"weights.{id}"


@pytest.mark.skipif(sys.platform == "win32", reason="makes a pipe")
def test_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "model.safetensors")
    with pytest.raises(UserError):
        weights(tmp_path)


def test_folder_without_weights(tmp_path):
    assert weights(tmp_path) is None
