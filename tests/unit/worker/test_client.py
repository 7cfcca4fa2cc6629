"""A child that misbehaves is ended, said in one line, and leaves nothing behind."""

import os
import sys
import textwrap
import time
from pathlib import Path

import pytest

from trainwright.messages import UserError
from trainwright.worker import client


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Return a function that puts a program where the client finds it."""
    folder = tmp_path / "프로그램 폴더"
    folder.mkdir()
    launcher = (client.PROGRAMS / "launch.py").read_text(encoding="utf-8")
    (folder / "launch.py").write_text(launcher, encoding="utf-8")
    monkeypatch.setattr(client, "PROGRAMS", folder)

    def write(body: str) -> str:
        text = "import json, os, sys, time\n" + textwrap.dedent(body)
        (folder / "program.py").write_text(text, encoding="utf-8")
        return "program"

    return write


def refused(name, document=None, **options):
    with pytest.raises(UserError) as caught:
        client.run(name, document or {}, **options)
    return caught.value.message


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def gone(pid: int) -> bool:
    deadline = time.monotonic() + 5
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not alive(pid)


linux = pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks processes up in /proc")


def test_answer_and_progress(program):
    name = program("""
        question = json.load(sys.stdin)
        print(json.dumps({"progress": 0.5, "message_id": "worker.tracing"}))
        print(json.dumps({"answer": question["이름"] + "!"}))
    """)
    heard = []
    answer = client.run(name, {"이름": "값"}, on_progress=lambda *said: heard.append(said))
    assert answer == {"answer": "값!"}
    assert heard == [(0.5, "worker.tracing")]


def test_rubbish_before_the_answer_is_passed_over(program):
    name = program(r"""
        sys.stdout.buffer.write(b"\xff\xfe junk\n[1, 2]\nnull\n{bad json\n" + b"[" * 100000 + b"\n")
        print(json.dumps({"answer": 1}))
    """)
    assert client.run(name, {}) == {"answer": 1}


@pytest.mark.parametrize(
    "error",
    ['{"id": 3}', '{"id": "no dots here"}', '"text"', '{"id": "a.b", "values": {"x": [1]}}'],
)
def test_malformed_error_is_no_answer(program, error):
    assert refused(program(f"print('{{\"error\": {error}}}')")).id == "worker.no-answer"


def test_its_own_error_reaches_the_person(program):
    name = program("""
        print(json.dumps({"error": {"id": "worker.timm-unknown", "values": {"name": "resnet5"}}}))
    """)
    message = refused(name)
    assert message.id == "worker.timm-unknown"
    assert message.values["name"] == "resnet5"


def test_crash_says_the_last_line(program):
    message = refused(program("raise ValueError('the reason')"))
    assert message.id == "worker.no-answer"
    assert message.values["reason"] == "ValueError: the reason"


@linux
def test_hanging_child_is_ended_at_the_deadline(program, tmp_path):
    note = tmp_path / "pid"
    name = program(
        "open(json.load(sys.stdin)['note'], 'w').write(str(os.getpid()))\ntime.sleep(99)"
    )
    started = time.monotonic()
    assert refused(name, {"note": str(note)}, timeout_s=1.0).id == "worker.timeout"
    assert time.monotonic() - started < 5
    assert gone(int(note.read_text()))


@linux
def test_cancelling_ends_the_child_and_its_children(program, tmp_path):
    note = tmp_path / "pids"
    name = program("""
        import subprocess
        sleep = [sys.executable, "-c", "import time; time.sleep(99)"]
        inside = subprocess.Popen(sleep)
        outside = subprocess.Popen(sleep, start_new_session=True)
        path = json.load(sys.stdin)["note"]
        open(path + "~", "w").write(f"{os.getpid()} {inside.pid} {outside.pid}")
        os.rename(path + "~", path)
        time.sleep(99)
    """)
    assert refused(name, {"note": str(note)}, cancelled=note.exists).id == "worker.cancelled"
    assert all(gone(int(pid)) for pid in note.read_text().split())


@linux
def test_child_that_leaves_others_behind(program, tmp_path):
    note = tmp_path / "pid"
    name = program("""
        import subprocess
        left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(99)"])
        open(json.load(sys.stdin)["note"], "w").write(str(left.pid))
        print(json.dumps({"answer": 1}))
    """)
    started = time.monotonic()
    assert client.run(name, {"note": str(note)}, timeout_s=30) == {"answer": 1}
    assert time.monotonic() - started < 10
    assert gone(int(note.read_text()))


@linux
def test_nothing_outlives_this_program(program, tmp_path):
    note = tmp_path / "pid"
    program("open(json.load(sys.stdin)['note'], 'w').write(str(os.getpid()))\ntime.sleep(99)")
    code = (
        "import sys, threading, os, time\nfrom pathlib import Path\n"
        "from trainwright.worker import client\n"
        f"client.PROGRAMS = Path({str(client.PROGRAMS)!r})\n"
        f"note = Path({str(note)!r})\n"
        "work = threading.Thread(target=client.run, args=('program', {'note': str(note)}))\n"
        "work.start()\n"
        "while not (note.exists() and note.read_text()): time.sleep(0.02)\n"
        "os._exit(0)\n"
    )
    os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-c", code])
    assert gone(int(note.read_text()))


@linux
def test_killed_child(program):
    message = refused(program("os.kill(os.getpid(), 9)"))
    assert message.id == "worker.killed"
    assert message.values["signal"] == 9


@linux
def test_child_that_takes_too_much_memory(program):
    name = program("x = [bytearray(100 << 20) for _ in range(100)]")
    assert refused(name, memory_bytes=1 << 30).id == "worker.out-of-memory"


@pytest.mark.parametrize(
    "body", ["while True: print('rubbish ' * 1000)", "while True: sys.stdout.write('x' * 65536)"]
)
def test_endless_rubbish_is_refused(program, body):
    assert refused(program(body), timeout_s=60).id == "worker.too-much-output"


def test_output_of_user_code_on_standard_error_is_bounded(program):
    name = program("""
        for _ in range(2000): sys.stderr.write("noise" * 1000)
        print(json.dumps({"answer": 1}))
    """)
    assert client.run(name, {}) == {"answer": 1}


def test_interpreter_that_is_not_there(program):
    message = refused(program(""), interpreter="/no/such/python")
    assert message.id == "worker.cannot-start"


def test_environment_of_the_user_does_not_reach_the_child(program, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    name = program(
        "print(json.dumps({'answer': [os.environ.get(n) for n in "
        "('PYTHONPATH', 'HF_TOKEN', 'HF_HUB_OFFLINE')]}))"
    )
    assert client.run(name, {}) == {"answer": [None, None, "1"]}
