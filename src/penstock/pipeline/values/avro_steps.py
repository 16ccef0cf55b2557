"""How values that were written with one schema of Avro are read as the columns of another one.

The rules are those of Avro's specification under 'schema resolution'. A column may always be null,
so a null of the writer is one whatever the reader's schema says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from penstock.pipeline.values.avro_cells import constant, maker_of
from penstock.pipeline.values.avro_schema import MISSING, Avro, AvroField, merged
from penstock.pipeline.values.errors import SchemaError
from penstock.records.values import avro_op
from penstock.records.values.avro import LEVELS

if TYPE_CHECKING:
    from penstock.pipeline.values.cells import Maker
    from penstock.pipeline.values.shape import Shape
    from penstock.records.columns import Numbers

MOST: Final = 100_000
"""Steps of one schema: those of a type that is used in many places count in each."""
_NOWHERE: Final = -1
_PROMOTIONS: Final = {
    "long": ("int",),
    "float": ("int", "long"),
    "double": ("int", "long", "float"),
    "string": ("bytes",),
    "bytes": ("string",),
}
_OPS: Final = {
    "boolean": avro_op.FLAG,
    "int": avro_op.WHOLE,
    "long": avro_op.WHOLE,
    "float": avro_op.HALF,
    "double": avro_op.WORD,
    "bytes": avro_op.BYTES,
    "string": avro_op.TEXT,
    "fixed": avro_op.FIXED,
    "enum": avro_op.ENUM,
}


class Steps:
    """The steps for one pair of schemas, and how the cells that they make are read.

    Raises SchemaError where the reader's schema can't read what the writer's one wrote.
    """

    def __init__(self, writer: Avro, reader: Avro, shape: Shape) -> None:
        self._shape = shape
        self._steps: list[list[int]] = []
        self._open = 0
        self.makers: dict[int, Maker] = {}
        self._value(writer, reader, 0, ())
        self._add(avro_op.DONE)
        self.table = _past_jumps(np.array(self._steps, np.int64).T)

    def _add(self, op: int, place: int = _NOWHERE, more: int = 0) -> int:
        if len(self._steps) >= MOST:
            raise SchemaError(f"an Avro schema takes at most {MOST} steps to read")
        self._steps.append([op, place, more, 0, 0])
        return len(self._steps) - 1

    def _lead(self, step: int) -> None:
        """Have a step go on at what is added next."""
        self._steps[step][avro_op.TARGET] = len(self._steps)

    def _value(
        self, writer: Avro, reader: Avro | None, place: int, inside: tuple[Avro, ...]
    ) -> None:
        if writer.kind == "record" and writer in inside:
            raise SchemaError(f"the Avro type {writer.name} is a part of itself: no column can be")
        if reader is not None and writer.kind != "union" and reader.kind == "union":
            self._into_union(writer, reader, place, inside)
        elif writer.kind == "union":
            self._union(writer, reader, place, inside)
        elif writer.kind == "null":
            self._add(avro_op.NULL, place)
        elif writer.kind == "record":
            self._record(writer, reader, place, (*inside, writer))
        elif writer.kind in ("array", "map"):
            self._list(writer, reader, place, inside)
        else:
            self._leaf(writer, reader, place)

    def _union(
        self, writer: Avro, reader: Avro | None, place: int, inside: tuple[Avro, ...]
    ) -> None:
        count = len(writer.items)
        choice = self._add(avro_op.UNION, place, count)
        for _ in range(count):
            self._add(avro_op.BRANCH)
        ends = []
        readable = 0
        for index, branch in enumerate(writer.items):
            self._lead(choice + 1 + index)
            before, makers, is_open = len(self._steps), dict(self.makers), self._open
            try:
                self._value(branch, reader, place, inside)
                readable += branch.kind != "null"
            except SchemaError:
                # That branch is an error only where it was written.
                del self._steps[before:]
                self.makers, self._open = makers, is_open
                self._add(avro_op.REFUSE, place)
            ends.append(self._add(avro_op.JUMP))
        for end in ends:
            self._lead(end)
        if writer.branches and not readable:
            raise SchemaError(f"{self._path(place)} has another type in the writer's schema")

    def _into_union(self, writer: Avro, union: Avro, place: int, inside: tuple[Avro, ...]) -> None:
        one = merged(union.branches) if union.branches else writer
        if one is not None or writer.kind == "null":
            self._value(writer, one, place, inside)
            return
        chosen = next(
            (i for i, each in enumerate(union.branches) if _same(writer, each)),
            next((i for i, each in enumerate(union.branches) if _fits(writer, each)), None),
        )
        if chosen is None:
            raise SchemaError(f"{self._path(place)} has another type in the writer's schema")
        self._add(avro_op.BEGIN, place)
        for index, child in enumerate(self._shape.nodes[place].children):
            if index == chosen:
                self._value(writer, union.branches[index], child, inside)
            else:
                self._add(avro_op.NULL, child)

    def _record(
        self, writer: Avro, reader: Avro | None, place: int, inside: tuple[Avro, ...]
    ) -> None:
        if reader is None:
            for each in writer.fields:
                self._value(each.type, None, _NOWHERE, inside)
            return
        self._need(writer, reader, place)
        self._add(avro_op.BEGIN, place)
        children = dict(zip(reader.fields, self._shape.nodes[place].children, strict=True))
        left = dict(children)
        for each in writer.fields:
            wanted = _field_for(each, reader.fields)
            if wanted is None or wanted not in left:
                self._value(each.type, None, _NOWHERE, inside)
            else:
                self._value(each.type, wanted.type, left.pop(wanted), inside)
        for missing, child in left.items():
            self._default(missing, child)

    def _default(self, missing: AvroField, place: int) -> None:
        if missing.default is MISSING:
            raise SchemaError(
                f"the writer's schema has no {self._path(place)}, and the reader's one has no "
                "default for it"
            )
        self._add(avro_op.NULL, place)
        if missing.default is not None:
            self.makers[place] = constant(missing.type, missing.default)

    def _list(
        self, writer: Avro, reader: Avro | None, place: int, inside: tuple[Avro, ...]
    ) -> None:
        children: tuple[int, ...] = (_NOWHERE, _NOWHERE)
        items = None
        if reader is not None:
            self._need(writer, reader, place)
            children, items = self._shape.nodes[place].children, reader.items[0]
        self._add(avro_op.OPEN, place)
        item = self._add(avro_op.ITEM, place)
        self._open += 1
        if self._open > LEVELS:
            raise SchemaError(f"arrays and maps of an Avro schema nest at most {LEVELS} levels")
        if writer.kind == "map":
            self._add(avro_op.TEXT, children[0])
        self._value(writer.items[0], items, children[-1], inside)
        self._open -= 1
        self._steps[self._add(avro_op.JUMP)][avro_op.TARGET] = item
        self._lead(item)

    def _leaf(self, writer: Avro, reader: Avro | None, place: int) -> None:
        bits = {"int": 32, "long": 64}.get(writer.kind, 0)
        more = len(writer.symbols) if writer.kind == "enum" else bits or writer.size
        op = _OPS[writer.kind]
        if reader is not None:
            self._need(writer, reader, place)
            op = avro_op.TEXT if reader.kind == "string" else op
            maker = maker_of(writer, reader)
            if maker is not None:
                known = self.makers.setdefault(place, maker)
                if known != maker:
                    # Two branches of a union write the column in two ways.
                    raise SchemaError(f"{self._path(place)} is written in more than one way")
        self._add(op, place, more)

    def _need(self, writer: Avro, reader: Avro, place: int) -> None:
        if not _fits(writer, reader):
            raise SchemaError(
                f"{self._path(place)} is of type {writer.kind} in the writer's schema, which "
                f"can't be read as {reader.kind}"
            )

    def _path(self, place: int) -> str:
        return (self._shape.nodes[place].path if place > 0 else "") or "the value"


def _past_jumps(steps: Numbers) -> Numbers:
    """Return the steps so that none leads to a jump, from the last one on, as jumps may lead on.

    Jumps back are to the elements of arrays and maps, which are no jumps.
    """
    count = steps.shape[1]
    leads = np.arange(count)
    for step in np.flatnonzero(steps[avro_op.OP] == avro_op.JUMP)[::-1]:
        leads[step] = leads[steps[avro_op.TARGET, step]]
    table = np.ascontiguousarray(steps)
    table[avro_op.TARGET] = leads[table[avro_op.TARGET]]
    table[avro_op.NEXT] = leads[(np.arange(count) + 1) % count]
    return table


def _same(writer: Avro, reader: Avro) -> bool:
    return (writer.kind, writer.name, writer.logical) == (reader.kind, reader.name, reader.logical)


def _fits(writer: Avro, reader: Avro) -> bool:
    if writer.kind != reader.kind:
        return writer.kind in _PROMOTIONS.get(reader.kind, ())
    if writer.kind == "fixed":
        return writer.size == reader.size
    if writer.logical == reader.logical == "decimal":
        return writer.scale == reader.scale
    return True


def _field_for(written: AvroField, fields: list[AvroField]) -> AvroField | None:
    named = (each for each in fields if each.name == written.name)
    also = (each for each in fields if written.name in each.aliases)
    return next(named, None) or next(also, None)
