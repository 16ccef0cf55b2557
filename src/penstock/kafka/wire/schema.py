"""The schema language: one file an API, from which every version's layout follows.

    # Produce, API key 0
    versions 0-13
    flexible 9+

    request
        transactional_id  string?              3+  = null
        acks              int16
        topic_data        []TopicProduceData
            name          string               0-12

After a field's name and type may come the versions that have it (left out where every version of
its struct does), `tag` and its number, and `=` and its default. `?` after a type: may be null;
`?10+`: from version 10 on. Indented fields are those of the struct that the type names. A struct
used in more than one place is a section of its own: `request struct TopicPartitions`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

INDENT = 4


@dataclass(frozen=True, slots=True)
class Versions:
    """An unbroken range of versions, both ends in it. Empty where `last` is below `first`."""

    first: int
    last: int

    def __contains__(self, version: int) -> bool:
        return self.first <= version <= self.last

    def __str__(self) -> str:
        return f"{self.first}-{self.last}"


NO_VERSIONS = Versions(0, -1)


class Default(NamedTuple):
    """A default that was written down, so that `null` differs from none at all."""

    value: int | bool | str | None


@dataclass(slots=True)
class Field:
    """One field of a struct, with the versions that have it."""

    name: str
    type: str
    is_array: bool
    versions: Versions
    nullable: Versions
    tag: int | None
    default: Default | None
    struct: StructType | None = None


@dataclass(slots=True)
class StructType:
    """A named list of fields, in the order of the wire."""

    name: str
    fields: list[Field] = field(default_factory=list)


@dataclass(slots=True)
class Schema:
    """One file: the versions, and for each message of it (`request`, `response`, `data`) its root.

    `structs` has all structs of a message, the root first and each after those that contain it.
    """

    versions: Versions
    flexible: Versions
    roots: dict[str, StructType]
    structs: dict[str, list[StructType]]


def parse(text: str, name: str) -> Schema:
    """Read a schema file of the API `name`; its messages are called after it."""
    schema = Schema(NO_VERSIONS, NO_VERSIONS, {}, {})
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    shared: dict[str, dict[str, StructType]] = {}
    for heading, body in _sections(lines):
        words = heading.split()
        if words[0] == "versions":
            schema.versions = parse_versions(words[1], 0)
        elif words[0] == "flexible":
            schema.flexible = parse_versions(words[1], schema.versions.last)
        else:
            message = words[0]
            root_name = name if message == "data" else name + message.capitalize()
            struct = StructType(words[2] if len(words) == 3 else root_name)
            shared.setdefault(message, {})[struct.name] = struct
            schema.roots.setdefault(message, struct)
            struct.fields = _parse_fields(body, schema.versions, shared[message])
    for message, structs in shared.items():
        schema.structs[message] = _resolve(schema.roots[message], structs)
    return schema


def parse_versions(text: str, last: int) -> Versions:
    """`3`, `3-7`, or `3+`, which is open up to `last`."""
    if text.endswith("+"):
        return Versions(int(text[:-1]), last)
    first, _, end = text.partition("-")
    return Versions(int(first), int(end or first))


def _sections(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Lines at the margin, each with the indented lines below it."""
    starts = [number for number, line in enumerate(lines) if line[0] != " "]
    for start, stop in zip(starts, [*starts[1:], len(lines)], strict=True):
        yield lines[start], lines[start + 1 : stop]


def _parse_fields(
    lines: list[str], versions: Versions, structs: dict[str, StructType]
) -> list[Field]:
    """Fields of one section; structs given in place are added to `structs`."""
    root = StructType("")
    path: list[tuple[StructType, Versions]] = [(root, versions)]
    for line in lines:
        depth = (len(line) - len(line.lstrip(" "))) // INDENT
        if depth > len(path):
            parent = path[-1][0].fields[-1]
            parent.struct = structs[parent.type] = StructType(parent.type)
            path.append((parent.struct, parent.versions))
        del path[depth:]
        owner, inherited = path[-1]
        owner.fields.append(_parse_field(line.split(), inherited))
    return root.fields


def _parse_field(words: list[str], inherited: Versions) -> Field:
    name, type_and_null, *rest = words
    versions = inherited
    if rest and rest[0][0].isdigit():
        versions = parse_versions(rest.pop(0), inherited.last)
    tag = None
    if rest and rest[0] == "tag":
        tag = int(rest[1])
        rest = rest[2:]
    type_name, question, null_versions = type_and_null.partition("?")
    nullable = versions if question else NO_VERSIONS
    if null_versions:
        nullable = parse_versions(null_versions, inherited.last)
    return Field(
        name=name,
        type=type_name.removeprefix("[]"),
        is_array=type_name.startswith("[]"),
        versions=versions,
        nullable=nullable,
        tag=tag,
        default=Default(_parse_value(rest[1])) if rest else None,
    )


def _parse_value(text: str) -> int | bool | str | None:
    words: dict[str, int | bool | str | None] = {"null": None, "true": True, "false": False}
    if text in words:
        return words[text]
    return text.strip('"') if text.startswith('"') else int(text)


def _resolve(root: StructType, structs: dict[str, StructType]) -> list[StructType]:
    """Bind the types that are struct names; returns the structs, containing ones first."""
    found: list[StructType] = []

    def visit(struct: StructType) -> None:
        if struct in found:
            found.remove(struct)
        found.append(struct)
        for each in struct.fields:
            if each.type[0].isupper():
                each.struct = structs[each.type]
                visit(each.struct)

    visit(root)
    return found
