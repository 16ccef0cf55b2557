"""PONG: the client is there, which the session knows from any frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.pulsar.wire.pulsar_api_pb2 import CommandPong

if TYPE_CHECKING:
    from penstock.pulsar.session import PulsarSession


def handle(_session: PulsarSession, _request: CommandPong, _entry: memoryview) -> None:
    return None
