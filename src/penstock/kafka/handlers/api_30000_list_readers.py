"""ListReaders: groups and subscriptions of all protocols, and how far behind they are.

Version 0, for Penstock's own commands: ListGroups has no words for what is of one topic and
acknowledges single messages, and Kafka's clients would take it for groups of theirs. Without names
it lists all. An end offset and a backlog are -1 where a log can't be opened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.kafka.handlers.registry import handles
from penstock.kafka.readers import all_readers
from penstock.kafka.wire import api
from penstock.pace import Pace, drop

if TYPE_CHECKING:
    from penstock.kafka.client import Call
    from penstock.kafka.readers import Progress, Reader
    from penstock.kafka.wire.messages import ListReadersRequest, ListReadersResponse


@handles(api("ListReaders"), 0, 0)
async def list_readers(request: ListReadersRequest, call: Call) -> ListReadersResponse:
    pace = Pace()
    names = None if request.names is None else await pace.counted(request.names)
    readers = await all_readers(call.broker, names, pace)
    if names is not None:
        drop(names)

    async def described(reader: Reader) -> ListReadersResponse.Reader:
        return await _described(reader, pace)

    return api("ListReaders").response(readers=await pace.each_awaited(readers, described))


async def _described(reader: Reader, pace: Pace) -> ListReadersResponse.Reader:
    response = api("ListReaders").response
    topics: dict[str, ListReadersResponse.ReaderTopic] = {}
    if reader.topic:
        topics[reader.topic] = response.ReaderTopic(name=reader.topic)

    def describe(progress: Progress) -> None:
        name = progress.partition.topic.name.kafka
        if name not in topics:
            topics[name] = response.ReaderTopic(name=name)
        topics[name].partitions.append(
            response.ReaderPartition(
                partition_index=progress.partition.index,
                position=progress.position,
                end_offset=progress.end_offset,
                backlog=progress.backlog,
            )
        )

    await pace.each(reader.progress, describe)
    return response.Reader(
        protocol=reader.protocol,
        name=reader.name,
        reader_type=reader.type,
        reader_state=reader.state,
        members=reader.members,
        topics=list(topics.values()),
    )
