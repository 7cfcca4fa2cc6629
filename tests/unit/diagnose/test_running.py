"""Real runs of real training on the processor, under observation and by the callback."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

import trainwright
from trainwright.diagnose import record, running
from trainwright.diagnose.decide import judge
from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.recorder import callback, notes, surroundings
from trainwright.diagnose.verdict import Cause
from trainwright.messages import UserError, render

TRAINING = """
import sys, time, torch
from torch.utils.data import DataLoader, Dataset

class Slow(Dataset):
    def __len__(self):
        return 120
    def __getitem__(self, index):
        {making}
        return torch.randn(32)

net = torch.nn.Linear(32, 32)
optimizer = torch.optim.Adam(net.parameters())
if __name__ == "__main__":
    {before}
    for batch in DataLoader(Slow(), batch_size=4, num_workers={workers}):
        loss = net(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        {after}
    {last}
"""
SLEEPING = "time.sleep(0.01)"


def script(
    folder: Path,
    *,
    making: str = SLEEPING,
    workers: int = 0,
    before: str = "pass",
    after: str = "pass",
    last: str = "pass",
) -> Path:
    path = folder / "train.py"
    text = TRAINING.format(making=making, workers=workers, before=before, after=after, last=last)
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return path


def observed(path: Path, **options: Any) -> running.Outcome:
    return running.run([sys.executable, str(path)], **options)


@pytest.mark.slow
def test_a_slow_loader_is_found_without_touching_the_script(tmp_path: Path) -> None:
    path = script(tmp_path)
    text = path.read_text(encoding="utf-8")
    outcome = observed(path)
    first = judge(outcome.evidence).first
    assert (first.cause, first.variant) == (Cause.INPUT, "fetch")
    steps, setup = outcome.evidence.steps, outcome.evidence.setup
    assert steps is not None
    assert setup is not None
    assert steps.data_wait is not None
    assert steps.data_wait >= 0.04  # four samples at 10 ms each
    assert (setup.device, setup.batch, setup.num_workers) == ("cpu", 4, 0)
    assert outcome.evidence.gpus == ()
    assert outcome.exit_code == 0
    assert path.read_text(encoding="utf-8") == text
    assert sorted(each.name for each in tmp_path.iterdir()) == ["train.py"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="workers are forked")
def test_what_workers_wait_for_is_seen(tmp_path: Path) -> None:
    outcome = observed(script(tmp_path, workers=2))
    loading = outcome.evidence.loading
    assert loading is not None
    assert loading.cpu_share is not None
    assert loading.cpu_share < 0.3  # they sleep
    assert loading.batch_seconds is not None
    assert loading.batch_seconds >= 0.04


@pytest.mark.slow
def test_a_collection_of_garbage_every_step_is_counted(tmp_path: Path) -> None:
    path = script(tmp_path, making="pass", after="import gc; gc.collect()")
    outcome = observed(path)
    counters = outcome.evidence.counters
    assert counters is not None
    assert counters.garbage_collections == pytest.approx(counters.steps, abs=1)
    assert judge(outcome.evidence).first.cause is Cause.MEMORY


SWEEPING = """
    import gc, threading
    def sweep():
        while True:
            gc.collect()
            time.sleep(0.001)
    threading.Thread(target=sweep, daemon=True).start()
"""
HOOKED = """
    import gc
    optimizer.register_step_post_hook(lambda *_: gc.collect())
"""


@pytest.mark.slow
@pytest.mark.parametrize("before", [SWEEPING, HOOKED], ids=["second thread", "optimizer's hook"])
def test_a_collection_of_garbage_is_counted_whoever_asks_for_it(
    tmp_path: Path, before: str
) -> None:
    path = script(tmp_path, making="pass", before="\n" + before)
    counters = observed(path).evidence.counters
    assert counters is not None
    assert (counters.garbage_collections or 0) > 3
    assert (counters.garbage_seconds or 0) > 0


@pytest.mark.slow
def test_what_only_debugging_needs_is_seen(tmp_path: Path) -> None:
    before = "profiler = torch.profiler.profile(); profiler.__enter__()"
    after = "torch.autograd.set_detect_anomaly(True)"
    last = "profiler.__exit__(None, None, None); torch.autograd.set_detect_anomaly(False)"
    path = script(tmp_path, making="pass", before=before, after=after, last=last)
    setup = observed(path).evidence.setup
    assert setup is not None
    assert setup.profiler_on
    assert setup.anomaly_detection


@pytest.mark.slow
def test_a_run_that_fails_says_with_what(tmp_path: Path) -> None:
    outcome = observed(script(tmp_path, making="pass", last='raise RuntimeError("no luck")'))
    assert outcome.exit_code == 1
    failure = outcome.evidence.failure
    assert failure is not None
    assert (failure.kind, failure.text) == ("RuntimeError", "no luck")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_killed_run_leaves_a_record(tmp_path: Path) -> None:
    suicide = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    outcome = observed(script(tmp_path, making="pass", last=suicide))
    assert outcome.exit_code == -9
    assert outcome.evidence.failure is not None
    assert outcome.evidence.failure.kind == "signal 9"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_time_that_is_over_ends_the_run_and_keeps_what_was_seen(tmp_path: Path) -> None:
    long = script(tmp_path, making="time.sleep(1)")  # two minutes of data
    started = time.monotonic()
    outcome = observed(long, seconds=40)
    assert time.monotonic() - started < 90
    assert outcome.stopped
    assert outcome.evidence.steps is not None
    assert outcome.evidence.failure is None


def test_a_command_that_is_none_is_refused() -> None:
    with pytest.raises(UserError, match="no such command"):
        running.run(["no-such-command-here"])


def test_a_command_that_is_no_python_is_watched_from_outside() -> None:
    outcome = running.run([sys.executable, "-S", "-c", "import time; time.sleep(1.2)"])
    assert outcome.exit_code == 0
    assert outcome.evidence.steps is None
    assert outcome.evidence.host is not None


@pytest.mark.parametrize("content", ["{", "[]", '{"trainwright_record": 1, "steps": 3}', "\0"])
def test_rubbish_in_the_folder_is_passed_over(tmp_path: Path, content: str) -> None:
    (tmp_path / "1.record.json").write_text(content, encoding="utf-8")
    assert running._records(tmp_path) == []


def test_the_users_own_sitecustomize_still_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    said = tmp_path / "said"
    (tmp_path / "sitecustomize.py").write_text(
        f"open({str(said)!r}, 'w').write('mine')", encoding="utf-8"
    )
    leftover = "import sys; sys.exit(any('trainwright-' in each for each in sys.path))"
    assert running.run([sys.executable, "-c", leftover]).exit_code == 0
    assert said.read_text(encoding="utf-8") == "mine"


@pytest.mark.slow
def test_the_copied_folder_works_alone(tmp_path: Path) -> None:
    shutil.copytree(Path(str(callback.__file__)).parent, tmp_path / "watching_it")
    begin = "from watching_it.callback import Recorder; Recorder('run.record.json').start()"
    path = script(tmp_path, before=begin)
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    subprocess.run([sys.executable, path.name], cwd=tmp_path, env=environment, check=True)
    evidence = record.read(tmp_path / "run.record.json")
    assert evidence.steps is not None
    assert judge(evidence).first.cause is Cause.INPUT


def recorded(tmp_path: Path) -> callback.Recorder:
    return callback.Recorder(tmp_path / "run.record.json")


def test_any_iterable_is_timed(tmp_path: Path) -> None:
    recorder = recorded(tmp_path)
    assert list(recorder.batches([1, 2, 3])) == [1, 2, 3]
    assert recorder.broken == ""


class Parameters:
    """What the recorder asks an optimizer for."""

    param_groups = ({"params": ()},)


def test_batches_before_an_epochs_first_update_are_the_updates_too(tmp_path: Path) -> None:
    recorder = callback.Recorder(tmp_path / "run.record.json", sample=False)
    for _ in range(5):
        for batch in recorder.batches(range(8)):
            time.sleep(0.01)
            if batch % 4 == 3:
                recorder.optimizing()
                recorder.optimized(Parameters())
        list(recorder.batches(range(3)))  # validation, which no update follows
    found = recorder.document()
    assert recorder.broken == ""
    assert found is not None
    assert found["setup"]["accumulation"] == 4
    assert found["steps"]["steps"] == found["counters"]["steps"] >= 32
    outside = 1 - found["steps"]["steps"] * found["steps"]["seconds"] / found["watched_seconds"]
    assert outside < 0.1


def test_a_loop_without_a_loader_is_timed_from_one_update_to_the_next(tmp_path: Path) -> None:
    """Two optimizers update in each step, as in adversarial training."""
    recorder = callback.Recorder(tmp_path / "run.record.json", sample=False)
    judge, maker = Parameters(), Parameters()
    for _ in range(12):
        time.sleep(0.01)
        for optimizer in (judge, maker):
            recorder.optimizing()
            recorder.optimized(optimizer)
    found = recorder.document()
    assert recorder.broken == ""
    assert found is not None
    steps = found["steps"]
    assert steps["steps"] == found["counters"]["steps"] == 6  # of 12, five warm up
    assert 0.01 <= steps["seconds"] < 0.1
    assert not steps.keys() & {"data_wait", "compute", "other"}
    assert "mid_step_seconds" not in found["counters"]


def test_a_loop_with_an_optimizer_for_each_task_is_timed_too(tmp_path: Path) -> None:
    """As in learning to learn: a copy of the model, and an optimizer of it, for two updates."""
    recorder = callback.Recorder(tmp_path / "run.record.json", sample=False)
    for _ in range(12):
        optimizer = Parameters()
        for _ in range(2):
            time.sleep(0.005)
            recorder.optimizing()
            recorder.optimized(optimizer)
    found = recorder.document()
    assert recorder.broken == ""
    assert found is not None
    assert found["steps"]["steps"] == 24 - 6  # the first ends none, and five warm up
    assert 0.005 <= found["steps"]["seconds"] < 0.05


def test_updates_before_a_loader_comes_are_no_steps_of_its_loop(tmp_path: Path) -> None:
    recorder = callback.Recorder(tmp_path / "run.record.json", sample=False)
    for _ in range(8):
        recorder.optimizing()
        recorder.optimized(Parameters())
    for _ in recorder.batches(range(9)):
        time.sleep(0.005)
        recorder.optimizing()
        recorder.optimized(Parameters())
    found = recorder.document()
    assert found is not None
    assert found["steps"]["steps"] == found["counters"]["steps"] == 4  # of 9, five warm up
    assert found["steps"]["compute"] >= 0.005


def test_a_fault_of_the_recorder_never_reaches_the_run(tmp_path: Path) -> None:
    recorder = recorded(tmp_path)
    recorder._over = None  # type: ignore[assignment, method-assign]
    assert list(recorder.batches([1, 2, 3])) == [1, 2, 3]
    assert "TypeError" in recorder.broken


def test_an_error_of_the_source_is_the_runs_own(tmp_path: Path) -> None:
    def source() -> Any:
        yield 1
        raise ValueError("the data's own")

    with pytest.raises(ValueError, match="the data's own"):
        list(recorded(tmp_path).batches(source()))


def test_a_folder_that_cannot_be_written_ends_the_record_alone(tmp_path: Path) -> None:
    recorder = callback.Recorder(tmp_path / "absent" / "run.record.json")
    recorder._failure = {"kind": "E", "text": ""}
    recorder.stop()
    assert recorder.broken


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_the_surroundings_see_a_busy_process() -> None:
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        before = surroundings.observed(busy.pid)
        time.sleep(1.0)
        found = surroundings.host_between(before, surroundings.observed(busy.pid))
    finally:
        busy.send_signal(signal.SIGKILL)
        busy.wait()
    assert found["run_cores"] > 0.5 or found["starved_share"] > 0.3  # it works, or is kept from it
    Evidence.model_validate_json(json.dumps({"trainwright_record": 1, "host": found}), strict=True)


def test_the_record_is_the_programs_own_version() -> None:
    assert notes.RECORD == 1
    assert trainwright.__version__


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_state_that_is_kept_in_a_file_is_told_from_a_checkpoint(tmp_path: Path) -> None:
    kept = repr(str(tmp_path / "state.pt"))
    save, load = f"torch.save(net.state_dict(), {kept})", f"torch.load({kept})"
    before = f"net.register_forward_hook(lambda *_: ({save}, {load}) and None)"
    within = observed(script(tmp_path, making="pass", before=before)).evidence.counters
    assert within is not None
    assert within.loads == pytest.approx(within.steps, abs=2)
    assert within.mid_step_seconds
    beside = observed(script(tmp_path, making="pass", after=save)).evidence.counters
    assert beside is not None
    assert beside.checkpoints == pytest.approx(beside.steps, abs=2)
    assert (beside.loads, beside.mid_step_seconds) == (0, 0)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_thread_that_waits_within_the_step_is_blocked_and_one_that_works_is_not(
    tmp_path: Path,
) -> None:
    sleeps = "net.register_forward_hook(lambda *_: time.sleep(0.02))"
    waiting = observed(script(tmp_path, making="pass", before=sleeps)).evidence.steps
    assert waiting is not None
    assert waiting.blocked is not None
    assert waiting.compute is not None
    assert 0.02 <= waiting.blocked <= waiting.compute  # nobody sleeps for less than was asked for
    works = "net.register_forward_hook(lambda *_: sum(range(300_000)) and None)"
    working = observed(script(tmp_path, making="pass", before=works)).evidence.steps
    assert working is not None
    assert working.blocked is not None
    assert working.compute is not None
    assert working.blocked < 0.2 * working.compute
    assert working.forward is not None
    assert working.backward is not None
    assert working.optimizer is not None
    parts = working.forward + working.backward + working.optimizer
    assert parts == pytest.approx(working.compute, rel=0.01)


POOL = """
import multiprocessing, time
def busy(_):
    while time.process_time() < 1.5:
        pass
if __name__ == "__main__":
    with multiprocessing.Pool(2) as pool:
        pool.map(busy, range(2))
"""


def test_what_a_command_without_a_step_computed_is_its_own(tmp_path: Path) -> None:
    path = tmp_path / "pool.py"
    path.write_text(POOL, encoding="utf-8")
    before = os.times()
    evidence = observed(path).evidence
    after = os.times()
    # What the system charged us for the command and its pool, however long they waited for cores.
    spent = sum(after[2:4]) - sum(before[2:4])
    assert spent >= 3.0  # two processes of 1.5 s each
    assert evidence.host is not None
    assert evidence.host.run_cores is not None
    assert evidence.watched_seconds is not None
    assert evidence.host.run_cores * evidence.watched_seconds == pytest.approx(spent, rel=0.1)


def test_a_command_in_which_no_step_was_seen_is_not_told_to_run_the_command() -> None:
    evidence = running.run([sys.executable, "-c", "pass"]).evidence
    remedies = " ".join(
        render(each.remedy, "en") for each in judge(evidence).unseen if each.remedy is not None
    )
    assert "recorder.batches" in remedies
    assert "trainwright diagnose -- python" not in remedies


RANKS = """
import os, torch, torch.distributed as dist, torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel

def train(rank):
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="{port}")
    dist.init_process_group("gloo", rank=rank, world_size=2)
    net = DistributedDataParallel(torch.nn.Linear(64, 64))
    optimizer = torch.optim.SGD(net.parameters(), 0.01)
    for _ in range(40):
        optimizer.zero_grad()
        net(torch.randn(8, 64)).sum().backward()
        optimizer.step()
    dist.barrier()
    dist.destroy_process_group()

if __name__ == "__main__":
    mp.spawn(train, nprocs=2)
"""


@pytest.mark.slow
@pytest.mark.parametrize("attempt", range(3))  # a second profiler killed one of three such runs
def test_ranks_that_part_at_the_end_are_known_to_have_been_two(
    tmp_path: Path, attempt: int
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    path = tmp_path / "ranks.py"
    path.write_text(RANKS.replace("{port}", str(port)), encoding="utf-8")
    outcome = observed(path)
    assert outcome.exit_code == 0
    setup = outcome.evidence.setup
    assert setup is not None
    assert (setup.world_size, setup.backend, setup.strategy) == (2, "gloo", "ddp")
