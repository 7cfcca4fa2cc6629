"""Docker Compose files: each service as the command line that starts it."""

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from trainwright.yamltext import Document


def services(document: Document) -> Iterator[tuple[str, int]]:
    """Yield the command line of each service of a Compose file, with its line."""
    found = document.data.get("services")
    for name, service in found.items() if isinstance(found, dict) else ():
        if isinstance(service, dict) and isinstance(service.get("image"), str):
            place = ("services", name, "command")
            line = document.line(place) or document.line(place[:2]) or 1
            yield f"docker run {_started(service)}", line


def _started(service: Mapping[str, Any]) -> str:
    parts = [shlex.quote(service["image"])]
    for key in ("entrypoint", "command"):
        value = service.get(key)
        if isinstance(value, list):
            parts.append(shlex.join(map(str, value)))
        elif isinstance(value, str):
            parts.append(" ".join(value.split()))
    return " ".join(parts)
