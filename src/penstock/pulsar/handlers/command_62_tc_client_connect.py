"""TC_CLIENT_CONNECT_REQUEST: a client is about to ask the coordinator of transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.pulsar.handlers.registry import handles
from penstock.pulsar.transactions import answer, check_coordinator, refusing
from penstock.pulsar.wire.pulsar_api_pb2 import BaseCommand, CommandTcClientConnectRequest

if TYPE_CHECKING:
    from penstock.pulsar.client import Call


@handles(
    BaseCommand.TC_CLIENT_CONNECT_REQUEST,
    refuse=refusing(BaseCommand.TC_CLIENT_CONNECT_RESPONSE),
)
def handle(request: CommandTcClientConnectRequest, _call: Call) -> BaseCommand:
    check_coordinator(request.tc_id)
    return answer(request, BaseCommand.TC_CLIENT_CONNECT_RESPONSE)
