"""One version's layout of a struct, and the source text that is built from it."""

from __future__ import annotations

import linecache
from dataclasses import dataclass
from typing import Any

from penstock.kafka.wire.schema import Field, StructType

NUMBER_CODES = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "int64": "q",
    "float64": "d",
}
"""The types of fixed size that `struct` packs as they are, with its letters for them."""

FIXED_CODES = {**NUMBER_CODES, "uuid": "16s"}

FIXED_SIZES = {"bool": 1, "int8": 1, "int16": 2, "uint16": 2, "int32": 4, "int64": 8}
FIXED_SIZES |= {"float64": 8, "uuid": 16}


@dataclass(frozen=True, slots=True)
class Layout:
    """How one version of a message is laid out."""

    version: int
    flexible: bool

    def plain_fields(self, struct: StructType) -> list[Field]:
        """The fields that this version writes one after another."""
        return [
            field for field in struct.fields if self.version in field.versions and field.tag is None
        ]

    def tagged_fields(self, struct: StructType) -> list[Field]:
        """The fields that this version writes behind a tag, in the order of their tags."""
        fields = [
            field
            for field in struct.fields
            if self.version in field.versions and field.tag is not None
        ]
        return sorted(fields, key=lambda field: field.tag or 0)

    def absent_fields(self, struct: StructType) -> list[Field]:
        """The fields that this version does not have."""
        return [field for field in struct.fields if self.version not in field.versions]

    def may_be_rows(self, struct: StructType) -> bool:
        """Whether a struct has only numbers of 64 bits, so that an array of it may be Rows."""
        fields = self.plain_fields(struct)
        are_numbers = all(each.type == "int64" and not each.is_array for each in fields)
        return bool(fields) and are_numbers and not self.tagged_fields(struct)

    def is_nullable(self, field: Field) -> bool:
        """Whether this version may write null for `field`."""
        return self.version in field.nullable

    def length_code(self, field: Field) -> str:
        """How `struct` packs the length or count before `field`; B: the first byte of a varint."""
        if self.flexible:
            return "B"
        return "h" if field.type == "string" and not field.is_array else "i"

    def least_size(self, struct: StructType) -> int:
        """The fewest bytes that the struct takes: no array of it has more elements than that."""
        size = sum(self._least_field_size(field) for field in self.plain_fields(struct))
        return max(1, size + self.flexible)

    def least_element_size(self, field: Field) -> int:
        """The fewest bytes that one element of the array `field` takes."""
        if field.struct is not None:
            return self.least_size(field.struct)
        if field.type in FIXED_SIZES:
            return FIXED_SIZES[field.type]
        return 1 if self.flexible else 2

    def _least_field_size(self, field: Field) -> int:
        if not field.is_array:
            if field.struct is not None:
                return 1 if self.is_nullable(field) else self.least_size(field.struct)
            if field.type in FIXED_SIZES:
                return FIXED_SIZES[field.type]
        return {"B": 1, "h": 2, "i": 4}[self.length_code(field)]


class SourceText:
    """Lines of a Python function under construction."""

    def __init__(self, heading: str) -> None:
        self._lines = [heading]
        self._depth = 1
        self._names = 0

    def line(self, text: str) -> None:
        """Add one line at the current depth."""
        self._lines.append("    " * self._depth + text)

    def indent(self) -> None:
        """The next lines are inside the last."""
        self._depth += 1

    def dedent(self) -> None:
        """The next lines are outside again."""
        self._depth -= 1

    def new_name(self, stem: str) -> str:
        """A local name that the function does not use yet."""
        self._names += 1
        return f"{stem}{self._names}"

    def __str__(self) -> str:
        return "\n".join(self._lines)


def execute(source: str, title: str, namespace: dict[str, Any]) -> None:
    """Run generated code; its lines show in tracebacks as those of a file would."""
    file_name = f"<kafka {title}>"
    exec(compile(source, file_name, "exec"), namespace)  # noqa: S102  # made from our own schema
    linecache.cache[file_name] = (len(source), None, source.splitlines(keepends=True), file_name)
