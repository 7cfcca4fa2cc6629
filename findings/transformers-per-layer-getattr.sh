#!/usr/bin/env bash
# getattr(config, name, default) raises on a Gemma 4 text config instead of giving the default.
#
# Versions: transformers 5.24.0.
# Expected: getattr with a default returns it where an object has no single value of that name, since
#   Python's protocol asks for an AttributeError, as the error's name promises.
# Seen: layers of Gemma 4 differ in head_dim, so that config.head_dim raises
#   AmbiguousGlobalPerLayerAttributeError, which is no AttributeError: getattr(config, "head_dim", None)
#   and hasattr(config, "head_dim") raise as well. Libraries that ask for head_dim with a fallback stop.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q transformers==5.24.0

"$folder/venv/bin/python" - <<'PY'
from transformers import Gemma4TextConfig, LlamaConfig

print("LlamaConfig:", getattr(LlamaConfig(), "no_such_key", None))
for look in (lambda config: getattr(config, "head_dim", None), lambda config: hasattr(config, "head_dim")):
    try:
        print("Gemma4TextConfig:", look(Gemma4TextConfig()))
    except Exception as error:
        kinds = [kind.__name__ for kind in type(error).__mro__]
        print("Gemma4TextConfig:", " < ".join(kinds), "-", str(error).splitlines()[0])
        assert kinds[0] == "AmbiguousGlobalPerLayerAttributeError"
        assert "AttributeError" not in kinds
    else:
        raise AssertionError("getattr gives the default now")
PY
