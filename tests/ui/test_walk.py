"""Every screen, both languages and lengthened text, at 100 and 200 %, light and dark."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import walk


@pytest.mark.parametrize(
    ("scale", "size", "languages"),
    [
        ("1", "1440x900", "en ko long"),
        ("1", "1024x640", "ko long"),  # what has room for longer English has room for English
        pytest.param("1.5", "1280x800", "ko long", marks=pytest.mark.slow),
        ("2", "1440x900", "ko long"),
    ],
)
def test_no_screen_cuts_overlaps_or_hides_anything_from_screen_readers(
    scale, size, languages, tmp_path
):
    environment = {
        "QT_QPA_PLATFORM": "offscreen",
        "QT_SCALE_FACTOR": scale,
        "HOME": str(tmp_path),
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
    }
    program = str(Path(walk.__file__))
    child = subprocess.run(
        [sys.executable, program, size, *languages.split()],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert child.returncode in (0, 1), child.stderr
    said = child.stdout.splitlines()
    assert said[0] == f"scale {scale}"
    assert [line for line in said[1:] if line] == []


@pytest.mark.parametrize("language", ["en", "ko"])
def test_a_window_of_a_small_screen_stays_as_small(opened, qtbot, preferences, language):
    preferences.language = language
    window = opened()
    window.resize(1024, 640)
    for screen in (each for each in walk.SCREENS if each != "monitor"):
        window.go(screen)
        walk.settle(window)
        assert (window.width(), window.height()) == (1024, 640), screen


def test_the_walk_sees_a_cut_label_and_a_nameless_control(opened, qtbot):
    window = opened()
    window.go("plan")
    plan = window.screen_named("plan")
    plan.form.model.setAccessibleName("")
    plan.figures.setFixedWidth(120)
    walk.spin(100)
    found = "\n".join(walk.problems(window, "plan"))
    assert "no accessible name: ModelPicker" in found
    assert "cut in FigureDoor" in found
