#!/usr/bin/env bash
# A table of rich loses half of a word where Korean text wraps.
#
# Version: rich 15.0.0.
# Expected: a word that does not fit at the end of a line goes to the next line, as it does for
#   English text in the same table.
# Seen: at some widths the wrapped line is a column too wide, so that the cell cuts it: "늘리면"
#   becomes "늘리 …", and the next line goes on with the word after it. English text of the same
#   widths is whole. With overflow="fold" the Korean text is whole too.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q rich==15.0.0

"$folder/venv/bin/python" - <<'PY'
from io import StringIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

KOREAN = "배치를 두 배로 늘리면 활성화 메모리가 두 배로 늘어납니다"
ENGLISH = "doubling the batch doubles the memory of activations"


def shown(text, width):
    grid = Table.grid(padding=(0, 1))
    grid.add_column()
    grid.add_column()
    grid.add_row(" •", text)
    out = StringIO()
    Console(file=out, width=width).print(grid)
    return out.getvalue()


def cut(text, **options):
    widths = range(20, 60)
    printed = {width: shown(Text(text, **options), width) for width in widths}
    return [width for width in widths if any(word not in printed[width] for word in text.split())]


print(shown(Text(KOREAN), 24))
found = {
    "Korean": cut(KOREAN),
    "English": cut(ENGLISH),
    "Korean, folded": cut(KOREAN, overflow="fold"),
}
print("widths at which a word is cut:", found)
assert found == {"Korean": [24, 31, 40], "English": [], "Korean, folded": []}, found
PY
