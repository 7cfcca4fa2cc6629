"""After the window has looked around, no place loads anything at the click that shows it."""

import subprocess
import sys

PROGRAM = """
import sys
from trainwright.ui import places, warming

for _ in warming._steps():
    pass
before = set(sys.modules)
for name in places.ALL:
    __import__(f"trainwright.ui.screens.{name}")
print(sorted(set(sys.modules) - before), "torch" in sys.modules)
"""


def test_what_places_need_is_loaded_beforehand_and_torch_never():
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert ran.stdout.split("\n")[0] == "[] False", ran.stderr
