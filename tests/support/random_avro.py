"""Random schemas of Avro, values of them, and schemas that can read what they wrote."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from hypothesis import strategies as st

from avro_values import field, record

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
NAMES = st.sampled_from(["a", "b", "c", "item", "element", "key", "value"])

Schema: TypeAlias = Any
"""As it stands in JSON."""

_LEAVES: dict[str, st.SearchStrategy[Any]] = {
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "string": TEXT,
    "bytes": st.binary(max_size=6),
    "boolean": st.booleans(),
}
_READ_AS = {
    "int": ["int", "long", "float", "double"],
    "long": ["long", "float", "double"],
    "float": ["float", "double"],
    "string": ["string", "bytes"],
}
_ADDED = [
    field("added", "int", default=7),
    field("added", "string", default="é"),
    field("added", ["null", "long"], default=None),
    field("added", {"type": "array", "items": "int"}, default=[1, 2]),
    field("added", {"type": "map", "values": "string"}, default={"k": "v"}),
]


def _optional(of: Schema, *, null_first: bool) -> Schema:
    if isinstance(of, list):
        return of
    return ["null", of] if null_first else [of, "null"]


def _record(fields: dict[str, Schema]) -> Schema:
    return record(*(field(name, each) for name, each in fields.items()), name="")


_TYPES: st.SearchStrategy[Schema] = st.recursive(
    st.sampled_from(sorted(_LEAVES))
    | st.just({"type": "enum", "name": "", "symbols": ["A", "B", "C"]})
    | st.integers(1, 5).map(lambda size: {"type": "fixed", "name": "", "size": size}),
    lambda inner: st.one_of(
        inner.map(lambda each: {"type": "array", "items": each}),
        inner.map(lambda each: {"type": "map", "values": each}),
        st.builds(_optional, inner, null_first=st.booleans()),
        st.dictionaries(NAMES, inner, min_size=1, max_size=4).map(_record),
    ),
    max_leaves=8,
)
SCHEMAS = st.dictionaries(NAMES, _TYPES, min_size=1, max_size=4).map(
    lambda fields: _named(_record(fields), itertools.count())
)


def _named(of: Schema, numbers: itertools.count[int]) -> Schema:
    """Give each type that has a name one of its own."""
    if isinstance(of, list):
        return [_named(each, numbers) for each in of]
    if isinstance(of, str):
        return of
    named = dict(of)
    if "name" in of:
        named["name"] = f"N{next(numbers)}"
    for inner in ("items", "values"):
        if inner in of:
            named[inner] = _named(of[inner], numbers)
    if "fields" in of:
        named["fields"] = [
            field(each["name"], _named(each["type"], numbers)) for each in of["fields"]
        ]
    return named


def values(of: Schema) -> st.SearchStrategy[Any]:
    """Return what there is of a schema."""
    if isinstance(of, list):
        return st.one_of(*(st.none() if each == "null" else values(each) for each in of))
    return _LEAVES[of] if isinstance(of, str) else _VALUES[of["type"]](of)


_VALUES: dict[str, Callable[[Schema], st.SearchStrategy[Any]]] = {
    "record": lambda of: st.fixed_dictionaries(
        {each["name"]: values(each["type"]) for each in of["fields"]}
    ),
    "array": lambda of: st.lists(values(of["items"]), max_size=3),
    "map": lambda of: st.dictionaries(TEXT, values(of["values"]), max_size=3),
    "enum": lambda of: st.sampled_from(of["symbols"]),
    "fixed": lambda of: st.binary(min_size=of["size"], max_size=of["size"]),
}


@st.composite
def readers(draw: st.DrawFn, of: Schema) -> Schema:
    """Draw a schema that reads what another wrote: fields go, come and move, types get wider."""
    if isinstance(of, list):
        (inner,) = (each for each in of if each != "null")
        return _optional(draw(readers(inner)), null_first=draw(st.booleans()))
    if isinstance(of, str):
        return draw(st.sampled_from(_READ_AS.get(of, [of])))
    if of["type"] == "record":
        return {**of, "fields": draw(_fields(of["fields"]))}
    wider = dict(of)
    for inner in ("items", "values"):
        if inner in of:
            wider[inner] = draw(_wider(of[inner]))
    return wider


@st.composite
def _fields(draw: st.DrawFn, fields: list[dict[str, Any]]) -> list[dict[str, Any]]:
    kept = [
        field(each["name"], draw(_wider(each["type"])))
        for each in draw(st.permutations(fields))
        if draw(st.booleans())
    ]
    if not kept or draw(st.booleans()):
        kept.append(draw(st.sampled_from(_ADDED)))
    return draw(st.permutations(kept))


@st.composite
def _wider(draw: st.DrawFn, of: Schema) -> Schema:
    """Draw what reads a type and may be null besides."""
    found = draw(readers(of))
    return _optional(found, null_first=draw(st.booleans())) if draw(st.booleans()) else found


def as_column(value: Any, of: Schema) -> Any:
    """Return what a column holds of what fastavro has read."""
    if value is None:
        return None
    if isinstance(of, list):
        (of,) = (each for each in of if each != "null")
    kind = of if isinstance(of, str) else of["type"]
    return _COLUMNS.get(kind, lambda value, _: value)(value, of)


_COLUMNS: dict[str, Callable[[Any, Schema], Any]] = {
    "float": lambda value, _: float(np.float32(value)),
    "double": lambda value, _: float(value),
    "bytes": lambda value, _: value.encode() if isinstance(value, str) else value,
    "record": lambda value, of: {
        each["name"]: as_column(value[each["name"]], each["type"]) for each in of["fields"]
    },
    "array": lambda value, of: [as_column(each, of["items"]) for each in value],
    "map": lambda value, of: [(key, as_column(each, of["values"])) for key, each in value.items()],
}
