"""Random messages of any API and version, made from the schema."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from penstock.kafka.wire import NO_UUID, AnyApi, MessageType, Struct
from penstock.kafka.wire.schema import Field, StructType

BOUNDS = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "uint16": (0, 2**16 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
}


def message_types(api: AnyApi) -> Iterator[tuple[str, MessageType[Any]]]:
    yield "request", api.request
    yield "response", api.response


def versions(api: AnyApi) -> range:
    return range(api.versions.first, api.versions.last + 1)


def random_message(message_type: MessageType[Any], version: int, chance: random.Random) -> Struct:
    return _random_struct(message_type, message_type.root, version, chance, 0)


def _random_struct(
    message_type: MessageType[Any],
    struct: StructType,
    version: int,
    chance: random.Random,
    depth: int,
) -> Struct:
    values = {
        field.name: _random_field(message_type, field, version, chance, depth)
        for field in struct.fields
        # A tagged field is left at its default half of the time.
        if version in field.versions and (field.tag is None or chance.random() < 0.5)
    }
    made: Struct = getattr(message_type, struct.name)(**values)
    return made


def _random_field(
    message_type: MessageType[Any], field: Field, version: int, chance: random.Random, depth: int
) -> object:
    if version in field.nullable and chance.random() < 0.25:
        return None

    def one() -> object:
        if field.struct is not None:
            return _random_struct(message_type, field.struct, version, chance, depth + 1)
        return random_value(field, chance)

    if not field.is_array:
        return one()
    most = 200 if chance.random() < 0.02 and field.struct is None else 3
    return [one() for _ in range(chance.randrange(max(1, most - depth // 2)))]


def random_value(field: Field, chance: random.Random) -> object:
    if field.name.endswith("error_code"):
        # Codes newer than an oracle would fail in it.
        return chance.randrange(-1, 120)
    if field.type == "int64" and ("timestamp" in field.name or field.name.endswith("_ms")):
        # Inside the years that a datetime has.
        return chance.randrange(0, 4 * 10**12)
    if field.type in BOUNDS:
        low, high = BOUNDS[field.type]
        return chance.choice([low, high, 0, 1, chance.randint(low, high)])
    return VALUES[field.type](chance)


def _random_string(chance: random.Random) -> str:
    return "".join(chance.choice("ab.é漢😀") for _ in range(_length(chance)))


def _random_bytes(chance: random.Random) -> bytes:
    return chance.randbytes(_length(chance))


def _length(chance: random.Random) -> int:
    """Short as a rule, and sometimes around where a length takes one byte more."""
    return chance.choice([0, 1, 5, 5, 5, 5, 125, 126, 127, 128, 300])


def joined(parts: list[bytes | bytearray | memoryview]) -> bytes:
    return b"".join(parts)


VALUES: dict[str, Callable[[random.Random], object]] = {
    "bool": lambda chance: chance.random() < 0.5,
    "float64": lambda chance: chance.uniform(-1e9, 1e9),
    "uuid": lambda chance: chance.choice([NO_UUID, uuid.UUID(int=chance.getrandbits(128))]),
    "string": _random_string,
    "bytes": _random_bytes,
    "records": _random_bytes,
}
