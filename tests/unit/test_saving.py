"""Files are replaced whole or left as they are, and several programs at once lose nothing."""

import errno
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trainwright import locks, saving
from trainwright.messages import UserError
from trainwright.prices import own_prices
from trainwright.prices.imports import waiting
from trainwright.probe import measurements as measured

posix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pipes in folders")


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "a.profile"
    path.write_bytes(b"old")

    def full(_handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match="No space left"):
        saving.write(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.profile"]


@posix
def test_what_was_set_aside_is_never_overwritten(tmp_path):
    for content in ("one", "two", "three"):
        (tmp_path / "prices").write_text(content)
        saving.set_aside(tmp_path / "prices")
    assert sorted(path.read_text() for path in tmp_path.iterdir()) == ["one", "three", "two"]


def test_only_regular_files_are_replaced_and_links_stay_links(tmp_path):
    pipe, folder, link = tmp_path / "pipe", tmp_path / "folder", tmp_path / "link"
    os.mkfifo(pipe)
    folder.mkdir()
    to_pipe = tmp_path / "to-pipe"
    to_pipe.symlink_to(pipe)
    for path in (pipe, folder, to_pipe, Path("/dev/null"), Path("/dev/stdout"), Path("-")):
        for act in (saving.check, lambda path: saving.write(path, "new")):
            with pytest.raises(UserError, match="not a regular file"):
                act(path)
    assert pipe.is_fifo()
    assert folder.is_dir()
    real = tmp_path / "real"
    real.write_text("old")
    link.symlink_to(real)
    saving.write(link, "new")
    assert link.is_symlink()
    assert real.read_text() == "new"


@posix
@pytest.mark.parametrize(
    "arguments",
    [
        ("profile", "gpt2"),
        ("advise", "PLAN"),
        ("build", "PLAN", "--budget", "9000USD"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_o_refuses_a_pipe_before_the_work_and_leaves_it(tmp_path, arguments):
    plan = tmp_path / "a.plan.yaml"
    plan.write_text(
        "trainwright: 1\nmodel: {preset: gpt2}\nworkload: {task: full, effective_batch: 8}\n"
        "machine: {gpus: [{id: rtx-4090}]}\n"
    )
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    words = [str(plan) if word == "PLAN" else word for word in arguments]
    run = subprocess.run(
        [sys.executable, "-m", "trainwright", *words, "-o", str(pipe)],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (run.returncode, run.stdout, run.stderr.count("\n")) == (2, "", 1)
    assert "pipe" in run.stderr
    assert pipe.is_fifo()


def test_eight_programs_that_add_prices_at_once_keep_all_eight():
    words = [sys.executable, "-m", "trainwright", "catalog", "prices", "add", "rtx-3090"]
    children = [
        subprocess.Popen([*words, f"{600 + number}USD"], stdout=subprocess.DEVNULL)
        for number in range(8)
    ]
    assert [child.wait(timeout=120) for child in children] == [0] * 8
    assert {one.amount for one in own_prices.load().observations} == {600.0 + n for n in range(8)}


ADDS = """
import sys
from datetime import date
from trainwright.explain import Unit
from trainwright.prices.imports import Row, waiting
from trainwright.probe import measurements as kept
from trainwright.ui.preferences import Preferences
me = sys.argv[1]
preferences = Preferences()
preferences.recent_models
for number in range(5):
    name = f"part {me} {number}"
    waiting.add([Row(1, name, 9.0, "USD", "new", date(2026, 6, 1), origin="list.md")])
    kept.keep([kept.Measurement(name, 1.0, Unit.SECONDS, "disk", kept.now())])
preferences.picked(f"model {me}")
"""


def test_programs_that_keep_things_at_once_lose_none_of_them():
    from trainwright.ui.preferences import Preferences

    children = [subprocess.Popen([sys.executable, "-c", ADDS, str(me)]) for me in range(4)]
    assert [child.wait(timeout=120) for child in children] == [0] * 4
    names = {f"part {me} {number}" for me in range(4) for number in range(5)}
    assert {row.name for row in waiting.load().rows} == names
    assert {one.what for one in measured.load().measurements} == names
    assert set(Preferences().recent_models) == {f"model {me}" for me in range(4)}


def test_who_waits_too_long_for_a_lock_is_told_so(tmp_path):
    guarded = tmp_path / "prices.jsonl"
    start = time.monotonic()
    refused = pytest.raises(UserError, match=r"prices\.jsonl")
    with locks.held(guarded), refused, locks.held(guarded, 0.1):
        pass
    assert time.monotonic() - start < 5
    with locks.held(guarded, 0.1):
        pass


KILLED = """
import sys
from trainwright.cli.run import run
number = 0
while True:
    number += 1
    run(["catalog", "prices", "add", "rtx-3090", f"{number}USD"], None)
    print(number, file=sys.stderr, flush=True)
"""


def test_a_kill_between_two_prices_leaves_the_old_file_or_the_new_one():
    child = subprocess.Popen(
        [sys.executable, "-c", KILLED],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert child.stderr is not None
    done = [int(child.stderr.readline()) for _ in range(5)]
    child.kill()
    done += [int(line) for line in child.stderr.read().splitlines()]
    child.wait()
    child.stderr.close()
    lines = own_prices.path().read_text(encoding="utf-8").splitlines()
    amounts = [json.loads(line)["amount"] for line in lines[1:]]
    assert amounts[: len(done)] == done
    assert len(amounts) <= len(done) + 1
    assert own_prices.load().note is None
