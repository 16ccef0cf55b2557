"""NEW_TXN: begin a transaction, which is aborted where it is open for longer than was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.pulsar.handlers.registry import handles
from penstock.pulsar.transactions import answer, check_coordinator, refusing
from penstock.pulsar.wire.pulsar_api_pb2 import BaseCommand, CommandNewTxn

if TYPE_CHECKING:
    from penstock.pulsar.client import Call


@handles(BaseCommand.NEW_TXN, refuse=refusing(BaseCommand.NEW_TXN_RESPONSE))
async def handle(request: CommandNewTxn, call: Call) -> BaseCommand:
    check_coordinator(request.tc_id)
    producer = await call.broker.transactions.begin(request.txn_ttl_millis, call.client.address)
    response = answer(request, BaseCommand.NEW_TXN_RESPONSE)
    response.newTxnResponse.txnid_least_bits = producer.id
    response.newTxnResponse.txnid_most_bits = request.tc_id
    return response
