"""`deliver_at_time` on the wire: who waits for it, and who doesn't (PIP-26)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from penstock.broker.broker import Broker
from penstock.pulsar.wire import pulsar_api_pb2 as api
from pulsar_peer import Command, Peer, batch, entry
from receivers import settled
from transacting_peer import COMMIT, EARLIEST, SHARED, end, producing, received, send
from wound_clock import NOW, WoundClock

LAST_MS = (1 << 63) - 1


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> WoundClock:
    return WoundClock.instead_of_the_real_one(monkeypatch)


@pytest.fixture
async def peer(broker: Broker, clock: WoundClock) -> AsyncIterator[Peer]:
    peer = Peer(broker)
    await peer.connect()
    yield peer
    peer.lose()


async def subscribed(peer: Peer, kind: int = SHARED, permits: int = 100) -> None:
    await peer.subscribe("t", subType=kind, initialPosition=EARLIEST)
    peer.flow(permits)
    await settled()


async def test_messages_wait_on_shared_and_others_pass_them(peer: Peer, clock: WoundClock) -> None:
    await peer.producer("t")
    await peer.publish(entry(deliver_at_time=NOW + 2_000))
    await peer.publish(entry())
    await subscribed(peer)
    assert await received(peer, 1) == [1]
    await settled()
    assert peer.silent(Command.MESSAGE)
    stats = await peer.ask(
        Command(
            type=Command.CONSUMER_STATS,
            consumerStats=api.CommandConsumerStats(request_id=9, consumer_id=1),
        ),
        Command.CONSUMER_STATS_RESPONSE,
    )
    counts = stats.msgBacklog, stats.unackedMessages, stats.availablePermits
    assert counts == (2, 1, 99)
    clock.ms += 2_000
    message = await peer.hear(Command.MESSAGE)
    assert (message.message_id.entryId, message.redelivery_count) == (0, 0)


@pytest.mark.parametrize("kind", [api.CommandSubscribe.Exclusive, api.CommandSubscribe.Failover])
async def test_who_reads_in_order_does_not_wait(peer: Peer, kind: int) -> None:
    await peer.producer("t")
    await peer.publish(entry(deliver_at_time=LAST_MS))
    await subscribed(peer, kind)
    assert await received(peer, 1) == [0]


@pytest.mark.parametrize("due", [0, -1, -LAST_MS - 1, 1, NOW - 1, NOW])
async def test_what_is_due_is_delivered(peer: Peer, due: int) -> None:
    await peer.producer("t")
    await peer.publish(entry(deliver_at_time=due))
    await subscribed(peer)
    assert await received(peer, 1) == [0]


@pytest.mark.parametrize("due", [LAST_MS, NOW + 1])
async def test_any_time_to_come_is_taken_and_waited_for(peer: Peer, due: int) -> None:
    await peer.producer("t")
    assert (await peer.publish(entry(deliver_at_time=due))).message_id.entryId == 0
    await subscribed(peer)
    assert peer.silent(Command.MESSAGE)


async def test_a_batch_waits_as_its_own_metadata_says(peer: Peer, clock: WoundClock) -> None:
    await peer.producer("t")
    payload, count = batch(b"a", b"b")
    body = entry(payload, num_messages_in_batch=count, deliver_at_time=NOW + 500)
    await peer.publish(body)
    await subscribed(peer)
    assert peer.silent(Command.MESSAGE)
    clock.ms += 500
    frame = await peer.hear_frame(Command.MESSAGE)
    assert bytes(frame.entry).endswith(payload)


async def test_the_chunks_of_a_message_come_in_order_to_one_consumer(
    peer: Peer, clock: WoundClock
) -> None:
    await peer.producer("t")
    for chunk in range(3):
        body = entry(
            deliver_at_time=NOW + 450,
            uuid="one",
            chunk_id=chunk,
            num_chunks_from_msg=3,
            total_chunk_msg_size=21,
        )
        await peer.publish(body)
        clock.ms += 200  # The last is sent when its time has nearly come.
    for number in (1, 2):
        await peer.subscribe("t", number, subType=SHARED, initialPosition=EARLIEST)
        peer.flow(100, number)
    await settled()
    messages = [await peer.hear(Command.MESSAGE) for _ in range(3)]
    assert [each.message_id.entryId for each in messages] == [0, 1, 2]
    assert len({each.consumer_id for each in messages}) == 1


@pytest.mark.parametrize("committed_after_ms", [100, 900])
async def test_what_is_sent_in_a_transaction_waits_for_both(
    peer: Peer, clock: WoundClock, committed_after_ms: int
) -> None:
    transaction = await producing(peer, "t")
    await send(peer, transaction, 0, entry(producer_name="p", deliver_at_time=NOW + 500))
    await subscribed(peer)
    clock.ms += committed_after_ms
    await settled()
    assert peer.silent(Command.MESSAGE)
    await end(peer, transaction, COMMIT)
    if committed_after_ms < 500:
        await settled()
        assert peer.silent(Command.MESSAGE)
        clock.ms = NOW + 500
    assert await received(peer, 1) == [0]


async def test_a_topic_that_keeps_nothing_delivers_at_once(peer: Peer) -> None:
    topic = "non-persistent://public/default/t"
    await peer.subscribe(topic, subType=SHARED)
    peer.flow(1)
    await peer.producer(topic)
    await peer.publish(entry(deliver_at_time=LAST_MS))
    message: Any = await peer.hear(Command.MESSAGE)
    assert message.consumer_id == 1
