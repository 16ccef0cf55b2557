"""POLL_MESSAGES: up to so many messages of one partition, from where a strategy says.

The reply is never empty: it begins with the partition, its last offset and the number of messages.
A member of a group may poll its own partitions only; where one is not its own any more, the reply
says partition 2**32 - 1, at which the client asks for its assignment anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.iggy.handlers.registry import handles
from penstock.iggy.lookups import find_partition, find_topic
from penstock.iggy.offsets import current_offset, owner_of, store_offset, stored_offset
from penstock.iggy.polling import Polled, poll
from penstock.iggy.wire import replies, requests
from penstock.iggy.wire.commands import Command
from penstock.iggy.wire.errors import ErrorCode, IggyError
from penstock.iggy.wire.identifiers import ConsumerKind, PollingKind

if TYPE_CHECKING:
    from penstock.broker.groups.offsets import OffsetOwner
    from penstock.broker.topics.partition import Partition
    from penstock.broker.topics.topic import Topic
    from penstock.iggy.server import Call

_STALE_ASSIGNMENT: Final = (1 << 32) - 1


@handles(Command.POLL_MESSAGES, requests.PollMessages)
async def poll_messages(request: requests.PollMessages, call: Call) -> replies.PolledMessages:
    """Read, and store the offset of the last message where the client wants that."""
    if request.count == 0:
        raise IggyError(ErrorCode.INVALID_MESSAGES_COUNT)
    await call.client.server.prepare()
    topic = find_topic(call.broker, request.stream, request.topic)
    partition = find_partition(topic, request.partition_id)
    if _is_stale(call, topic, partition, request):
        return replies.PolledMessages(replies.Polled(_STALE_ASSIGNMENT, 0, 0), [])
    await partition.opened()
    owner = owner_of(call.broker, topic, request.consumer)
    polled = await _read(call, owner, partition, request)
    if request.auto_commit and polled.messages:
        await store_offset(call.broker, owner, partition, polled.last_offset)
    head = replies.Polled(partition.index, current_offset(partition), polled.messages)
    return replies.PolledMessages(head, polled.parts)


def _is_stale(
    call: Call, topic: Topic, partition: Partition, request: requests.PollMessages
) -> bool:
    if request.consumer.kind is not ConsumerKind.GROUP:
        return False
    group = call.broker.topic_groups.get(topic, request.consumer.id.value)
    return not group.may_read(call.client, partition.index)


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
    from_file = call.client.transport.sends_files
    return await poll(partition, start, count, since_us=since_us, from_file=from_file)
