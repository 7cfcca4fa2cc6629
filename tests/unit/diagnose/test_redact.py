"""What identifies a person or opens an account is in no record; what verdicts read is."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwright.diagnose.commandline import command
from trainwright.diagnose.record import without_private
from trainwright.diagnose.recorder.redact import here, private

KNOWN = private(
    {"WANDB_API_KEY": "q7x9", "PROJECT": "acme-merger-2", "SHELL": "/bin/sh"},
    ["--data", "customers-eu", "--pin", "1234", "train.py"],
    ["/srv/people/mira", r"C:\Users\Mira Kim"],
    ["mira", "lab-box-3", "root"],
)

# Made up, and put together here so that no scanner takes them for real ones.
SECRETS = [
    "hf_" + "aB3dE5fG7h" * 3,
    "sk-" + "proj-" + "Ab12" * 8,
    "sk-" + "ant-api03-" + "Ab12" * 8,
    "ghp_" + "Ab12" * 9,
    "github_pat_" + "11ABCDEFG0" * 4,
    "glpat-" + "Ab12-" * 4,
    "xoxb-" + "1234567890-" * 2 + "AbCdEf",
    "nvapi-" + "Ab12" * 10,
    "AKIA" + "IOSFODNN7EXAMPLE",
    "AIza" + "Sy" + "Ab12" * 8,
    "eyJ" + "hbGciOiJIUzI1NiJ9" + "." + "eyJzdWIiOiIxIn0" + "." + "c2lnbmF0dXJl",
    "0123456789abcdef" * 2 + "01234567",
    "GPU-" + "01234567-89ab-cdef-0123-456789abcdef",
    "mira.kim+work@example.org",
]


@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_is_known_by_its_shape(secret: str) -> None:
    assert KNOWN.prose(f"refused: {secret}, again") == "refused: …, again"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("https://mira:hunter2@host.example/x", "https://…@host.example/x"),
        ("https://host.example/?a=b&token=hunter2&n=3", "https://host.example/?a=b&token=…&n=3"),
        ("Authorization: Bearer hunter2secret", "Authorization: … …"),
        ("password = 'my hunter2 word'; n=3", "password = '…'; n=3"),
        ('{"apiKey": "hunter2", "batch": 8}', '{"apiKey": "…", "batch": 8}'),
        ("['curl', '--auth-token', 'hunter2', '-v']", "['curl', '--auth-token', '…', '-v']"),
        ("DB_PASSWORD=hunter2 python train.py", "DB_PASSWORD=… python train.py"),
        ("the key is q7x9.", "the key is …."),
        ("of acme-merger-2: customers-eu", "of …: …"),
        ("mira@lab-box-3: refused", "…@…: refused"),
    ],
)  # fmt: skip
def test_a_secret_is_known_by_its_name_or_from_this_computer(text: str, left: str) -> None:
    assert KNOWN.prose(text) == left


@pytest.mark.parametrize(
    ("path", "left"),
    [
        ("/home/joe/data/x.csv", "~/…"),
        ("/home/joe/work/acme/train.py", "~/…/train.py"),
        ("/home/joe", "~"),
        ("/root/.cache/a.bin", "~/…"),
        ("/Users/joe/Library/x.bin", "~/…"),
        ("/mnt/c/Users/joe/x.bin", "~/…"),
        ("/c/Users/joe/x.bin", "~/…"),
        ("/nfs/home/joe/x.bin", "~/…"),
        (r"C:\Users\joe\x.bin", "~/…"),
        (r"D:\\Users\\joe\\net\\train.py", "~/…/train.py"),
        ("C:/Users/joe/x.bin", "~/…"),
        (r"C:\Users\Joe Doe\data\x.bin", "~/…"),
        (r"C:\Documents and Settings\joe\x.bin", "~/…"),
        (r"\\server\home\joe\x.bin", "~/…"),
        ("/srv/people/mira/x.bin", "~/…"),
        (r"C:\Users\Mira Kim\x.bin", "~/…"),
        ("/home/joe/v/lib/python3.11/site-packages/torch/a.py", "~/…/site-packages/torch/a.py"),
        ("/home/joe/conda/lib/python3.11/random.py", "~/…/python3.11/random.py"),
        ("/opt/data/x.bin", "/opt/data/x.bin"),
        ("/usr/lib/python3.11/random.py", "/usr/lib/python3.11/random.py"),
        ("/data/homework/x.bin", "/data/homework/x.bin"),
        ("/rooted/x.bin", "/rooted/x.bin"),
    ],
)  # fmt: skip
def test_folders_of_people_are_shortened(path: str, left: str) -> None:
    assert KNOWN.prose(f'File "{path}", line 12') == f'File "{left}", line 12'
    assert KNOWN.prose(f"cannot open {path}: gone") == f"cannot open {left}: gone"


def test_a_name_with_a_space_is_left_out_of_quotes_whole() -> None:
    assert KNOWN.prose("'/home/joe/My Secret Data/x.csv' is gone") == "'~/…' is gone"


@pytest.mark.parametrize(
    "text",
    [
        "CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has 23.65 GiB of which 1.66 GiB is "
        "free. See PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
        "KeyError: 'layer.0.weight'",
        "max_tokens: 410, tokenizer=fast, monkeys",
        "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x128_16x4_nn_align4>(Params)",
        "https://discuss.pytorch.org/t/slow-data-loader/17?page=2",
        "RuntimeError: DataLoader worker (pid 4711) is killed by signal: Killed.",
        "torch 2.9.0+cu128",
    ],
)
def test_what_verdicts_read_stays(text: str) -> None:
    assert KNOWN.prose(text) == text


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["/home/joe/venv/bin/python3.11", "train.py", "--lr", "0.1"], "python3.11 … --lr …"),
        (["python", "-m", "acme.go", "--hf-token", "-dash", "-x"], "python -m … --hf-token … -x"),
        (["python", "t.py", "--lr=0.1", "trainer.devices=2", "-pSecret"], "python … --lr=… …"),
        (["torchrun", "--nproc_per_node=8", "t.py"], "torchrun --nproc_per_node=… …"),
        (["/opt/acme/secret-trainer", "-5", "--"], "…"),
        ([], ""),
    ],
)  # fmt: skip
def test_a_command_keeps_the_names_of_its_options(words: list[str], shown: str) -> None:
    assert command(words) == shown
    assert command(shown.split()) == shown, "a record that is written again stays as it is"


RECORD = {
    "trainwright_record": 1,
    "made_by": "callback",
    "command": "python train.py --hf-token {0}",
    "note": "{0}",
    "gpus": [{"name": "NVIDIA GeForce RTX 4090", "utilisation": {"mean": 0.4}}],
    "host": {"foreign_top": ["{0}"], "other_programs": [{"name": "{0}"}]},
    "setup": {"device": "cuda", "precision": "bf16-mixed", "optimizer": "adamw"},
    "profile": {
        "top": [{"name": "aten::mm {0}", "share": 0.5}],
        "host_top": [{"name": "torch/optim/adam.py:step({0})", "share": 0.5}],
    },
    "failure": {"kind": "OSError", "text": "of {0}: CUDA out of memory"},
    "unavailable": {"gpus": "{0}"},
}
MARK = "Zq7Marker"
SPOTS = st.sampled_from(
    [MARK, f"x/{MARK}/y.bin", f"a {MARK} b", f"pre{MARK}", f"https://u:{MARK}@h/x", f"{MARK}=1"]
)


def planted(value: object, text: str) -> object:
    """Return the record with the text at each place where a record may hold foreign text."""
    if isinstance(value, dict):
        return {key: planted(each, text) for key, each in value.items()}
    if isinstance(value, list):
        return [planted(each, text) for each in value]
    return value.replace("{0}", text) if isinstance(value, str) else value


@given(
    st.dictionaries(st.sampled_from(["HF_TOKEN", "PROJECT", "DATA_DIR"]), SPOTS, min_size=1),
    st.lists(st.tuples(st.sampled_from(["--lr", "--password", "-d"]), SPOTS)),
    st.sampled_from([f"/x/{MARK}", rf"C:\Users\{MARK}", f"/home/{MARK}", f"/home/a/{MARK} b"]),
)
def test_nothing_of_a_process_is_in_its_record(
    environment: dict[str, str], options: list[tuple[str, str]], home: str
) -> None:
    arguments = [word for option in options for word in option]
    known = private({**environment, "HOME": home}, arguments, [home], [MARK])
    held = (*environment.values(), *arguments, home, f"{home}/data/x.bin", f"'{home}/a b'")
    for text in held:
        record = without_private(planted(RECORD, text), known)  # type: ignore[arg-type]
        assert MARK not in json.dumps(record, ensure_ascii=False)
        assert record["gpus"] == RECORD["gpus"]
        assert record["setup"] == RECORD["setup"]
        assert "out of memory" in record["failure"]["text"]
        assert record["profile"]["host_top"][0]["name"].startswith("torch/optim/adam.py:step")


@pytest.mark.parametrize(
    "part", ["a", "/", "/a", "a=", "://", "'", "-----BEGIN PRIVATE KEY-----", "/home/b\\ ", "--a "]
)
def test_a_long_text_takes_time_in_proportion(part: str) -> None:
    def seconds(length: int) -> float:
        begun = time.process_time()
        KNOWN.prose(part * (length // len(part)))
        return time.process_time() - begun

    assert seconds(300_000) < 3, "0.4 s are usual; by the square it would be minutes"


def test_this_process_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/srv/people/zoe")
    monkeypatch.setenv("USERPROFILE", "/srv/people/zoe")
    monkeypatch.setenv("LOGNAME", "zoe")
    monkeypatch.setattr("socket.gethostname", lambda: "lab-box-7.example.org")
    known = here(["--run-name", "acme-merger"])
    text = known.prose("zoe at lab-box-7: acme-merger of /srv/people/zoe/train.py")
    assert text == "… at …: … of ~/train.py"
