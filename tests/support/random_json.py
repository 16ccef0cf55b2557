"""Columns of random types, as Spark's DDL says them, and JSON that has values of them.

Few names, so that a field often has the name of one above or below it, or of what Arrow calls a
list's elements and a map's keys and values.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import pyarrow as pa
from hypothesis import strategies as st

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=9)
NAMES = st.sampled_from(["a", "b", "item", "element", "key", "value", "two words", 'a"quote', "ä"])

Type: TypeAlias = "str | tuple[str, Any]"
"""A word of DDL; or `list` or `map` and what is in it, or `struct` and its fields."""

_LEAVES: dict[str, st.SearchStrategy[Any]] = {
    "INT": st.integers(-(2**31), 2**31 - 1),
    "BIGINT": st.integers(-(2**63), 2**63 - 1),
    "STRING": TEXT,
    "DOUBLE": st.floats(allow_nan=False, allow_infinity=False),
    "BOOLEAN": st.booleans(),
}
_UNASKED = st.recursive(
    TEXT | st.integers() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=4,
)


def _fields(of: st.SearchStrategy[Type]) -> st.SearchStrategy[dict[str, Type]]:
    return st.dictionaries(NAMES, of, min_size=1, max_size=4)


TYPES: st.SearchStrategy[Type] = st.recursive(
    st.sampled_from(sorted(_LEAVES)),
    lambda inner: st.one_of(
        st.tuples(st.just("list"), inner),
        st.tuples(st.just("map"), inner),
        st.tuples(st.just("struct"), _fields(inner)),
    ),
    max_leaves=8,
)
COLUMNS = _fields(TYPES)


def ddl_of(columns: dict[str, Type]) -> str:
    """Return the columns as Spark writes them down."""
    return ", ".join(f"`{name}` {_ddl(each)}" for name, each in columns.items())


def _ddl(of: Type) -> str:
    if isinstance(of, str):
        return of
    kind, inner = of
    if kind == "list":
        return f"ARRAY<{_ddl(inner)}>"
    if kind == "map":
        return f"MAP<STRING, {_ddl(inner)}>"
    return f"STRUCT<{', '.join(f'`{name}`: {_ddl(each)}' for name, each in inner.items())}>"


@st.composite
def objects(draw: st.DrawFn, columns: dict[str, Type]) -> dict[str, Any]:
    """Draw an object with some of the fields in any order, and with others."""
    drawn: dict[str, Any] = {}
    for name in draw(st.permutations(list(columns))):
        if draw(st.booleans()):
            drawn[name] = draw(st.none() | values(columns[name]))
        if draw(st.integers(0, 5)) == 0:
            drawn[f"unasked {name}"] = draw(_UNASKED)
    return drawn


def values(of: Type) -> st.SearchStrategy[Any]:
    if isinstance(of, str):
        return _LEAVES[of]
    kind, inner = of
    if kind == "list":
        return st.lists(st.none() | values(inner), max_size=3)
    if kind == "map":
        return st.dictionaries(TEXT, st.none() | values(inner), max_size=3)
    return objects(inner)


def as_column(value: Any, of: pa.DataType) -> Any:
    """What a column of this type holds of what json.loads has returned."""
    if value is None:
        return None
    if pa.types.is_struct(of):
        return {each.name: as_column(value.get(each.name), each.type) for each in of.fields}
    if pa.types.is_map(of):
        return [(key, as_column(each, of.item_type)) for key, each in value.items()]
    if pa.types.is_list(of):
        return [as_column(each, of.value_type) for each in value]
    return value
