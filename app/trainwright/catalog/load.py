"""The catalog in use: the shipped records, and over them the person's own."""

import os
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import platformdirs

from trainwright.catalog.compiled import Compiled, yaml_files
from trainwright.catalog.copies import compiled_folder
from trainwright.catalog.records import GpuRecord
from trainwright.data import hardware_db, resources
from trainwright.messages import Message

OVERLAY_VARIABLE = "TRAINWRIGHT_HARDWARE"
_State = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, slots=True)
class Catalog:
    """Records by id and by name; a record is built when it is first asked for."""

    shipped: Compiled
    overlay: Compiled
    _built: dict[str, GpuRecord] = field(default_factory=dict, repr=False, compare=False)

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of all records, the person's own last."""
        return tuple(dict.fromkeys((*self.shipped.records, *self.overlay.records)))

    @property
    def problems(self) -> tuple[Message, ...]:
        """What was left out of the shipped files and of the overlay, and why."""
        return (*self.shipped.problems, *self.overlay.problems)

    def record(self, id: str) -> GpuRecord:
        """Return the record of an id.

        Raises:
            KeyError: no such id.
        """
        if id not in self._built:
            data = self.overlay.records.get(id) or self.shipped.records[id]
            self._built[id] = GpuRecord.model_validate(data)
        return self._built[id]

    def named(self, key: str) -> tuple[str, ...]:
        """Return the ids that answer to a name key, preferred one first; the overlay's win."""
        return tuple(self.overlay.names.get(key) or self.shipped.names.get(key) or ())

    @property
    def keys(self) -> tuple[str, ...]:
        """All name keys, for suggestions."""
        return (*self.overlay.names, *self.shipped.names)


def overlay_folder() -> Path:
    """Return where a person's own records are: ``gpu/*.yaml`` below the hardware folder.

    The hardware folder is in the user's data directory unless the variable
    ``TRAINWRIGHT_HARDWARE`` names another.
    """
    named = os.environ.get(OVERLAY_VARIABLE)
    base = Path(os.path.expanduser(named)) if named else _data_dir() / "hardware"
    return base / "gpu"


def _data_dir() -> Path:
    return Path(platformdirs.user_data_dir("trainwright", appauthor=False))


def catalog() -> Catalog:
    """Return the catalog; own files that changed since the last call are read again."""
    own = overlay_folder()
    stamps = state(own)
    return _catalog(hardware_db("gpu"), own if stamps else None, stamps)


@lru_cache(maxsize=4)
def _catalog(shipped: Path, own: Path | None, _state: _State) -> Catalog:
    return Catalog(_shipped(shipped), compiled_folder(own))


@lru_cache(maxsize=2)
def _shipped(folder: Path) -> Compiled:
    return compiled_folder(folder, resources("catalog", "gpu.json"))


def state(folder: Path) -> _State:
    """Return what changes when somebody edits the folder."""
    return tuple((path.name, *_stamp(path)) for path in yaml_files(folder))


def _stamp(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size
