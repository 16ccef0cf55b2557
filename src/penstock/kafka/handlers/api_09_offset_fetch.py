"""OffsetFetch: how far a group has read.

Versions 1-10; version 8 on asks for several groups at once, version 10 names topics by id.

* No list of topics means everything that the group has committed.
* A partition without a commit, of a group or topic that may not exist, is offset -1 with empty
  metadata and no error.

Deviation: there are no transactions, so require_stable changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.kafka.errors import refusal
from penstock.kafka.handlers.group_offsets import offset_owner
from penstock.kafka.handlers.registry import handles
from penstock.kafka.handlers.topics import topic_by_id, topic_by_name
from penstock.kafka.wire import ErrorCode, Struct, api

if TYPE_CHECKING:
    from penstock.broker.groups.offsets import CommittedOffset
    from penstock.kafka.client import Call

FIRST_VERSION_WITH_GROUPS: Final = 8
FIRST_VERSION_WITH_IDS: Final = 10


@handles("OffsetFetch", 1, 10)
def offset_fetch(request: Struct, call: Call) -> Struct:
    response = api("OffsetFetch").response
    if call.version < FIRST_VERSION_WITH_GROUPS:
        return response(topics=_topics(request.group_id, request.topics, call))
    groups = [
        response.OffsetFetchResponseGroup(
            group_id=group.group_id, topics=_topics(group.group_id, group.topics, call)
        )
        for group in request.groups
    ]
    return response(groups=groups)


def _topics(group_id: str, asked: list[Struct] | None, call: Call) -> list[Struct]:
    if asked is None:
        return _everything(group_id, call)
    topics = []
    for topic in asked:
        partitions = [_look_up(group_id, topic, index, call) for index in topic.partition_indexes]
        topics.append(_topic_type(call)(name=topic.name, partitions=partitions))
        if call.version >= FIRST_VERSION_WITH_IDS:
            topics[-1].topic_id = topic.topic_id
    return topics


def _everything(group_id: str, call: Call) -> list[Struct]:
    offsets = call.broker.offsets.of_owner(offset_owner(group_id))
    topics = []
    for topic in call.broker.topics.all():
        partitions = [
            _result(partition.index, offsets[partition.id], call)
            for partition in topic.partitions
            if partition.id in offsets
        ]
        if partitions:
            topics.append(_topic_type(call)(name=topic.name.kafka, partitions=partitions))
            if call.version >= FIRST_VERSION_WITH_IDS:
                topics[-1].topic_id = topic.id
    return topics


def _look_up(group_id: str, topic: Struct, index: int, call: Call) -> Struct:
    try:
        if call.version >= FIRST_VERSION_WITH_IDS:
            partition = topic_by_id(call.broker, topic.topic_id).partition(index)
        else:
            partition = topic_by_name(call.broker, topic.name).partition(index)
    except Exception as error:
        result = _result(index, None, call)
        # Only an id that is gone is an error: a name may come to exist.
        code = refusal(error).code
        result.error_code = code if code == ErrorCode.UNKNOWN_TOPIC_ID else ErrorCode.NONE
        return result
    return _result(index, call.broker.offsets.get(offset_owner(group_id), partition.id), call)


def _result(index: int, committed: CommittedOffset | None, call: Call) -> Struct:
    if committed is None:
        return _partition_type(call)(partition_index=index, committed_offset=-1, metadata="")
    return _partition_type(call)(
        partition_index=index,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.note,
    )


def _topic_type(call: Call) -> type[Struct]:
    response = api("OffsetFetch").response
    if call.version < FIRST_VERSION_WITH_GROUPS:
        return response.OffsetFetchResponseTopic
    return response.OffsetFetchResponseTopics


def _partition_type(call: Call) -> type[Struct]:
    response = api("OffsetFetch").response
    if call.version < FIRST_VERSION_WITH_GROUPS:
        return response.OffsetFetchResponsePartition
    return response.OffsetFetchResponsePartitions
