"""Starts the packaged app, and stands in for Python where the app starts programs of its own.

In a folder that PyInstaller made, ``sys.executable`` is this program. So it takes the arguments
that the app gives to Python: ``[-s] [-P] [-X utf8] (-c CODE | FILE.py) ...``.
"""

import multiprocessing
import os
import runpy
import sys


def main() -> int:
    """Return the exit code of the app, or of the program that it asked for."""
    # PyInstaller's libraries are for this program, not for the Python that a person trains with.
    before = os.environ.pop("LD_LIBRARY_PATH_ORIG", None)
    os.environ.pop("LD_LIBRARY_PATH", None)
    if before is not None:
        os.environ["LD_LIBRARY_PATH"] = before
    multiprocessing.freeze_support()
    words = sys.argv[1:]
    while words[:1] in (["-s"], ["-P"], ["-X"]):
        words = words[2:] if words[0] == "-X" else words[1:]
    if words[:1] == ["-c"]:
        sys.argv = ["-c", *words[2:]]
        exec(words[1], {"__name__": "__main__"})  # our own words: see Conversation
        return 0
    if words and _is_ours(words[0]):
        sys.argv = words
        sys.path.insert(0, os.path.dirname(words[0]))
        runpy.run_path(words[0], run_name="__main__")
        return 0
    from trainwright.__main__ import main as app

    return app()


def _is_ours(name: str) -> bool:
    """Return whether a file is one of the programs that the app brings along."""
    import trainwright

    programs = os.path.join(os.path.dirname(trainwright.__file__), "worker", "programs")
    return name.endswith(".py") and os.path.dirname(os.path.abspath(name)) == programs


if __name__ == "__main__":
    sys.exit(main())
