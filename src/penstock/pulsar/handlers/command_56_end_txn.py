"""END_TXN: commit or abort a transaction. What has ended so already is answered once more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.errors import UnknownTransactionError
from penstock.pulsar.errors import RefusedError
from penstock.pulsar.handlers.registry import handles
from penstock.pulsar.transactions import answer, producer_of, refusing
from penstock.pulsar.wire.pulsar_api_pb2 import BaseCommand, CommandEndTxn, ServerError, TxnAction

if TYPE_CHECKING:
    from penstock.pulsar.client import Call


@handles(BaseCommand.END_TXN, refuse=refusing(BaseCommand.END_TXN_RESPONSE))
async def handle(request: CommandEndTxn, call: Call) -> BaseCommand:
    producer = producer_of(request)
    committed = request.txn_action == TxnAction.COMMIT
    coordinator = call.broker.transactions
    try:
        await coordinator.end("", producer, committed=committed)
    except UnknownTransactionError:
        outcome = coordinator.how_ended(producer.id)
        if outcome is None:
            raise
        if outcome != committed:
            what = "committed" if outcome else "aborted"
            raise RefusedError(
                ServerError.InvalidTxnStatus, f"the transaction was {what} already"
            ) from None
    return answer(request, BaseCommand.END_TXN_RESPONSE)
