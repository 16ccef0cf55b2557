"""PONG: the client is there, which the session knows from any frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.pulsar.handlers.registry import handles
from penstock.pulsar.wire.pulsar_api_pb2 import BaseCommand, CommandPong

if TYPE_CHECKING:
    from penstock.pulsar.client import Call


@handles(BaseCommand.PONG)
def handle(_request: CommandPong, _call: Call) -> None:
    return None
