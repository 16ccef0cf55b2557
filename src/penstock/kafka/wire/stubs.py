"""Writes the type stubs of the messages, `messages/*.pyi`, from their schemas.

    python -m penstock.kafka.wire.stubs

One stub a schema file. A message is a class with the structs in it as classes of its own, so that
an annotation says which message a struct is part of: `ProduceRequest.TopicProduceData`. A field is
of its type, or None where any version may have null. `messages/__init__.pyi` has all messages, and
`api` with one overload an API: to a type checker `api("Produce").request` is `ProduceRequestType`,
whose call takes the fields of a `ProduceRequest`.

At run time there are no such modules, so they are imported where `TYPE_CHECKING` is true only.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from penstock.kafka.wire.apis import MESSAGES, protocol_name
from penstock.kafka.wire.schema import Field, Schema, StructType, parse
from penstock.kafka.wire.structs import NUMBER_TYPES, default_expression

PACKAGE = "penstock.kafka.wire.messages"

TYPES = {
    **dict.fromkeys(NUMBER_TYPES, "int"),
    "bool": "bool",
    "float64": "float",
    "uuid": "UUID",
    "string": "str",
    "bytes": "bytes",
    "records": "Buffer",
}
MODULES = {
    "UUID": "uuid",
    "Api": "penstock.kafka.wire.apis",
    "MessageType": "penstock.kafka.wire.apis",
    "RecordData": "penstock.kafka.wire.structs",
    "Struct": "penstock.kafka.wire.structs",
    "Buffer": "penstock.session",
}
"""Where the names come from that stubs use, in the order of their imports."""

LITERAL_SIZE_MAX = 10
"""A longer default is left out, as stubs do."""


class Source(NamedTuple):
    """One schema file."""

    path: Path
    name: str
    schema: Schema

    @property
    def is_api(self) -> bool:
        """Whether it has a request and a response, and is no message that travels inside one."""
        return "request" in self.schema.roots

    @property
    def module(self) -> str:
        """The name of its stub."""
        return f"api_{self.path.stem}" if self.is_api else self.path.stem

    @property
    def messages(self) -> list[str]:
        """The names of its messages."""
        return [root.name for root in self.schema.roots.values()]


def stubs() -> dict[str, str]:
    """The text of every stub by the name of its file."""
    sources = [_read(path) for path in sorted(MESSAGES.glob("*.schema"))]
    return {
        "__init__.pyi": _package_text(sources),
        **{f"{each.module}.pyi": _module_text(each) for each in sources},
    }


def main() -> None:
    """Write all stubs, and remove those that have no schema any more."""
    texts = stubs()
    for old in MESSAGES.glob("*.pyi"):
        if old.name not in texts:
            old.unlink()
    for name, text in texts.items():
        (MESSAGES / name).write_text(text, encoding="utf-8")


def _read(path: Path) -> Source:
    key, _, rest = path.stem.partition("_")
    name = protocol_name(rest if key.isdigit() else path.stem)
    return Source(path, name, parse(path.read_text(encoding="utf-8"), name))


def _package_text(sources: list[Source]) -> str:
    imports, overloads = [], []
    for each in sources:
        names = [f"{each.name}Api", *each.messages] if each.is_api else each.messages
        imports.append(f"from {PACKAGE}.{each.module} import {', '.join(names)}")
        if each.is_api:
            overloads.append("@overload")
            overloads.append(f'def api(name: Literal["{each.name}"]) -> {each.name}Api: ...')
    messages = sorted(name for each in sources for name in each.messages)
    lines = [
        "# Written by `make stubs` from all schemas.",
        "",
        "from typing import Literal, overload",
        "",
        *imports,
        "",
        "__all__ = [",
        *(f'    "{name}",' for name in [*messages, "api"]),
        "]",
        "",
        *overloads,
    ]
    return "\n".join([*lines, ""])


def _module_text(source: Source) -> str:
    body: list[str] = []
    for message, root in source.schema.roots.items():
        structs = source.schema.structs[message]
        body += ["", *_message_lines(root, structs), "", *_message_type_lines(root, structs)]
    if source.is_api:
        body += ["", *_api_lines(source)]
    head = f"# Written by `make stubs` from {source.path.name}."
    return "\n".join([head, "", *_import_lines(body), *body, ""])


def _import_lines(body: list[str]) -> list[str]:
    """Imports of the names that the body uses, the standard library's first."""
    text = "\n".join(body)
    by_module: dict[str, list[str]] = {}
    for name, module in MODULES.items():
        if re.search(rf"\b{name}\b", text):
            by_module.setdefault(module, []).append(name)
    lines = [f"from {module} import {', '.join(names)}" for module, names in by_module.items()]
    return [lines[0], "", *lines[1:]] if "uuid" in by_module else lines


def _message_lines(root: StructType, structs: list[StructType]) -> list[str]:
    """The class of a message, with those of its other structs inside."""
    lines = [f"class {root.name}(Struct):", *_field_lines(root, root)]
    for struct in structs[1:]:
        lines += ["", f"    class {struct.name}(Struct):"]
        lines += [f"    {line}" for line in _field_lines(struct, root)]
    return lines


def _field_lines(struct: StructType, root: StructType) -> list[str]:
    lines = [
        f"    {field.name}: {_type(field, root)} = {_default(field)}" for field in struct.fields
    ]
    return lines or ["    pass"]


def _type(field: Field, root: StructType) -> str:
    name = f"{root.name}.{field.struct.name}" if field.struct is not None else TYPES[field.type]
    if field.is_array:
        name = f"list[{name}]"
    if field.nullable.last >= field.nullable.first:
        name = f"{name} | None"
    return f"RecordData[{name}]" if field.type == "records" else name


def _default(field: Field) -> str:
    default = default_expression(field).replace("'", '"')
    is_literal = default[0] in '"-0123456789' or default in ("None", "True", "False")
    return default if is_literal and len(default) <= LITERAL_SIZE_MAX else "..."


def _message_type_lines(root: StructType, structs: list[StructType]) -> list[str]:
    """The message in all its versions: what makes one, and the classes of its structs."""
    return [
        f"class {root.name}Type(MessageType[{root.name}]):",
        f"    __call__: type[{root.name}]",
        *(f"    {struct.name} = {root.name}.{struct.name}" for struct in structs[1:]),
    ]


def _api_lines(source: Source) -> list[str]:
    request, response = source.messages
    return [
        f"class {source.name}Api(Api[{request}, {response}]):",
        f"    request: {request}Type",
        f"    response: {response}Type",
    ]


if __name__ == "__main__":
    main()
