"""AUTH_RESPONSE: nobody was asked to prove who they are, so there is nothing to check."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.pulsar.handlers.registry import handles
from penstock.pulsar.wire.pulsar_api_pb2 import BaseCommand, CommandAuthResponse

if TYPE_CHECKING:
    from penstock.pulsar.client import Call


@handles(BaseCommand.AUTH_RESPONSE)
def handle(_request: CommandAuthResponse, _call: Call) -> None:
    return None
