"""Avro's notation of schemas, and which schema reads what another one wrote.

The rules are those of Avro's specification under 'schema resolution', as lenient as Avro's own
library for Java is where it validates schemas, which is what Pulsar's broker asks: the names of
records need not match, and neither need the symbols of enums.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from penstock.broker.errors import IncompatibleSchemaError
from penstock.limits import SCHEMA_COMPARISONS, SCHEMA_DEPTH

if TYPE_CHECKING:
    from collections.abc import Mapping

_PRIMITIVES: Final = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
_NAMED: Final = frozenset({"record", "error", "enum", "fixed"})
_PROMOTIONS: Final[Mapping[str, frozenset[str]]] = {
    "long": frozenset({"int"}),
    "float": frozenset({"int", "long"}),
    "double": frozenset({"int", "long", "float"}),
    "string": frozenset({"bytes"}),
    "bytes": frozenset({"string"}),
}
"""What else a reader of a type reads."""
_STEPS: Final = 64
"""Types after which a thread lets the event loop run, which else waits for milliseconds."""


@dataclass(eq=False)
class AvroField:
    """A field of a record; a reader's one with a default may be missing in what it reads."""

    type: AvroType
    has_default: bool


@dataclass(eq=False)
class AvroType:
    """One type. `items` are those of a union, or the one of an array's or a map's elements."""

    kind: str
    name: str = ""
    size: int = 0
    items: list[AvroType] = field(default_factory=list)
    fields: dict[str, AvroField] = field(default_factory=dict)


def parse(declared: object) -> AvroType:
    """Read what was JSON. Raises IncompatibleSchemaError where it is no schema."""
    return _Parser().type(declared, "", SCHEMA_DEPTH)


def can_read(reader: AvroType, writer: AvroType) -> bool:
    """Whether all that was written with one schema can be read with another.

    Raises IncompatibleSchemaError where it can't be found out in reasonable time.
    """
    return _Resolution().reads(reader, writer, SCHEMA_DEPTH)


class _Parser:
    def __init__(self) -> None:
        self._named = {name: AvroType(name) for name in _PRIMITIVES}
        self._count = 0

    def type(self, declared: object, namespace: str, depth: int) -> AvroType:
        self._count += 1
        if not self._count % _STEPS:
            time.sleep(0)
        if not depth:
            raise IncompatibleSchemaError(f"a schema has at most {SCHEMA_DEPTH} levels")
        if isinstance(declared, str):
            return self._by_name(declared, namespace)
        if isinstance(declared, list):
            branches = [self.type(branch, namespace, depth - 1) for branch in declared]
            return AvroType("union", items=branches)
        if not isinstance(declared, dict):
            raise IncompatibleSchemaError("a type is a name, a list or an object")
        kind = declared.get("type")
        if not isinstance(kind, str):
            return self.type(kind, namespace, depth - 1)
        if kind in _NAMED:
            return self._define(declared, kind, namespace, depth)
        if kind in ("array", "map"):
            items = declared.get("items" if kind == "array" else "values")
            return AvroType(kind, items=[self.type(items, namespace, depth - 1)])
        return self._by_name(kind, namespace)

    def _by_name(self, name: str, namespace: str) -> AvroType:
        found = self._named.get(_full_name(name, namespace)) or self._named.get(name)
        if found is None:
            raise IncompatibleSchemaError(f"the schema does not define its type {name[:100]!r}")
        return found

    def _define(self, declared: dict[str, Any], kind: str, namespace: str, depth: int) -> AvroType:
        name, given = declared.get("name"), declared.get("namespace", namespace)
        if not isinstance(name, str) or not name or not isinstance(given, str):
            raise IncompatibleSchemaError(f"a type of kind {kind} has no name")
        full = _full_name(name, given)
        if full in self._named:
            raise IncompatibleSchemaError(f"the schema defines {full[:100]!r} twice")
        # It may be a part of itself.
        made = self._named[full] = AvroType("record" if kind == "error" else kind, full)
        if kind == "fixed":
            size = declared.get("size")
            if not isinstance(size, int):
                raise IncompatibleSchemaError(f"the fixed type {full[:100]!r} has no size")
            made.size = size
        elif kind != "enum":
            self._add_fields(made, declared.get("fields"), full.rpartition(".")[0], depth)
        return made

    def _add_fields(self, record: AvroType, declared: object, namespace: str, depth: int) -> None:
        if not isinstance(declared, list):
            raise IncompatibleSchemaError(f"the record {record.name[:100]!r} has no fields")
        for each in declared:
            if not isinstance(each, dict) or not isinstance(each.get("name"), str):
                raise IncompatibleSchemaError(f"a field of {record.name[:100]!r} has no name")
            of_type = self.type(each.get("type"), namespace, depth - 1)
            record.fields[each["name"]] = AvroField(of_type, "default" in each)


class _Resolution:
    """One question, and what was found meanwhile."""

    def __init__(self) -> None:
        self._asked: dict[tuple[AvroType, AvroType], None] = {}
        self._left = int(SCHEMA_COMPARISONS)

    def reads(self, reader: AvroType, writer: AvroType, depth: int) -> bool:
        self._left -= 1
        if not self._left % _STEPS:
            time.sleep(0)
        if self._left < 0 or not depth:
            raise IncompatibleSchemaError("the schema is too complex to hold it against another")
        if writer.kind == "union":
            return all(self.reads(reader, each, depth - 1) for each in writer.items)
        if reader.kind == "union":
            return any(self.reads(each, writer, depth - 1) for each in reader.items)
        if reader.kind != writer.kind:
            return writer.kind in _PROMOTIONS.get(reader.kind, ())
        if reader.kind == "record":
            return self._reads_record(reader, writer, depth)
        if reader.kind in ("array", "map"):
            return self.reads(reader.items[0], writer.items[0], depth - 1)
        return (reader.name, reader.size) == (writer.name, writer.size)

    def _reads_record(self, reader: AvroType, writer: AvroType, depth: int) -> bool:
        pair = (reader, writer)
        if pair in self._asked:
            return True  # It is a part of itself, or was found to be readable.
        self._asked[pair] = None
        reads = all(
            self.reads(wanted.type, writer.fields[name].type, depth - 1)
            if name in writer.fields
            else wanted.has_default
            for name, wanted in reader.fields.items()
        )
        while not reads and pair in self._asked:
            self._asked.popitem()  # What was found since may have counted on it.
        return reads


def _full_name(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"
