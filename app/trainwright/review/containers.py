"""What files of containers and of cloud jobs start, as command lines: Compose, Kubernetes."""

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from trainwright.yamltext import Document, Place

_DEEPEST = 8
"""Levels of a Kubernetes object above its containers; a CronJob has seven."""


def describes(document: Document) -> bool:
    """Return whether a file is one of containers."""
    data = document.data
    return "services" in data or {"apiVersion", "kind"} <= data.keys()


def job(document: Document) -> str | None:
    """Return the script of a job of SkyPilot or dstack; None of another file."""
    data = document.data
    of_sky = isinstance(data.get("run"), str) and data.keys() & {"resources", "setup", "envs"}
    lines = data.get("commands")
    of_dstack = isinstance(lines, list) and data.get("type") in ("task", "service")
    if not of_sky and not of_dstack:
        return None
    asked = data.get("resources")
    gpus = _below(asked, "accelerators" if of_sky else "gpu")
    counted = re.search(r":([0-9]+)$", gpus) if isinstance(gpus, str) else None
    if isinstance(gpus, dict) and len(gpus) == 1 and of_sky:
        counted = re.search(r"()([0-9]+)", str(next(iter(gpus.values()))))
    number = counted[counted.lastindex or 1] if counted is not None else "1"
    parts = [f"sbatch --gpus-per-node={number}"] if isinstance(gpus, (str, dict)) else []
    if isinstance(nodes := data.get("num_nodes", data.get("nodes")), int) and nodes > 1:
        parts.append(f"sbatch --nodes={nodes}")
    given = data.get("envs") or data.get("env") or {}
    if isinstance(given, dict):
        parts += (f"{name}={shlex.quote(str(value))}" for name, value in given.items() if value)
    return "\n".join([*parts, data["run"] if of_sky else "\n".join(map(str, lines or ()))])


_BUILT = re.compile(r"(?im)^[ \t]*(?:RUN|CMD|ENTRYPOINT|COPY|ENV|WORKDIR|EXPOSE)[ \t]")
_STEP = re.compile(r"(?i)[ \t]*(FROM|ENV|ENTRYPOINT|CMD)[ \t]+(.*)")


def builds(text: str) -> bool:
    """Return whether this is a Dockerfile: unlike a Modelfile it has steps behind ``FROM``."""
    return re.search(r"(?im)^[ \t]*FROM[ \t]", text) is not None and _BUILT.search(text) is not None


def of_image(text: str) -> str:
    """Return a Dockerfile as a line that starts its last image, below what it sets."""
    said = {"FROM": "", "ENTRYPOINT": "", "CMD": ""}
    above = []
    for line in re.sub(r"\\\r?\n", " ", text).splitlines():
        if (step := _STEP.fullmatch(line)) is None:
            continue
        word, rest = step[1].upper(), step[2].strip()
        if word == "ENV":
            above.append(rest if "=" in rest else rest.replace(" ", "=", 1))
        else:
            said[word] = rest.split()[0] if word == "FROM" else _executed(rest)
    return "\n".join([*above, " ".join(("docker run", *filter(None, said.values())))])


def _executed(rest: str) -> str:
    """Return what a step runs: a list of words in JSON, or a shell's line."""
    try:
        words = json.loads(rest)
    except (ValueError, RecursionError):
        return rest
    return shlex.join(map(str, words)) if isinstance(words, list) else rest


def started(document: Document) -> Iterator[tuple[str, int]]:
    """Yield the command line of each container, with its line."""
    services = document.data.get("services")
    found = (
        ((("services", name), one) for name, one in services.items())
        if isinstance(services, dict)
        else _containers(document.data, ())
    )
    for place, container in found:
        if isinstance(container, dict) and isinstance(container.get("image"), str):
            line = document.line((*place, "command")) or document.line(place) or 1
            gpus = _gpus(container)
            handed = f"--gpus {shlex.quote(gpus)} " if gpus is not None else ""
            yield f"docker run {handed}{_words(container)}", line


def _containers(value: Any, place: Place) -> Iterator[tuple[Place, Any]]:
    """Yield what is in lists called ``containers``."""
    if not isinstance(value, dict) or len(place) > _DEEPEST:
        return
    for key, inner in value.items():
        if key == "containers" and isinstance(inner, list):
            yield from (((*place, key, number), one) for number, one in enumerate(inner))
        else:
            yield from _containers(inner, (*place, key))


def _words(container: Mapping[str, Any]) -> str:
    """Return the image and what runs in it: Compose's entrypoint comes before its command."""
    parts = [shlex.quote(container["image"])]
    for key in ("entrypoint", "command", "args"):
        value = container.get(key)
        if isinstance(value, list):
            parts.append(shlex.join(map(str, value)))
        elif isinstance(value, str):
            parts.append(" ".join(value.split()))
    return " ".join(parts)


def _gpus(container: Mapping[str, Any]) -> str | None:
    """Return the GPUs that a container gets, as ``docker run --gpus`` has them; None: not said.

    Compose reserves devices (``deploy.resources.reservations.devices``), or has ``gpus`` as
    docker; Kubernetes limits ``nvidia.com/gpu``.
    """
    if isinstance(container.get("gpus"), (int, str)):
        return str(container["gpus"])
    limit = _below(container, "resources", "limits", "nvidia.com/gpu")
    if isinstance(limit, (int, str)):
        return str(limit)
    devices = _below(container, "deploy", "resources", "reservations", "devices")
    for device in devices if isinstance(devices, list) else ():
        if isinstance(device, dict) and "gpu" in str(device.get("capabilities")):
            ids, count = device.get("device_ids"), device.get("count")
            if ids == ["all"]:
                return "all"
            if isinstance(ids, list) and ids:
                return f"device={','.join(map(str, ids))}"
            return str(count) if isinstance(count, (int, str)) else None
    return None


def _below(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value
