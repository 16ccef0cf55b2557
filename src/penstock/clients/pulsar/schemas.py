"""The schemas that a Pulsar broker keeps of its topics, asked for with GET_SCHEMA."""

from __future__ import annotations

import socket
import struct
import time
from typing import TYPE_CHECKING, Final, NamedTuple

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

TIMEOUT_SECONDS: Final = 10
"""How long a broker may say nothing."""
DEADLINE_SECONDS: Final = 30
"""For its whole answer."""
LARGEST: Final = 4 << 20
"""Bytes of an answer."""
_PROTOCOL_VERSION: Final = 21
_VERSION: Final = struct.Struct(">q")
_NOT_FOUND: Final = frozenset({ServerError.TopicNotFound, ServerError.MetadataError})
"""How brokers say that there is no such topic, schema or version."""


class SchemaNotFoundError(Exception):
    """The broker has no such topic, or no such version of its schema."""


class KeptSchema(NamedTuple):
    """A version of a topic's schema."""

    kind: str
    """As the protocol names it: Avro, Json, String, ..."""
    definition: bytes
    version: int


def get_schema(host: str, port: int, topic: str, version: int | None = None) -> KeptSchema:
    """Ask for a version of a topic's schema, the newest by default, on a connection of its own.

    Raises SchemaNotFoundError, OSError where the broker does not answer, and PeerError where it
    answers something else.
    """
    response = _exchange(host, port, topic, version)
    if response.HasField("error_code"):
        message = response.error_message[:200]
        if response.error_code in _NOT_FOUND:
            raise SchemaNotFoundError(message)
        raise PeerError(message)
    said = response.schema_version.rjust(_VERSION.size, b"\0")
    (number,) = _VERSION.unpack(said[-_VERSION.size :])
    schema = response.schema
    return KeptSchema(Schema.Type.Name(schema.type), schema.schema_data, number)


def _exchange(host: str, port: int, topic: str, version: int | None) -> CommandGetSchemaResponse:
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
        while (size := frame_size(memoryview(bytes(received[:8])), LARGEST)) and size <= len(
            received
        ):
            yield parse_frame(memoryview(bytes(received[:size]))).command
            del received[:size]
        if time.monotonic() > deadline:
            raise PeerError(f"it took more than {DEADLINE_SECONDS} s for one schema")
