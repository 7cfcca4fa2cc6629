"""The compiled catalog of a folder: from a copy of the same hash, or made and kept."""

from contextlib import suppress
from pathlib import Path

import platformdirs

from trainwright import __version__, saving
from trainwright.catalog.compiled import Compiled, from_json, sources_hash, to_json, yaml_files
from trainwright.catalog.part_kinds import PartKind


def compiled_folder(
    folder: Path | None, shipped_copy: Path | None = None, kind: PartKind = "gpu"
) -> Compiled:
    """Return the folder's records from a copy of the same hash, or compile them and keep one."""
    if folder is None or not yaml_files(folder):
        return Compiled("", {}, {})
    sources = sources_hash(folder)
    cached = _cache_file(kind, sources)
    for copy in (shipped_copy, cached):
        known = from_json(copy, sources) if copy else None
        if known is not None:
            return known
    # Only here: the file models and the YAML reader cost more than everything else, and with
    # a fresh copy nobody needs them.
    from trainwright.catalog.compiler import compile_folder

    fresh = compile_folder(folder, kind)
    if not fresh.problems:
        _keep(cached, to_json(fresh))
    return fresh


def _cache_file(kind: PartKind, sources: str) -> Path:
    folder = Path(platformdirs.user_cache_dir("trainwright", appauthor=False))
    return folder / "catalog" / f"{kind}-{__version__}-{sources[:16]}.json"


def _keep(path: Path, text: str) -> None:
    """Write a cache file whole or not at all; a disk that refuses costs only speed."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        saving.replace(path, text.encode())
