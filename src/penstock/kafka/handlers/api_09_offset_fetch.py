"""OffsetFetch: how far a group has read.

Versions 0-10; version 8 on asks for several groups at once, version 10 names topics by id.

* No list of topics means everything that the group has committed.
* A partition without a commit, of a group or topic that may not exist, is offset -1 with empty
  metadata and no error.

* Who wants what is stable (`require_stable`, from version 7 on) is refused with
  UNSTABLE_OFFSET_COMMIT where an open transaction may yet commit another offset (KIP-447).

Deviation: Kafka's version 0 said UNKNOWN_TOPIC_OR_PARTITION where nothing was committed, against
its own guide of the time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.kafka.errors import refusal
from penstock.kafka.handlers.group_offsets import offset_owner
from penstock.kafka.handlers.registry import handles
from penstock.kafka.handlers.topics import find_topic
from penstock.kafka.wire import ErrorCode, api
from penstock.pace import Pace

if TYPE_CHECKING:
    from penstock.broker.groups.offsets import CommittedOffset, OffsetOwner
    from penstock.broker.topics.partition import Partition
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import OffsetFetchRequest, OffsetFetchResponse

FIRST_VERSION_WITH_GROUPS: Final = 8
FIRST_VERSION_WITH_IDS: Final = 10


class _Group(NamedTuple):
    """Whose offsets are asked for, and whether open transactions are waited for."""

    owner: OffsetOwner
    require_stable: bool

    def is_unstable(self, partition_id: int, call: Call) -> bool:
        """Whether the client has to ask again, when a transaction has ended."""
        return self.require_stable and call.broker.pending_offsets.is_pending(
            self.owner, partition_id
        )


@handles(api("OffsetFetch"), 0, 10)
async def offset_fetch(request: OffsetFetchRequest, call: Call) -> OffsetFetchResponse:
    response = api("OffsetFetch").response
    pace = Pace()
    if call.version < FIRST_VERSION_WITH_GROUPS:
        return response(topics=await _topics_of_one_group(request, call, pace))

    async def of_group(
        group: OffsetFetchRequest.OffsetFetchRequestGroup,
    ) -> OffsetFetchResponse.OffsetFetchResponseGroup:
        asked = _Group(offset_owner(group.group_id), request.require_stable)
        topics = await _topics(asked, group.topics, call, pace)
        return response.OffsetFetchResponseGroup(group_id=group.group_id, topics=topics)

    return response(groups=await pace.each_awaited(request.groups, of_group))


async def _topics_of_one_group(
    request: OffsetFetchRequest, call: Call, pace: Pace
) -> list[OffsetFetchResponse.OffsetFetchResponseTopic]:
    """As `_topics`, in the structs of the versions that ask for one group."""
    topic_type = api("OffsetFetch").request.OffsetFetchRequestTopics
    response = api("OffsetFetch").response
    asked = None
    if request.topics is not None:
        asked = await pace.each(
            request.topics,
            lambda topic: topic_type(name=topic.name, partition_indexes=topic.partition_indexes),
        )

    def in_old_struct(
        each: OffsetFetchResponse.OffsetFetchResponsePartitions,
    ) -> OffsetFetchResponse.OffsetFetchResponsePartition:
        return response.OffsetFetchResponsePartition(
            partition_index=each.partition_index,
            committed_offset=each.committed_offset,
            committed_leader_epoch=each.committed_leader_epoch,
            metadata=each.metadata,
            error_code=each.error_code,
        )

    async def of_topic(
        topic: OffsetFetchResponse.OffsetFetchResponseTopics,
    ) -> OffsetFetchResponse.OffsetFetchResponseTopic:
        partitions = await pace.each(topic.partitions, in_old_struct)
        return response.OffsetFetchResponseTopic(name=topic.name, partitions=partitions)

    group = _Group(offset_owner(request.group_id), request.require_stable)
    found = await _topics(group, asked, call, pace)
    topics = await pace.each_awaited(found, of_topic)
    for no_longer_needed in (asked, found):
        await pace.emptied(no_longer_needed or [])
    return topics


async def _topics(
    group: _Group,
    asked: list[OffsetFetchRequest.OffsetFetchRequestTopics] | None,
    call: Call,
    pace: Pace,
) -> list[OffsetFetchResponse.OffsetFetchResponseTopics]:
    if asked is None:
        return await _everything(group, call, pace)
    topic_type = api("OffsetFetch").response.OffsetFetchResponseTopics

    async def of_topic(
        topic: OffsetFetchRequest.OffsetFetchRequestTopics,
    ) -> OffsetFetchResponse.OffsetFetchResponseTopics:
        partitions = await pace.each(
            topic.partition_indexes, lambda index: _look_up(group, topic, index, call)
        )
        return topic_type(name=topic.name, topic_id=topic.topic_id, partitions=partitions)

    return await pace.each_awaited(asked, of_topic)


async def _everything(
    group: _Group, call: Call, pace: Pace
) -> list[OffsetFetchResponse.OffsetFetchResponseTopics]:
    topic_type = api("OffsetFetch").response.OffsetFetchResponseTopics
    offsets = call.broker.offsets.of_owner(group.owner)
    topics = []
    for topic in tuple(call.broker.topics.all()):
        partitions = []
        for partition in topic.partitions:
            if partition.id in offsets or group.is_unstable(partition.id, call):
                partitions.append(_of_partition(group, partition, call))
            if pace.is_over():
                await pace.others()
        if partitions:
            topics.append(
                topic_type(name=topic.name.kafka, topic_id=topic.id, partitions=partitions)
            )
    return topics


def _look_up(
    group: _Group, topic: OffsetFetchRequest.OffsetFetchRequestTopics, index: int, call: Call
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
    return _of_partition(group, partition, call)


def _of_partition(
    group: _Group, partition: Partition, call: Call
) -> OffsetFetchResponse.OffsetFetchResponsePartitions:
    if not group.is_unstable(partition.id, call):
        return _result(partition.index, call.broker.offsets.get(group.owner, partition.id))
    result = _result(partition.index, None)
    result.error_code = ErrorCode.UNSTABLE_OFFSET_COMMIT
    return result


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
