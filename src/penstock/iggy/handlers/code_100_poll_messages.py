"""POLL_MESSAGES: up to so many messages of one partition, from where a strategy says.

The reply is never empty: it begins with the partition, its last offset and the number of messages.
A member of a group may poll its own partitions only; where one is not its own any more, the reply
says so, and today's client asks for its assignment anew. A member that names no partition, as those
of older dialects, reads its own in turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.iggy.batches import in_form
from penstock.iggy.handlers.registry import handles
from penstock.iggy.lookups import find_partition, find_topic
from penstock.iggy.offsets import current_offset, owner_of, store_offset, stored_offset
from penstock.iggy.polling import Polled, poll
from penstock.iggy.wire import replies, requests
from penstock.iggy.wire.batch import MessageForm
from penstock.iggy.wire.commands import Command
from penstock.iggy.wire.errors import ErrorCode, IggyError
from penstock.iggy.wire.identifiers import ConsumerKind, PollingKind

if TYPE_CHECKING:
    from penstock.broker.groups.offsets import OffsetOwner
    from penstock.broker.topics.partition import Partition
    from penstock.broker.topics.topic import Topic
    from penstock.iggy.server import Call


@handles(Command.POLL_MESSAGES, requests.PollMessages)
async def poll_messages(request: requests.PollMessages, call: Call) -> replies.PolledMessages:
    """Read, and store the offset of the last message where the client wants that."""
    if request.count == 0:
        raise IggyError(ErrorCode.INVALID_MESSAGES_COUNT)
    await call.client.server.prepare()
    topic = find_topic(call.broker, request.stream, request.topic)
    partition = _choose(call, topic, request)
    if partition is None:
        return replies.PolledMessages(replies.Polled(replies.NO_PARTITION, 0, 0), [])
    await partition.opened()
    owner = owner_of(call.broker, topic, request.consumer)
    polled = await _read(call, owner, partition, request)
    if request.auto_commit and polled.messages:
        await store_offset(call.broker, owner, partition, polled.last_offset)
    head = replies.Polled(partition.index, current_offset(partition), polled.messages)
    parts = await in_form(polled.parts, polled.messages, request.form)
    return replies.PolledMessages(head, parts)


def _choose(call: Call, topic: Topic, request: requests.PollMessages) -> Partition | None:
    """Return the partition to read; None where a member has none, or not this one."""
    if request.consumer.kind is not ConsumerKind.GROUP:
        return find_partition(topic, request.partition_id)
    group = call.broker.topic_groups.get(topic, request.consumer.id.value)
    if request.partition_id is None:
        chosen = group.next_partition(call.client)
        return None if chosen is None else topic.partition(chosen)
    partition = find_partition(topic, request.partition_id)
    return partition if group.may_read(call.client, partition.index) else None


async def _read(
    call: Call, owner: OffsetOwner, partition: Partition, request: requests.PollMessages
) -> Polled:
    count, strategy = request.count, request.strategy
    start = partition.start_offset
    since_us = 0
    if strategy.kind is PollingKind.OFFSET:
        start = strategy.value
    elif strategy.kind is PollingKind.LAST:
        start = partition.readable_end() - count
    elif strategy.kind is PollingKind.NEXT:
        stored = stored_offset(call.broker, owner, partition)
        start = partition.start_offset if stored is None else stored + 1
    elif strategy.kind is PollingKind.TIMESTAMP:
        since_us = strategy.value
        found = await partition.at_time(since_us // 1000)
        start = partition.readable_end() if found is None else found
    as_stored = request.form is MessageForm.BATCH
    from_file = as_stored and call.client.transport.sends_files
    return await poll(partition, start, count, since_us=since_us, from_file=from_file)
