"""END_TXN_ON_PARTITION and END_TXN_ON_SUBSCRIPTION: what Pulsar's coordinator says to the brokers
that have a part in a transaction. Here the one broker has both, so no client is let do it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from penstock.pulsar.errors import RefusedError
from penstock.pulsar.handlers.registry import handles
from penstock.pulsar.transactions import refusing
from penstock.pulsar.wire.pulsar_api_pb2 import BaseCommand, ServerError

if TYPE_CHECKING:
    from penstock.pulsar.client import Call

ANSWERS: Final = {
    BaseCommand.END_TXN_ON_PARTITION: BaseCommand.END_TXN_ON_PARTITION_RESPONSE,
    BaseCommand.END_TXN_ON_SUBSCRIPTION: BaseCommand.END_TXN_ON_SUBSCRIPTION_RESPONSE,
}


def handle(_request: Any, _call: Call) -> BaseCommand:
    raise RefusedError(
        ServerError.NotAllowedError, "only the coordinator ends transactions: use END_TXN"
    )


for _kind, _answer in ANSWERS.items():
    handles(_kind, refuse=refusing(_answer))(handle)
