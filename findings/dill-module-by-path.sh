#!/usr/bin/env bash
# dill stores a whole module by value where its path does not contain "site-packages".
#
# Version: dill 0.4.1.
# Expected: an importable module is stored by its name, wherever it is installed.
# Seen: the text of the path decides. The same module in a folder of any other name is stored with
#   the values of its globals. datasets hashes functions with dill, so with packages that were
#   installed by "pip install --target FOLDER" a fingerprint walks through whole libraries, and
#   training scripts stop with "Can't pickle <class 'MonthDayNano'>" (datasets 5.2.0, pyarrow 26.0.1).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q dill==0.4.1

"$folder/venv/bin/python" - "$folder" <<'PY'
import importlib
import pathlib
import sys

import dill

held = {}
for name in ("libraries", "site-packages"):
    place = pathlib.Path(sys.argv[1], "here", name)
    place.mkdir(parents=True)
    module = f"settings_{name[0]}"
    (place / f"{module}.py").write_text("LABEL = 'value of a global'\n")
    sys.path.insert(0, str(place))
    stored = dill.dumps(importlib.import_module(module))
    held[name] = b"value of a global" in stored
    print(f"{name}: {len(stored)} bytes, with the values of its globals: {held[name]}")
assert held == {"libraries": True, "site-packages": False}
PY
