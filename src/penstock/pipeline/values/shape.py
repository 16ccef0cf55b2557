"""The shape of a struct of Arrow, as the kernels that fill its columns see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
from pyarrow import types

from penstock.pipeline.values.errors import SchemaError
from penstock.records.values import node
from penstock.records.values.json import name_hash

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.records.columns import Bytes, Numbers

DEEPEST: Final = 64
"""Levels of structs, lists and maps in one another; the kernels have room for no more."""
LARGEST: Final = 10_000
"""Columns of one schema, those of nested structs counted too."""

_LEAVES: Final = (
    (types.is_boolean, node.FLAG),
    (types.is_integer, node.WHOLE),
    (types.is_floating, node.REAL),
    (types.is_decimal, node.REAL),
    (types.is_temporal, node.MOMENT),
    (types.is_string, node.TEXT),
    (types.is_binary, node.TEXT),
)


@dataclass(frozen=True)
class Node:
    """One column, or one that columns are nested in."""

    name: str
    path: str
    """As an error names it: `order.lines[].price`."""
    type: pa.DataType
    kind: int
    children: tuple[int, ...]
    parent: int
    """-1 of the root."""
    is_repeated: bool
    """Whether a list or a map lies above it, so that a record may have any number of them."""


@dataclass(frozen=True)
class Shape:
    """All nodes, as `penstock.records.values.node` numbers them."""

    nodes: tuple[Node, ...]
    table: Numbers
    letters: Bytes
    """The names' bytes."""

    @property
    def repeated(self) -> int:
        """Count the nodes that a record may have any number of."""
        return sum(each.is_repeated for each in self.nodes)


def shape_of(struct: pa.StructType) -> Shape:
    """Number a struct's columns; raises SchemaError where there are too many of them."""
    nodes: list[Node] = []
    _add(nodes, "", "", struct, -1, is_repeated=False, depth=0)
    table = np.zeros((node.FIELDS, len(nodes)), np.int64)
    table[node.KIND] = [each.kind for each in nodes]
    table[node.END] = _ends(nodes)
    table[node.BITS] = [_bits(each.type) for each in nodes]
    names = [each.name.encode() for each in nodes]
    table[node.NAME_SIZE] = [len(name) for name in names]
    table[node.NAME_START, 1:] = np.cumsum(table[node.NAME_SIZE])[:-1]
    return Shape(tuple(nodes), _with_look_up(table, nodes, names), _bytes(b"".join(names)))


def _add(
    nodes: list[Node],
    name: str,
    path: str,
    of: pa.DataType,
    parent: int,
    *,
    is_repeated: bool,
    depth: int,
) -> int:
    if depth >= DEEPEST or len(nodes) >= LARGEST:
        raise SchemaError(
            f"a schema has at most {LARGEST} columns and {DEEPEST} levels: leave out columns of it"
        )
    place = len(nodes)
    kind = _kind(of, path)
    nodes.append(Node(name, path, of, kind, (), parent, is_repeated))
    children = tuple(
        _add(
            nodes,
            child.name,
            f"{path}{end}",
            child.type,
            place,
            is_repeated=is_repeated or kind != node.STRUCT,
            depth=depth + 1,
        )
        for child, end in _children(of, kind, path)
    )
    nodes[place] = Node(name, path, of, kind, children, parent, is_repeated)
    return place


def _kind(of: pa.DataType, path: str) -> int:
    if types.is_struct(of):
        return node.STRUCT
    if types.is_map(of):
        return node.MAP
    if types.is_list(of):
        return node.LIST
    kind = next((kind for fits, kind in _LEAVES if fits(of)), None)
    if kind is None:
        raise SchemaError(f"column {path} can't be of type {of}")
    return kind


def _children(of: pa.DataType, kind: int, path: str) -> Iterator[tuple[pa.Field, str]]:
    if kind == node.STRUCT:
        for child in of.fields:
            yield child, f".{child.name}" if path else child.name
    elif kind == node.LIST:
        yield of.value_field, "[]"
    elif kind == node.MAP:
        yield of.key_field, "{key}"
        yield of.item_field, "{}"


def _ends(nodes: list[Node]) -> list[int]:
    ends = list(range(1, len(nodes) + 1))
    for place in range(len(nodes) - 1, 0, -1):
        parent = nodes[place].parent
        ends[parent] = max(ends[parent], ends[place])
    return ends


def _bits(of: pa.DataType) -> int:
    return of.bit_width if types.is_integer(of) else 0


def _with_look_up(table: Numbers, nodes: list[Node], names: list[bytes]) -> Numbers:
    """Add how a struct's fields are found by their names: tables with linear probing."""
    found: list[int] = []
    for place, each in enumerate(nodes):
        if each.kind != node.STRUCT:
            continue
        size = 1 << len(each.children).bit_length()
        table[node.NAMES, place], table[node.NAMES_SIZE, place] = len(found), size
        slots = [-1] * size
        for child in each.children:
            at = name_hash(_bytes(names[child]), 0, len(names[child])) % size
            while slots[at] >= 0:
                at = (at + 1) % size
            slots[at] = child
        found += slots
    wide = np.full((node.FIELDS, max(len(found), len(nodes))), -1, np.int64)
    wide[:, : len(nodes)] = table
    wide[node.LOOK_UP, : len(found)] = found
    return wide


def _bytes(text: bytes) -> Bytes:
    return np.frombuffer(text, np.uint8)
