"""The recorder's address in scripts: ``from trainwright.diagnose.callback import Recorder``."""

from trainwright.diagnose.recorder.callback import Recorder

__all__ = ["Recorder"]
