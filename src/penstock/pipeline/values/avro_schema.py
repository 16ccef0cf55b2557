"""Schemas of Avro (1.12), read from their JSON, and the columns that they make."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from penstock.pipeline.values.ddl import NAIVE, TIMESTAMP
from penstock.pipeline.values.errors import SchemaError
from penstock.pipeline.values.shape import DEEPEST, LARGEST

MISSING: Final = object()
"""The default of a field that has none; null is one."""

_PRIMITIVES: Final = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_PLAIN: Final = {
    **_PRIMITIVES,
    "enum": pa.string(),
    "fixed": pa.binary(),
    # Nothing but null is in such a column, and every engine knows text.
    "null": pa.string(),
}
_LOGICAL: Final = {
    ("int", "date"): pa.date32(),
    ("long", "timestamp-millis"): TIMESTAMP,
    ("long", "timestamp-micros"): TIMESTAMP,
    ("long", "local-timestamp-millis"): NAIVE,
    ("long", "local-timestamp-micros"): NAIVE,
}


@dataclass(eq=False)
class AvroField:
    """A field of a record."""

    name: str
    type: Avro
    default: Any
    aliases: tuple[str, ...]


@dataclass(eq=False)
class Avro:
    """One type. `items` are a union's branches, or the one type of an array's or map's elements."""

    kind: str
    name: str = ""
    logical: str = ""
    size: int = 0
    precision: int = 0
    scale: int = 0
    symbols: tuple[str, ...] = ()
    default: Any = MISSING
    """The symbol of an enum that stands for those it does not know."""
    items: tuple[Avro, ...] = ()
    fields: list[AvroField] = field(default_factory=list)

    @property
    def branches(self) -> tuple[Avro, ...]:
        """Its types that are not null."""
        whole = self.items if self.kind == "union" else (self,)
        return tuple(each for each in whole if each.kind != "null")


def parse_avro(text: str, references: tuple[str, ...] = ()) -> Avro:
    """Read a schema, and before it those that it refers to; raises SchemaError."""
    parser = _Parser()
    try:
        for each in references:
            parser.type(json.loads(each), "", 0)
        return parser.type(json.loads(text), "", 0)
    except RecursionError:
        raise SchemaError("the Avro schema is nested too deeply") from None
    except ValueError as error:
        raise SchemaError(f"the Avro schema is no JSON: {error}") from None


def arrow_of(avro: Avro) -> pa.DataType:
    """Return the type of a column; raises SchemaError where a type is a part of itself."""
    return _Columns().type(avro, ())


def merged(branches: tuple[Avro, ...]) -> Avro | None:
    """Return the one type that reads all branches of a union, as Spark's from_avro has it.

    None where they are different things: then the column is a struct of `member0`, `member1`, …
    """
    if len(branches) == 1:
        return branches[0]
    kinds = {each.kind for each in branches}
    plain = not any(each.logical for each in branches)
    for wide in ("long", "double"):
        if plain and kinds == {wide, {"long": "int", "double": "float"}[wide]}:
            return next(each for each in branches if each.kind == wide)
    return None


class _Columns:
    """Counts the columns, for a type that is used in many places makes new ones in each."""

    def __init__(self) -> None:
        self._count = 0

    def type(self, avro: Avro, inside: tuple[Avro, ...]) -> pa.DataType:
        self._count += 1
        if avro in inside:
            raise SchemaError(
                f"the Avro type {avro.name} is a part of itself, which no column can be: leave the "
                "field out of the reader's schema"
            )
        if len(inside) > 2 * DEEPEST or self._count > LARGEST:
            raise SchemaError(
                f"the Avro schema has more than {LARGEST} columns or {DEEPEST} levels"
            )
        inside = (*inside, avro)
        if avro.kind == "union":
            return self._union(avro, inside)
        if avro.kind == "record":
            fields = [pa.field(each.name, self.type(each.type, inside)) for each in avro.fields]
            return pa.struct(fields)
        if avro.kind == "array":
            return pa.list_(self.type(avro.items[0], inside))
        if avro.kind == "map":
            return pa.map_(pa.string(), self.type(avro.items[0], inside))
        return _arrow_leaf(avro)

    def _union(self, union: Avro, inside: tuple[Avro, ...]) -> pa.DataType:
        branches = union.branches
        if not branches:
            return pa.string()
        one = merged(branches)
        if one is not None:
            return self.type(one, inside)
        members = [self.type(each, inside) for each in branches]
        return pa.struct([pa.field(f"member{i}", each) for i, each in enumerate(members)])


def _arrow_leaf(avro: Avro) -> pa.DataType:
    if avro.logical == "decimal":
        return pa.decimal128(avro.precision, avro.scale)
    return _LOGICAL.get((avro.kind, avro.logical), _PLAIN[avro.kind])


class _Parser:
    def __init__(self) -> None:
        self._named: dict[str, Avro] = {}

    def type(self, declared: Any, namespace: str, depth: int) -> Avro:
        if depth > 4 * DEEPEST:
            raise SchemaError("the Avro schema is nested too deeply")
        if isinstance(declared, str):
            return self._by_name(declared, namespace)
        if isinstance(declared, list):
            return self._union(declared, namespace, depth)
        if not isinstance(declared, dict):
            raise SchemaError(f"an Avro type is a name, a list or an object, not {declared!r:.100}")
        return self._object(declared, namespace, depth)

    def _object(self, declared: dict[str, Any], namespace: str, depth: int) -> Avro:
        kind = declared.get("type")
        if not isinstance(kind, str):
            return self.type(kind, namespace, depth + 1)
        if kind in ("record", "error", "enum", "fixed"):
            return self._define(declared, kind, namespace, depth)
        if kind in ("array", "map"):
            items = declared.get("items" if kind == "array" else "values")
            return Avro(kind, items=(self.type(items, namespace, depth + 1),))
        if kind in _PRIMITIVES:
            return _logical(Avro(kind), declared)
        return self._by_name(kind, namespace)

    def _by_name(self, name: str, namespace: str) -> Avro:
        if name in _PRIMITIVES:
            return Avro(name)
        found = self._named.get(_full_name(name, namespace)) or self._named.get(name)
        if found is None:
            raise SchemaError(f"the Avro schema does not define its type {name[:100]!r}")
        return found

    def _union(self, declared: list[Any], namespace: str, depth: int) -> Avro:
        items = tuple(self.type(branch, namespace, depth + 1) for branch in declared)
        if not items or any(each.kind == "union" for each in items):
            raise SchemaError("a union of an Avro schema has at least one branch, and no unions")
        return Avro("union", items=items)

    def _define(self, declared: dict[str, Any], kind: str, namespace: str, depth: int) -> Avro:
        name, given = declared.get("name"), declared.get("namespace", namespace)
        if not isinstance(name, str) or not name or not isinstance(given, str):
            raise SchemaError(f"an Avro type of kind {kind} has no name")
        full = _full_name(name, given)
        made = Avro("record" if kind == "error" else kind, full)
        self._named[full] = made
        if kind == "fixed":
            made.size = _whole(declared, "size", f"the fixed type {full}")
            return _logical(made, declared)
        if kind == "enum":
            made.symbols = tuple(map(str, _list(declared, "symbols", f"the enum {full}")))
            made.default = declared.get("default", MISSING)
            return made
        for each in _list(declared, "fields", f"the record {full}"):
            made.fields.append(self._field(each, full, depth))
        names = [each.name for each in made.fields]
        if len(set(names)) < len(names):
            raise SchemaError(f"the record {full} of the Avro schema has a field twice")
        return made

    def _field(self, declared: Any, record: str, depth: int) -> AvroField:
        if not isinstance(declared, dict) or not isinstance(declared.get("name"), str):
            raise SchemaError(f"a field of the Avro record {record} has no name")
        of = self.type(declared.get("type"), record.rpartition(".")[0], depth + 1)
        default = declared.get("default", MISSING)
        aliases = tuple(map(str, declared.get("aliases") or ()))
        return AvroField(declared["name"], of, default, aliases)


def _logical(avro: Avro, declared: dict[str, Any]) -> Avro:
    """Add a logical type; one that is unknown, or says something impossible, is passed over."""
    logical = declared.get("logicalType")
    if logical == "decimal" and avro.kind in ("bytes", "fixed"):
        precision, scale = declared.get("precision"), declared.get("scale", 0)
        if isinstance(precision, int) and isinstance(scale, int) and 0 <= scale <= precision <= 38:
            avro.logical, avro.precision, avro.scale = "decimal", max(precision, 1), scale
    elif (avro.kind, logical) in _LOGICAL:
        avro.logical = str(logical)
    return avro


def _whole(declared: dict[str, Any], name: str, of: str) -> int:
    number = declared.get(name)
    if not isinstance(number, int) or number < 0:
        raise SchemaError(f"{of} of the Avro schema has no {name}")
    return number


def _list(declared: dict[str, Any], name: str, of: str) -> list[Any]:
    given = declared.get(name)
    if not isinstance(given, list):
        raise SchemaError(f"{of} of the Avro schema has no {name}")
    return given


def _full_name(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"
