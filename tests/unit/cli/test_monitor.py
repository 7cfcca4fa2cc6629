"""``trainwright monitor`` on many kinds of computers, by a driver library that plays them."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

import pytest

HERE = [sys.executable, "-m", "trainwright", "monitor"]


def monitor(stub: Any, scenario: str, *arguments: str, **more: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [*HERE, *arguments],
        env=stub.environment(scenario, **more),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def samples(stub: Any, scenario: str, seconds: str = "0.5", hz: str = "10", **more: str) -> list:
    found = taken(stub, scenario, seconds, hz, **more)
    if why(found[-1]["gpus"]) == "probe.driver-hangs" and "hang" not in scenario:
        # Other programs kept the driver from answering within its two seconds; now it is loaded.
        found = taken(stub, scenario, "10", hz, **more)
    return found


def taken(stub: Any, scenario: str, seconds: str, hz: str, **more: str) -> list:
    run = monitor(stub, scenario, "--seconds", seconds, "--hz", hz, "--json", **more)
    assert (run.returncode, run.stderr) == (0, "")
    found = [json.loads(line) for line in run.stdout.splitlines()]
    assert found, "at least one sample"
    for sample in found:
        assert sample["host"]["memory_total"] > 0, "the computer itself is always read"
    return found


def why(value: object) -> object:
    return value["missing"] if isinstance(value, dict) else value


def test_two_gpus_with_all_readings(nvml_stub):
    first, *_, last = samples(nvml_stub, "two")
    gpus = last["gpus"]
    assert [gpu["name"] for gpu in gpus] == ["NVIDIA GeForce RTX 4090", "NVIDIA GeForce RTX 3060"]
    for gpu in gpus:
        assert 0 <= gpu["utilisation"] <= 1
        assert 0 < gpu["power_w"] < gpu["power_limit_w"]
        assert gpu["pcie_generation"] <= gpu["pcie_generation_max"]
        assert gpu["pcie_received"] == pytest.approx(500e6, rel=0.05)
        assert why(gpu["activity"]["sm_active"]) == "probe.not-supported"
    assert why(first["gpus"][0]["pcie_received"]) == "probe.first-sample"
    assert {each["pid"] for each in gpus[0]["processes"]} == {4242, 1850}


@pytest.mark.parametrize(
    ("scenario", "reason"),
    [
        ("not-loaded", "probe.driver-not-loaded"),
        ("updated", "probe.driver-updated"),
        ("no-permission", "probe.no-permission"),
    ],
)
def test_a_driver_that_does_not_start_is_a_reason(nvml_stub, scenario, reason):
    assert why(samples(nvml_stub, scenario)[-1]["gpus"]) == reason


def test_a_driver_without_gpus(nvml_stub):
    assert samples(nvml_stub, "none")[-1]["gpus"] == []


@pytest.mark.parametrize(
    ("scenario", "reading", "expected"),
    [
        ("wsl", "utilisation", "probe.not-supported"),
        ("laptop", "power_limit_w", "probe.not-supported"),
        ("unified", "memory_total", "probe.not-supported"),
        ("garbage", "name", "probe.garbled"),
        ("hidden-processes", "processes", "probe.no-permission"),
        ("throttled", "throttle", ["power-cap", "thermal"]),
        ("narrow", "pcie_width", 4),
        ("narrow", "pcie_width_max", 16),
        ("plain", "mig", False),
    ],
)
def test_what_a_gpu_cannot_tell_has_a_reason_and_the_rest_is_there(
    nvml_stub, scenario, reading, expected
):
    gpu = samples(nvml_stub, scenario)[-1]["gpus"][0]
    assert why(gpu[reading]) == expected
    assert gpu["temperature_c"] > 0


def test_an_old_driver_is_read_by_its_older_calls(nvml_stub):
    gpu = samples(nvml_stub, "old-driver")[-1]["gpus"][0]
    assert gpu["memory_total"] > gpu["memory_used"] > 0
    assert gpu["temperature_c"] > 0
    assert isinstance(gpu["throttle"], list)
    assert {each["pid"] for each in gpu["processes"]} == {4242, 1850}
    assert why(gpu["activity"]["sm_active"]) == "probe.old-driver"


def test_slices_have_their_own_activity_where_the_whole_gpu_tells_nothing(nvml_stub):
    gpu = samples(nvml_stub, "mig")[-1]["gpus"][0]
    assert why(gpu["utilisation"]) == "probe.not-supported"
    shares = [one["activity"]["sm_active"] for one in gpu["slices"]]
    assert len(shares) == 3
    assert shares[0] > 0
    assert shares[2] == 0  # idle, which is not the same as unknown
    assert [one["index"] for one in gpu["slices"]] == [0, 2, 3]  # an empty place is skipped


def test_inside_a_container_only_the_slice_can_be_read(nvml_stub):
    gpu = samples(nvml_stub, "mig-container")[-1]["gpus"][0]
    assert why(gpu["memory_used"]) == "probe.no-permission"
    assert len(gpu["slices"]) == 1
    assert gpu["slices"][0]["memory_used"] > 0


def test_a_gpu_lost_midway_leaves_the_other(nvml_stub):
    found = samples(nvml_stub, "lost-midway", "1", NVML_STUB_AT="0.4")
    assert isinstance(found[0]["gpus"][1]["utilisation"], float)
    whole, lost = found[-1]["gpus"]
    assert why(lost["utilisation"]) == "probe.gpu-lost"
    assert lost["name"] == "NVIDIA GeForce RTX 3060"
    assert isinstance(whole["utilisation"], float)
    assert [e["kind"] for sample in found for e in sample["events"]] == ["gpu-lost"]


def test_a_gpu_lost_before_is_shown_as_lost(nvml_stub):
    _, lost = samples(nvml_stub, "lost")[-1]["gpus"]
    assert why(lost["temperature_c"]) == "probe.gpu-lost"


def test_a_reloaded_driver_is_found_again(nvml_stub):
    found = samples(nvml_stub, "reload", "11", "2")
    kinds = [e["kind"] for sample in found for e in sample["events"]]
    assert kinds == ["driver-gone", "driver-back"]
    away = next(s["gpus"] for s in found if isinstance(s["gpus"], dict))
    assert why(away) == "probe.driver-gone"
    assert isinstance(found[-1]["gpus"][0]["utilisation"], float)


@pytest.mark.parametrize("scenario", ["hang", "hang-init"])
def test_a_driver_that_hangs_is_said_while_the_rest_goes_on(nvml_stub, scenario):
    found = samples(nvml_stub, scenario, "4", "2")
    assert why(found[0]["gpus"]) == "probe.driver-hangs"
    assert len(found) >= 3
    assert isinstance(found[-1]["host"]["cpu"], float)


def test_a_crash_costs_the_readings_of_its_gpu(nvml_stub):
    """The library aborts while it reads the second of two; that one is left out then."""
    found = samples(nvml_stub, "crash", "2", "4")
    first, second = found[-1]["gpus"]
    assert isinstance(first["utilisation"], float)
    assert second["index"] == 1
    assert second["utilisation"] == {
        "missing": "probe.driver-crashed",
        "because": "the driver's library crashed",
    }


@pytest.mark.parametrize("scenario", ["crash-midway", "crash-init"])
def test_a_driver_that_crashes_is_a_reason_and_the_rest_goes_on(nvml_stub, scenario):
    found = samples(nvml_stub, scenario, "3", "4", NVML_STUB_AT="0.4")
    gpus = found[-1]["gpus"]
    last = gpus if scenario == "crash-init" else gpus[0]["utilisation"]
    assert why(last) == "probe.driver-crashed"
    assert isinstance(found[-1]["host"]["cpu"], float)


def test_every_missing_reading_says_why_in_words(nvml_stub):
    def missing(value):
        if isinstance(value, dict) and "missing" in value:
            yield value
        for each in value.values() if isinstance(value, dict) else value:
            if isinstance(each, dict | list):
                yield from missing(each)

    found = list(missing(samples(nvml_stub, "wsl")[-1]))
    assert len(found) > 3
    assert all(" " in each["because"] for each in found)


def test_lines_for_people_in_both_languages(nvml_stub):
    english = monitor(nvml_stub, "throttled", "--seconds", "0.3", "--hz", "10").stdout
    assert "GPU 0 busy 99 %" in english
    assert "slowed by power limit, temperature" in english
    assert "GPU 0 slows down: power limit." in english
    assert "readings" in english
    korean = monitor(nvml_stub, "not-loaded", "--seconds", "0.3", "--lang", "ko").stdout
    assert "NVIDIA 드라이버가 설치되었지만 로드되지 않음" in korean
    assert "이 컴퓨터" in korean


def test_the_csv_file_has_a_line_a_sample(nvml_stub, tmp_path):
    path = tmp_path / "readings.csv"
    run = monitor(nvml_stub, "laptop", "--seconds", "0.5", "--hz", "10", "--csv", str(path))
    assert run.returncode == 0
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) >= 3
    assert float(rows[-1]["gpu0.temperature_c [°C]"]) > 0
    assert rows[-1]["gpu0.sm_active [%]"] == ""
    assert "gpu0.sm_active: this GPU does not report it" in rows[0]["note"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--hz", "0.5"), "1 to 10 times a second"),
        (("--hz", "11"), "1 to 10 times a second"),
        (("--seconds", "0"), "above 0"),
        (("--seconds", "nan"), "above 0"),
        (("--csv", "/", "--seconds", "1"), "cannot be written"),
        (("--csv", "/no/such/folder/x.csv", "--seconds", "1"), "cannot be written"),
    ],
)
def test_bad_input_is_one_line(nvml_stub, arguments, said):
    run = monitor(nvml_stub, "plain", *arguments)
    assert run.returncode == 2
    assert said in run.stderr
    assert run.stderr.count("\n") == 1


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("scenario", ["plain", "hang"])
def test_ctrl_c_ends_it_with_the_summary(nvml_stub, scenario):
    child = subprocess.Popen(
        [*HERE, "--hz", "10"],
        env=nvml_stub.environment(scenario, PYTHONUNBUFFERED="1"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    child.stdout.readline()
    time.sleep(0.3)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=20)
    assert (child.returncode, err) == (0, "")
    assert "Mean" in out


@pytest.mark.skipif(os.name == "nt", reason="pseudo-terminals of POSIX")
def test_a_terminal_gets_a_table_that_stays_in_place(nvml_stub):
    import pty

    ours, theirs = pty.openpty()
    environment = nvml_stub.environment("mig", TERM="xterm-256color", COLUMNS="130", LINES="40")
    child = subprocess.Popen(
        [*HERE, "--seconds", "0.5", "--hz", "10"], env=environment, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:  # Linux's way to say that the other end is closed
            break
        if not piece:
            break
        shown += piece
    assert child.wait(20) == 0
    text = shown.decode()
    assert "NVIDIA H100 80GB HBM3" in text
    assert "GPU 0, slice 2" in text
    assert "Ctrl-C ends." in text
    assert "\x1b[2K" in text  # lines are painted over, not added


def test_lines_say_once_which_gpu_has_which_number(nvml_stub):
    lines = monitor(nvml_stub, "two", "--seconds", "0.5", "--hz", "10").stdout.splitlines()
    assert lines.count("GPU 0: NVIDIA GeForce RTX 4090") == 1
    assert lines.count("GPU 1: NVIDIA GeForce RTX 3060") == 1


def test_a_slice_is_summed_up_with_its_profile(nvml_stub):
    told = monitor(nvml_stub, "mig", "--seconds", "0.5", "--hz", "10").stdout
    assert "GPU 0, slice 2 (1g.10gb)" in told


def test_a_log_that_cannot_be_written_is_refused_before_the_first_reading(nvml_stub, tmp_path):
    run = monitor(nvml_stub, "plain", "--csv", str(tmp_path / "absent" / "log.csv"))
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.count("\n") == 1


def test_what_a_driver_prints_stays_out_of_the_json(nvml_stub: Any) -> None:
    run = monitor(nvml_stub, "chatty", "--seconds", "0.5", "--json")
    assert run.returncode == 0
    assert all("gpus" in json.loads(line) for line in run.stdout.splitlines())
    assert run.stderr == "", "nor does it reach the terminal"
    program = "from trainwright.probe.monitor.gpus_program import main; main([])"
    with subprocess.Popen(
        [sys.executable, "-c", program], env=nvml_stub.environment("chatty"), text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as child:  # fmt: skip
        child.stdin.write("read\n")
        child.stdin.flush()
        while "gpus" not in json.loads(child.stdout.readline()):
            pass
        child.stdin.close()
        assert '"reading"' in child.stderr.read(), "the driver did print"
