"""The modules beside the tests are imported by bare name."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
