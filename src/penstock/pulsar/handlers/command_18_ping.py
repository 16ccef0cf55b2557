"""PING: the client wants to know whether we are there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.pulsar.wire.pulsar_api_pb2 import BaseCommand, CommandPing, CommandPong

if TYPE_CHECKING:
    from penstock.pulsar.session import PulsarSession


def handle(_session: PulsarSession, _request: CommandPing, _entry: memoryview) -> BaseCommand:
    return BaseCommand(type=BaseCommand.PONG, pong=CommandPong())
