"""PING: the client wants to know whether we are there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.pulsar.handlers.registry import handles
from penstock.pulsar.wire.pulsar_api_pb2 import BaseCommand, CommandPing, CommandPong

if TYPE_CHECKING:
    from penstock.pulsar.client import Call


@handles(BaseCommand.PING)
def handle(_request: CommandPing, _call: Call) -> BaseCommand:
    return BaseCommand(type=BaseCommand.PONG, pong=CommandPong())
