"""Writing of changed files: a copy of each first, then each in one step."""

from collections.abc import Iterable, Mapping
from itertools import count
from pathlib import Path

from trainwright import reading, saving
from trainwright.messages import UserError
from trainwright.review.files import Source
from trainwright.yamltext import MAX_BYTES

BACKUP = ".before-review"


def write(changed: Mapping[str, tuple[Source, str]]) -> tuple[tuple[Path, Path], ...]:
    """Write the new texts and return each file with the copy of what it was.

    Raises:
        UserError: a file was changed by somebody since it was read, or cannot be written. Files
            before it in order are written then, and their copies are there.
    """
    done = []
    for source, text in changed.values():
        assert source.path is not None, "command lines are not written"
        if reading.text(source.path, MAX_BYTES) != source.text:
            raise UserError.of("review.changed-since", file=source.name)
        done.append((source, text, _free(source.path)))
    for source, text, backup in done:
        assert source.path is not None, "checked above"
        saving.write(backup, source.path.read_bytes())
        saving.write(source.path, _with_ending(text, source.path))
    return tuple((source.path, backup) for source, _, backup in done if source.path is not None)


def _with_ending(text: str, path: Path) -> bytes:
    """Return the bytes of a text, with the mark that the file begins with."""
    mark = b"\xef\xbb\xbf" if path.read_bytes().startswith(b"\xef\xbb\xbf") else b""
    return mark + text.encode()


def _free(path: Path) -> Path:
    """Return a name for the copy that nothing has yet."""
    names: Iterable[str] = (
        f"{path.name}{BACKUP}{'' if number == 1 else f'.{number}'}" for number in count(1)
    )
    return next(found for name in names if not (found := path.with_name(name)).exists())
