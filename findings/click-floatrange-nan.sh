#!/usr/bin/env bash
# click.FloatRange lets "nan" through any range.
#
# Version: click 8.5.1.
# Expected: a value that is not within [1, 2] is refused, and clamping returns a value within.
# Seen: "nan" is neither below 1 nor above 2, so the option takes it, with clamp=True too.
#   "inf" is refused or clamped as expected. A program that trusts its option then computes with NaN.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q click==8.5.1

"$folder/venv/bin/python" - <<'PY'
import math

import click

for kind in (click.FloatRange(1, 2), click.FloatRange(1, 2, clamp=True)):
    value = kind.convert("nan", None, None)
    print(kind, "takes 'nan' as", value)
    assert math.isnan(value)
try:
    click.FloatRange(1, 2).convert("inf", None, None)
    raise SystemExit("inf is taken too")
except click.BadParameter as error:
    print("'inf':", error.message)
PY
