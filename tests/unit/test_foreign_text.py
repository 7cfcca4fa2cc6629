"""No name changes what a file means: whatever we write is read by its own reader."""

import csv
import io
import json
import os
import re
import runpy
import shutil
import subprocess
import tokenize
from datetime import date
from itertools import cycle
from pathlib import Path
from types import CodeType
from typing import Any

import pytest
import yaml
from foreign import BREAKS, MARK, NAMES, UNSEEN
from hypothesis import given
from hypothesis import strategies as st

from trainwright import export
from trainwright.build.answer import Part
from trainwright.build.lists import FORMATS
from trainwright.cli.run import run
from trainwright.data import resources
from trainwright.diagnose import record
from trainwright.messages import Message, UserError
from trainwright.mig import parted
from trainwright.mig.commands import commands, kubernetes
from trainwright.mig.layout import Instance
from trainwright.plan import file
from trainwright.plan.evaluate import resolve
from trainwright.plan.schema import Plan
from trainwright.prices import Item, Price, total
from trainwright.prices.imports import Refused, read
from trainwright.probe.monitor.events import Event
from trainwright.probe.monitor.log import CsvLog
from trainwright.probe.reading import Missing
from trainwright.probe.sample import GpuSample, HostSample, Sample
from trainwright.yamltext import dump

TARGETS = (*export.TARGETS, *export.CLUSTERS)
CONTROL = re.compile(r"[\0-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
"""What a terminal obeys; a line end is ours."""
METADATA = re.compile(r"(?m)^# /// (?P<type>[a-zA-Z0-9-]+)$\s(?P<content>(^#(| .*)$\s)+)^# ///$")
"""PEP 723, reference implementation."""
LLAMA = {
    "model_type": "llama",
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}


def data_path(name: str) -> str:
    return os.path.normpath(f"/data/{name}")


def named(name: str, model: dict[str, Any] | None = None, task: str = "pretrain") -> Plan:
    return Plan.model_validate(
        {
            "name": name,
            "made_with": {name: name},
            "model": model or {"preset": "gpt2"},
            "workload": {
                "task": task,
                "inputs": {"sequence_length": 16},
                "effective_batch": 8,
                "dataset": {"path": data_path(name)},
                "lora": {"targets": [name]} if task == "lora" else None,
            },
            "machine": {"gpus": [{"id": "rtx-4090"}]},
        }
    )


SETTINGS = resolve(named("x")).settings
assert SETTINGS is not None


@pytest.fixture
def inside(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("LC_ALL", "C.UTF-8")

    def start(*arguments: object) -> tuple[int, str, str]:
        code = run([str(argument) for argument in arguments], lambda _path: 0)
        return code, *capsys.readouterr()

    return start


# Programs

COMMENT = re.compile(r"(?:^|(?<=[\r\n]))#[^\r\n]*[\r\n]+")
"""A line of it with its end, wherever Python ends a line."""


def program(text: str) -> Any:
    """Return what Python makes of a file, after the checks that every emitted one passes."""
    content = text.encode()
    encoding, lines = tokenize.detect_encoding(io.BytesIO(content).readline)
    assert (encoding, len(lines)) == ("utf-8", 1), "the first line says it"
    assert not METADATA.search(text)
    return meaning(compile(content, "train.py", "exec"))


def meaning(code: CodeType) -> Any:
    """Return what compiled code does, without its places: longer names move the lines below."""
    consts = (meaning(c) if isinstance(c, CodeType) else (type(c), repr(c)) for c in code.co_consts)
    names = (code.co_name, code.co_names, code.co_varnames, code.co_freevars)
    return code.co_code, names, tuple(consts)


@pytest.mark.parametrize(("target", "language"), [*zip(TARGETS, cycle(["en", "ko"]), strict=False)])
def test_every_program_is_the_same_whatever_the_plan_is_called(target: str, language: str) -> None:
    plain = export.files(target, named("x"), SETTINGS, {}, language)
    first = next(iter(plain))
    meant = program(plain[first])
    for name in NAMES:
        made = export.files(target, named(name), SETTINGS, {}, language)
        assert made.keys() == plain.keys()
        assert COMMENT.sub("", made[first]) == COMMENT.sub("", plain[first]), name
        # Compiling takes longest, and all targets write their comments alike.
        assert target != "plain" or program(made[first]) == meant, name
        document = json.loads(made.get("plan.json") or made["script_args.json"])
        assert document.get("name", name) == name
        data = document["data"]
        assert data_path(name) == (data if isinstance(data, str) else data["path"])


@given(st.text(max_size=200))
def test_the_program_of_a_plan_with_any_name_compiles(name: str) -> None:
    try:
        plan = named(name)
    except ValueError:  # half a character is not text, and a blank is not a name
        assert not name.strip() or any("\ud800" <= each <= "\udfff" for each in name)
        return
    program(export.files("plain", plan, SETTINGS, {}, "en")["train.py"])


@pytest.mark.parametrize("name", [each for each in NAMES if not set(each) & {"/", "\0"}])
def test_a_model_in_a_folder_of_any_name_is_exported(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(LLAMA))
    code = folder / f"{name[:50]}.py"
    code.write_text("def model():\n    pass\n")
    for model in (
        {"hf": str(folder)},
        {"python": {"file": str(code), "factory": name, "args": {name: name}}},
    ):
        files = export.files("plain", named("x", model), SETTINGS, {}, "en")
        program(files["train.py"])
        given = json.loads(files["plan.json"])["model"]
        assert given["arguments"] == model.get("python", {}).get("args", {})
        export.write(files, tmp_path / "out", overwrite=True)


# YAML


@pytest.mark.parametrize("name", NAMES)
def test_a_plan_is_the_same_to_every_reader_of_yaml(tmp_path: Path, name: str) -> None:
    code = {"file": f"{data_path(name)}.py", "factory": name, "args": {name: [name, 1e-5]}}
    plan = named(name, {"python": code}, "lora")
    text = file.text_of(plan)
    assert yaml.safe_load(text) == file.text_data(plan)
    assert file.parsed(text, "plan") == plan
    path = tmp_path / "some.plan.yaml"
    file.write(plan, path)
    read_back = file.read(path)
    assert read_back.model_copy(update={"made_with": plan.made_with}) == plan
    file.write(read_back, path)
    assert file.read(path) == read_back


@pytest.mark.parametrize("name", NAMES)
def test_what_other_tools_read_of_instances_is_theirs(name: str) -> None:
    entry = parted.Devices(devices=(0,), enabled=True, instances={name: 2}, filter=(name,))
    found = parted.Configurations(configs={name: (entry,)})
    text = parted.write(found)
    assert yaml.safe_load(text)["mig-configs"][name][0]["mig-devices"] == {name: 2}
    assert parted.read(text, "parted.yaml") == found
    [limits] = yaml.safe_load(kubernetes(name))["resources"].values()
    assert limits == {f"nvidia.com/mig-{name.replace('+', '.')}": 1}


# Shells


@pytest.fixture
def planned(tmp_path: Path, inside: Any) -> Any:
    """Return what is printed about jobs of all names, a GPU's instances at a time."""

    def ask(*options: str) -> list[str]:
        names, found = [*(name[:100] for name in NAMES), "two words"], []
        for first in range(0, len(names), 7):
            jobs = tmp_path / "jobs.yaml"
            needs = [{"name": each, "memory_gib": 1} for each in names[first : first + 7]]
            jobs.write_text(dump({"jobs": needs}), encoding="utf-8")
            code, out, err = inside("mig", "a100-40gb", "--jobs", jobs, *options)
            assert (code, err) == (0, "")
            found.append(out)
        return found

    return ask


@pytest.mark.skipif(shutil.which("bash") is None, reason="asks a real shell")
def test_a_shell_does_what_the_lines_say_whatever_a_job_is_called(
    planned: Any, tmp_path: Path
) -> None:
    shown = "printf '%s\\n' \"$CUDA_VISIBLE_DEVICES\""
    lines, jobs = ["sudo() { printf 'sudo %s\\n' \"$*\"; }"], []
    for answer in map(json.loads, planned("--json")):
        lines += [*answer["commands"], *answer["undo"]]
        lines += [each for line in answer["environment"] for each in (line, shown)]
        jobs += [each["job"] for each in answer["instances"]]
    assert {*jobs} == {*(name[:100] for name in NAMES), "two words"}
    done = subprocess.run(
        ["bash"], input="\n".join(lines), cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert not (tmp_path / MARK).exists()
    said = done.stdout.splitlines()
    assert len(said) == len(lines) - 1 - len(jobs)
    assert all(line.startswith(("sudo nvidia-smi", "MIG-<UUID of ")) for line in said)


@pytest.mark.skipif(shutil.which("bash") is None, reason="asks a real shell")
def test_a_gap_in_a_command_is_no_redirection(tmp_path: Path) -> None:
    from trainwright.catalog.mig import mig_tables

    table = next(each for each in mig_tables() if each.id == "a100-40gb")
    before = (Instance("3g.20gb", 4), Instance("1g.5gb", 0))
    found = commands(table, before[:1], current=before)
    script = "sudo() { printf '%s ' \"$@\"; }; nvidia-smi() { :; }\n" + "\n".join(found.apply)
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "-gi <1g.5gb@0>" in done.stdout
    assert list(tmp_path.iterdir()) == []


# Terminals


def test_a_terminal_gets_lines_and_nothing_that_it_obeys(planned: Any) -> None:
    for options in ((), ("--json",), ("--lang", "ko")):
        out = "".join(planned(*options))
        assert not CONTROL.search(out)
        assert "x1b]0;title" in out, "shown"


@pytest.mark.parametrize("name", NAMES)
def test_a_complaint_is_one_line_whatever_it_quotes(inside: Any, name: str) -> None:
    for arguments in (
        ["estimate", f"./{name}.plan.yaml"],
        ["advise", "gpt2", "--set", f"{name}={name}"],
        ["mig", f"x{name}", "--list"],
        ["catalog", "prices", "import", f"./{name}.csv"],
        ["diagnose", "--record", f"./{name}.json"],
        [f"x{name}"] if not set(name) & set("/\\.") else ["nothing"],
    ):
        code, out, err = inside(*arguments)
        assert (code, out) == (2, ""), arguments
        assert len(err.splitlines()) == 1
        assert not CONTROL.search(err)


def test_a_plan_of_any_name_is_printed_as_lines(inside: Any, tmp_path: Path) -> None:
    for number, name in enumerate((*BREAKS, *UNSEEN)):
        path = tmp_path / f"{number}.plan.yaml"
        file.write(named(name), path)
        code, out, err = inside("estimate", path)
        assert (code, err) == (0, "")
        assert not CONTROL.search(out), name
        code, out, _ = inside("estimate", path, "--json")
        assert not CONTROL.search(out), name
        json.loads(out)


def test_only_our_own_colours_reach_a_colour_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    from trainwright.cli.screen import Screen

    class Colours(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name in NAMES:
        outs = []
        for each in ("name", name):
            screen = Screen(stream := Colours(), "en")
            screen.line(each, "bold red")
            screen.say("export.cannot-write", "bold", path=each, reason=each)
            screen.bullets([each])
            screen.table([(each, each)], headings=[each, each], title=each)
            screen.whole_line(each)
            outs.append(stream.getvalue())
        plain, foreign = (re.sub(r"\x1b\[[0-9;]*m", "", out) for out in outs)
        assert not CONTROL.search(foreign), name
        colours = [set(re.findall(r"\x1b\[[0-9;]*m", out)) for out in outs]
        assert colours[0] == colours[1], name
        assert len(plain.splitlines()) <= len(foreign.splitlines())


def test_cards_and_prices_of_any_name_are_printed_as_lines(
    inside: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINWRIGHT_HARDWARE", str(tmp_path))
    cards = [
        {"id": f"card-{number}", "name": f"{number} {name}"[:100], "vendor": "NVIDIA",
         "segment": "workstation", "architecture": name[:50], "compute_capability": "8.9",
         "source": name, "confidence": "medium", "memory_gib": 48, "bandwidth_gb_s": 900}
        for number, name in enumerate((*BREAKS, *UNSEEN))
    ]  # fmt: skip
    (tmp_path / "gpu").mkdir()
    (tmp_path / "gpu" / "mine.yaml").write_text(
        dump({"schema": 1, "gpus": cards}), encoding="utf-8"
    )
    prices = tmp_path / "prices.csv"
    rows = [["part_or_name", "unit_price", "currency", "seller"]]
    sellers = [name for name in NAMES if not re.search(r"[\0-\x08\v\f\x0e-\x1f]", name)]
    rows += [["card-1", str(100 + number), "USD", each] for number, each in enumerate(sellers)]
    with prices.open("w", newline="", encoding="utf-8") as lines:
        csv.writer(lines, quoting=csv.QUOTE_ALL).writerows(rows)
    for arguments in (
        ["list"],
        ["show", "card-3"],
        ["check"],
        ["prices", "import", prices, "--keep"],
        *(["prices", "add", "card-2", "99 USD", f"--seller={name}"] for name in UNSEEN),
        ["prices", "list"],
        ["prices", "show", "card-1"],
    ):
        code, out, err = inside("catalog", *arguments)
        assert (code, err) == (0, ""), arguments
        assert not CONTROL.search(out), arguments
        code, out, err = inside("catalog", *arguments, "--json")
        assert not CONTROL.search(out), arguments
        json.loads(out)


def test_an_exported_program_complains_in_one_line() -> None:
    space = runpy.run_path(str(resources("export", "shared", "strict.py")))
    for name in NAMES:
        line = space["InputError"](f"/data/{name}: not there").line()
        assert len(line.splitlines()) == 1
        assert not CONTROL.search(line)


# Lists, logs and records


def part(name: str) -> Part:
    price = Price(100.0, 100.0, 100.0, "USD", "user", date(2026, 6, 28), "fresh", name)
    return Part("gpu", name, name, 1, price, 0)


@pytest.mark.parametrize("name", NAMES)
def test_a_list_of_parts_is_read_back_and_computes_nothing(name: str) -> None:
    from types import SimpleNamespace

    one = part(name)
    build: Any = SimpleNamespace(parts=(one,), total=total([Item(name, 1, one.price)], "USD"))
    text = FORMATS["csv"](build)
    head, row = csv.reader(io.StringIO(text, newline=""), strict=True)
    assert len(row) == len(head)
    assert not any(re.match(r"\s*[=+@＝\t\r]|-\D|-\d+[^\d.,]", cell) for cell in row), row
    [line] = read(text, "parts.csv", date(2026, 7, 1)).rows
    assert not isinstance(line, Refused)
    same = name.replace("\r\n", "\n").replace("\r", "\n").strip()
    assert (line.name, line.seller) == (same, same)
    assert len(FORMATS["pcpartpicker"](build).splitlines()) == 2
    assert len(FORMATS["markdown"](build).splitlines()) == 4


def test_a_log_of_readings_has_a_row_a_sample(tmp_path: Path) -> None:
    log = CsvLog(tmp_path / "log.csv")
    for number, name in enumerate(NAMES):
        missing = Missing(Message.of(name))
        gpu = GpuSample(0, name, missing, 4 << 30, 24 << 30, 60.0, 200.0, 450.0)
        sample = Sample(number, 1.8e9 + number, HostSample(cpu=missing), (gpu,), 0)
        log.write(sample, [Event(1.8e9, "driver-lost", Message.of(name))])
    log.close()
    text = (tmp_path / "log.csv").read_bytes().decode()
    rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    assert len(rows) == len(NAMES) + 1
    assert {len(row) for row in rows} == {len(rows[0])}
    for row in rows:
        assert not re.match(r"\s*[=+@＝\t\r-]", row[-1]), row[-1]
        assert not CONTROL.search(row[-1])


@pytest.mark.parametrize("name", NAMES)
def test_a_record_comes_back(name: str) -> None:
    data = {"trainwright_record": 1, "gpus": [{"name": name}], "host": {"foreign_top": [name]}}
    try:
        evidence = record.parsed(json.dumps(data), "run")
    except UserError:
        return
    text = record.text_of(evidence)
    assert record.parsed(text, "run") == evidence
    assert not CONTROL.search(text)
