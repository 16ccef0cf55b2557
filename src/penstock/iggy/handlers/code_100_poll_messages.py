"""POLL_MESSAGES: up to so many messages of one partition, from where a strategy says.

The reply is never empty: it begins with the partition, its last offset and the number of messages.
A member of a group may poll its own partitions only; where one is not its own any more, the reply
says partition 2**32 - 1, at which the client asks for its assignment anew.

Clients poll all the time, and mostly there is nothing, or a little of what was read for the poll
before: that is answered at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.iggy.handlers.registry import handles
from penstock.iggy.lookups import find_partition, find_topic
from penstock.iggy.offsets import current_offset, owner_of, store_offset, stored_offset
from penstock.iggy.polling import Polled, Wanted, poll, poll_kept
from penstock.iggy.wire import replies, requests
from penstock.iggy.wire.commands import Command
from penstock.iggy.wire.errors import ErrorCode, IggyError
from penstock.iggy.wire.identifiers import ConsumerKind, PollingKind

if TYPE_CHECKING:
    from penstock.broker.topics.partition import Partition
    from penstock.broker.topics.topic import Topic
    from penstock.iggy.server import Call
    from penstock.session import Answer

_STALE_ASSIGNMENT: Final = (1 << 32) - 1


@handles(Command.POLL_MESSAGES, requests.PollMessages)
def poll_messages(request: requests.PollMessages, call: Call) -> Answer[replies.PolledMessages]:
    """Read, and store the offset of the last message where the client wants that."""
    if request.count == 0:
        raise IggyError(ErrorCode.INVALID_MESSAGES_COUNT)
    topic = find_topic(call.broker, request.stream, request.topic)
    partition = find_partition(topic, request.partition_id)
    if _is_stale(call, topic, partition, request):
        return replies.PolledMessages(replies.Polled(_STALE_ASSIGNMENT, 0, 0), [])
    server = call.client.server
    if not (partition.is_open and server.is_prepared):
        return _open_and_poll(request, call, topic, partition)
    if request.strategy.kind is PollingKind.TIMESTAMP:
        return _poll(request, call, topic, partition)
    wanted = Wanted(_start(request, call, topic, partition), request.count)
    polled = poll_kept(server.kept, partition, wanted)
    if polled is None:
        return _poll(request, call, topic, partition, wanted)
    if request.auto_commit and polled.messages:
        return _commit(request, call, topic, partition, polled)
    return _reply(partition, polled)


def _is_stale(
    call: Call, topic: Topic, partition: Partition, request: requests.PollMessages
) -> bool:
    if request.consumer.kind is not ConsumerKind.GROUP:
        return False
    group = call.broker.topic_groups.get(topic, request.consumer.id.value)
    return not group.may_read(call.client, partition.index)


def _start(request: requests.PollMessages, call: Call, topic: Topic, partition: Partition) -> int:
    kind = request.strategy.kind
    if kind is PollingKind.OFFSET:
        return request.strategy.value
    if kind is PollingKind.LAST:
        return partition.readable_end() - request.count
    if kind is PollingKind.NEXT:
        owner = owner_of(call.broker, topic, request.consumer)
        stored = stored_offset(call.broker, owner, partition)
        return partition.start_offset if stored is None else stored + 1
    return partition.start_offset


async def _open_and_poll(
    request: requests.PollMessages, call: Call, topic: Topic, partition: Partition
) -> replies.PolledMessages:
    await call.client.server.prepare()
    await partition.opened()
    return await _poll(request, call, topic, partition)


async def _poll(
    request: requests.PollMessages,
    call: Call,
    topic: Topic,
    partition: Partition,
    wanted: Wanted | None = None,
) -> replies.PolledMessages:
    wanted = wanted or await _wanted(request, call, topic, partition)
    from_file = call.client.transport.sends_files
    polled = await poll(call.client.server.kept, partition, wanted, from_file=from_file)
    if request.auto_commit and polled.messages:
        return await _commit(request, call, topic, partition, polled)
    return _reply(partition, polled)


async def _wanted(
    request: requests.PollMessages, call: Call, topic: Topic, partition: Partition
) -> Wanted:
    if request.strategy.kind is not PollingKind.TIMESTAMP:
        return Wanted(_start(request, call, topic, partition), request.count)
    since_us = request.strategy.value
    found = await partition.at_time(since_us // 1000)
    start = partition.readable_end() if found is None else found
    return Wanted(start, request.count, since_us)


async def _commit(
    request: requests.PollMessages, call: Call, topic: Topic, partition: Partition, polled: Polled
) -> replies.PolledMessages:
    owner = owner_of(call.broker, topic, request.consumer)
    await store_offset(call.broker, owner, partition, polled.last_offset)
    return _reply(partition, polled)


def _reply(partition: Partition, polled: Polled) -> replies.PolledMessages:
    head = replies.Polled(partition.index, current_offset(partition), polled.messages)
    return replies.PolledMessages(head, polled.parts)
