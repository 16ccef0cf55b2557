"""Transactions as Pulsar's clients name them, and as the coordinator does.

A transaction's id is the number of its coordinator, of which there is one, and the id of the
producer that the coordinator made for it. Clients find the coordinator as one of the partitions of
a topic that is nobody's (PIP-31).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from penstock.broker.topics.names import TopicName
from penstock.broker.transactions.states import Producer
from penstock.pulsar.errors import RefusedError
from penstock.pulsar.wire.pulsar_api_pb2 import BaseCommand, ServerError

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.broker.subscriptions.subscription import Subscription

COORDINATOR: Final = 0
COORDINATORS: Final = 1
ASSIGN_TOPIC: Final = TopicName("pulsar", "system", "transaction_coordinator_assign")
"""Has as many partitions as there are coordinators."""
_EPOCH: Final = 0
"""Of every producer that is there for one transaction, as long as that is open."""


def check_coordinator(number: int) -> None:
    """Raise RefusedError for a coordinator that there is not."""
    if number != COORDINATOR:
        raise RefusedError(
            ServerError.TransactionCoordinatorNotFound, f"there is no coordinator {number}"
        )


def names_transaction(request: Any) -> bool:
    """Whether an acknowledgement or a message is part of a transaction."""
    return bool(request.HasField("txnid_least_bits") or request.HasField("txnid_most_bits"))


def producer_of(request: Any) -> Producer:
    """Return the producer of the transaction that a request names. Raises RefusedError."""
    check_coordinator(request.txnid_most_bits)
    return Producer(request.txnid_least_bits, _EPOCH)


def part_of(subscription: Subscription) -> str:
    """Return what the coordinator calls a subscription that has a part in a transaction."""
    return f"{subscription.partition.id} {subscription.name}"


def answer(request: Any, kind: BaseCommand.Type.ValueType) -> BaseCommand:
    """Return the answer of a kind to a request about transactions; it names the same one."""
    command = BaseCommand(type=kind)
    response = _response(command)
    response.request_id = request.request_id
    for field in ("txnid_least_bits", "txnid_most_bits"):
        if field in request.DESCRIPTOR.fields_by_name:
            setattr(response, field, getattr(request, field))
    return command


def refusing(
    kind: BaseCommand.Type.ValueType,
) -> Callable[[Any, ServerError.ValueType, str], BaseCommand]:
    """Return the function that makes a refusal as an answer of a kind."""

    def refuse(request: Any, code: ServerError.ValueType, message: str) -> BaseCommand:
        command = answer(request, kind)
        response = _response(command)
        response.error = code
        response.message = message
        return command

    return refuse


def _response(command: BaseCommand) -> Any:
    # The protocol numbers a command's field as it numbers its kind.
    return getattr(command, BaseCommand.DESCRIPTOR.fields_by_number[command.type].name)
