"""Reading of catalog YAML: plain data only, of a sane size, with the line of what is wrong."""

from pathlib import Path
from typing import Any

import yaml

from trainwright.catalog.compiled import MAX_BYTES
from trainwright.catalog.problems import brief
from trainwright.messages import Message, UserError

MAX_DEPTH = 8
"""Assumed; shipped files nest five deep."""

Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_yaml(path: Path) -> Any:
    """Return the plain data in a YAML file.

    Raises:
        UserError: the file cannot be read, is too large, is no YAML, or holds tags,
            anchors, several documents, repeated keys or deep nesting.
    """
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise UserError.of("catalog.file-too-large", file=path.name, size=size, limit=MAX_BYTES)
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise UserError.of("catalog.file-unreadable", file=path.name, reason=reason) from error
    except UnicodeDecodeError as error:
        raise UserError.of("catalog.file-not-utf8", file=path.name) from error
    try:
        _refuse_unusual(text, path.name)
        return _construct(text, path.name)
    except (yaml.YAMLError, ValueError) as error:
        # ValueError: a scalar such as 2020-13-01 that looks like a date and is none.
        raise UserError.of("catalog.not-yaml", file=path.name, line=_line(error)) from error


def _refuse_unusual(text: str, file: str) -> None:
    """Look at the events before anything is built, so that a bomb never goes off."""
    depth = documents = 0
    for event in yaml.parse(text, Loader=Loader):
        line = event.start_mark.line + 1 if event.start_mark else 0
        match event:
            case yaml.DocumentStartEvent():
                documents += 1
            case yaml.AliasEvent():
                raise UserError.of("catalog.yaml-anchor", file=file, line=line)
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent() | yaml.ScalarEvent():
                if event.anchor:
                    raise UserError.of("catalog.yaml-anchor", file=file, line=line)
                if event.tag:
                    tag = brief(event.tag)
                    raise UserError.of("catalog.yaml-tag", file=file, line=line, tag=tag)
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH or documents > 1:
            raise UserError.of("catalog.yaml-shape", file=file, line=line)


def _construct(text: str, file: str) -> Any:
    loader = Loader(text)
    try:
        root = loader.get_single_node()
        if root is None:
            return None
        _refuse_repeated_keys(root, file)
        return loader.construct_document(root)
    finally:
        loader.dispose()


def _refuse_repeated_keys(node: yaml.Node, file: str) -> None:
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _refuse_repeated_keys(item, file)
    elif isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise UserError.of("catalog.yaml-shape", file=file, line=line)
            if key.value in seen:
                name = brief(key.value)
                raise UserError.of("catalog.repeated-key", file=file, line=line, key=name)
            seen.add(key.value)
            _refuse_repeated_keys(value, file)


def _line(error: Exception) -> Message:
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        return Message.of("catalog.somewhere")
    return Message.of("catalog.at-line", line=mark.line + 1)
