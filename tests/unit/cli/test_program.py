"""The program as a whole: what opens, what prints, in which language."""

import json
import re
import sys

import pytest

from trainwright.cli import display, language, qt_libraries
from trainwright.cli.program import COMMANDS
from trainwright.data import resources
from trainwright.export import ALL
from trainwright.messages import LANGUAGES

CONTRACT = {
    "estimate", "advise", "build", "upgrade", "mig", "probe", "monitor",
    "diagnose", "verify", "export", "profile", "catalog", "doctor", "review",
}  # fmt: skip


def test_every_command_of_the_contract_answers():
    assert set(COMMANDS) == CONTRACT


def test_without_arguments_the_window_opens(inside):
    assert inside().code == 0
    assert inside.opened == [None]


@pytest.mark.parametrize(
    "path", ["my.plan.yaml", "./계획 파일.plan.yaml", "folder/plan", "config.json"]
)
def test_a_path_opens_in_the_window(inside, path):
    assert inside(path).code == 0
    assert inside.opened == [path]


def test_without_a_display_the_program_says_so(trainwright):
    assert "display" in trainwright().complaint


@pytest.mark.parametrize("spoken", LANGUAGES)
@pytest.mark.parametrize("command", [(), *((name,) for name in COMMANDS), ("catalog", "list")])
def test_help_is_complete_in_both_languages(inside, command, spoken):
    outcome = inside("--lang", spoken, *command, "--help")
    assert (outcome.code, outcome.err) == (0, "")
    assert not re.search(r"\bcli\.[a-z]", outcome.out), "an id without a text"
    korean = any("가" <= character <= "힣" for character in outcome.out)
    assert korean == (spoken == "ko")


@pytest.mark.parametrize("spoken", LANGUAGES)
def test_help_of_export_lists_every_target(inside, spoken):
    listed = inside("--lang", spoken, "export", "--help").out
    assert [name for name in ALL if not re.search(rf"\b{name}\b", listed)] == []


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"LANG": "ko_KR.UTF-8"}, "ko"),
        ({"LANG": "en_GB.UTF-8", "LC_ALL": "ko_KR"}, "ko"),
        ({"LANG": "ko_KR.UTF-8", "LC_ALL": "C"}, "en"),
        ({"LANG": "fr_FR.UTF-8"}, "en"),
    ],
)
def test_the_language_is_the_systems(environment, expected):
    assert language.of_system(environment) == expected


def test_every_id_that_the_command_line_names_is_in_both_catalogues():
    folder = resources("i18n")
    known = {
        spoken: set(
            re.findall(
                r'^msgid "(.+)"$', (folder / spoken / "cli.po").read_text("utf-8"), re.MULTILINE
            )
        )
        for spoken in LANGUAGES
    }
    assert known["en"] == known["ko"]
    assert {f"cli.{name}.summary" for name in COMMANDS} <= known["en"]


def test_korean_comes_out_as_utf8_on_any_console(trainwright, monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "latin-1")
    monkeypatch.setenv("PYTHONUTF8", "0")
    assert "데스크톱 앱" in trainwright("doctor", "--lang", "ko").out


def test_doctor_reports_versions_paths_and_checks(trainwright):
    outcome = trainwright("doctor", "--json")
    document = json.loads(outcome.out)
    assert outcome.out.count("\n") == 1
    assert document["python"] == ".".join(map(str, sys.version_info[:3]))
    assert document["packages"]["torch"]
    checks = {each["check"]: each for each in document["checks"]}
    assert checks["tracing"]["works"] is True
    assert all(each["because"] for each in checks.values())


def test_doctor_names_no_folder_of_a_person(inside, monkeypatch, tmp_path):
    home = tmp_path / "Zq7Marker"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    outcome = inside("doctor", "--json")
    assert "Zq7Marker" not in outcome.out
    assert json.loads(outcome.out)["paths"]["crashes"].startswith(("~/", "/"))


def test_doctor_fails_where_the_data_is_gone(inside, monkeypatch, tmp_path):
    from trainwright.cli import doctor

    monkeypatch.setattr(
        doctor.data, "hardware_db", lambda *parts: tmp_path.joinpath("gone", *parts)
    )
    outcome = inside("doctor", "--json")
    (check,) = (each for each in json.loads(outcome.out)["checks"] if each["check"] == "data")
    assert outcome.code == 1
    assert str(tmp_path / "gone") in check["because"]


def test_commands_print_the_same_facts_for_people(inside):
    assert "GeForce RTX 4090" in inside("catalog", "show", "4090").out
    assert "GeForce RTX 4090" in inside("catalog", "list", "4090").out


def test_catalog_list_names_a_kind_and_filters_by_any_field(inside):
    asked = ("catalog", "list", "psu", "--filter", "watts>=1600", "--filter", "watts<=1650")
    parts = json.loads(inside(*asked, "--sort", "watts", "--descending", "--json").out)["parts"]
    assert {"seasonic-prime-tx-1600-2022", "evga-supernova-1600-g2"} <= {p["id"] for p in parts}
    watts = [part["watts"] for part in parts]
    assert watts == sorted(watts, reverse=True)
    assert set(watts) <= {1600, 1650}
    shown = inside("catalog", "list", "psu", "corsair", "--filter", "connectors.pcie_8>=6").out
    assert "corsair-ax1600i" in shown
    assert "do not say what was asked for" in shown


def test_catalog_list_turns_the_order_around(inside):
    def first(*more):
        return json.loads(inside("catalog", "list", *more, "--json").out)["gpus"][0]["id"]

    assert first("--sort", "memory_gib", "--descending") == first("--sort", "memory")
    assert first("rtx", "--sort", "launch", "--ascending") != first("rtx", "--sort", "launch")


def test_catalog_show_finds_any_kind_with_its_sources(inside):
    out = inside("catalog", "show", "Samsung SSD 990 PRO 2TB").out
    assert "samsung-990-pro-2tb" in out
    assert "mezha-990-pro" in out
    document = json.loads(inside("catalog", "show", "define 7 xl", "--json").out)
    assert document["part"]["gpu_length_mm"] == 524
    assert {"field": "slots", "value": 9, "source": "opendb", "confidence": "medium"} in document[
        "values"
    ]
    assert "side_clearance_mm" in document["unknown"]


def test_catalog_check_counts_every_kind_by_confidence(inside):
    outcome = inside("catalog", "check")
    assert outcome.code == 0
    for kind in ("GPU", "mainboard", "power supply", "cooler"):
        assert kind in outcome.out
    document = json.loads(inside("catalog", "check", "--json").out)
    assert sum(kind["records"] for kind in document["by_kind"].values()) == document["records"]


def test_catalog_list_filters(inside):
    gpus = json.loads(inside("catalog", "list", "--vendor", "amd", "--json").out)["gpus"]
    assert gpus
    assert {gpu["vendor"] for gpu in gpus} == {"AMD"}


@pytest.mark.parametrize(
    ("environment", "present"),
    [({}, False), ({"DISPLAY": ":0"}, True), ({"WAYLAND_DISPLAY": "wayland-0"}, True)],
)
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there always is a display")
def test_a_display_is_seen(environment, present):
    assert display.present(environment) is present


def test_missing_qt_libraries_are_named_by_package(monkeypatch, tmp_path):
    ldd = "\tlibxcb-cursor.so.0 => not found\n\tlibc.so.6 => /lib/libc.so.6 (0x0)\n"
    monkeypatch.setattr(qt_libraries, "_qt_folder", lambda: tmp_path)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(
        qt_libraries.subprocess,
        "run",
        lambda *_arguments, **_options: type("Run", (), {"stdout": ldd})(),
    )
    missing = qt_libraries.missing({"DISPLAY": ":0"})
    assert missing == ("libxcb-cursor.so.0",)
    assert qt_libraries.packages(missing) == ("libxcb-cursor0",)
