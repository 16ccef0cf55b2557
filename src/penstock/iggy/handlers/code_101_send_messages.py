"""SEND_MESSAGES: append one batch to one partition.

Today's clients choose the partition themselves; the other two ways of choosing are for those that
leave it to the server. A reply means what the topic's flush policy says: by default that the batch
is on stable storage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from penstock.broker.reading.conversion import in_thread
from penstock.iggy.batches import append, check, is_work
from penstock.iggy.handlers.registry import handles
from penstock.iggy.lookups import find_stream, find_topic
from penstock.iggy.wire import replies, requests
from penstock.iggy.wire.commands import Command
from penstock.iggy.wire.errors import ErrorCode, IggyError
from penstock.iggy.wire.identifiers import PartitioningKind
from penstock.session import Deferred

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from penstock.broker.topics.namespaces import Namespace
    from penstock.broker.topics.partition import Partition
    from penstock.broker.topics.topic import Topic
    from penstock.iggy.batches import Checked
    from penstock.iggy.server import Call
    from penstock.iggy.wire.identifiers import Partitioning
    from penstock.memory import Reading
    from penstock.session import Answer


class Place(NamedTuple):
    """Where a batch goes."""

    stream: Namespace
    topic: Topic
    partition: Partition


@handles(Command.SEND_MESSAGES, requests.SendMessages)
def send_messages(request: requests.SendMessages, call: Call) -> Answer[replies.Confirmations]:
    """Check, stamp and append the batch; answer when it is safe."""
    stream = find_stream(call.broker, request.stream)
    topic = find_topic(call.broker, request.stream, request.topic)
    place = Place(stream, topic, _choose(call, topic, request.partitioning))
    is_quick = call.client.server.is_prepared and not is_work(len(request.batch), request.form)
    if is_quick and place.partition.is_open and not call.client.sends.waiting:
        return _append(_check(request), place)
    return _send_in_turn(call.client.sends.turn(), request, call, place)


async def _send_in_turn(
    turn: AbstractAsyncContextManager[None],
    request: requests.SendMessages,
    call: Call,
    place: Place,
) -> replies.Confirmations:
    with place.partition.memory.reading() as held:
        async with turn:
            await call.client.server.prepare()
            checked = await _checked(request, held)
            await place.partition.opened()
            answer = _append(checked, place)
        return await answer


async def _checked(request: requests.SendMessages, held: Reading) -> Checked:
    if not is_work(len(request.batch), request.form):
        return _check(request)
    size = 2 * len(request.batch)
    await held.grant(size, size)
    return await in_thread(_check, request)


def _check(request: requests.SendMessages) -> Checked:
    return check(request.batch, request.messages_count, request.form)


def _append(batch: Checked, place: Place) -> Deferred[replies.Confirmations]:
    stream, topic, partition = place
    base_offset = append(partition, batch)

    def confirm(failure: BaseException | None) -> replies.Confirmations:
        if failure is not None:
            raise failure
        where = (stream.stream_id, topic.iggy_topic_id, partition.index, base_offset)
        return replies.Confirmations([replies.Confirmation(*where)])

    return Deferred(partition.durable(base_offset), confirm)


def _choose(call: Call, topic: Topic, partitioning: Partitioning) -> Partition:
    if partitioning.kind is PartitioningKind.PARTITION_ID:
        return topic.partition(partitioning.partition_id)
    if not topic.partitions:
        raise IggyError(ErrorCode.NO_PARTITIONS)
    if partitioning.kind is PartitioningKind.MESSAGES_KEY:
        return topic.partition(partitioning.hash(partitioning.value) % len(topic.partitions))
    return topic.partition(call.client.server.next_turn(topic) % len(topic.partitions))
