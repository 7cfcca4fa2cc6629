"""Lets the tests import their real parts by name."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
