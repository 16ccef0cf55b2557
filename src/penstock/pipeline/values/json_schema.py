"""Schemas in JSON Schema (any draft), and the columns that they make.

Only what gives types is looked at: a record that a schema forbids for other reasons is a row.
What may be of several types is a column of text that holds the JSON as it was written.
"""

from __future__ import annotations

import json
from typing import Any, Final

import pyarrow as pa

from penstock.pipeline.values.ddl import TIMESTAMP
from penstock.pipeline.values.errors import SchemaError

_DEEPEST: Final = 64
_MOST: Final = 20_000
"""Types, those that are referred to in many places counted in each."""
_PLAIN: Final = {
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
}
_FORMATS: Final = {"date-time": TIMESTAMP, "date": pa.date32()}


def parse_json_schema(text: str, references: dict[str, str] | None = None) -> pa.StructType:
    """Return the columns of a schema, given those that it refers to by name.

    Raises SchemaError.
    """
    try:
        root = json.loads(text)
        others = {name: json.loads(each) for name, each in (references or {}).items()}
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"the JSON Schema is no JSON: {error}") from None
    of = _Reader(root, others).type(root, root, ())
    if not pa.types.is_struct(of):
        raise SchemaError("the JSON Schema has no properties: columns need an object that has")
    return of


class _Reader:
    def __init__(self, root: Any, others: dict[str, Any]) -> None:
        self._root = root
        self._others = others
        self._count = 0

    def type(self, declared: Any, document: Any, inside: tuple[int, ...]) -> pa.DataType:
        """Return the type of a schema that stands in a document, inside of others."""
        if not isinstance(declared, dict):
            return pa.string()
        self._count += 1
        if self._count > _MOST:
            raise SchemaError(f"the JSON Schema has more than {_MOST} types")
        if id(declared) in inside:
            raise SchemaError("the JSON Schema is a part of itself, which no column can be")
        if len(inside) > _DEEPEST:
            raise SchemaError(f"the JSON Schema is more than {_DEEPEST} levels deep")
        inside = (*inside, id(declared))
        if isinstance(declared.get("$ref"), str):
            return self.type(*self._find(declared["$ref"], document), inside)
        for key in ("oneOf", "anyOf"):
            if isinstance(declared.get(key), list):
                return self._one_of(declared[key], document, inside)
        return self._of_kind(declared, document, inside)

    def _of_kind(
        self, declared: dict[str, Any], document: Any, inside: tuple[int, ...]
    ) -> pa.DataType:
        kinds = declared.get("type")
        kinds = [each for each in (kinds if isinstance(kinds, list) else [kinds]) if each != "null"]
        kind = kinds[0] if len(kinds) == 1 else None
        if kind == "object" or (kind is None and "properties" in declared) or "allOf" in declared:
            return self._object(declared, document, inside)
        if kind == "array":
            return pa.list_(self.type(declared.get("items"), document, inside))
        if kind == "string":
            return _FORMATS.get(str(declared.get("format")), pa.string())
        return _PLAIN.get(str(kind), pa.string())

    def _one_of(self, choices: list[Any], document: Any, inside: tuple[int, ...]) -> pa.DataType:
        kinds = {
            self.type(each, document, inside)
            for each in choices
            if not (isinstance(each, dict) and each.get("type") == "null")
        }
        return kinds.pop() if len(kinds) == 1 else pa.string()

    def _object(
        self, declared: dict[str, Any], document: Any, inside: tuple[int, ...]
    ) -> pa.DataType:
        fields: dict[str, pa.DataType] = {}
        for part in declared.get("allOf") or ():
            of = self.type(part, document, inside)
            fields.update({each.name: each.type for each in getattr(of, "fields", ())})
        properties = declared.get("properties")
        if isinstance(properties, dict):
            for name, each in properties.items():
                fields[name] = self.type(each, document, inside)
        if fields:
            return pa.struct(list(fields.items()))
        more = declared.get("additionalProperties")
        if isinstance(more, dict):
            return pa.map_(pa.string(), self.type(more, document, inside))
        return pa.string()

    def _find(self, reference: str, document: Any) -> tuple[Any, Any]:
        """Return what a reference names, and the document that it stands in."""
        name, _, pointer = reference.partition("#")
        where = document
        if name:
            matches = (self._others.get(each) for each in (name, name.rpartition("/")[2]))
            where = next((each for each in matches if each is not None), None)
        found = where
        for key in pointer.split("/")[1:]:
            key = key.replace("~1", "/").replace("~0", "~")  # noqa: PLW2901  # JSON Pointer
            found = found.get(key) if isinstance(found, dict) else None
        if found is None:
            raise SchemaError(f"the JSON Schema refers to {reference[:100]!r}, which is not there")
        return found, where
