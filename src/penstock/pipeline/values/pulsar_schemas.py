"""The schemas that a Pulsar broker keeps of its topics, asked for with GET_SCHEMA.

A message of Pulsar's says which version of its topic's schema it was written with. Kinds that are
records are read: AVRO, and JSON, whose definition is in Avro's notation too.
"""

from __future__ import annotations

import socket
import struct
import time
from functools import lru_cache
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from penstock.pipeline.values.registry import (
    DEADLINE_SECONDS,
    LARGEST,
    TIMEOUT_SECONDS,
    RegisteredSchema,
    RegistryError,
    UnknownSchemaError,
)
from penstock.pulsar.wire.frames import encode_command, frame_size, parse_frame
from penstock.pulsar.wire.pulsar_api_pb2 import (
    BaseCommand,
    CommandConnect,
    CommandGetSchema,
    CommandGetSchemaResponse,
    CommandPong,
    Schema,
    ServerError,
)
from penstock.session import PeerError

if TYPE_CHECKING:
    from collections.abc import Iterator

SCHEME: Final = "pulsar://"
_PORT: Final = 6650
_PROTOCOL_VERSION: Final = 21
_VERSION: Final = struct.Struct(">q")
_KINDS: Final = {Schema.Avro: "AVRO", Schema.Json: "JSON"}
_UNKNOWN: Final = frozenset({ServerError.TopicNotFound, ServerError.MetadataError})
"""How brokers say that there is no such topic, schema or version."""


def latest_of_topic(url: str, option: str, topics: tuple[str, ...]) -> RegisteredSchema:
    """Return the newest schema of the first of these topics that is there.

    Raises RegistryError.
    """
    *others, last = topics
    for topic in others:
        try:
            return _ask(url, option, topic, None)
        except UnknownSchemaError:
            continue
    return _ask(url, option, last, None)


@lru_cache(maxsize=1000)
def schema_of_version(url: str, option: str, topic: str, version: int) -> RegisteredSchema:
    """Return a version, which never changes; this process remembers it. Raises RegistryError."""
    return _ask(url, option, topic, version)


def full_names(topic: str) -> tuple[str, ...]:
    """Return what a topic of this name in Kafka may be called in Pulsar, the likeliest first.

    A dot stands between tenant, namespace and topic, or is a part of the topic's name.
    """
    if "://" in topic:
        return (topic,)
    names = [f"public/default/{topic}"]
    if topic.count(".") >= 1:
        names.append("public/" + topic.replace(".", "/", 1))
    if topic.count(".") > 1:
        names.append(topic.replace(".", "/", 2))
    return tuple(f"persistent://{name}" for name in names)


def _ask(url: str, option: str, topic: str, version: int | None) -> RegisteredSchema:
    host, port = _address(url, option)
    at = f"{option}: the Pulsar broker at {host}:{port}"
    try:
        response = _exchange(host, port, topic, version)
    except (OSError, PeerError) as error:
        raise RegistryError(f"{at} does not answer: {error}. Start it, or correct it") from None
    if response.HasField("error_code"):
        said = f"{at} has no schema of {topic}{_words(version)}: {response.error_message[:200]}"
        kind = UnknownSchemaError if response.error_code in _UNKNOWN else RegistryError
        raise kind(said)
    schema = response.schema
    kind_name = _KINDS.get(schema.type)
    if kind_name is None:
        name = Schema.Type.Name(schema.type)
        raise RegistryError(
            f"{at}: values of {topic} are of kind {name}, and columns come of AVRO and JSON only"
        )
    (number,) = _VERSION.unpack(response.schema_version.rjust(_VERSION.size, b"\0")[-8:])
    text = schema.schema_data.decode(errors="replace")
    return RegisteredSchema(kind_name, text, (), id=number, version=number, topic=topic)


def _words(version: int | None) -> str:
    return "" if version is None else f" in version {version}"


def _address(url: str, option: str) -> tuple[str, int]:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or _PORT
    except ValueError:
        host, port = None, 0
    if not host or parts.path.strip("/") or parts.username is not None:
        raise RegistryError(
            f"{option}: {url!r} is no address of a Pulsar broker: give pulsar://host:port"
        )
    return host, port


def _exchange(host: str, port: int, topic: str, version: int | None) -> CommandGetSchemaResponse:
    """Ask one question on a connection of its own. Raises OSError and PeerError."""
    hello = CommandConnect(client_version="penstock-pipeline", protocol_version=_PROTOCOL_VERSION)
    question = CommandGetSchema(request_id=1, topic=topic)
    if version is not None:
        question.schema_version = _VERSION.pack(version)
    with socket.create_connection((host, port), TIMEOUT_SECONDS) as broker:
        broker.sendall(encode_command(BaseCommand(type=BaseCommand.CONNECT, connect=hello)))
        broker.sendall(encode_command(BaseCommand(type=BaseCommand.GET_SCHEMA, getSchema=question)))
        for command in _commands(broker):
            if command.type == BaseCommand.GET_SCHEMA_RESPONSE:
                return command.getSchemaResponse
            if command.type == BaseCommand.ERROR:
                raise PeerError(command.error.message)
            if command.type == BaseCommand.PING:
                pong = BaseCommand(type=BaseCommand.PONG, pong=CommandPong())
                broker.sendall(encode_command(pong))
    raise PeerError("it closed the connection")


def _commands(broker: socket.socket) -> Iterator[BaseCommand]:
    deadline = time.monotonic() + DEADLINE_SECONDS
    received = bytearray()
    while piece := broker.recv(1 << 16):
        received += piece
        while (size := frame_size(memoryview(received), LARGEST)) and size <= len(received):
            yield parse_frame(memoryview(bytes(received[:size]))).command
            del received[:size]
        if time.monotonic() > deadline:
            raise PeerError(f"it took more than {DEADLINE_SECONDS} s for one schema")
