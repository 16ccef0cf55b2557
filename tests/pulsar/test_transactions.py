"""Goal: a Pulsar client's transactions do what Pulsar's do, and nothing that they may not."""

from __future__ import annotations

import asyncio
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from patience import until
from penstock.broker.broker import Broker
from penstock.broker.settings import BrokerSettings
from penstock.broker.topics.names import TopicName
from penstock.log.header import ATTRIBUTE_TRANSACTIONAL
from penstock.pulsar.wire import pulsar_api_pb2 as api
from penstock.pulsar.wire.frames import parse_frame
from pulsar_golden import JAVA_TRANSACTIONS
from pulsar_peer import Command, Peer, batch, entry
from receivers import settled
from transacting_peer import (
    ABORT,
    COMMIT,
    CUMULATIVE,
    EARLIEST,
    MINUTE,
    SHARED,
    Id,
    acknowledge,
    add_partitions,
    add_subscription,
    begin,
    consuming,
    end,
    named,
    numbered,
    producing,
    received,
    send,
)


def has_come(peer: Peer, acknowledgement: bytes) -> bool:
    """Whether a peer has what it acknowledges."""
    acknowledged = parse_frame(memoryview(acknowledgement)).command.ack.message_id
    heard = [each.command.message.message_id for each in peer.heard]
    return all(
        any((each.ledgerId, each.entryId) == (of.ledgerId, of.entryId) for of in heard)
        for each in acknowledged
    )


async def test_what_javas_client_sends_is_carried_out(broker: Broker) -> None:
    peer = Peer(broker)
    for golden in JAVA_TRANSACTIONS:
        await until(partial(has_come, peer, golden.frame))
        peer.say_bytes(golden.frame)
        await peer.ended()
        await settled()
        if golden.command == "CLOSE_PRODUCER":
            break
    answers = [frame.command for frame in peer.heard]
    kinds = [Command.Type.Name(each.type) for each in answers]
    assert "ERROR" not in kinds
    assert "SEND_ERROR" not in kinds
    parts = [getattr(each, Command.DESCRIPTOR.fields_by_number[each.type].name) for each in answers]
    assert not [each for each in parts if getattr(each, "error", 0)]
    for kind in ("NEW_TXN", "ADD_SUBSCRIPTION_TO_TXN", "END_TXN"):
        assert kinds.count(f"{kind}_RESPONSE") == 3
    first, second = peer.client.consumers.values()
    # One message was acknowledged in an aborted transaction, and then in a committed one.
    assert first.subscription.cursor.position + first.subscription.cursor.acknowledged_above == 1
    assert second.subscription.backlog == 0
    peer.lose()


async def test_messages_are_seen_together_or_not_at_all(peer: Peer) -> None:
    committed = await producing(peer, "a", "b")
    aborted = await producing(peer, "a", "b")
    for number, topic in enumerate(("a", "b"), 1):
        await peer.subscribe(topic, number, initialPosition=EARLIEST)
        peer.flow(100, number)
        await send(peer, committed, 0, producer_id=number)
        await send(peer, aborted, 1, producer_id=number)
        await send(peer, committed, 2, producer_id=number)
    await settled()
    assert peer.silent(Command.MESSAGE)
    assert not (await end(peer, aborted, ABORT)).HasField("error")
    assert not (await end(peer, committed)).HasField("error")
    seen = [await peer.hear(Command.MESSAGE) for _ in range(4)]
    assert sorted((each.consumer_id, each.message_id.entryId) for each in seen) == [
        *((1, 0), (1, 2), (2, 0), (2, 2))
    ]
    await settled()
    assert peer.silent(Command.MESSAGE)


async def test_batches_carry_the_producer_of_their_transaction(peer: Peer) -> None:
    transaction = await producing(peer, "t")
    await send(peer, transaction, 7)
    partition = peer.client.producers[1].partition
    (opened,) = partition.transactions.open.values()
    assert opened.producer_id == transaction.txnid_least_bits
    assert (opened.producer_epoch, opened.first_offset) == (0, 0)
    await end(peer, transaction)
    header = await partition.batch_at(0)
    assert header is not None
    assert header.attributes & ATTRIBUTE_TRANSACTIONAL
    assert (header.producer_id, header.base_sequence) == (transaction.txnid_least_bits, -1)


async def test_acknowledgements_take_effect_with_the_commit(peer: Peer) -> None:
    ledger, transaction = await consuming(peer, 4)
    ids = [Id(ledgerId=ledger, entryId=number) for number in (0, 2)]
    answer = await acknowledge(peer, transaction, *ids)
    assert not answer.HasField("error")
    assert named(answer) == named(transaction)
    subscription = peer.client.consumers[1].subscription
    assert (subscription.cursor.position, subscription.backlog) == (0, 4)
    await end(peer, transaction)
    assert (subscription.cursor.position, list(subscription.cursor.ranges)) == (1, [(2, 3)])


@pytest.mark.parametrize("kind", [SHARED, api.CommandSubscribe.Exclusive])
async def test_an_abort_has_messages_delivered_again(peer: Peer, kind: int) -> None:
    ledger, transaction = await consuming(peer, 4, kind)
    await acknowledge(peer, transaction, Id(ledgerId=ledger, entryId=1))
    await acknowledge(peer, transaction, Id(ledgerId=ledger, entryId=2))
    await end(peer, transaction, ABORT)
    again = [await peer.hear(Command.MESSAGE) for _ in range(2)]
    assert [(each.message_id.entryId, each.redelivery_count) for each in again] == [(1, 1), (2, 1)]
    await settled()
    assert peer.silent(Command.MESSAGE)


async def test_a_cumulative_acknowledgement_in_a_transaction(peer: Peer) -> None:
    ledger, transaction = await consuming(peer, 5, api.CommandSubscribe.Exclusive)
    other = await begin(peer)
    await add_subscription(peer, other)
    kind, last = CUMULATIVE, Id(ledgerId=ledger, entryId=2)
    assert not (await acknowledge(peer, transaction, last, kind=kind)).HasField("error")
    for number in (1, 4):
        answer = await acknowledge(peer, other, Id(ledgerId=ledger, entryId=number), kind=kind)
        assert answer.error == api.TransactionConflict
    two = [last, Id(ledgerId=ledger, entryId=4)]
    assert (await acknowledge(peer, transaction, *two, kind=kind)).error == api.NotAllowedError
    await end(peer, transaction)
    assert peer.client.consumers[1].subscription.cursor.position == 3


async def test_parts_of_a_batch_in_two_transactions(peer: Peer) -> None:
    await peer.producer("t")
    payload, count = batch(b"a", b"b", b"c", b"d")
    await peer.publish(entry(payload, num_messages_in_batch=count))
    await peer.subscribe("t", initialPosition=EARLIEST, subType=SHARED)
    peer.flow(10)
    await received(peer, 1)
    ledger = peer.client.producers[1].partition.id
    one, other = await begin(peer), await begin(peer)
    for transaction in (one, other):
        await add_subscription(peer, transaction)
    await acknowledge(peer, one, Id(ledgerId=ledger, entryId=0, ack_set=[0b1110]))
    await acknowledge(peer, other, Id(ledgerId=ledger, entryId=0, ack_set=[0b1101]))
    taken = await acknowledge(peer, other, Id(ledgerId=ledger, entryId=0, ack_set=[0b1100]))
    assert taken.error == api.TransactionConflict
    await end(peer, one)
    await end(peer, other, ABORT)
    again = await peer.hear(Command.MESSAGE)
    assert (again.message_id.entryId, list(again.ack_set)) == (0, [0b1110])


async def test_a_message_is_acknowledged_in_one_transaction(peer: Peer) -> None:
    ledger, one = await consuming(peer, 2)
    other = await begin(peer)
    await add_subscription(peer, other)
    first, second = (Id(ledgerId=ledger, entryId=number) for number in range(2))
    await acknowledge(peer, one, first)
    assert not (await acknowledge(peer, one, first)).HasField("error")
    assert (await acknowledge(peer, other, first)).error == api.TransactionConflict
    peer.acknowledge(second)
    assert (await acknowledge(peer, one, second)).error == api.TransactionConflict


async def test_what_came_before_a_conflict_ends_with_its_transaction(peer: Peer) -> None:
    ledger, one = await consuming(peer, 3)
    other = await begin(peer)
    await add_subscription(peer, other)
    first, second, third = (Id(ledgerId=ledger, entryId=number) for number in range(3))
    await acknowledge(peer, one, second)
    assert (await acknowledge(peer, other, first, second)).error == api.TransactionConflict
    await end(peer, other)
    assert peer.client.consumers[1].subscription.cursor.position == 1
    again = await begin(peer)
    await add_subscription(peer, again)
    assert (await acknowledge(peer, again, third, second)).error == api.TransactionConflict
    await end(peer, again, ABORT)
    assert await received(peer, 1) == [2]
    assert list(peer.client.consumers[1].subscription.pending.runs_of(one.txnid_least_bits)) == [
        (1, 2)
    ]


async def test_what_is_no_message_of_the_subscription_is_not_acknowledged(peer: Peer) -> None:
    ledger, transaction = await consuming(peer, 1)
    await add_partitions(peer, transaction, "t")
    await send(peer, transaction, 1_000_000_000)
    ids = [
        Id(ledgerId=ledger + 1, entryId=0),
        Id(ledgerId=ledger, entryId=1),
        Id(ledgerId=ledger, entryId=99),
        Id(ledgerId=ledger, entryId=(1 << 64) - 1),
    ]
    for each in ids:
        answer = await acknowledge(peer, transaction, each)
        assert (answer.error, answer.request_id) == (api.NotAllowedError, 5), each
    assert peer.client.consumers[1].subscription.pending.blocks_of(0) == {}


NOBODY, OTHERS = numbered(1 << 40), numbered(0, 7)


@pytest.mark.parametrize(
    ("transaction", "error"),
    [(NOBODY, api.TransactionNotFound), (OTHERS, api.TransactionCoordinatorNotFound)],
)
async def test_transactions_that_are_not_there(peer: Peer, transaction: Any, error: int) -> None:
    ledger, _ = await consuming(peer, 1)
    assert (await add_partitions(peer, transaction, "t")).error == error
    assert (await add_subscription(peer, transaction)).error == error
    assert (await end(peer, transaction)).error == error
    first = Id(ledgerId=ledger, entryId=0)
    refused = await acknowledge(peer, transaction, first)
    assert (refused.error, named(refused)) == (error, named(transaction))
    # On other codes Java's client connects anew, and sends it again.
    refused = await send(peer, transaction, 1_000_000_000, kind=Command.SEND_ERROR)
    assert refused.error == api.NotAllowedError


async def test_what_was_not_added_has_no_part(peer: Peer) -> None:
    transaction = await begin(peer)
    await peer.producer("t", producer_name="p")
    refused = await send(peer, transaction, 0, kind=Command.SEND_ERROR)
    assert refused.error == api.NotAllowedError
    await peer.publish(entry())
    await peer.subscribe("t", initialPosition=EARLIEST)
    ledger = peer.client.producers[1].partition.id
    answer = await acknowledge(peer, transaction, Id(ledgerId=ledger, entryId=0))
    assert answer.error == api.InvalidTxnStatus


@pytest.mark.parametrize(
    ("topic", "error"),
    [
        ("missing", api.TopicNotFound),
        ("non-persistent://public/default/t", api.NotAllowedError),
        ("t-partition-3", api.NotAllowedError),
        ("persistent://a/b", api.NotAllowedError),
        ("x" * 32_000, api.NotAllowedError),
    ],
)
async def test_parts_that_can_not_be(peer: Peer, topic: str, error: int) -> None:
    await peer.producer("t")
    transaction = await begin(peer)
    assert (await add_partitions(peer, transaction, "t", topic)).error == error
    assert (await add_subscription(peer, transaction, topic)).error == error
    assert (await add_subscription(peer, transaction)).error == api.SubscriptionNotFound


async def test_parts_that_are_added_twice_are_added_once(peer: Peer) -> None:
    ledger, transaction = await consuming(peer, 1)
    for _ in range(2):
        assert not (await add_partitions(peer, transaction, "t", "t")).HasField("error")
        assert not (await add_subscription(peer, transaction)).HasField("error")
    await send(peer, transaction, 1_000_000_000)
    acknowledged = await acknowledge(peer, transaction, Id(ledgerId=ledger, entryId=0))
    assert not acknowledged.HasField("error")
    assert not (await end(peer, transaction)).HasField("error")
    partition = peer.client.producers[1].partition
    assert partition.end_offset == 3, "two messages and one marker"


@pytest.mark.parametrize("ttl_ms", [0, 1 << 40, (1 << 64) - 1])
async def test_times_that_can_not_be(peer: Peer, ttl_ms: int) -> None:
    assert (await begin(peer, ttl_ms)).error == api.NotAllowedError


async def test_an_end_is_answered_once_more_but_not_the_other_one(peer: Peer) -> None:
    for action, other in ((COMMIT, ABORT), (ABORT, COMMIT)):
        transaction = await producing(peer, "t")
        await send(peer, transaction, action)
        assert not (await end(peer, transaction, action)).HasField("error")
        assert not (await end(peer, transaction, action)).HasField("error")
        assert (await end(peer, transaction, other)).error == api.InvalidTxnStatus
        refused = await send(peer, transaction, 5, kind=Command.SEND_ERROR)
        assert refused.error == api.NotAllowedError


async def test_one_that_takes_too_long_is_aborted(peer: Peer, broker: Broker) -> None:
    ledger, _ = await consuming(peer, 1)
    late = await begin(peer, ttl_ms=1)
    await add_subscription(peer, late)
    await acknowledge(peer, late, Id(ledgerId=ledger, entryId=0))
    async with asyncio.timeout(30):
        while broker.transactions.how_ended(late.txnid_least_bits) is None:
            await asyncio.sleep(0.005)
            await broker.transactions.check_times()
    assert await received(peer, 1) == [0]
    assert (await end(peer, late)).error == api.InvalidTxnStatus
    assert not (await end(peer, late, ABORT)).HasField("error")


async def test_a_transaction_outlives_its_connection(peer: Peer, broker: Broker) -> None:
    ledger, transaction = await consuming(peer, 2)
    await acknowledge(peer, transaction, Id(ledgerId=ledger, entryId=0))
    peer.lose()
    other = Peer(broker)
    await other.connect()
    await other.subscribe("t", subType=SHARED)
    other.flow(10)
    assert await received(other, 1) == [1]
    assert not (await end(other, transaction)).HasField("error")
    assert other.client.consumers[1].subscription.cursor.position == 1
    other.lose()


async def test_transactions_of_kafka_clients_are_not_there(peer: Peer, broker: Broker) -> None:
    theirs = await broker.transactions.initialise("theirs", MINUTE)
    await peer.producer("t", producer_name="p")
    partition_id = peer.client.producers[1].partition.id
    await broker.transactions.add_partitions("theirs", theirs, [partition_id])
    transaction = numbered(theirs.id)
    assert (await end(peer, transaction)).error == api.TransactionNotFound
    assert (await add_partitions(peer, transaction, "t")).error == api.TransactionNotFound
    refused = await send(peer, transaction, 0, kind=Command.SEND_ERROR)
    assert refused.error == api.NotAllowedError
    assert peer.client.producers[1].partition.end_offset == 0


async def test_only_the_coordinator_ends_parts_of_a_transaction(peer: Peer) -> None:
    transaction = await producing(peer, "t")
    await send(peer, transaction, 0)
    on_partition = api.CommandEndTxnOnPartition(request_id=9, topic="t", **named(transaction))
    refused = await peer.ask(
        Command(type=Command.END_TXN_ON_PARTITION, endTxnOnPartition=on_partition),
        Command.END_TXN_ON_PARTITION_RESPONSE,
    )
    assert (refused.request_id, refused.error) == (9, api.NotAllowedError)
    on_subscription = api.CommandEndTxnOnSubscription(request_id=9, **named(transaction))
    refused = await peer.ask(
        Command(type=Command.END_TXN_ON_SUBSCRIPTION, endTxnOnSubscription=on_subscription),
        Command.END_TXN_ON_SUBSCRIPTION_RESPONSE,
    )
    assert (refused.request_id, refused.error) == (9, api.NotAllowedError)
    assert peer.client.producers[1].partition.transactions.open


async def test_the_coordinator_is_found_as_a_topic_of_one_partition(
    peer: Peer, broker: Broker
) -> None:
    topic = "persistent://pulsar/system/transaction_coordinator_assign"
    metadata = api.CommandPartitionedTopicMetadata(topic=topic, request_id=1)
    found = await peer.ask(
        Command(type=Command.PARTITIONED_METADATA, partitionMetadata=metadata),
        Command.PARTITIONED_METADATA_RESPONSE,
    )
    assert found.partitions == 1
    lookup = api.CommandLookupTopic(topic=f"{topic}-partition-0", request_id=1)
    found = await peer.ask(
        Command(type=Command.LOOKUP, lookupTopic=lookup), Command.LOOKUP_RESPONSE
    )
    assert found.brokerServiceUrl == f"pulsar://{peer.client.broker_address}"
    for number, error in ((0, api.UnknownError), (1, api.TransactionCoordinatorNotFound)):
        request = api.CommandTcClientConnectRequest(request_id=1, tc_id=number)
        answer = await peer.ask(
            Command(type=Command.TC_CLIENT_CONNECT_REQUEST, tcClientConnectRequest=request),
            Command.TC_CLIENT_CONNECT_RESPONSE,
        )
        assert (answer.HasField("error"), answer.error) == (bool(number), error)
    assert (await begin(peer, tc_id=1)).error == api.TransactionCoordinatorNotFound
    assert not broker.topics.all()


async def test_what_is_sent_again_in_a_transaction_is_written_once(
    peer: Peer, broker: Broker, tmp_path: Path
) -> None:
    transaction = await producing(peer, "t")
    payload, count = batch(b"a", b"b", b"c")
    three = entry(payload, num_messages_in_batch=count, producer_name="p", sequence_id=4)
    await send(peer, transaction, 3)
    await send(peer, transaction, 4, three)
    again = await send(peer, transaction, 4, three)
    assert again.message_id.entryId == (1 << 64) - 1
    crashed = tmp_path / "crashed"
    ignored = shutil.ignore_patterns("*lock", "crashed")
    shutil.copytree(broker.data_folder, crashed, ignore=ignored)
    after = await Broker.open(crashed, BrokerSettings())
    other = Peer(after)
    await other.connect()
    assert (await other.producer("t", producer_name="p")).last_sequence_id == 6
    again = await send(other, transaction, 6)
    assert again.message_id.entryId == (1 << 64) - 1
    assert (await send(other, transaction, 7)).message_id.entryId == 4
    assert not (await end(other, transaction)).HasField("error")
    other.lose()
    await after.close()


async def test_a_topic_that_keeps_nothing_has_no_part(peer: Peer) -> None:
    transaction = await begin(peer)
    await peer.producer("non-persistent://public/default/t", txn_enabled=True)
    refused = await send(peer, transaction, 0, kind=Command.SEND_ERROR)
    assert refused.error == api.NotAllowedError


@pytest.mark.parametrize("count", [200, pytest.param(10_000, marks=pytest.mark.soak)])
async def test_very_many_transactions_of_one_connection(
    peer: Peer, broker: Broker, count: int
) -> None:
    ledger, _ = await consuming(peer, 1)
    before = broker.memory.used
    request = api.CommandNewTxn(request_id=1, txn_ttl_millis=MINUTE)
    for _ in range(count):
        peer.say(Command(type=Command.NEW_TXN, newTxn=request))
    begun = [await peer.hear(Command.NEW_TXN_RESPONSE) for _ in range(count)]
    assert len({each.txnid_least_bits for each in begun}) == count
    assert broker.memory.used - before < 2_000 * count
    last = begun[-1]
    await add_subscription(peer, last)
    await acknowledge(peer, last, Id(ledgerId=ledger, entryId=0))
    assert not (await end(peer, last)).HasField("error")
    topic = broker.topics.get(TopicName("public", "default", "t"))
    assert topic is not None
    peer.lose()
