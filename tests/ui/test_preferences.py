"""What the window remembers may be damaged: then a key has its default, and the window opens."""

import os
import random
import sys
from pathlib import Path

import pytest

from trainwright.ui.preferences import Preferences

VALID = """[General]
theme=dark
language=ko
recent=/plans/a.plan.yaml, /plans/b.plan.yaml
recent-models=gpt2, resnet50
python=/usr/bin/python3
pace=5
scale=125
gpu=rtx-3060
currency=KRW
usd-per-kwh=0.2
household-kwh=250
geometry=@ByteArray(\\x1\\xd9\\xd0\\xcb\\0\\x3\\0\\0)
export-folder=/out
alerts="[{\\"device\\": \\"gpu\\", \\"key\\": \\"temperature\\", \\"beyond\\": \\"above\\"}]"
"""
KEYS = ("theme", "language", "recent", "recent-models", "python", "pace", "geometry", "alerts",
        "scale", "gpu", "currency", "usd-per-kwh", "household-kwh")  # fmt: skip
VALUES = (
    "@ByteArray(abc)", "@Variant(\\0\\0\\0\\x43\\x1\\xff\\xff\\x1)", "@Invalid()", "@Size(1 2)",
    "@Rect(1 2 3 4)", "@Point(1 2)", "true", "1e400", "-1", "x" * 6000, "/" + "y" * 300, "a, b, c",
    "\\x0/nul", "@", "[" * 5000, "\\xd800",
)  # fmt: skip


def written(folder: Path, content: bytes) -> Preferences:
    file = folder / "window.ini"
    file.write_bytes(content)
    return Preferences(file)


def everything(found: Preferences) -> None:
    """Read every key, as the window does."""
    assert found.theme in ("system", "light", "dark")
    assert found.language in ("system", "en", "ko")
    assert found.spoken_language() in ("en", "ko")
    for path in (*found.recent, found.python or "", found.export_folder or ""):
        Path(path).exists()
    assert all(isinstance(model, str) for model in found.recent_models)
    assert found.pace in (1, 2, 5, 10)
    assert found.scale in (100, 110, 125, 150)
    usual = found.usual
    assert usual.currency in (None, "USD", "KRW")
    assert usual.usd_per_kwh is None or 0 <= usual.usd_per_kwh <= 10
    assert usual.household_kwh is None or 0 <= usual.household_kwh <= 100_000
    assert isinstance(found.alerts, str)
    assert found.geometry is None or found.geometry.size() >= 0


def test_each_key_falls_back_alone(tmp_path: Path) -> None:
    for number, (key, value) in enumerate((key, value) for key in KEYS for value in VALUES):
        folder = tmp_path / str(number)
        folder.mkdir()
        lines = [line for line in VALID.splitlines() if not line.startswith(f"{key}=")]
        found = written(folder, "\n".join([*lines, f"{key}={value}"]).encode())
        everything(found)
        assert found.theme == "dark" or key == "theme"
        assert found.pace == 5 or key == "pace"


@pytest.mark.parametrize("seed", range(100))
def test_damaged_bytes_are_read_as_what_is_left_of_them(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    content = bytearray(VALID.encode(chance.choice(("utf-8", "utf-8", "utf-16", "latin-1"))))
    for _ in range(chance.choice((1, 5, 100))):
        content[chance.randrange(len(content))] = chance.randrange(256)
    everything(written(tmp_path, bytes(content)[: chance.randint(1, len(content))]))


def test_what_cannot_be_preferences_is_set_aside(tmp_path: Path) -> None:
    everything(written(tmp_path, b"[General]\ntheme=dark\nx=" + b"y" * (2 << 20)))
    assert (tmp_path / "window.ini.damaged").exists()
    (tmp_path / "folder" / "window.ini").mkdir(parents=True)
    everything(Preferences(tmp_path / "folder" / "window.ini"))


@pytest.mark.skipif(sys.platform == "win32", reason="makes a pipe")
@pytest.mark.timeout(30)
def test_a_pipe_in_their_place_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "window.ini")
    found = Preferences(tmp_path / "window.ini")
    everything(found)
    found.theme = "dark"
    assert found.theme == "dark"


@pytest.mark.parametrize(
    "line",
    ["recent=@Size(1 2)", "recent=" + "x" * 6000, "geometry=@ByteArray(\\x1\\xd9\\xd0\\xcb\\xff)",
     "alerts=" + "[" * 5000, "python=/absent"],
)  # fmt: skip
def test_the_window_opens_all_the_same(opened, preferences, tmp_path, line) -> None:
    file = tmp_path / "damaged" / "window.ini"
    file.parent.mkdir()
    file.write_text(f"[General]\nlanguage=en\n{line}\n")
    preferences.__init__(file)
    assert opened().isVisible()
