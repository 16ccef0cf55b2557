"""POLL_MESSAGES: up to so many messages of one partition, from where a strategy says.

The reply is never empty: it begins with the partition, its last offset and the number of messages.
A member of a group may poll its own partitions only; where one is not its own any more, the reply
says so, and today's client asks for its assignment anew. A member that names no partition, as those
of older dialects, reads its own in turn.

Clients poll all the time, and mostly there is nothing, or a little of what was read for the poll
before: that is answered at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.reading.conversion import in_thread
from penstock.iggy.batches import is_work
from penstock.iggy.handlers.registry import handles
from penstock.iggy.lookups import find_partition, find_topic
from penstock.iggy.offsets import current_offset, owner_of, store_offset, stored_offset
from penstock.iggy.polling import Polled, Wanted, poll, poll_kept
from penstock.iggy.restated import restate
from penstock.iggy.wire import replies, requests
from penstock.iggy.wire.batch import MessageForm
from penstock.iggy.wire.commands import Command
from penstock.iggy.wire.identifiers import ConsumerKind, PollingKind
from penstock.log.errors import LogReadError

if TYPE_CHECKING:
    from penstock.broker.topics.partition import Partition
    from penstock.broker.topics.topic import Topic
    from penstock.iggy.restated import Restated
    from penstock.iggy.server import Call
    from penstock.session import Answer


@handles(Command.POLL_MESSAGES, requests.PollMessages)
def poll_messages(request: requests.PollMessages, call: Call) -> Answer[replies.PolledMessages]:
    """Read, and store the offset of the last message where the client wants that."""
    topic = find_topic(call.broker, request.stream, request.topic)
    partition = _choose(call, topic, request)
    if partition is None:
        return replies.PolledMessages(replies.Polled(replies.NO_PARTITION, 0, 0), [])
    server = call.client.server
    is_ready = partition.is_open and server.is_prepared
    if not is_ready or request.strategy.kind is PollingKind.TIMESTAMP:
        return _open_and_poll(request, call, topic, partition)
    start = _start(request, call, topic, partition)
    end = partition.readable_end()
    if start >= end or not request.count:
        return replies.PolledMessages(replies.Polled(partition.index, max(0, end - 1), 0), ())
    wanted = Wanted(start, request.count)
    answer: Polled | Restated | None
    answer = server.restated.find(partition, wanted, request.form)
    if answer is None:
        answer = poll_kept(server.kept, partition, wanted)
        if answer is None or is_work(answer.size, request.form):
            return _poll(request, call, topic, partition, wanted)
        answer = _restated(request, call, partition, wanted, answer)
    if request.auto_commit and answer.messages:
        return _commit(request, call, topic, partition, answer)
    return _reply(partition, answer)


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
    is_older = request.form is not MessageForm.BATCH
    from_file = is_older or call.client.transport.sends_files
    polled = await poll(call.client.server.kept, partition, wanted, from_file=from_file)
    answer: Polled | Restated = polled
    if is_older:
        answer = await _restated_in_time(request, call, partition, wanted, polled)
    if request.auto_commit and answer.messages:
        return await _commit(request, call, topic, partition, answer)
    return _reply(partition, answer)


async def _wanted(
    request: requests.PollMessages, call: Call, topic: Topic, partition: Partition
) -> Wanted:
    if request.strategy.kind is not PollingKind.TIMESTAMP:
        return Wanted(_start(request, call, topic, partition), request.count)
    since_us = request.strategy.value
    found = await partition.at_time(since_us // 1000)
    start = partition.readable_end() if found is None else found
    return Wanted(start, request.count, since_us)


def _restated(
    request: requests.PollMessages, call: Call, partition: Partition, wanted: Wanted, polled: Polled
) -> Polled | Restated:
    """Return what was polled in the form that the client reads, and keep it for who asks next."""
    if request.form is MessageForm.BATCH or not polled.messages:
        return polled
    made = restate(polled, request.form)
    call.client.server.restated.keep(partition, wanted, request.form, made)
    return made


async def _restated_in_time(
    request: requests.PollMessages, call: Call, partition: Partition, wanted: Wanted, polled: Polled
) -> Polled | Restated:
    """Do the same with what is still to be read, or too much for one turn of the loop."""
    try:
        made = await _restated_with_memory(request, partition, polled)
    except LogReadError:
        # It is not in memory, or damaged: a read waits for it, or says so.
        polled = await poll(call.client.server.kept, partition, wanted)
        made = await _restated_with_memory(request, partition, polled)
    if made is None:
        return polled
    call.client.server.restated.keep(partition, wanted, request.form, made)
    return made


async def _restated_with_memory(
    request: requests.PollMessages, partition: Partition, polled: Polled
) -> Restated | None:
    if not polled.messages:
        return None
    with partition.memory.reading() as held:
        await held.grant(polled.size, polled.size)
        if is_work(polled.size, request.form):
            return await in_thread(restate, polled, request.form)
        return restate(polled, request.form)


async def _commit(
    request: requests.PollMessages,
    call: Call,
    topic: Topic,
    partition: Partition,
    answer: Polled | Restated,
) -> replies.PolledMessages:
    owner = owner_of(call.broker, topic, request.consumer)
    stored = None if request.rewinds else stored_offset(call.broker, owner, partition)
    if stored is None or stored < answer.last_offset:
        await store_offset(call.broker, owner, partition, answer.last_offset)
    return _reply(partition, answer)


def _reply(partition: Partition, answer: Polled | Restated) -> replies.PolledMessages:
    head = replies.Polled(partition.index, current_offset(partition), answer.messages)
    return replies.PolledMessages(head, answer.parts)
