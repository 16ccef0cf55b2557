"""What is asked of the coordinators of Pulsar's transactions, which clients find as the partitions
of a topic (PIP-31).
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.clients.pulsar.connection import LATER, RefusedError
from penstock.pulsar.wire.pulsar_api_pb2 import (
    BaseCommand,
    CommandAddPartitionToTxn,
    CommandEndTxn,
    CommandNewTxn,
    CommandTcClientConnectRequest,
    ServerError,
    TxnAction,
)

if TYPE_CHECKING:
    from penstock.clients.pulsar.client import PulsarClient
    from penstock.clients.pulsar.connection import BrokerConnection

_COORDINATORS: Final = "persistent://pulsar/system/transaction_coordinator_assign"
_LATER: Final = LATER | {ServerError.TransactionCoordinatorNotFound}
"""A coordinator that is being moved to another broker is nowhere for a while."""

GONE: Final = frozenset({ServerError.TransactionNotFound, ServerError.InvalidTxnStatus})
"""How coordinators speak of a transaction that has ended: the first says nothing of how it did."""


class NoTransactionsError(Exception):
    """The broker has no coordinator of transactions, or none for this client."""


class TransactionId(NamedTuple):
    """The number of its coordinator, and its own there."""

    most: int
    least: int


class Coordinators:
    """Over a client that is somebody else's. Methods raise RefusedError and OSError."""

    def __init__(self, client: PulsarClient) -> None:
        self._client = client
        self._connected: dict[int, BrokerConnection] = {}

    def begin(self, timeout_ms: int) -> TransactionId:
        """Open a transaction, which is aborted where it does not end within the time.

        Raises NoTransactionsError too.
        """
        count = self._client.partitions(_COORDINATORS)
        if not count:
            raise NoTransactionsError(f"{_COORDINATORS} has no partitions")
        number = secrets.randbelow(count)
        asked = CommandNewTxn(request_id=0, txn_ttl_millis=timeout_ms, tc_id=number)
        try:
            answer = self._ask(number, BaseCommand(type=BaseCommand.NEW_TXN, newTxn=asked))
        except RefusedError as error:
            if error.code == ServerError.NotAllowedError:
                raise NoTransactionsError(str(error)) from error
            raise
        found = answer.newTxnResponse
        return TransactionId(found.txnid_most_bits, found.txnid_least_bits)

    def add(self, transaction: TransactionId, topic: str) -> None:
        """Say that a transaction has messages in a topic; more than once does no harm."""
        asked = CommandAddPartitionToTxn(
            request_id=0,
            txnid_most_bits=transaction.most,
            txnid_least_bits=transaction.least,
            partitions=[topic],
        )
        command = BaseCommand(type=BaseCommand.ADD_PARTITION_TO_TXN, addPartitionToTxn=asked)
        self._ask(transaction.most, command)

    def end(self, transaction: TransactionId, *, committed: bool) -> None:
        """End a transaction."""
        asked = CommandEndTxn(
            request_id=0,
            txnid_most_bits=transaction.most,
            txnid_least_bits=transaction.least,
            txn_action=TxnAction.COMMIT if committed else TxnAction.ABORT,
        )
        self._ask(transaction.most, BaseCommand(type=BaseCommand.END_TXN, endTxn=asked))

    def _ask(self, number: int, command: BaseCommand) -> BaseCommand:
        answer = self._connection(number).ask(command)
        _, said = answer.ListFields()[-1]
        if not said.HasField("error"):
            return answer
        error = RefusedError(said.error, said.message)
        if error.code not in _LATER:
            raise error
        del self._connected[number]
        raise ConnectionError(str(error))

    def _connection(self, number: int) -> BrokerConnection:
        found = self._connected.get(number)
        if found is None or found.is_closed:
            found = self._client.owner(f"{_COORDINATORS}-partition-{number}")
            asked = CommandTcClientConnectRequest(request_id=0, tc_id=number)
            command = BaseCommand(
                type=BaseCommand.TC_CLIENT_CONNECT_REQUEST, tcClientConnectRequest=asked
            )
            found.ask(command)
            self._connected[number] = found
        return found
