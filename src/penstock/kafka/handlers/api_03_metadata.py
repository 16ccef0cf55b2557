"""Metadata: the one broker, the topics and their partitions.

Versions 0-13.

* No list of topics means all of them, in version 0 an empty one does too; an empty list means none.
* A topic that is missing is created with the node's defaults where the request and the node's
  configuration allow it; versions 0-3 always allow it. It can be used when the answer is sent.
* Version 12 on may name a topic by its id; an id that is not known is UNKNOWN_TOPIC_ID. An id
  goes before a name: Java's Admin client sends an empty one beside it.
* The broker's address is the one that the client has connected to, so each network that leads to
  the broker keeps working.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.broker.errors import (
    InvalidTopicNameError,
    TopicExistsError,
    TopicsThrottledError,
)
from penstock.broker.topics.names import TopicName
from penstock.broker.topics.new_topic import NewTopic
from penstock.broker.topics.topic import Topic
from penstock.kafka.errors import refusal
from penstock.kafka.handlers.registry import handles
from penstock.kafka.handlers.topics import (
    ALL_CLUSTER_OPERATIONS,
    ALL_TOPIC_OPERATIONS,
    OPERATIONS_NOT_ASKED,
    topic_by_id,
    topic_by_legal_name,
)
from penstock.kafka.wire import api
from penstock.pace import Pace, drop

if TYPE_CHECKING:
    from penstock.broker.topics.partition import Partition
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import MetadataRequest, MetadataResponse

EMPTY_LIST_MEANS_ALL: Final = 0


@handles(api("Metadata"), 0, 13)
async def metadata(request: MetadataRequest, call: Call) -> MetadataResponse:
    pace = Pace()
    if request.topics is None or (call.version == EMPTY_LIST_MEANS_ALL and not request.topics):
        everything = await pace.each_awaited(
            tuple(call.broker.topics.all()), lambda topic: _describe(topic, request, call, pace)
        )
        return _answer(everything, request, call)
    may_create = request.allow_auto_topic_creation and call.broker.settings.auto_create_topics
    failures = await _create_missing(request.topics, call, pace) if may_create else {}
    topics = await pace.each_awaited(
        request.topics,
        lambda asked: _look_up(asked, request, call, pace, failures.get(_name(asked))),
    )
    return _answer(topics, request, call)


async def _create_missing(
    asked_topics: list[MetadataRequest.MetadataRequestTopic], call: Call, pace: Pace
) -> dict[str | None, BaseException]:
    """Return why those that could not be created were not, by name."""
    failures: dict[str | None, BaseException] = {}
    missing: dict[str, NewTopic] = {}
    for asked in asked_topics:
        name = _name(asked)
        if name is not None and _is_missing(name, call):
            try:
                missing[name] = _new_topic(name, call)
            except InvalidTopicNameError as error:
                failures[name] = error
        if pace.is_over():
            await pace.others()

    created = await call.broker.topics.create_all([*missing.values()])
    # What exists is found under Kafka's name all the same. What may not be created for now is
    # missing: that is what clients know to ask for again (KIP-599).
    expected = (Topic, TopicExistsError, TopicsThrottledError)
    for name, each in zip(missing, created, strict=True):
        if not isinstance(each, expected):
            failures[name] = each
        if pace.is_over():
            await pace.others()
    drop(missing, created)
    return failures


def _name(asked: MetadataRequest.MetadataRequestTopic) -> str | None:
    return None if asked.topic_id.int else asked.name


def _new_topic(name: str, call: Call) -> NewTopic:
    return NewTopic(
        TopicName.from_kafka(name),
        call.broker.settings.default_partitions,
        address=call.client.address,
    )


def _is_missing(name: str, call: Call) -> bool:
    return call.broker.topics.by_kafka_name(name) is None


async def _look_up(
    asked: MetadataRequest.MetadataRequestTopic,
    request: MetadataRequest,
    call: Call,
    pace: Pace,
    failure: BaseException | None,
) -> MetadataResponse.MetadataResponseTopic:
    if failure is not None:
        return _failure(asked, request, failure)
    try:
        if (name := _name(asked)) is not None:
            topic = topic_by_legal_name(call.broker, name)
        else:
            topic = topic_by_id(call.broker, asked.topic_id)
    except Exception as error:
        return _failure(asked, request, error)
    return await _describe(topic, request, call, pace)


def _failure(
    asked: MetadataRequest.MetadataRequestTopic, request: MetadataRequest, error: BaseException
) -> MetadataResponse.MetadataResponseTopic:
    return api("Metadata").response.MetadataResponseTopic(
        error_code=refusal(error).code,
        name=_name(asked),
        topic_id=asked.topic_id,
        partitions=[],
        topic_authorized_operations=_topic_operations(request),
    )


async def _describe(
    topic: Topic, request: MetadataRequest, call: Call, pace: Pace
) -> MetadataResponse.MetadataResponseTopic:
    response = api("Metadata").response
    return response.MetadataResponseTopic(
        name=topic.name.kafka,
        topic_id=topic.id,
        partitions=await pace.each(
            topic.partitions, lambda partition: _describe_partition(partition, call)
        ),
        topic_authorized_operations=_topic_operations(request),
    )


def _topic_operations(request: MetadataRequest) -> int:
    asked = request.include_topic_authorized_operations
    return ALL_TOPIC_OPERATIONS if asked else OPERATIONS_NOT_ASKED


def _describe_partition(
    partition: Partition, call: Call
) -> MetadataResponse.MetadataResponsePartition:
    leader = call.broker.cluster.leader_of(partition)
    return api("Metadata").response.MetadataResponsePartition(
        partition_index=partition.index,
        leader_id=leader.node_id,
        leader_epoch=leader.epoch,
        replica_nodes=[leader.node_id],
        isr_nodes=[leader.node_id],
    )


def _answer(
    topics: list[MetadataResponse.MetadataResponseTopic], request: MetadataRequest, call: Call
) -> MetadataResponse:
    response = api("Metadata").response
    host, port = call.client.transport.local_address
    cluster = call.broker.cluster
    return response(
        brokers=[
            response.MetadataResponseBroker(node_id=node_id, host=host, port=port)
            for node_id in cluster.node_ids
        ],
        cluster_id=cluster.id,
        controller_id=cluster.controller_id,
        topics=topics,
        cluster_authorized_operations=ALL_CLUSTER_OPERATIONS
        if request.include_cluster_authorized_operations
        else OPERATIONS_NOT_ASKED,
    )
