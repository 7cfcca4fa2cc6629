"""What desktops read of the app, and what starts it in its package."""

import shutil
import subprocess
import sys
import tomllib
from configparser import RawConfigParser
from fnmatch import fnmatch
from pathlib import Path
from xml.etree import ElementTree

import pytest

from trainwright import __version__
from trainwright.data import resources
from trainwright.mig import drawings
from trainwright.plan import file
from trainwright.worker.client import PROGRAMS

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "packaging"
MIME = "{http://www.freedesktop.org/standards/shared-mime-info}"


@pytest.fixture
def entry():
    reader = RawConfigParser(strict=True)
    reader.optionxform = str
    reader.read(FOLDER / "trainwright.desktop", encoding="utf-8")
    return reader["Desktop Entry"]


def types():
    tree = ElementTree.parse(FOLDER / "trainwright-mime.xml")
    return {
        each.get("type"): [glob.get("pattern") for glob in each.iter(f"{MIME}glob")]
        for each in tree.iter(f"{MIME}mime-type")
    }


def test_the_entry_starts_a_program_that_is_installed_and_shows_an_icon_that_is_there(entry):
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    program, argument = entry["Exec"].split()
    assert program in scripts["gui-scripts"]
    assert argument == "%f"
    assert resources("icons", f"{entry['Icon']}.svg").is_file()
    assert {"Comment[ko]", "GenericName[ko]", "Keywords[ko]"} <= set(entry)


def test_files_of_plans_and_mig_layouts_open_with_it(entry):
    opened = set(entry["MimeType"].strip(";").split(";"))
    assert opened == set(types())
    for name in (f"some{file.SUFFIX}", f"some{drawings.SUFFIX}"):
        matching = [kind for kind, globs in types().items() if any(fnmatch(name, g) for g in globs)]
        assert len(matching) == 1
    tree = ElementTree.parse(FOLDER / "trainwright.metainfo.xml")
    assert {each.text for each in tree.iter("mediatype")} == opened
    assert tree.findtext("launchable") == "trainwright.desktop"


@pytest.mark.skipif(shutil.which("desktop-file-validate") is None, reason="needs the validator")
def test_the_desktops_own_validator_finds_nothing():
    command = ["desktop-file-validate", str(FOLDER / "trainwright.desktop")]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-X", "utf8", "-P", "-c", "import sys; print(sys.argv[1:])", "a"], "['a']"),
        (["-s", "-X", "utf8", str(PROGRAMS / "versions.py")], '"python"'),
        (["--version"], __version__),
        (["estimate", "gone.py"], "gone.py"),
    ],
)
def test_the_packaged_start_is_python_to_our_programs_and_the_app_to_people(words, said):
    start = [sys.executable, str(FOLDER / "start.py"), *words]
    ran = subprocess.run(start, input="{}", capture_output=True, text=True, timeout=60)
    assert said in ran.stdout + ran.stderr
