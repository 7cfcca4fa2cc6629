#!/usr/bin/env bash
# Babel reads a .po file with two translations of a message, keeps the first and says nothing.
#
# Version: babel 2.19.0.
# Expected: read_po(..., abort_invalid=True) refuses a second msgstr, and a message that stands twice,
#   as GNU msgfmt does ("duplicate message definition", and a syntax error).
# Seen: both are read without a warning, also with abort_invalid. What was added last is dropped: after
#   a merge of two branches the new wording is in the file and not in the program.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q babel==2.19.0

"$folder/venv/bin/python" -W error - <<'PY'
import io

from babel.messages.pofile import read_po

TEXT = """
msgid ""
msgstr "Content-Type: text/plain; charset=utf-8\\n"

msgid "two translations"
msgstr "old"
msgstr "new"

msgid "stands twice"
msgstr "old"

msgid "stands twice"
msgstr "new"
"""
catalog = read_po(io.BytesIO(TEXT.encode()), abort_invalid=True)
read = {message.id: message.string for message in catalog if message.id}
print(read)
assert read == {"two translations": "old", "stands twice": "old"}
PY
