"""Spark's DDL of columns, `id BIGINT, tags ARRAY<STRING>`, as a struct of Arrow.

Spark's own parser is Java's, which the processes that ask a data source for its schema have not
got.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NoReturn

import pyarrow as pa

from penstock.pipeline.values.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Mapping

TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
NAIVE: Final = pa.timestamp("us")

_SIMPLE: Final[Mapping[str, pa.DataType]] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "byte": pa.int8(),
    "smallint": pa.int16(),
    "short": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "long": pa.int64(),
    "float": pa.float32(),
    "real": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp": TIMESTAMP,
    "timestamp_ltz": TIMESTAMP,
    "timestamp_ntz": NAIVE,
}
_DECIMALS: Final = frozenset({"decimal", "dec", "numeric"})
_TOKEN: Final = re.compile(r"\s*(?:(`(?:[^`]|``)+`)|('(?:[^'\\]|\\.)*')|(\w+)|([<>(),:]))")
_TYPE: Final = "a type such as BIGINT, STRING, TIMESTAMP, ARRAY<STRING> or STRUCT<a: INT>"
_DEEPEST: Final = 64


def parse_ddl(text: str) -> pa.StructType:
    """Read a list of columns; raises SchemaError, which names the place."""
    return _Parser(text).columns()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._depth = 0

    def columns(self) -> pa.StructType:
        fields = self._fields("")
        if self._position < len(self._text.rstrip()):
            self._fail("a comma or the end")
        return pa.struct(fields)

    def _fields(self, end: str) -> list[pa.Field]:
        fields: list[pa.Field] = []
        while True:
            name = self._name()
            self._take(":")
            fields.append(pa.field(name, self._type()))
            if self._take("COMMENT"):
                self._next()
            if self._take(","):
                continue
            if not end or self._take(end):
                break
            self._fail(f"a comma or {end}")
        names = [field.name for field in fields]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise SchemaError(f"schema: column {twice[0]} is there twice in {self._text[:200]!r}")
        return fields

    def _type(self) -> pa.DataType:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise SchemaError(f"schema: types are nested more than {_DEEPEST} levels deep")
        start = self._position
        word = self._next(_TYPE).lower()
        if word in _SIMPLE:
            of = _SIMPLE[word]
        elif word in _DECIMALS:
            of = self._decimal()
        elif word in ("array", "map", "struct"):
            of = self._nested(word)
        else:
            self._position = start
            self._fail(_TYPE)
        self._depth -= 1
        return of

    def _nested(self, word: str) -> pa.DataType:
        self._need("<")
        if word == "struct":
            return pa.struct(self._fields(">"))
        first = self._type()
        if word == "array":
            self._need(">")
            return pa.list_(first)
        if first != pa.string():
            self._fail("keys of type STRING, which are all that JSON has, in a map")
        self._need(",")
        second = self._type()
        self._need(">")
        return pa.map_(first, second)

    def _decimal(self) -> pa.DataType:
        precision, scale = 10, 0
        if self._take("("):
            precision = self._number()
            scale = self._number() if self._take(",") else 0
            self._need(")")
        if not 0 < precision <= 38 or scale > precision:
            self._fail("a precision of at most 38 and a scale of at most that")
        return pa.decimal128(precision, scale)

    def _number(self) -> int:
        word = self._next()
        if not word.isdigit():
            self._fail("a number")
        return int(word)

    def _name(self) -> str:
        name = self._next()
        if name.startswith("`"):
            return name[1:-1].replace("``", "`")
        if not re.fullmatch(r"\w+", name):
            self._fail("a column's name")
        return name

    def _next(self, expected: str = "more") -> str:
        match = _TOKEN.match(self._text, self._position)
        if match is None:
            self._fail(expected)
        self._position = match.end()
        return match[match.lastindex or 0]

    def _take(self, word: str) -> bool:
        match = _TOKEN.match(self._text, self._position)
        if match is None or match[match.lastindex or 0].upper() != word:
            return False
        self._position = match.end()
        return True

    def _need(self, word: str) -> None:
        if not self._take(word):
            self._fail(word)

    def _fail(self, expected: str) -> NoReturn:
        rest = self._text[self._position :].strip()[:40]
        raise SchemaError(
            f"schema: {expected} is expected at {rest!r} of {self._text[:200]!r}; a schema is DDL "
            "such as 'id BIGINT, name STRING', a file, or the URL of a registry"
        )
