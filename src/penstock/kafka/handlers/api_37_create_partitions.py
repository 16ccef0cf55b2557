"""CreatePartitions: let topics grow; none ever shrinks.

Versions 0-3. 37 when the count is not larger than now, 3 for an unknown topic, 42 for one that is
asked for twice, 39 for an assignment that does not put each new partition on the one node.
More partitions than clients may create for now are 89, and the time to wait, from version 3 on
(KIP-599); 44 before. validate_only makes all checks and changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.broker.errors import InvalidPartitionCountError
from penstock.kafka.errors import RequestError
from penstock.kafka.handlers.registry import handles
from penstock.kafka.handlers.throttle import Throttle
from penstock.kafka.handlers.topics import check_asked_once, check_assignments, topic_by_name
from penstock.kafka.wire import ErrorCode, api
from penstock.pace import Pace

if TYPE_CHECKING:
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import CreatePartitionsRequest, CreatePartitionsResponse

FIRST_VERSION_WITH_THROTTLING: Final = 3


@handles(api("CreatePartitions"), 0, 3)
async def create_partitions(
    request: CreatePartitionsRequest, call: Call
) -> CreatePartitionsResponse:
    response = api("CreatePartitions").response
    throttle = Throttle(call.version >= FIRST_VERSION_WITH_THROTTLING)
    pace = Pace()
    names = await pace.counted(topic.name for topic in request.topics)
    results = []
    for asked in request.topics:
        result = response.CreatePartitionsTopicResult(name=asked.name)
        results.append(result)
        try:
            check_asked_once(names[asked.name])
            await _grow(asked, request.validate_only, call, pace)
        except Exception as error:
            result.error_code, result.error_message = throttle.refusal(error)
        if pace.is_over():
            await pace.others()
    return response(throttle_time_ms=throttle.milliseconds, results=results)


async def _grow(
    asked: CreatePartitionsRequest.CreatePartitionsTopic,
    validate_only: bool,
    call: Call,
    pace: Pace,
) -> None:
    topic = topic_by_name(call.broker, asked.name)
    added = asked.count - len(topic.partitions)
    if added <= 0 or asked.count > call.broker.settings.partitions_per_topic_max:
        raise InvalidPartitionCountError(
            f"{asked.count} partitions, and the topic has {len(topic.partitions)}"
        )
    if asked.assignments is not None:
        if len(asked.assignments) != added:
            raise RequestError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"each of {added} new partitions has a place"
            )
        await check_assignments(asked.assignments, call.broker, pace)
    if not validate_only:
        await call.broker.topics.add_partitions(topic, asked.count, address=call.client.address)
