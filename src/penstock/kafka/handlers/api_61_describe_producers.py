"""DescribeProducers: the producers that partitions remember or have transactions of (KIP-664).

Version 0. A partition that is not there is 3, one that is asked for twice 42: a small request would
have an answer without bound. The time of a last write is the broker's; for a producer that has not
written since the partition was opened it is the time of that.

One that writes without sequences, as Pulsar's transactions do, is there as long as its transaction
is open, and has neither a last sequence nor a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock import wall_clock
from penstock.broker.producers.idempotence import NO_COORDINATOR
from penstock.kafka.errors import refusal
from penstock.kafka.handlers.registry import handles
from penstock.kafka.handlers.topics import check_asked_once, topic_by_name
from penstock.kafka.wire import api
from penstock.log.header import NO_SEQUENCE, NO_TIMESTAMP
from penstock.pace import Pace

if TYPE_CHECKING:
    from penstock.broker.producers.idempotence import KnownProducer
    from penstock.broker.transactions.on_partition import OpenTransaction
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import DescribeProducersRequest, DescribeProducersResponse

NO_TRANSACTION: Final = -1


@handles(api("DescribeProducers"), 0, 0)
async def describe_producers(
    request: DescribeProducersRequest, call: Call
) -> DescribeProducersResponse:
    response = api("DescribeProducers").response
    pace = Pace()
    times = await pace.counted(
        (topic.name, index) for topic in request.topics for index in topic.partition_indexes
    )

    async def of_topic(
        asked: DescribeProducersRequest.TopicRequest,
    ) -> DescribeProducersResponse.TopicResponse:
        partitions = await pace.each_awaited(
            asked.partition_indexes,
            lambda index: _describe(asked.name, index, times[asked.name, index], call, pace),
        )
        return response.TopicResponse(name=asked.name, partitions=partitions)

    return response(topics=await pace.each_awaited(request.topics, of_topic))


async def _describe(
    topic: str, index: int, times: int, call: Call, pace: Pace
) -> DescribeProducersResponse.PartitionResponse:
    result = api("DescribeProducers").response.PartitionResponse(
        partition_index=index, active_producers=[]
    )
    try:
        check_asked_once(times)
        partition = topic_by_name(call.broker, topic).partition(index)
        await partition.opened()
        begun = partition.transactions.open
        remembered = await pace.each(
            partition.producers.known(), lambda known: _producer(known, begun.get(known.id))
        )
        unknown = [
            each for each in begun.values() if not partition.producers.knows(each.producer_id)
        ]
        result.active_producers = remembered + await pace.each(unknown, _without_sequence)
    except Exception as error:
        result.error_code, result.error_message = refusal(error)
    return result


def _producer(
    known: KnownProducer, begun: OpenTransaction | None
) -> DescribeProducersResponse.ProducerState:
    return api("DescribeProducers").response.ProducerState(
        producer_id=known.id,
        producer_epoch=known.epoch,
        last_sequence=known.last_sequence,
        last_timestamp=wall_clock.now_ms() - round(known.idle_seconds * 1000),
        coordinator_epoch=known.coordinator_epoch,
        current_txn_start_offset=NO_TRANSACTION if begun is None else begun.first_offset,
    )


def _without_sequence(begun: OpenTransaction) -> DescribeProducersResponse.ProducerState:
    return api("DescribeProducers").response.ProducerState(
        producer_id=begun.producer_id,
        producer_epoch=begun.producer_epoch,
        last_sequence=NO_SEQUENCE,
        last_timestamp=NO_TIMESTAMP,
        coordinator_epoch=NO_COORDINATOR,
        current_txn_start_offset=begun.first_offset,
    )
