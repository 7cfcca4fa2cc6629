"""A factory that misbehaves is contained: one clear line, in bounded time, nothing left behind."""

import importlib
import json
import os
import sys
import textwrap
import time
from pathlib import Path

import pytest

from trainwright.cli.run import run
from trainwright.messages import UserError, render
from trainwright.plan.evaluate import Pending, resolve
from trainwright.plan.schema import Plan
from trainwright.profile import store
from trainwright.worker import client, process

pytest.importorskip("torch")
pytestmark = [
    pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks processes up in /proc"),
    pytest.mark.filterwarnings("ignore"),
]

NET = """
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x):
        return self.layer(x)
"""
BOUND_S = 60
"""Longest that any case may take; starting torch is most of it, on a busy machine."""
PATIENCE_S = 12.0
"""Stands in for minutes: how long code may be silent in these tests."""

ENDED = {
    "kills-itself": ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "code-killed"),
    "exits": ("import os; os._exit(0)", "code-exited"),
    "crashes": ("import ctypes; ctypes.string_at(0)", "code-killed"),
    "loops": ("while True: pass", "code-silent"),
    "sleeps-and-ignores-signals": (
        "import signal, time\n"
        "for each in signal.SIGTERM, signal.SIGINT, signal.SIGHUP:\n"
        "    signal.signal(each, signal.SIG_IGN)\n"
        "time.sleep(9999)",
        "code-silent",
    ),
    "prints-for-ever": ("while True: print('noise ' * 4096)", "code-too-much-output"),
    "takes-100-gb": ("x = bytearray(100 << 30)", "code-out-of-memory"),
    "halts-its-keeper": (
        "import os, signal, time; os.kill(os.getppid(), signal.SIGSTOP); time.sleep(9999)",
        "code-silent",
    ),
}
REFUSED = {
    "raises": ("raise ValueError('no width given')", "code-raised", "no width given"),
    "exits-politely": ("import sys; sys.exit(0)", "code-raised", "SystemExit"),
    "returns-no-module": ("return 'a net'", "not-a-module", "str"),
    "misses-a-package": ("import no_such_package_here", "code-package", "no_such_package_here"),
    "recurses": ("return build()", "code-raised", "RecursionError"),
    "reads-standard-input": ("return input('which? ')", "code-raised", "EOFError"),
    "writes-a-large-file": (
        "open('large', 'wb').write(bytes(64 << 20))", "code-raised", "File too large",
    ),
    "takes-100-gb-of-torch": (
        "import torch; return torch.empty(100 << 30, device='cpu')", "code-out-of-memory", "",
    ),
    "breaks-torch": (
        "import torch; torch.zeros = torch.empty = None; return Net()", "code-", "NoneType",
    ),
    "lies-on-standard-output": (
        """
        import os
        for handle in range(3, 64):
            try:
                os.write(handle, b'{"result_file": "/etc/passwd"}\\n')
            except OSError:
                pass
        os._exit(0)
        """,
        "bad-result",
        "",
    ),
    "closes-every-stream": ("import os; os.closerange(0, 256); return Net()", "code-", ""),
}  # fmt: skip


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """Return what writes a file with the body of ``build``, and asks for its figures."""
    monkeypatch.setattr(store, "SILENCE_S", PATIENCE_S)
    monkeypatch.setattr(process, "FILE_BYTES", 16 << 20)

    def ask(body: str, *, text: str | None = None, args=None, inputs=None) -> Pending:
        file = tmp_path / "내 모델.py"
        indented = textwrap.indent(textwrap.dedent(body), "    ")
        file.write_text(text or f"{NET}\n\ndef build(**args):\n{indented}\n", encoding="utf-8")
        found = resolve(plan(file, args or {}, inputs or {}))
        assert isinstance(found, Pending)
        return found

    return ask


def plan(file, args, inputs):
    return Plan.model_validate(
        {
            "model": {"python": {"file": str(file), "factory": "build", "args": args}},
            "workload": {"task": "full", "effective_batch": 4, "inputs": inputs},
            "machine": {"gpus": [{"id": "rtx-4090"}]},
        }
    )


def refused(pending):
    """Return the refusal, in one line of each language, within bounded time."""
    started = time.monotonic()
    with pytest.raises(UserError) as caught:
        store.trace(pending.spec, at=pending.point)
    assert time.monotonic() - started < BOUND_S
    message = caught.value.message
    for language in ("en", "ko"):
        line = render(message, language)
        print(line)
        assert len(line.splitlines()) == 1
        assert "Traceback" not in line
        assert "내 모델.py" in line or message.id == "worker.bad-result"
    assert not left_running()
    return message


def left_running():
    """Return the processes that carry a child's mark, or descend from this one as Python does."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            marked = f"{process.TOKEN}=".encode() in (folder / "environ").read_bytes()
        except OSError:
            continue
        ours = int(parent) == os.getpid() and b"launch.py" in (folder / "cmdline").read_bytes()
        if state != "Z" and (ours or (marked and not _of_another_test(folder))):
            found.append(folder.name)
    return found


def _of_another_test(folder):
    """Whether it descends from a process that is not this test's: tests run side by side."""
    number = folder.name
    while number not in ("0", "1"):
        if number == str(os.getpid()):
            return False
        try:
            number = Path("/proc", number, "stat").read_text().rpartition(")")[2].split()[1]
        except OSError:
            return False
    return True


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize(
    "case",
    [c if c in ("exits", "crashes", "sleeps-and-ignores-signals", "takes-100-gb")
     else pytest.param(c, marks=pytest.mark.slow) for c in ENDED],
)  # fmt: skip
def test_factory_that_must_be_ended(asked, case):
    body, ending = ENDED[case]
    assert refused(asked(body)).id == f"worker.{ending}"


@pytest.mark.parametrize(
    "case",
    [c if c in ("raises", "returns-no-module", "misses-a-package", "closes-every-stream")
     else pytest.param(c, marks=pytest.mark.slow) for c in REFUSED],
)  # fmt: skip
def test_factory_that_is_refused(asked, case):
    body, id, says = REFUSED[case]
    message = refused(asked(body))
    assert message.id.startswith(f"worker.{id}")
    assert says in render(message, "en")


def test_what_it_starts_ends_with_it(asked, tmp_path, monkeypatch):
    """Children, daemons in sessions of their own without any variable, and a swarm."""
    monkeypatch.setattr(store, "SILENCE_S", 5 * PATIENCE_S)
    note = tmp_path / "pids"
    pending = asked(f"""
        import os, subprocess, sys, time
        sleep = [sys.executable, "-c", "import time; time.sleep(9999)"]
        pids = [subprocess.Popen(sleep).pid, subprocess.Popen(sleep, env={{}}).pid]
        inner = ("import os, time\\n"
                 "if os.fork(): os._exit(0)\\n"
                 "os.setsid()\\n"
                 "if os.fork(): os._exit(0)\\n"
                 "open({str(note)!r}, 'a').write(f'{{os.getpid()}} ')\\n"
                 "time.sleep(9999)")
        subprocess.run([sys.executable, "-c", inner], env={{}})
        for _ in range(40):
            pids.append(os.fork())
            if not pids[-1]:
                os.fork()
                time.sleep(9999)
        time.sleep(1)
        open({str(note)!r}, "a").write(" ".join(map(str, pids)))
        raise RuntimeError("and leaves them")
    """)
    assert refused(pending).id == "worker.code-raised"
    pids = [int(pid) for pid in note.read_text().split()]
    assert len(pids) > 40
    assert not [pid for pid in pids if alive(pid)]


@pytest.mark.slow
def test_cancelling_ends_a_factory_at_once(asked, tmp_path):
    note = tmp_path / "pid"
    pending = asked(f"""
        import os, time
        open({str(note)!r}, "w").write(str(os.getpid()))
        time.sleep(9999)
    """)
    with pytest.raises(UserError) as caught:
        store.trace(pending.spec, at=pending.point, cancelled=note.exists)
    assert caught.value.message.id == "worker.cancelled"
    assert not left_running()


@pytest.mark.slow
def test_forward_that_raises_is_named_by_its_line(asked):
    text = NET.replace("return self.layer(x)", "return self.layer(x[:, :3])")
    message = refused(asked("", text=f"{text}\n\ndef build():\n    return Net()\n"))
    assert message.id == "worker.code-raised"
    assert message.values["line"] == 1 + text.splitlines().index(
        "        return self.layer(x[:, :3])"
    )


@pytest.mark.slow
def test_syntax_error_is_named_by_its_line(asked):
    message = refused(asked("", text="import torch\n\ndef build(:\n    pass\n"))
    assert message.id == "worker.code-raised"
    assert message.values["line"] == 3


@pytest.mark.slow
def test_missing_factory_names_those_that_there_are(asked):
    message = refused(asked("", text=f"{NET}\n\ndef make():\n    return Net()\n"))
    assert message.id == "worker.no-factory"
    assert "make" in message.values["known"]


@pytest.mark.slow
def test_argument_that_the_factory_does_not_take(asked):
    text = f"{NET}\n\ndef build(width=3):\n    return Net()\n"
    message = refused(asked("", text=text, args={"widht": 3}))
    assert "widht" in render(message, "en")


@pytest.mark.slow
def test_huge_arguments_arrive(asked):
    pending = asked("raise ValueError(str(len(args['text'])))", args={"text": "x" * (4 << 20)})
    assert str(4 << 20) in render(refused(pending), "en")


def test_file_that_changes_after_it_was_read_is_not_run(asked, tmp_path):
    pending = asked("return Net()")
    note = tmp_path / "ran"
    (tmp_path / "내 모델.py").write_text(f"open({str(note)!r}, 'w')\n", encoding="utf-8")
    assert refused(pending).id == "worker.code-changed"
    assert not note.exists()


def test_special_files_are_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.py")
    for name in ("pipe.py", ".", "gone.py"):
        with pytest.raises(UserError) as caught:
            resolve(plan(tmp_path / name, {}, {}))
        assert caught.value.message.id.startswith("reading.")


@pytest.mark.slow
def test_nothing_of_the_users_changes(asked, tmp_path):
    (tmp_path / "neighbour.py").write_text("WIDTH = 8\n")
    asked("")  # writes the file
    before = sorted(path.name for path in tmp_path.iterdir())
    text = (
        f"import neighbour\n{NET}\n\ndef build():\n    open('x', 'w').write('x')\n    return Net()"
    )
    pending = asked("", text=text)
    store.trace(pending.spec, at=pending.point)
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_system_without_limits_runs_no_code(monkeypatch, capsys, tmp_path):
    """As macOS, where nothing limits the address space."""
    resource = pytest.importorskip("resource")
    program = tmp_path / "program.py"
    program.write_text("raise AssertionError('it ran')")
    monkeypatch.syspath_prepend(str(client.PROGRAMS))
    launch = importlib.import_module("launch")

    def no_limit(kind, limits):
        if kind == resource.RLIMIT_AS:
            raise ValueError("not allowed")

    limits = process.Limits(cpu_s=10, memory_bytes=1 << 30, required=True)
    for name, value in limits.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(resource, "setrlimit", no_limit)
    monkeypatch.setattr(sys, "argv", ["launch.py", str(program)])
    launch.main()
    assert json.loads(capsys.readouterr().out)["error"]["id"] == "worker.no-limits"


def test_command_line_says_it_in_one_line_and_exits_with_2(asked, tmp_path, capsys):
    asked("raise ValueError('no width given')")
    text = json.dumps(plan(tmp_path / "내 모델.py", {}, {}).model_dump(mode="json"))
    (tmp_path / "p.plan.yaml").write_text(text, encoding="utf-8")
    arguments = ["estimate", str(tmp_path / "p.plan.yaml"), "--lang", "ko"]
    assert run(arguments, lambda _: 0) == 2
    assert "--allow-code" in capsys.readouterr().err
    assert run([*arguments, "--allow-code"], lambda _: 0) == 2
    (line,) = (each for each in capsys.readouterr().err.splitlines() if "no width" in each)
    assert "줄" in line
