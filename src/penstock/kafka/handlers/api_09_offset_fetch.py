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
from penstock.kafka.handlers.topics import find_topic
from penstock.kafka.wire import ErrorCode, api

if TYPE_CHECKING:
    from penstock.broker.groups.offsets import CommittedOffset
    from penstock.kafka.handlers.registry import Call
    from penstock.kafka.wire.messages import OffsetFetchRequest, OffsetFetchResponse

FIRST_VERSION_WITH_GROUPS: Final = 8
FIRST_VERSION_WITH_IDS: Final = 10


@handles(api("OffsetFetch"), 1, 10)
def offset_fetch(request: OffsetFetchRequest, call: Call) -> OffsetFetchResponse:
    response = api("OffsetFetch").response
    if call.version < FIRST_VERSION_WITH_GROUPS:
        return response(topics=_topics_of_one_group(request, call))
    groups = [
        response.OffsetFetchResponseGroup(
            group_id=group.group_id, topics=_topics(group.group_id, group.topics, call)
        )
        for group in request.groups
    ]
    return response(groups=groups)


def _topics_of_one_group(
    request: OffsetFetchRequest, call: Call
) -> list[OffsetFetchResponse.OffsetFetchResponseTopic]:
    """As `_topics`, in the structs of the versions that ask for one group."""
    topic_type = api("OffsetFetch").request.OffsetFetchRequestTopics
    response = api("OffsetFetch").response
    asked = None
    if request.topics is not None:
        asked = [
            topic_type(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        ]
    return [
        response.OffsetFetchResponseTopic(
            name=topic.name,
            partitions=[
                response.OffsetFetchResponsePartition(
                    partition_index=each.partition_index,
                    committed_offset=each.committed_offset,
                    committed_leader_epoch=each.committed_leader_epoch,
                    metadata=each.metadata,
                    error_code=each.error_code,
                )
                for each in topic.partitions
            ],
        )
        for topic in _topics(request.group_id, asked, call)
    ]


def _topics(
    group_id: str, asked: list[OffsetFetchRequest.OffsetFetchRequestTopics] | None, call: Call
) -> list[OffsetFetchResponse.OffsetFetchResponseTopics]:
    if asked is None:
        return _everything(group_id, call)
    topic_type = api("OffsetFetch").response.OffsetFetchResponseTopics
    topics = []
    for topic in asked:
        partitions = [_look_up(group_id, topic, index, call) for index in topic.partition_indexes]
        topics.append(topic_type(name=topic.name, topic_id=topic.topic_id, partitions=partitions))
    return topics


def _everything(group_id: str, call: Call) -> list[OffsetFetchResponse.OffsetFetchResponseTopics]:
    topic_type = api("OffsetFetch").response.OffsetFetchResponseTopics
    offsets = call.broker.offsets.of_owner(offset_owner(group_id))
    topics = []
    for topic in call.broker.topics.all():
        partitions = [
            _result(partition.index, offsets[partition.id])
            for partition in topic.partitions
            if partition.id in offsets
        ]
        if partitions:
            topics.append(
                topic_type(name=topic.name.kafka, topic_id=topic.id, partitions=partitions)
            )
    return topics


def _look_up(
    group_id: str, topic: OffsetFetchRequest.OffsetFetchRequestTopics, index: int, call: Call
) -> OffsetFetchResponse.OffsetFetchResponsePartitions:
    try:
        by_id = call.version >= FIRST_VERSION_WITH_IDS
        found = find_topic(call.broker, topic.name, topic.topic_id, by_id=by_id)
        partition = found.partition(index)
    except Exception as error:
        result = _result(index, None)
        # Only an id that is gone is an error: a name may come to exist.
        code = refusal(error).code
        result.error_code = code if code == ErrorCode.UNKNOWN_TOPIC_ID else ErrorCode.NONE
        return result
    return _result(index, call.broker.offsets.get(offset_owner(group_id), partition.id))


def _result(
    index: int, committed: CommittedOffset | None
) -> OffsetFetchResponse.OffsetFetchResponsePartitions:
    partition_type = api("OffsetFetch").response.OffsetFetchResponsePartitions
    if committed is None:
        return partition_type(partition_index=index, committed_offset=-1, metadata="")
    return partition_type(
        partition_index=index,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.note,
    )
