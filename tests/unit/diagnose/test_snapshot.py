"""torch's memory snapshots: what did not fit, who held the peak, and no code is ever run."""

import os
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwright.diagnose.outofmemory import Explanation, explained_file
from trainwright.messages import UserError
from trainwright.plainpickle import plain_data

MIB = 1 << 20
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inside: st.lists(inside) | st.dictionaries(st.text(), inside) | st.tuples(inside),
)


@given(PLAIN, st.integers(2, 5))
def test_plain_data_is_read_as_pickle_reads_it(data: Any, protocol: int) -> None:
    assert plain_data(pickle.dumps(data, protocol)) == pickle.loads(pickle.dumps(data, protocol))


@pytest.mark.parametrize(
    "content",
    [
        pickle.dumps(os.getcwd),
        pickle.dumps({"segments": [Path("a")], "device_traces": []}),
        pickle.dumps([1, 2, 3])[:-4],
        b"\x80\x04N0.",
        b"\x80\x04h\x05.",
        b"\x80\x04e.",
        b"\x80\x04" + b"N" * 9,
    ],
)
def test_what_is_code_or_damaged_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.pickle"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"pickle|data|exhausted|stack|opcode"):
        plain_data(content)
    with pytest.raises(UserError) as refused:
        explained_file(str(path))
    assert refused.value.message.id == "diagnose.oom.pickle"


def frames(line: int) -> list[dict[str, Any]]:
    library = {"filename": "/env/site-packages/torch/nn/linear.py", "line": 1, "name": "forward"}
    return [library, {"filename": "train.py", "line": line, "name": "step"}]


def event(action: str, addr: int, mib: int, line: int = 0) -> dict[str, Any]:
    return {"action": action, "addr": addr, "size": mib * MIB, "stream": 0, "time_us": addr * 1000,
            "frames": frames(line)}  # fmt: skip


def block(mib: int, *, active: bool, line: int = 0) -> dict[str, Any]:
    state = "active_allocated" if active else "inactive"
    return {"size": mib * MIB, "requested_size": mib * MIB, "state": state, "frames": frames(line)}


def explained(tmp_path: Path, events: list[Any], blocks: list[Any], **more: Any) -> Explanation:
    total = sum(each["size"] for each in blocks)
    segment = {"device": 0, "address": 0, "total_size": total, "blocks": blocks}
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps({"segments": [segment], "device_traces": [events], **more}, 4))
    return explained_file(str(path))


def failed(mib: int, free: int) -> dict[str, Any]:
    return {"action": "oom", "size": mib * MIB, "device_free": free * MIB, "frames": []}


def test_an_allocation_that_found_no_room_is_explained_by_what_was_given_out(
    tmp_path: Path,
) -> None:
    events = [event("alloc", 0, 600, 7), failed(500, 100)]
    found = explained(tmp_path, events, [block(600, active=True), block(50, active=False)])
    assert found.kind == "too-big"
    assert found.missing == 400 * MIB
    assert (found.account.allocated, found.account.unused) == (600 * MIB, 50 * MIB)


@pytest.mark.parametrize(("expandable", "patch"), [(False, 1), (True, 0)])
def test_pieces_that_would_be_enough_together_are_fragmentation(
    tmp_path: Path, expandable: bool, patch: int
) -> None:
    pieces = [each for n in range(6) for each in (block(9, active=True), block(50, active=False))]
    settings = {"expandable_segments": expandable}
    found = explained(tmp_path, [failed(200, 10)], pieces, allocator_settings=settings)
    assert found.kind == "fragmentation"
    assert len(found.fixes) == patch


def test_the_peak_and_its_owners_are_found_though_the_history_begins_late(tmp_path: Path) -> None:
    """The weights were there before; activations came, were given back, and the peak is past."""
    weights = block(100, active=True, line=3)
    activations = [event("alloc", (200 + n) * MIB, 50, 20) for n in range(4)]
    returned = [event("free_completed", (200 + n) * MIB, 50) for n in range(4)]
    before = event("free_completed", 900 * MIB, 30)
    found = explained(tmp_path, [*activations, before, *returned], [weights])
    timeline = found.timeline
    assert timeline is not None
    assert found.kind == "none"
    assert timeline.peak_bytes == 330 * MIB
    held = {each.place: (each.bytes, each.count) for each in timeline.owners}
    assert held == {
        "train.py:20 step": (200 * MIB, 4),
        "train.py:3 step": (100 * MIB, 1),
        "": (30 * MIB, 1),
    }
    assert max(timeline.curve) == timeline.peak_bytes
    assert timeline.curve[-1] == 100 * MIB


@pytest.mark.parametrize(
    "change",
    [
        {"size": "many"},
        {"size": -1},
        {"size": 1 << 400},
        {"addr": []},
        {"action": None, "time_us": None},
        {"frames": [{"filename": "a"}]},
    ],
)
def test_a_history_with_odd_figures_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        explained(tmp_path, [event("alloc", 0, 9) | change], [block(9, active=True)])
