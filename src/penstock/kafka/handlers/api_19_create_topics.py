"""CreateTopics: create topics, each by itself, ready for use when the answer comes.

Those of one request share flushes and transactions.

Versions 0-7; version 5 on returns the configuration, version 7 the id.

* Partitions -1 means the node's default, replication factor -1 the only one there is, 1. Kafka's
  specification has that from version 4 on (KIP-464); Kafka 4 takes it in every version, and kafkajs
  says it in version 3. An assignment may be given in place of both: it names the one node for each
  partition.
* A name that occurs twice in a request is refused each time, as is what is wrong by itself, with
  the first of these: exists 36, name 17, contradiction 42, assignment 39, replication factor 38,
  partitions 37, configuration 40.
* More topics than clients may create for now are refused with 89, and the time to wait, from
  version 6 on (KIP-599); with 44 before.
* validate_only makes all checks and creates nothing.

Deviation: names that differ in '.' and '_' only may exist beside each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.broker.errors import InvalidPartitionCountError, TopicExistsError
from penstock.broker.topics.config import TopicConfig
from penstock.broker.topics.names import TopicName
from penstock.broker.topics.new_topic import NewTopic
from penstock.kafka.errors import RequestError
from penstock.kafka.handlers.config_entries import topic_entries
from penstock.kafka.handlers.registry import handles
from penstock.kafka.handlers.throttle import Throttle
from penstock.kafka.handlers.topics import check_asked_once, check_assignments
from penstock.kafka.topic_configs import check_configs
from penstock.kafka.wire import ErrorCode, api
from penstock.pace import Pace

if TYPE_CHECKING:
    from penstock.broker.broker import Broker
    from penstock.broker.topics.topic import Topic
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import CreateTopicsRequest, CreateTopicsResponse

USE_DEFAULT: Final = -1
FIRST_VERSION_WITH_CONFIGS: Final = 5
FIRST_VERSION_WITH_THROTTLING: Final = 6
REPLICATION_FACTOR: Final = 1


@handles(api("CreateTopics"), 0, 7)
async def create_topics(request: CreateTopicsRequest, call: Call) -> CreateTopicsResponse:
    response = api("CreateTopics").response
    throttle = Throttle(call.version >= FIRST_VERSION_WITH_THROTTLING)
    pace = Pace()
    names = await pace.counted(topic.name for topic in request.topics)
    planned = await pace.each_awaited(
        request.topics, lambda each: _plan(each, names[each.name], call, pace)
    )
    allowed = [each for each in planned if isinstance(each, NewTopic)]
    created: list[Topic | BaseException | None] = [None] * len(allowed)
    if not request.validate_only:
        created = [*await call.broker.topics.create_all(allowed)]

    outcomes = iter(created)
    results = []
    for topic, plan in zip(request.topics, planned, strict=True):
        result = response.CreatableTopicResult(name=topic.name, error_message=None)
        results.append(result)
        outcome = next(outcomes) if isinstance(plan, NewTopic) else plan
        if isinstance(outcome, BaseException):
            result.error_code, result.error_message = throttle.refusal(outcome)
        elif isinstance(plan, NewTopic):
            _describe(plan, outcome, result, call)
        if pace.is_over():
            await pace.others()
    for no_longer_needed in (planned, allowed, created):
        await pace.emptied(no_longer_needed)
    return response(throttle_time_ms=throttle.milliseconds, topics=results)


async def _plan(
    asked: CreateTopicsRequest.CreatableTopic, times_asked: int, call: Call, pace: Pace
) -> NewTopic | Exception:
    """Return what is to be created, or why nothing is."""
    try:
        check_asked_once(times_asked)
        name = _new_name(asked.name, call.broker)
        partitions = await _partitions(asked, call, pace)
        config = check_configs((await _configs(asked, pace)).items())
    except Exception as error:
        return error
    return NewTopic(name, partitions, config=config, address=call.client.address)


def _new_name(name: str, broker: Broker) -> TopicName:
    if broker.topics.by_kafka_name(name) is not None:
        raise TopicExistsError(f"topic {name} exists")
    return TopicName.from_kafka(name)


def _describe(
    plan: NewTopic,
    topic: Topic | None,
    result: CreateTopicsResponse.CreatableTopicResult,
    call: Call,
) -> None:
    if topic is not None:
        result.topic_id = topic.id
    result.num_partitions = plan.partitions
    result.replication_factor = REPLICATION_FACTOR
    if call.version < FIRST_VERSION_WITH_CONFIGS:
        return
    config = TopicConfig.of(plan.config, call.broker.settings) if topic is None else topic.config
    described = api("CreateTopics").response.CreatableTopicConfigs
    result.configs = [
        described(
            name=entry.name,
            value=entry.value,
            read_only=False,
            config_source=entry.source,
            is_sensitive=False,
        )
        for entry in topic_entries(config)
    ]


async def _configs(asked: CreateTopicsRequest.CreatableTopic, pace: Pace) -> dict[str, str | None]:
    configs = {}
    for each in asked.configs:
        configs[each.name] = each.value
        if pace.is_over():
            await pace.others()
    return configs


async def _partitions(asked: CreateTopicsRequest.CreatableTopic, call: Call, pace: Pace) -> int:
    if asked.assignments:
        return await _assigned_partitions(asked, call.broker, pace)
    if asked.replication_factor not in (USE_DEFAULT, REPLICATION_FACTOR):
        raise RequestError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"replication factor {asked.replication_factor} on one node",
        )
    count = asked.num_partitions
    if count == USE_DEFAULT:
        return call.broker.settings.default_partitions
    return _checked(count, call.broker)


def _checked(count: int, broker: Broker) -> int:
    if not 1 <= count <= broker.settings.partitions_per_topic_max:
        raise InvalidPartitionCountError(f"{count} partitions")
    return count


async def _assigned_partitions(
    asked: CreateTopicsRequest.CreatableTopic, broker: Broker, pace: Pace
) -> int:
    if (asked.num_partitions, asked.replication_factor) != (USE_DEFAULT, USE_DEFAULT):
        raise RequestError(
            ErrorCode.INVALID_REQUEST, "an assignment is given, and partitions or replicas too"
        )
    count = len(asked.assignments)
    numbers = await pace.counted(each.partition_index for each in asked.assignments)
    if len(numbers) < count or min(numbers) < 0 or max(numbers) >= count:
        raise RequestError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "partitions are numbered from 0 without gaps"
        )
    await check_assignments(asked.assignments, broker, pace)
    return _checked(count, broker)
