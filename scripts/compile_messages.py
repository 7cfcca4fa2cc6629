"""Compile the message catalogues: all ``resources/i18n/<language>/*.po`` into one ``.mo`` each.

The result is committed, so that running the program needs no build step; ``--check`` fails
where it is stale. Ids live in one area file each (``plan.po`` holds ``plan.*``).
"""

import io
import sys
from datetime import UTC, datetime
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.mofile import read_mo, write_mo
from babel.messages.pofile import read_po

DATE = datetime(2026, 1, 1, tzinfo=UTC)
"""Written into the headers, so that the same sentences give the same file."""
I18N = Path(__file__).parents[1] / "resources" / "i18n"


def compiled(language: str) -> bytes:
    """Return the bytes of the language's ``.mo`` file."""
    merged = Catalog(locale=language, creation_date=DATE, revision_date=DATE)
    for path in sorted((I18N / language).glob("*.po")):
        with path.open("rb") as file:
            for message in read_po(file, locale=language):
                if message.id:
                    merged[message.id] = message
    buffer = io.BytesIO()
    write_mo(buffer, merged)
    return buffer.getvalue()


def sentences(content: bytes) -> dict[str, object]:
    """Return what a ``.mo`` file says, without its header: that names a date and a version."""
    found = read_mo(io.BytesIO(content))
    return {str(message.id): message.string for message in found if message.id}


def main() -> int:
    stale = 0
    for folder in sorted(path for path in I18N.iterdir() if path.is_dir()):
        goal, content = I18N / f"{folder.name}.mo", compiled(folder.name)
        if sys.argv[1:] != ["--check"]:
            goal.write_bytes(content)
            sys.stdout.write(f"{goal.name}\n")
        elif not goal.is_file() or sentences(goal.read_bytes()) != sentences(content):
            sys.stderr.write(f"{goal.name} is stale; run: make messages\n")
            stale = 1
    return stale


if __name__ == "__main__":
    sys.exit(main())
