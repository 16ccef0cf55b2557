"""Produce: append one batch to each of several partitions.

Versions 0-13. Versions 0-2 carry message sets of before 2017, each of which becomes one batch
(`penstock.kafka.message_sets`). librdkafka up to 2.10 does not compress for a broker whose range
begins later (KAFKA-18659).

* All batches are appended before this handler returns, in the order of the request, so requests
  that a client sends without waiting are written in their order.
* acks -1 answers when all batches are on stable storage, flushed together; acks 1 when they are
  written; acks 0 never answers, and closes the connection when a batch is refused. What nobody
  waits for is flushed soon after, and is not seen before.
* A request for a log that is not open yet waits for it, and what comes behind it on the connection
  waits too, so that the order stays.
* Version 0 is of the time when any number of acks could be asked for: 2 and more wait as -1 does.
  What versions 1 and 2 say to that is INVALID_REQUIRED_ACKS, as of all other numbers.
* A batch that an idempotent producer sends again is answered with its first offset.
* Version 13 names topics by id.

Deviations: one batch is judged by its header, so a record without key in a compacted topic and
offsets inside a batch are not looked at. Batches of a transaction are refused with
INVALID_TXN_STATE.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.broker.topics.opening import open_all
from penstock.kafka.batches import check_batch
from penstock.kafka.errors import RequestError, refusal
from penstock.kafka.handlers.registry import handles
from penstock.kafka.handlers.topics import find_topic
from penstock.kafka.message_sets import is_message_set, to_batch
from penstock.kafka.wire import ErrorCode, api
from penstock.pace import Pace
from penstock.session import Deferred, PeerError, ended

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractAsyncContextManager

    from penstock.broker.topics.partition import Partition
    from penstock.broker.topics.topic import Topic
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import ProduceRequest, ProduceResponse
    from penstock.session import Answer, Awaited

FIRST_VERSION_WITH_BATCHES: Final = 3
LAST_VERSION_WITH_MORE_ACKS: Final = 0
FIRST_VERSION_WITH_IDS: Final = 13
ACKS_NONE, ACKS_WRITTEN, ACKS_DURABLE = 0, 1, -1


class Written(NamedTuple):
    """A batch in line, what the request waits for, and the part of the answer that says so."""

    ready: Awaited
    result: ProduceResponse.PartitionProduceResponse


@handles(api("Produce"), 0, 13)
def produce(request: ProduceRequest, call: Call) -> Answer[ProduceResponse | None]:
    if call.version < FIRST_VERSION_WITH_BATCHES:
        return _produce_message_sets(call.client.produces.turn(), request, call)
    if call.is_large:
        return _produce_in_steps(request, call)
    closed = [partition for partition in _closed(request, call) if partition is not None]
    if closed or call.client.produces.waiting:
        return _produce_in_turn(call.client.produces.turn(), closed, request, call)
    return _produce(request, call)


async def _produce_message_sets(
    turn: AbstractAsyncContextManager[None], request: ProduceRequest, call: Call
) -> ProduceResponse | None:
    """Do as `produce` with what has to become a batch first, which may take a while."""
    if request.acks > ACKS_WRITTEN and call.version <= LAST_VERSION_WITH_MORE_ACKS:
        request.acks = ACKS_DURABLE
    pace = Pace()
    written: list[Written] = []
    answer = api("Produce").response(responses=[])
    async with turn:
        closed = await pace.each(_closed(request, call), lambda each: each)
        await open_all(filter(None, closed))
        for data in request.topic_data:
            results = _results_of(data, answer)
            for part in data.partition_data:
                results.append(await _appended_set(data, part, request.acks, call, written))
                if pace.is_over():
                    await pace.others()
    outcome = _outcome(request, answer, written)
    return await outcome if isinstance(outcome, Awaitable) else outcome


async def _appended_set(
    data: ProduceRequest.TopicProduceData,
    part: ProduceRequest.PartitionProduceData,
    acks: int,
    call: Call,
    written: list[Written],
) -> ProduceResponse.PartitionProduceResponse:
    """Append what a message set becomes."""
    try:
        if part.records is not None and is_message_set(part.records):
            part.records = await to_batch(part.records, call.broker.memory)
    except Exception as error:
        return _refused(part, error)
    return _appended(data, part, acks, call, written)


def _closed(request: ProduceRequest, call: Call) -> Iterator[Partition | None]:
    """Yield for each batch, and each topic, a partition of which the log is to be opened before
    anything is appended, or None.
    """
    by_id = call.version >= FIRST_VERSION_WITH_IDS
    topics = call.broker.topics
    for data in request.topic_data:
        topic = topics.by_id(data.topic_id) if by_id else topics.by_kafka_name(data.name)
        partitions = () if topic is None else topic.partitions
        for part in data.partition_data:
            found = partitions[part.index] if 0 <= part.index < len(partitions) else None
            yield None if found is None or found.is_open else found
        yield None


async def _produce_in_turn(
    turn: AbstractAsyncContextManager[None],
    closed: list[Partition],
    request: ProduceRequest,
    call: Call,
) -> ProduceResponse | None:
    async with turn:
        await open_all(closed)
        answer = _produce(request, call)  # Which has appended all when it returns.
    return await answer if isinstance(answer, Awaitable) else answer


def _produce(request: ProduceRequest, call: Call) -> Answer[ProduceResponse | None]:
    written: list[Written] = []
    answer = api("Produce").response(responses=[])
    for _ in _appending(request, call, answer, written):
        pass
    return _outcome(request, answer, written)


async def _produce_in_steps(request: ProduceRequest, call: Call) -> ProduceResponse | None:
    pace = Pace()
    closed = await pace.each(_closed(request, call), lambda each: each)
    await open_all(filter(None, closed))
    written: list[Written] = []
    answer = api("Produce").response(responses=[])
    await pace.through(_appending(request, call, answer, written))
    outcome = _outcome(request, answer, written)
    reply = await outcome if isinstance(outcome, Awaitable) else outcome
    await pace.emptied(written)
    return reply


def _appending(
    request: ProduceRequest, call: Call, answer: ProduceResponse, written: list[Written]
) -> Iterator[None]:
    """Append all batches and answer each, with a pause to take after each, and each topic."""
    for data in request.topic_data:
        results = _results_of(data, answer)
        for part in data.partition_data:
            results.append(_appended(data, part, request.acks, call, written))
            yield
        yield


def _results_of(
    data: ProduceRequest.TopicProduceData, answer: ProduceResponse
) -> list[ProduceResponse.PartitionProduceResponse]:
    """Add a topic to the answer; returns the list of what becomes of its batches, to be filled."""
    results: list[ProduceResponse.PartitionProduceResponse] = []
    answer.responses.append(
        api("Produce").response.TopicProduceResponse(
            name=data.name, topic_id=data.topic_id, partition_responses=results
        )
    )
    return results


def _appended(
    data: ProduceRequest.TopicProduceData,
    part: ProduceRequest.PartitionProduceData,
    acks: int,
    call: Call,
    written: list[Written],
) -> ProduceResponse.PartitionProduceResponse:
    """Append one batch; returns what became of it so far."""
    result = api("Produce").response.PartitionProduceResponse(index=part.index, base_offset=-1)
    try:
        topic = _find_topic(data, acks, call)
        written.append(_append(topic, part, acks, call.version, result))
    except Exception as error:
        _refuse(result, error)
    return result


def _refused(
    part: ProduceRequest.PartitionProduceData, error: Exception
) -> ProduceResponse.PartitionProduceResponse:
    result = api("Produce").response.PartitionProduceResponse(index=part.index)
    _refuse(result, error)
    return result


def _outcome(
    request: ProduceRequest, answer: ProduceResponse, written: list[Written]
) -> Answer[ProduceResponse | None]:
    if not written:
        return _answer(answer, request.acks)
    # Also for acks 0, so that what is in line to be written counts as a request under way.
    return _when_ready(answer, request.acks, written)


def _find_topic(data: ProduceRequest.TopicProduceData, acks: int, call: Call) -> Topic:
    if acks not in (ACKS_NONE, ACKS_WRITTEN, ACKS_DURABLE):
        raise RequestError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks {acks}, not -1, 0 or 1")
    by_id = call.version >= FIRST_VERSION_WITH_IDS
    return find_topic(call.broker, data.name, data.topic_id, by_id=by_id)


def _append(
    topic: Topic,
    part: ProduceRequest.PartitionProduceData,
    acks: int,
    version: int,
    result: ProduceResponse.PartitionProduceResponse,
) -> Written:
    partition = topic.partition(part.index)
    records = part.records or b""
    offset = partition.append([records], check_batch(records, version))
    result.base_offset = offset
    result.log_start_offset = partition.start_offset
    ready = partition.durable(offset) if acks == ACKS_DURABLE else partition.written(offset)
    return Written(ready, result)


def _when_ready(
    answer: ProduceResponse, acks: int, written: list[Written]
) -> Answer[ProduceResponse | None]:
    if len(written) > 1:
        return _when_all_ready(answer, acks, written)
    ready, result = written[0]

    def judged(failure: BaseException | None) -> ProduceResponse | None:
        if failure is not None:
            _refuse(result, failure)
        return _answer(answer, acks)

    return Deferred(ready, judged)


async def _when_all_ready(
    answer: ProduceResponse, acks: int, written: list[Written]
) -> ProduceResponse | None:
    pace = Pace()
    for ready, result in written:
        await ended(ready)
        if (failure := ready.exception()) is not None:
            _refuse(result, failure)
        if pace.is_over():
            await pace.others()
    return _answer(answer, acks)


def _refuse(result: ProduceResponse.PartitionProduceResponse, error: BaseException) -> None:
    result.error_code, result.error_message = refusal(error)
    result.base_offset = result.log_start_offset = -1


def _answer(answer: ProduceResponse, acks: int) -> ProduceResponse | None:
    if acks != ACKS_NONE:
        return answer
    for topic in answer.responses:
        for result in topic.partition_responses:
            if result.error_code != ErrorCode.NONE:
                # The only way to tell a client that expects no answer.
                raise PeerError(f"Produce with acks 0 was refused: {result.error_message}")
    return None
