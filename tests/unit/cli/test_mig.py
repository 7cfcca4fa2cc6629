"""``trainwright mig`` as people call it."""

import json

import pytest

from trainwright.data import resources
from trainwright.messages import LANGUAGES

JOBS = """
jobs:
  - {name: notebook, memory_gib: 4, hours: 1, count: 3}
  - {name: service, memory_gib: 17, hours: 2, priority: 1}
"""


@pytest.fixture
def jobs(tmp_path):
    path = tmp_path / "jobs.yaml"
    path.write_text(JOBS)
    return path


def test_a_layout_that_fits_says_where_and_how(inside):
    done = inside("mig", "a100-40gb", "--check", "3g.20gb:1,1g.5gb:4", "--json")
    assert done.code == 0
    answer = json.loads(done.out)
    assert answer["valid"] is True
    assert [each["profile"] for each in answer["instances"]].count("1g.5gb") == 4
    assert {each["start"] for each in answer["instances"]} == {0, 1, 2, 3, 4}
    assert "sudo nvidia-smi -i 0 -mig 1" in answer["commands"]


def test_a_layout_that_does_not_fit_says_why(inside):
    done = inside("mig", "a100-40gb", "--check", "2g.10gb:4", "--json")
    assert done.code == 1
    answer = json.loads(done.out)
    assert answer["valid"] is False
    assert "2g.10gb" in answer["reason"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["rtx-4090", "--list"], "cannot be cut"),
        (["no-such-card", "--list"], "no-such-card"),
        (["a100-40gb", "--check", "9g.90gb:1"], "9g.90gb"),
        (["a100-40gb", "--check", "3g.20gb:x"], "3g.20gb:x"),
        (["a100-40gb", "--check", "1g.5gb", "--current", "3g.20gb@2"], "0, 4"),
        (["a100-40gb"], "--jobs"),
        (["a100-40gb", "--list", "--check", "1g.5gb"], "--list"),
        (["a100-40gb", "--jobs", "nowhere.yaml"], "nowhere.yaml"),
    ],
)
def test_what_cannot_be_answered_is_refused_in_one_line(inside, arguments, told):
    done = inside("mig", *arguments)
    assert done.code == 2
    assert done.out == ""
    (line,) = done.err.strip().splitlines()
    assert told in line


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("jobs: []", "no job"),
        ("jobs: [{name: a}]", "memory_gib"),
        ("jobs: [{name: ' ', memory_gib: 1}]", "jobs[0]: its name is blank"),
        ("jobs: [{name: a, memory_gib: -1}]", "memory_gib"),
        ("jobs: [{name: a, memory_gib: 1, count: 10000}]", "200"),
        ("jobs: [", "jobs.yaml"),
        ("", "nothing stands there"),
        ("foo: 1", "missing"),
        ("jobs: [{name: a, memory_gib: lots}]", "lots: must be a positive number"),
        (
            "jobs: [{name: a, memory_gib: 1, hour: 2}]",
            ":1: jobs[0].hour: there is no such key",
        ),
        ("jobs: [{name: a, plan: nowhere.plan.yaml}]", "nowhere.plan.yaml"),
    ],
)
def test_bad_jobs_are_refused_in_one_line(inside, tmp_path, text, told):
    path = tmp_path / "jobs.yaml"
    path.write_text(text)
    done = inside("mig", "a100-40gb", "--jobs", str(path))
    assert (done.code, done.out) == (2, "")
    assert told in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert str(tmp_path) in done.err


def test_jobs_get_instances_and_the_other_ways_stand_beside(inside, jobs):
    done = inside("mig", "a100-40gb", "--jobs", str(jobs), "--json")
    assert done.code == 0
    answer = json.loads(done.out)
    of = {}
    for each in answer["instances"]:
        of.setdefault(each["job"], []).append(each["memory_gib"])
    assert len(of["notebook"]) == 3
    assert min(of["notebook"]) >= 4
    assert of["service"][0] >= 17
    ways = {each["way"]: each for each in answer["alternatives"]}
    assert set(ways) == {"mig", "mps", "time-slicing", "sequence", "vgpu", "alone"}
    assert ways["sequence"]["finish_seconds"] == [5 * 3600, 5 * 3600]


def test_a_job_larger_than_any_instance_is_named(inside, tmp_path):
    path = tmp_path / "jobs.yaml"
    path.write_text("jobs: [{name: small, memory_gib: 4}, {name: huge, memory_gib: 90}]")
    done = inside("mig", "a100-40gb", "--jobs", str(path), "--json")
    assert done.code == 1
    answer = json.loads(done.out)
    assert answer["unplaced"] == ["huge"]
    assert "90.0 GiB" in answer["reason"]
    assert "39.5 GiB" in answer["reason"]  # what CUDA offers of the whole card


@pytest.mark.parametrize("language", LANGUAGES)
def test_people_read_it_in_their_language(inside, jobs, language):
    for arguments in (["--list"], ["--check", "1g.5gb:7"], ["--jobs", str(jobs)]):
        done = inside("mig", "a100-40gb", *arguments, "--lang", language)
        assert done.code == 0
        assert "1g.5gb" in done.out
        assert not [word for word in done.out.split() if word.startswith(("mig.", "cli."))]


def test_a_file_of_mig_parted_is_judged_by_its_configurations(inside, tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(
        "version: v1\nmig-configs:\n"
        "  good: [{devices: all, mig-enabled: true, mig-devices: {3g.20gb: 2}}]\n"
        "  bad: [{devices: all, mig-enabled: true, mig-devices: {2g.10gb: 4}}]\n"
        "  off: [{devices: all, mig-enabled: false}]\n"
    )
    done = inside("mig", "a100-40gb", "--check", str(path), "--json")
    assert done.code == 1
    found = {each["name"]: each["valid"] for each in json.loads(done.out)["configs"]}
    assert found == {"good": True, "bad": False}
    assert "bad" in inside("mig", "a100-40gb", "--check", str(path), "--lang", "ko").out


def test_jobs_without_room_are_counted_and_those_too_large_are_told_why(inside, tmp_path):
    path = tmp_path / "jobs.yaml"
    path.write_text("jobs: [{name: a, memory_gib: 10, count: 12}, {name: b, memory_gib: 78}]")
    reason = json.loads(inside("mig", "a100-80gb", "--jobs", str(path), "--json").out)["reason"]
    assert "a x8" in reason
    assert "7g.80gb" in reason
    told = inside("mig", "a100-80gb", "--jobs", str(path), "--lang", "ko").out
    assert "78.0 GiB" in told
    assert "_Jobs" not in told


@pytest.fixture
def driver(nvml_stub, monkeypatch):
    """Let this computer have the GPUs of one of the stub's scenarios."""

    def take(scenario):
        for name, value in nvml_stub.variables(scenario).items():
            monkeypatch.setenv(name, value)

    return take


def test_the_drivers_own_table_is_listed_and_marked_with_what_differs(inside, driver):
    driver("mig-other")
    answer = json.loads(inside("mig", "h100-80gb", "--list", "--json").out)
    assert answer["placements"] == "read"
    assert answer["table"]["driver"] == "580.65.06"
    assert any("{0,2,4,6}:2" in each for each in answer["table"]["differences"])
    assert inside("mig", "h100-80gb", "--check", "2g.20gb:4").code == 0
    for language, told in (("en", "read from this computer's driver"), ("ko", "드라이버")):
        assert told in inside("mig", "h100-80gb", "--list", "--lang", language).out


def test_a_gpu_that_is_not_here_keeps_the_published_table(inside, driver):
    driver("mig-other")
    answer = json.loads(inside("mig", "a100-80gb", "--list", "--json").out)
    assert (answer["placements"], answer["table"]["driver"]) == ("published", None)


def test_a_stranger_to_the_catalog_is_planned_by_its_drivers_table(inside, driver, tmp_path):
    driver("mig-strange")
    path = tmp_path / "jobs.yaml"
    path.write_text("jobs: [{name: a, memory_gib: 40, hours: 1}, {name: b, memory_gib: 20}]")
    for name in ("local", "NVIDIA Prototype 8"):
        answer = json.loads(inside("mig", name, "--jobs", str(path), "--json").out)
        assert answer["valid"] is True
        assert {each["profile"] for each in answer["instances"]} <= {"1g.25gb", "2g.50gb"}


def test_jobs_of_this_computer_start_from_what_its_gpus_are_cut_into(inside, driver, jobs):
    driver("mig-two")
    answer = json.loads(inside("mig", "local", "--count", "2", "--jobs", str(jobs), "--json").out)
    assert answer["valid"] is True
    assert not any("-mig 1" in line for line in answer["commands"])
    assert {line.split("-i ")[1][0] for line in answer["commands"]} <= {"0", "1"}
    assert any("3g.40gb@4" in note for note in answer["table"]["notes"])
    one = json.loads(inside("mig", "local:1", "--check", "1g.10gb", "--json").out)
    assert one["commands"] == ["sudo nvidia-smi mig -i 1 -cgi 19:6 -C"]


@pytest.mark.parametrize(
    ("scenario", "arguments", "told"),
    [
        ("plain", ["local", "--list"], "no GPU to cut"),
        ("not-loaded", ["local", "--list"], "driver"),
        ("mig-two", ["local:7", "--list"], "local:1"),
        ("mig-two", ["local", "--count", "3", "--list"], "--count 3"),
        ("mig-strange-user", ["local", "--jobs", "JOBS"], "administrators"),
    ],
)
def test_what_this_computer_cannot_answer_is_refused_in_one_line(
    inside, driver, jobs, scenario, arguments, told
):
    driver(scenario)
    done = inside("mig", *(str(jobs) if each == "JOBS" else each for each in arguments))
    assert (done.code, done.out) == (2, "")
    (line,) = done.err.strip().splitlines()
    assert told in line


def test_the_list_says_of_every_profile_what_the_board_says_and_what_is_inferred(inside):
    """4g.40gb holds as many units as 3g.40gb, 39.25 GiB; its 56 SMs are published."""
    told = inside("mig", "a100-80gb", "--list").out
    rows = {line.split()[0]: line.split() for line in told.splitlines() if ".40gb" in line}
    assert rows["3g.40gb"][2:5] == ["39.25", "GiB", "42"]
    assert rows["4g.40gb"][2:5] == ["~39.25", "GiB", "56"]
    assert "unknown" not in told


def test_a_plan_for_a_pc_with_a_card_runs_as_a_job_of_a_servers_gpu(inside, tmp_path):
    path = tmp_path / "jobs.yaml"
    example = resources("examples", "resnet50-rtx3060.plan.yaml")
    assert "cpu:" in example.read_text()  # a module for a server goes into no board of a PC
    path.write_text(f"jobs: [{{name: resnet, plan: {example}, count: 2}}]")
    done = inside("mig", "a100-40gb-sxm", "--jobs", str(path), "--json")
    assert (done.code, done.err) == (0, "")
    assert [one["job"] for one in json.loads(done.out)["instances"]] == ["resnet", "resnet"]
