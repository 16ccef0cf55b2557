"""Schemas that a Pulsar broker keeps of its topics, instead of a registry.

A message of Pulsar's says which version of its topic's schema it was written with. Kinds that are
records are read: AVRO, JSON, whose definition is in Avro's notation too, and PROTOBUF_NATIVE; and
those of the key and of the value that a schema of kind KEY_VALUE consists of.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

import numpy as np

from penstock.clients.access import LoginError
from penstock.clients.pulsar.client import KeptSchema, PulsarClient
from penstock.clients.pulsar.connection import RefusedError
from penstock.pipeline.values.decoding import Values
from penstock.pipeline.values.key_value import apart
from penstock.pipeline.values.registry import (
    TIMEOUT_SECONDS,
    RegisteredSchema,
    RegistryError,
    UnknownSchemaError,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

SCHEME: Final = "pulsar://"
_PORT: Final = 6650
_KINDS: Final = {
    "Avro": "AVRO",
    "Json": "JSON",
    "ProtobufNative": "PROTOBUF",
    # As properties name them.
    "AVRO": "AVRO",
    "JSON": "JSON",
    "PROTOBUF_NATIVE": "PROTOBUF",
}
_PAIR: Final = "KeyValue"


class Part(NamedTuple):
    """A schema of keys or of values."""

    kind: str
    definition: bytes
    inline: bool = False


def latest_schema(url: str, option: str, names: Sequence[str], role: str) -> RegisteredSchema:
    """Return the newest schema of the first of these topics that has one.

    `role` is key or value. Raises RegistryError.
    """
    *likely, last = names
    for topic in likely:
        try:
            return _ask(url, option, topic, role, None)
        except UnknownSchemaError:
            continue
    return _ask(url, option, last, role, None)


@lru_cache(maxsize=1000)
def schema_of_version(
    url: str, option: str, topic: str, role: str, version: int
) -> RegisteredSchema:
    """Return a version, which never changes; this process remembers it. Raises RegistryError."""
    return _ask(url, option, topic, role, version)


def full_names(topic: str) -> tuple[str, ...]:
    """Return what a topic of this name in Kafka may be called in Pulsar, the likeliest first.

    A dot stands between tenant, namespace and topic, or is a part of the topic's name. With a
    slash it is Pulsar's name already.
    """
    if "/" in topic:
        return (topic if "://" in topic else f"persistent://{topic}",)
    names = [f"public/default/{topic}"]
    if topic.count(".") >= 1:
        names.append("public/" + topic.replace(".", "/", 1))
    if topic.count(".") > 1:
        names.append(topic.replace(".", "/", 2))
    return tuple(f"persistent://{name}" for name in names)


def _ask(url: str, option: str, topic: str, role: str, version: int | None) -> RegisteredSchema:
    servers = _address(url, option)
    at = f"{option}: the Pulsar broker at {servers}"
    try:
        with PulsarClient(servers, timeout_s=TIMEOUT_SECONDS) as client:
            found = client.schema(topic, version)
    except (OSError, RefusedError, LoginError) as error:
        raise RegistryError(
            f"{at} does not answer: {error}. Start it, or correct {option}"
        ) from None
    if found is None:
        which = "" if version is None else f" in version {version}"
        raise UnknownSchemaError(f"{at} has no schema of {topic}{which}")
    part = _part_of(found, role)
    if part is None:
        raise RegistryError(
            f"{at} keeps a schema of the values of {topic}, and none of keys: those have one where "
            "it is of kind KEY_VALUE"
        )
    if part.kind not in _KINDS:
        raise RegistryError(
            f"{at}: {role}s of {topic} are of kind {part.kind}, and columns come of AVRO, JSON and "
            "PROTOBUF_NATIVE"
        )
    text = part.definition.decode(errors="replace")
    number = found.version
    return RegisteredSchema(_KINDS[part.kind], text, (), number, number, topic, part.inline)


def _part_of(found: KeptSchema, role: str) -> Part | None:
    """Return the schema of a topic's keys or values; None where there is none of keys."""
    if found.kind != _PAIR:
        return Part(found.kind, found.definition) if role == "value" else None
    both = np.frombuffer(found.definition, np.uint8)
    pair = apart(Values(both, np.array([[0], [len(both)]])))
    part = Values(both, pair.keys if role == "key" else pair.values)
    definition = part.binary()[0].as_py() or b""
    kind = found.properties.get(f"{role}.schema.type", "BYTES")
    inline = found.properties.get("kv.encoding.type", "INLINE") == "INLINE"
    return Part(kind, definition, inline)


def _address(url: str, option: str) -> str:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or _PORT
    except ValueError:
        host, port = None, 0
    if not host or parts.path.strip("/") or parts.username is not None:
        raise RegistryError(
            f"{option}: {url!r} is no Pulsar broker's address: give pulsar://host:port"
        )
    return f"{host}:{port}"
