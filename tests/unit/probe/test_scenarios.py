"""Computers of every kind through ``trainwright probe``: a value or a reason, never a crash."""

import json
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from nvmlstub import NvmlStub

from trainwright.cli.run import run

Probe = Callable[..., dict[str, Any]]
MIB = 1 << 20


@pytest.fixture
def probe(
    nvml_stub: NvmlStub, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Probe:
    """Run the command on a computer of the stub's; return its JSON."""

    def ask(scenario: str, *options: str) -> dict[str, Any]:
        for name, value in nvml_stub.variables(scenario).items():
            monkeypatch.setenv(name, value)
        assert run(["probe", "--json", "--no-torch", *options], lambda _path: 0) == 0
        document: dict[str, Any] = json.loads(capsys.readouterr().out)
        return document

    return ask


def gpus(document: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = document["nvidia"]["gpus"]
    return found


def planned(document: dict[str, Any]) -> list[tuple[str, int]]:
    return [(gpu["id"], gpu["count"]) for gpu in document["machine"]["gpus"]]


def test_an_ordinary_desktop(probe: Probe) -> None:
    found = probe("plain")
    [gpu] = gpus(found)
    assert gpu["name"] == "NVIDIA GeForce RTX 4090"
    assert gpu["memory"] == {"total": 24564 * MIB, "reserved": 357 * MIB, "used": 843 * MIB}
    assert gpu["compute_capability"] == [8, 9]
    assert gpu["bus"] == "0000:01:00.0"
    assert gpu["link"]["most_generation"] == 4
    assert gpu["power"] == {"default_w": 450.0, "least_w": 150.0, "most_w": 600.0}
    assert gpu["clocks"]["most_processor"] == 3105
    assert [each["name"] for each in gpu["processes"]] == ["python3", "Xorg"]
    assert gpu["mig"]["missing"] == "probe.not-supported"
    assert found["nvidia"]["cuda"] == "13.0"
    assert found["catalog"]["gpus"] == ["rtx-4090"]
    assert planned(found) == [("rtx-4090", 1)]


def test_identifiers_stay_out_unless_they_are_asked_for(probe: Probe) -> None:
    plain, named = probe("hopper"), probe("hopper", "--identifiers")
    assert "serial" not in gpus(plain)[0]
    assert "uuid" not in gpus(plain)[0]
    assert "name" not in plain["host"]
    assert gpus(named)[0]["serial"] == "1320000000001"
    assert gpus(named)[0]["uuid"].startswith("GPU-")
    assert named["host"]["name"]


def test_no_name_of_a_person_or_the_computer_is_told(
    probe: Probe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "alice-of-the-test"
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(home))
    monkeypatch.setenv("TRAINWRIGHT_HARDWARE", str(home / "data"))
    monkeypatch.setattr(socket, "gethostname", lambda: "host-of-the-test")
    found = probe("strange", "--keep-records")
    text = json.dumps(found, ensure_ascii=False)
    assert "alice-of-the-test" not in text
    assert "host-of-the-test" not in text
    assert found["kept"][0].startswith("~/data/")
    assert "host-of-the-test" in json.dumps(probe("strange", "--identifiers"))


def test_two_gpus_and_what_lies_between_them(probe: Probe) -> None:
    found = probe("two")
    assert planned(found) == [("rtx-4090", 1), ("rtx-3060-12gb", 1)]
    assert found["nvidia"]["between"] == [
        {"first": 0, "second": 1, "level": "host-bridge", "peer": False}
    ]


def test_nvlink_is_told_with_what_it_leads_to(probe: Probe) -> None:
    found = probe("nvlink")
    assert gpus(found)[0]["nvlink"] == {
        "links": 12, "active": 12, "version": 3, "peers": ["0000:41:00.0"],
    }  # fmt: skip
    assert planned(found) == [("a100-80gb-sxm", 2)]
    assert found["nvidia"]["between"][0]["peer"] is True


def test_a_divided_gpu_shows_its_parts_and_is_not_planned_as_a_whole(probe: Probe) -> None:
    found = probe("mig")
    parts = gpus(found)[0]["mig"]["instances"]
    assert [part["name"].rpartition("MIG ")[2] for part in parts] == [
        "3g.40gb", "1g.10gb", "1g.10gb",
    ]  # fmt: skip
    assert [part["processors"] for part in parts] == [60, 16, 16]
    assert parts[0]["memory"]["total"] == 40448 * MIB
    assert found["machine"]["missing"] == "probe.divided"


def test_a_container_with_one_part_of_a_gpu(probe: Probe) -> None:
    [gpu] = gpus(probe("mig-container"))
    assert gpu["memory"]["missing"] == "probe.no-permission"
    assert gpu["processes"]["missing"] == "probe.no-permission"
    [part] = gpu["mig"]["instances"]
    assert part["memory"]["total"] == 40448 * MIB


def test_a_mode_that_waits_for_a_reset(probe: Probe) -> None:
    found = gpus(probe("mig-pending"))[0]["mig"]
    assert (found["on"], found["pending"], found["instances"]) == (False, True, [])


def test_an_administrator_is_told_profiles_and_where_instances_lie(probe: Probe) -> None:
    """Numbers as nvidia-smi mig -lgip and -lgipp print them for an H100 80GB (MIG User Guide)."""
    found = gpus(probe("mig"))[0]["mig"]
    kinds = {each["name"]: each for each in found["profiles"]}
    assert set(kinds) == {
        "1g.10gb", "1g.10gb+me", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb",
    }  # fmt: skip
    assert kinds["3g.40gb"]["places"] == [[0, 4], [4, 4]]
    assert kinds["1g.20gb"]["processors"] == 26
    assert kinds["7g.80gb"]["memory"] == 81152 * MIB
    assert sorted((each["start"], each["size"]) for each in found["placed"]) == [
        (2, 1), (3, 1), (4, 4),
    ]  # fmt: skip


def test_others_are_told_profiles_without_places_and_why(probe: Probe) -> None:
    found = gpus(probe("mig-user"))[0]["mig"]
    assert {each["places"]["missing"] for each in found["profiles"]} == {"probe.no-permission"}
    assert found["placed"]["missing"] == "probe.no-permission"
    assert len(found["instances"]) == 3


@pytest.mark.parametrize(
    ("scenario", "reason"),
    [("mig-lost", "probe.gpu-lost"), ("mig-hang", "probe.no-answer")],
)
def test_a_gpu_that_fails_while_profiles_are_read_keeps_what_it_told_before(
    probe: Probe, scenario: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainwright.probe.snapshot.PATIENCE_S", 1.0)
    [gpu] = gpus(probe(scenario))
    assert gpu["name"] == "NVIDIA H100 80GB HBM3"
    assert gpu["mig"]["on"] is True
    assert gpu["mig"]["profiles"]["missing"] == reason


def test_millions_of_places_are_not_believed(probe: Probe) -> None:
    found = gpus(probe("mig-garbage"))[0]["mig"]
    assert {each["places"]["missing"] for each in found["profiles"]} == {"probe.implausible"}


def test_windows_under_linux_tells_less(probe: Probe) -> None:
    [gpu] = gpus(probe("wsl"))
    assert gpu["link"]["generation"]["missing"] == "probe.not-supported"
    assert gpu["processes"][0]["memory_bytes"]["missing"] == "probe.not-supported"
    assert gpu["memory"]["total"] == 24564 * MIB


def test_a_laptop_tells_no_power_limit(probe: Probe) -> None:
    found = probe("laptop")
    assert gpus(found)[0]["power_limit_w"]["missing"] == "probe.not-supported"
    assert planned(found) == [("rtx-4070-laptop", 1)]
    assert found["machine"]["gpus"][0]["power_limit_w"] is None


def test_memory_shared_with_the_processor_is_taken_from_the_catalog(probe: Probe) -> None:
    found = probe("unified")
    assert gpus(found)[0]["memory"]["missing"] == "probe.not-supported"
    assert planned(found) == [("gb10-dgx-spark", 1)]


def test_a_narrow_slot_counts(probe: Probe) -> None:
    [gpu] = probe("narrow")["machine"]["gpus"]
    assert (gpu["pcie_generation"], gpu["pcie_lanes"]) == (3, 4)


@pytest.mark.parametrize("scenario", ["lost", "lost-reading"])
def test_a_lost_gpu_hides_nothing_of_the_other(probe: Probe, scenario: str) -> None:
    found = probe(scenario)
    first, second = gpus(found)
    assert first["memory"]["total"] == 24564 * MIB
    assert second["power_limit_w"]["missing"] == "probe.gpu-lost"
    assert planned(found)[0] == ("rtx-4090", 1)


def test_a_gpu_that_hangs_costs_its_own_readings_and_a_moment(probe: Probe) -> None:
    began = time.monotonic()
    found = probe("hang", "--wait", "0.5")
    first, second = gpus(found)
    assert first["nvlink"]["missing"] == "probe.not-supported"  # it was read to its end
    assert second["name"] == "NVIDIA GeForce RTX 3060"  # read before the call that hangs
    assert second["memory"]["missing"] == "probe.no-answer"
    assert "0.5 s" in second["memory"]["because"] or "500 ms" in second["memory"]["because"]
    assert time.monotonic() - began < 20


def test_a_driver_that_hangs_at_its_start_is_a_reason(probe: Probe) -> None:
    found = probe("hang-init", "--wait", "0.5")
    assert found["nvidia"]["missing"] == "probe.no-answer"
    assert found["host"]["cores"] >= 1


def test_a_driver_that_takes_its_process_down_takes_one_gpu(probe: Probe) -> None:
    first, second = gpus(probe("crash"))
    assert first["name"] == "NVIDIA GeForce RTX 4090"
    assert second["name"]["missing"] == "probe.driver-crashed"


def test_a_name_that_is_no_text(probe: Probe) -> None:
    found = probe("garbage")
    assert gpus(found)[0]["name"]["missing"] == "probe.garbled"
    assert gpus(found)[0]["memory"]["total"] == 24564 * MIB
    assert found["catalog"]["gpus"] == [None]


def test_a_driver_that_prints_rubbish_spoils_no_reading(probe: Probe) -> None:
    found = probe("chatty")
    assert gpus(found)[0]["memory"]["total"] == 24564 * MIB
    assert gpus(found)[0]["name"] == "NVIDIA GeForce RTX 4090"


def test_an_old_driver_tells_what_it_can(probe: Probe) -> None:
    found = probe("old-driver")
    [gpu] = gpus(found)
    assert gpu["memory"] == {"total": 24564 * MIB, "reserved": 0, "used": 1200 * MIB}
    assert len(gpu["processes"]) == 2
    assert found["nvidia"]["driver"] == "470.256.02"


def test_a_foreign_program_takes_its_memory_from_the_plan(probe: Probe) -> None:
    found = probe("foreign-process")
    [gpu] = found["machine"]["gpus"]
    assert gpu["held_bytes"] > 18 << 30
    assert gpus(found)[0]["processes"][0]["memory_bytes"] == 18432 * MIB


def test_hidden_programs_are_not_no_programs(probe: Probe) -> None:
    assert gpus(probe("hidden-processes"))[0]["processes"]["missing"] == "probe.no-permission"


@pytest.mark.parametrize(
    ("scenario", "reason"),
    [
        ("not-loaded", "probe.driver-not-loaded"),
        ("updated", "probe.driver-updated"),
        ("no-permission", "probe.no-permission"),
    ],
)
def test_a_driver_that_does_not_start(probe: Probe, scenario: str, reason: str) -> None:
    found = probe(scenario)
    assert found["nvidia"]["missing"] == reason
    assert found["machine"]["missing"] == "probe.no-gpu"


def test_a_driver_without_gpus(probe: Probe) -> None:
    found = probe("none")
    assert found["nvidia"]["gpus"] == []
    assert "lists no GPU" in found["machine"]["because"]


ALL = (
    "plain", "two", "nvlink", "hopper", "mig", "mig-user", "mig-off", "mig-strange", "mig-pending",
    "mig-container", "wsl", "laptop",
    "unified", "narrow", "throttled", "foreign-process", "hidden-processes", "garbage", "strange",
    "old-driver", "lost", "lost-reading", "crash", "none", "not-loaded", "updated",
)  # fmt: skip


@pytest.mark.parametrize("scenario", ALL)
def test_every_computer_is_told_in_words(
    nvml_stub: NvmlStub,
    scenario: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in nvml_stub.variables(scenario).items():
        monkeypatch.setenv(name, value)
    assert run(["probe", "--no-torch", "--lang", "ko"], lambda _path: 0) == 0
    told = capsys.readouterr()
    assert told.err == ""
    assert "probe." not in told.out.replace("trainwright probe", "")  # no sentence is missing
    assert "Missing(" not in told.out
    assert "메모리" in told.out
