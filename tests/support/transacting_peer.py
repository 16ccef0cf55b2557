"""What a `Peer` of Pulsar says that has transactions."""

from __future__ import annotations

from typing import Any

from penstock.pulsar.wire import pulsar_api_pb2 as api
from pulsar_peer import Command, Peer, entry

Id = api.MessageIdData
EARLIEST = api.CommandSubscribe.Earliest
SHARED = api.CommandSubscribe.Shared
CUMULATIVE = api.CommandAck.Cumulative
COMMIT, ABORT = api.TxnAction.COMMIT, api.TxnAction.ABORT
MINUTE = 60_000


async def begin(peer: Peer, ttl_ms: int = MINUTE, **fields: Any) -> Any:
    """Begin a transaction; the answer is what others take for its id."""
    request = api.CommandNewTxn(request_id=1, txn_ttl_millis=ttl_ms, **fields)
    return await peer.ask(Command(type=Command.NEW_TXN, newTxn=request), Command.NEW_TXN_RESPONSE)


def named(transaction: Any) -> dict[str, int]:
    return {
        "txnid_least_bits": transaction.txnid_least_bits,
        "txnid_most_bits": transaction.txnid_most_bits,
    }


def numbered(least: int, most: int = 0) -> Any:
    return api.CommandNewTxnResponse(request_id=0, txnid_least_bits=least, txnid_most_bits=most)


async def add_partitions(peer: Peer, transaction: Any, *topics: str) -> Any:
    request = api.CommandAddPartitionToTxn(request_id=2, partitions=topics, **named(transaction))
    command = Command(type=Command.ADD_PARTITION_TO_TXN, addPartitionToTxn=request)
    return await peer.ask(command, Command.ADD_PARTITION_TO_TXN_RESPONSE)


async def add_subscription(peer: Peer, transaction: Any, topic: str = "t") -> Any:
    subscription = api.Subscription(topic=topic, subscription="sub")
    request = api.CommandAddSubscriptionToTxn(
        request_id=3, subscription=[subscription], **named(transaction)
    )
    command = Command(type=Command.ADD_SUBSCRIPTION_TO_TXN, addSubscriptionToTxn=request)
    return await peer.ask(command, Command.ADD_SUBSCRIPTION_TO_TXN_RESPONSE)


async def end(peer: Peer, transaction: Any, action: int = COMMIT) -> Any:
    request = api.CommandEndTxn(request_id=4, txn_action=action, **named(transaction))
    return await peer.ask(Command(type=Command.END_TXN, endTxn=request), Command.END_TXN_RESPONSE)


async def send(
    peer: Peer,
    transaction: Any,
    number: int,
    body: bytes | None = None,
    kind: int = Command.SEND_RECEIPT,
    producer_id: int = 1,
) -> Any:
    sent = api.CommandSend(producer_id=producer_id, sequence_id=number, **named(transaction))
    if body is None:
        body = entry(producer_name="p", sequence_id=number)
    return await peer.ask(Command(type=Command.SEND, send=sent), kind, body)


async def acknowledge(
    peer: Peer, transaction: Any, *ids: Id, kind: int = api.CommandAck.Individual
) -> Any:
    ack = api.CommandAck(
        consumer_id=1, ack_type=kind, message_id=ids, request_id=5, **named(transaction)
    )
    return await peer.ask(Command(type=Command.ACK, ack=ack), Command.ACK_RESPONSE)


async def received(peer: Peer, count: int) -> list[int]:
    return [(await peer.hear(Command.MESSAGE)).message_id.entryId for _ in range(count)]


async def producing(peer: Peer, *topics: str) -> Any:
    """Begin a transaction in which producer i writes to topic i."""
    transaction = await begin(peer)
    for number, topic in enumerate(topics, 1):
        await peer.producer(topic, number, producer_name="p", txn_enabled=True)
    assert not (await add_partitions(peer, transaction, *topics)).HasField("error")
    return transaction


async def consuming(peer: Peer, count: int, kind: int = SHARED) -> tuple[int, Any]:
    """Write messages, have them delivered, and begin a transaction that may acknowledge them."""
    await peer.producer("t")
    for _ in range(count):
        await peer.publish(entry())
    await peer.subscribe("t", initialPosition=EARLIEST, subType=kind)
    peer.flow(1000)
    assert await received(peer, count) == list(range(count))
    transaction = await begin(peer)
    assert not (await add_subscription(peer, transaction)).HasField("error")
    return peer.client.producers[1].partition.id, transaction
