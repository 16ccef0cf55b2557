"""SEND_MESSAGES: append one batch to one partition.

Today's clients choose the partition themselves; the other two ways of choosing are for those that
leave it to the server. A reply means what the topic's flush policy says: by default that the batch
is on stable storage.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from penstock.broker.reading.conversion import in_thread
from penstock.iggy.batches import append, check, is_work
from penstock.iggy.handlers.registry import handles
from penstock.iggy.lookups import find_stream, find_topic
from penstock.iggy.wire import replies, requests
from penstock.iggy.wire.commands import Command
from penstock.iggy.wire.errors import ErrorCode, IggyError
from penstock.iggy.wire.identifiers import PartitioningKind
from penstock.requests.opening import once_open
from penstock.session import Deferred

if TYPE_CHECKING:
    from penstock.broker.topics.namespaces import Namespace
    from penstock.broker.topics.partition import Partition
    from penstock.broker.topics.topic import Topic
    from penstock.iggy.batches import Checked
    from penstock.iggy.server import Call
    from penstock.iggy.wire.identifiers import Partitioning
    from penstock.session import Answer


@handles(Command.SEND_MESSAGES, requests.SendMessages)
def send_messages(request: requests.SendMessages, call: Call) -> Answer[replies.Confirmations]:
    """Check, stamp and append the batch; answer when it is safe."""
    if call.client.server.is_prepared:
        return _send(request, call)
    return _prepare_and_send(request, call)


async def _prepare_and_send(request: requests.SendMessages, call: Call) -> replies.Confirmations:
    await call.client.server.prepare()
    answer = _send(request, call)
    return await answer if isinstance(answer, Awaitable) else answer


def _send(request: requests.SendMessages, call: Call) -> Answer[replies.Confirmations]:
    stream = find_stream(call.broker, request.stream)
    topic = find_topic(call.broker, request.stream, request.topic)
    partition = _choose(call, topic, request.partitioning)
    if is_work([request.batch], request.form):
        return _send_much(request, stream, topic, partition)
    sent = (request.batch, request.messages_count, request.form)
    return once_open([partition], lambda: _append(check(*sent), stream, topic, partition))


async def _send_much(
    request: requests.SendMessages, stream: Namespace, topic: Topic, partition: Partition
) -> replies.Confirmations:
    sent = (request.batch, request.messages_count, request.form)
    with partition.memory.reading() as held:
        size = 2 * len(request.batch)
        await held.grant(size, size)
        checked = await in_thread(check, *sent)
        await partition.opened()
        return await _append(checked, stream, topic, partition)


def _append(
    batch: Checked, stream: Namespace, topic: Topic, partition: Partition
) -> Deferred[replies.Confirmations]:
    base_offset = append(partition, batch)

    def confirm(failure: BaseException | None) -> replies.Confirmations:
        if failure is not None:
            raise failure
        place = (stream.stream_id, topic.iggy_topic_id, partition.index, base_offset)
        return replies.Confirmations([replies.Confirmation(*place)])

    return Deferred(partition.durable(base_offset), confirm)


def _choose(call: Call, topic: Topic, partitioning: Partitioning) -> Partition:
    if partitioning.kind is PartitioningKind.PARTITION_ID:
        return topic.partition(partitioning.partition_id)
    if not topic.partitions:
        raise IggyError(ErrorCode.NO_PARTITIONS)
    if partitioning.kind is PartitioningKind.MESSAGES_KEY:
        return topic.partition(partitioning.hash(partitioning.value) % len(topic.partitions))
    return topic.partition(call.client.server.next_turn(topic) % len(topic.partitions))
