"""Write ``resources/schema/plan.schema.json``: what editors check plan files against.

The fields' docstrings become its descriptions. A test checks that the file is fresh.
"""

import ast
import inspect
import json
import sys
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from trainwright.plan.schema import Plan

TARGET = Path(__file__).parents[1] / "resources" / "schema" / "plan.schema.json"


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a plan file."""
    document = Plan.model_json_schema()
    document["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    document["title"] = "Trainwright plan"
    document["required"] = ["trainwright", *document["required"]]
    for part in document["$defs"].values():
        part.pop("title", None)
    for part in (document, *document["$defs"].values()):
        for field in part.get("properties", {}).values():
            field.pop("title", None)
    for model in models():
        part = document["$defs"].get(model.__name__, document if model is Plan else {})
        for name, text in field_docs(model).items():
            if name in part.get("properties", {}):
                part["properties"][name]["description"] = text
    return document


def models() -> set[type[BaseModel]]:
    """Return the plan's models, all in this project's modules."""
    found: set[type[BaseModel]] = set()
    waiting: list[type[BaseModel]] = [BaseModel]
    while waiting:
        for model in waiting.pop().__subclasses__():
            if model not in found and model.__module__.startswith("trainwright."):
                found.add(model)
            waiting.append(model)
    return found


def field_docs(model: type[BaseModel]) -> dict[str, str]:
    """Return the docstring below each field of the model."""
    (definition,) = ast.parse(inspect.getsource(model)).body
    assert isinstance(definition, ast.ClassDef)
    docs: dict[str, str] = {}
    for field, text in zip(definition.body, definition.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            match text:
                case ast.Expr(value=ast.Constant(value=str(doc))):
                    docs[field.target.id] = " ".join(doc.split())
    return docs


def text() -> str:
    """Return the file's content."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(text(), encoding="utf-8")
    sys.stdout.write(f"{TARGET.name}\n")
