"""A document and what holds it: its file, and the copy that outlives a crash."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Generic, Literal, TypeVar

from PySide6.QtCore import QObject, Signal

from trainwright import saving
from trainwright.messages import UserError
from trainwright.plan.recovery import Autosave, Origin, Recovered

_REST_S = 0.2
"""Between two copies. A crash costs less than a second, also where other programs leave this one
a tenth of the processors."""

T = TypeVar("T")
OnDisk = Literal["same", "changed", "gone"]


class Draft(QObject, Generic[T]):
    """Knows whether a document has edits that no file holds, and never loses them."""

    warned = Signal(object)
    """A message on the copy that a person should see once."""

    def __init__(self, text_of: Callable[[T, Path | None], str], suffix: str) -> None:
        """Hold nothing yet; ``text_of`` makes a file's text, with paths relative to a folder."""
        super().__init__()
        self.path: Path | None = None
        self.value: T | None = None
        self._saved: T | None = None
        self._digest = ""
        self._text_of, self._suffix = text_of, suffix
        self._copy = Autosave(suffix)
        self._warned = False
        self._writing, self._turn = threading.Lock(), threading.Lock()
        self._due = self._working = False

    @property
    def unsaved(self) -> bool:
        """Whether there are edits that no file holds."""
        return self.value is not None and self.value != self._saved

    def open(self, value: T, path: Path | None, *, saved: bool, digest: str = "") -> None:
        """Make a value the document; one that was unsaved before stays in its copy.

        ``digest`` is its file's, taken before the file was read.
        """
        self._begin(value, value if saved else None, path, digest, Autosave(self._suffix))
        self.changed(value)

    def restore(self, recovered: Recovered[T]) -> bool:
        """Go on with what a crash left; False where another window does already."""
        copy = Autosave.adopting(recovered)
        if copy is None:
            return False
        origin = recovered.origin
        path, digest = (origin.path, origin.digest) if origin else (None, "")
        self._begin(recovered.document, None, path, digest, copy)
        return True

    def changed(self, value: T) -> None:
        """Take an edit; the copy holds it soon, however fast the edits follow each other."""
        self.value = value
        if not self.unsaved:
            self._drop_copy()
        else:
            self._keep_soon()

    def written(self, value: T, path: Path) -> None:
        """Note that a file holds the document now."""
        self.path, self.value, self._saved = path, value, value
        self._digest = saving.digest(path)
        self._drop_copy()

    def discard(self) -> None:
        """Let go of the edits: a person said so."""
        self._saved = self.value
        self._drop_copy()

    def keep(self) -> None:
        """Bring the copy up to date, on the drive too; from any thread."""
        self._write().sync()

    def _write(self) -> Autosave:
        with self._writing:
            if self.value is not None and self.unsaved:
                origin = Origin(self.path, self._digest) if self.path is not None else None
                try:
                    self._copy.keep(self._text_of(self.value, None), origin)
                except UserError as error:
                    if not self._warned:
                        self._warned = True
                        self.warned.emit(error.message)
            return self._copy

    def _keep_soon(self) -> None:
        """Write in a thread: neither waits for the other, a busy window or a slow drive.

        The first edit is written at once, and no later one postpones a copy.
        """
        with self._turn:
            self._due = True
            if not self._working:
                self._working = True
                threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        copy = None
        try:
            while self._take():
                copy = self._write()
                time.sleep(_REST_S)
        except BaseException:
            self._working = False  # or no later edit would be written
            raise
        if copy is not None:
            copy.sync()  # last: a slow drive would hold up the next copy

    def _take(self) -> bool:
        with self._turn:
            self._working, self._due = self._due, False
            return self._working

    def _stop(self) -> None:
        self._due = False

    def close(self) -> None:
        """End the work; edits that nobody saved or discarded stay in their copy."""
        self._begin(None, None, None, "", Autosave(self._suffix))

    # The file

    @property
    def on_disk(self) -> OnDisk:
        """What became of the file since it was read or written here."""
        found = saving.digest(self.path) if self.path is not None else self._digest
        if found == self._digest:
            return "same"
        return "changed" if found else "gone"

    @property
    def text(self) -> str:
        """What would be saved."""
        folder = self.path.parent if self.path is not None else None
        return self._text_of(self.value, folder) if self.value is not None else ""

    def take_note(self, *, decided: bool = True) -> None:
        """Keep the document as it is here although its file differs: it counts as unsaved.

        Unless that is ``decided``, the file still counts as changed, and saving asks again.
        """
        if self.path is not None:
            if decided:
                self._digest = saving.digest(self.path)
            self._saved = None
            self._keep_soon()

    def _begin(
        self, value: T | None, saved: T | None, path: Path | None, digest: str, copy: Autosave
    ) -> None:
        """Go on with another document; the copy before stays where it holds unsaved edits."""
        self._stop()
        self.keep()
        with self._writing:
            if self.unsaved:
                self._copy.release()
            else:
                self._copy.clear()
            self.value, self._saved, self.path = value, saved, path
            self._digest, self._copy = digest, copy

    def _drop_copy(self) -> None:
        self._stop()
        with self._writing:
            self._copy.clear()
