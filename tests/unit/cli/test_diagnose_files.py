# ruff: noqa: E501 - what tools print is as wide as it is
"""``trainwright diagnose FILE...``: evidence in files of other tools."""

import gzip
import json
import pickle
import sys

import pytest

LOG = "step 10 loss 2.31 data_time 0.95s batch_time 1.21s\nstep 20 loss 2.11 data_time 0.97s batch_time 1.22s\n"
SMI = """\
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|   0  NVIDIA GeForce RTX 3060        On  |   00000000:01:00.0  On |                  N/A |
| 53%   45C    P2            114W /  170W |    9216MiB /  12288MiB |      7%      Default |
"""
TRACE = {
    "traceEvents": [
        {"ph": "X", "cat": "cpu_op", "name": "aten::conv2d", "pid": 1, "tid": 1, "ts": 0, "dur": 9},
        {"ph": "X", "cat": "user_annotation", "pid": 1, "tid": 1, "ts": 9, "dur": 91,
         "name": "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"},
    ]
}  # fmt: skip
ERROR = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total capacity of 23.65 GiB of which 1.66 GiB is free."


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def made(name, content):
        (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
        return name

    return made


def document(inside, *arguments):
    outcome = inside("diagnose", *arguments, "--json")
    assert outcome.err == ""
    return json.loads(outcome.out)


def test_the_text_of_an_error_is_explained_like_any_other_file(inside, file):
    name = file("error.log", ERROR)
    told = inside("diagnose", name).out
    assert told == inside("diagnose", "--traceback", name).out
    assert "1.66 GiB" in told


def test_files_of_several_tools_make_one_verdict(inside, file):
    told = inside("diagnose", file("train.log", LOG), file("smi.txt", SMI)).out
    assert "Input pipeline" in told
    assert "Waiting for data   960 ms   79 %" in told
    assert "smi.txt: nvidia-smi table" in told
    assert "not there: step times: this tool does not measure them" in told
    held = document(inside, "train.log", "smi.txt")
    assert held["evidence"]["gpus"][0]["name"] == "NVIDIA GeForce RTX 3060"
    assert held["evidence"]["steps"]["data_wait"] == pytest.approx(0.96)
    assert [each["formats"] for each in held["files"]] == [["training log"], ["nvidia-smi table"]]
    assert sum(each["seconds"] for each in held["budget"]["shares"]) == pytest.approx(1.215)


def test_korean(inside, file):
    told = inside("diagnose", file("train.log", LOG), "--lang", "ko").out
    assert "데이터 대기" in told
    assert "diagnose." not in told


@pytest.mark.parametrize(
    "content",
    [
        LOG.encode("utf-16"),
        LOG.encode("utf-16-le"),
        b"\xef\xbb\xbf" + LOG.encode(),
        ("학습 시작\n" + LOG).encode("cp949"),
        "".join(f"\x1b[32m[rank0]:\x1b[0m {line}\n" for line in LOG.splitlines()).encode(),
        "".join(f"[default3]:{line}\r\n" for line in LOG.splitlines()).encode(),
        ("<pre>" + LOG.replace("0.95", "<b>0.95</b>") + "</pre>").encode(),
        b"caf\xe9\xff\n" + LOG.encode(),
        gzip.compress(LOG.encode(), mtime=0),
    ],
)
def test_a_log_in_any_encoding_reads_the_same(inside, file, content):
    held = document(inside, file("a.log", content))
    assert held["evidence"]["steps"]["data_wait"] == pytest.approx(0.96)


def test_one_paste_of_two_tools_is_read_for_both(inside, file):
    held = document(inside, file("paste.txt", "$ nvidia-smi\n" + SMI + "$ tail train.log\n" + LOG))
    assert held["files"][0]["formats"] == ["nvidia-smi table", "training log"]


@pytest.mark.parametrize("packed", [False, True])
def test_a_trace_is_told_by_what_it_holds(inside, file, packed):
    content = json.dumps(TRACE).encode()
    held = document(inside, file("t.bin", gzip.compress(content) if packed else content))
    assert held["verdict"]["cause"] == "input"
    assert not held["budget"]["of_step"]


def test_standard_input_and_records_are_files_too(trainwright, inside, file):
    held = trainwright("diagnose", "-", "--json", stdin=LOG.encode())
    assert json.loads(held.out)["files"][0]["file"] == "stdin"
    record = file("a.record.json", json.dumps({"trainwright_record": 1, "setup": {"batch": 3}}))
    assert document(inside, record, file("a.log", LOG))["evidence"]["setup"] == {"batch": 3}


def test_the_first_of_two_step_times_counts_and_the_second_is_named(inside, file):
    held = document(inside, file("a.log", LOG), file("b.log", LOG.replace("1.2", "9.2")))
    assert held["evidence"]["steps"]["seconds"] == pytest.approx(1.215)
    assert "an earlier file" in held["files"][1]["missing"][-1]


def test_what_files_say_can_be_kept_as_a_record(inside, file, tmp_path):
    assert inside("diagnose", file("a.log", LOG), "--record", "kept.json").code == 0
    kept = json.loads((tmp_path / "kept.json").read_text(encoding="utf-8"))
    assert kept["steps"]["data_wait"] == pytest.approx(0.96)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "empty"),
        ("all went well\n", "no known format"),
        (ERROR, "--traceback"),
        (b"\x00\x01\x02" * 999, "no known format"),
        ('{"trainwright_record":1,"gpus":[{"utilisation":{"mean":33}}]}', "35 % is 0.35"),
        ('{"traceEvents": [', "no operators"),
        (gzip.compress(b"x" * 999, mtime=0)[:-9], "damaged"),
        ("# gpu   pwr  sm\n# Idx  W  %\n", "no row with figures"),
    ],
)
def test_a_file_that_says_nothing_is_refused_by_name(inside, file, content, says):
    complaint = inside("diagnose", file("good.log", LOG), file("odd.bin", content)).complaint
    assert says in complaint
    assert "odd.bin" in complaint


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["absent.log"], "no such file"),
        (["."], "folder"),
        (["a.log", "--pid", "1"], "leave these out"),
        (["a.log", "--traceback", "b"], "leave these out"),
        (["a.log", "--", "python"], "leave these out"),
    ],
)
def test_files_that_do_not_go_with_the_rest_are_refused(inside, file, arguments, says):
    file("a.log", LOG)
    assert says in inside("diagnose", *arguments).complaint


SNAPSHOT = {
    "segments": [
        {"device": 0, "address": 0, "total_size": 2 << 20, "blocks": [
            {"size": 2 << 20, "state": "active_allocated",
             "frames": [{"filename": "train.py", "line": 10, "name": "forward"}]}]},
    ],
    "device_traces": [[{"action": "oom", "size": 2 << 30, "device_free": 100 << 20}]],
}  # fmt: skip


def test_a_memory_snapshot_says_what_did_not_fit_and_who_held_the_memory(inside, file):
    name = file("snapshot.pickle", pickle.dumps(SNAPSHOT))
    told = inside("diagnose", name).out
    assert "2.00 GiB was asked for, 100 MiB was free" in told
    assert "train.py:10 forward   2 MiB   1 allocation" in told
    held = json.loads(inside("diagnose", "--traceback", name, "--json").out)
    assert held["timeline"]["owners"][0]["place"] == "train.py:10 forward"
    assert "diagnose." not in inside("diagnose", name, "--lang", "ko").out
    assert "explained alone" in inside("diagnose", file("a.log", LOG), name).complaint


def test_a_command_keeps_its_own_options(trainwright):
    words = ["--", sys.executable, "-c", "import sys; print(sys.argv[1:])", "--json", "--", "x"]
    assert "['--json', '--', 'x']" in trainwright("diagnose", *words).out
