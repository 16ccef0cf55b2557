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
  waits too, so that the order stays. So does one of which the records are looked at in a thread.
* Version 0 is of the time when any number of acks could be asked for: 2 and more wait as -1 does.
  What versions 1 and 2 say to that is INVALID_REQUIRED_ACKS, as of all other numbers.
* A batch that an idempotent producer sends again is answered with its first offset.
* Version 13 names topics by id.

Records are looked at as in Kafka, and what is wrong with one is INVALID_RECORD with its index.

Deviations: wrong offsets inside a compressed batch are refused, where Kafka writes it anew, and so
are wrong ones in one that is not, which Kafka stores. What inflates to more than may be read is
MESSAGE_TOO_LARGE. Batches of a transaction are refused with INVALID_TXN_STATE.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from penstock import records
from penstock.broker.topics.opening import open_all
from penstock.kafka.batches import are_quick, check_batch, check_records, inflated_bytes
from penstock.kafka.errors import RequestError, refusal
from penstock.kafka.handlers.registry import handles
from penstock.kafka.handlers.topics import find_topic
from penstock.kafka.message_sets import is_message_set, to_batch
from penstock.kafka.wire import ErrorCode, api
from penstock.log.header import BatchHeader
from penstock.pace import Pace
from penstock.requests.validation import in_thread
from penstock.session import Deferred, PeerError, ended

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractAsyncContextManager

    from penstock.broker.topics.config import TopicConfig
    from penstock.broker.topics.partition import Partition
    from penstock.broker.topics.topic import Topic
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import ProduceRequest, ProduceResponse
    from penstock.session import Answer, Awaited

FIRST_VERSION_WITH_BATCHES: Final = 3
LAST_VERSION_WITH_MORE_ACKS: Final = 0
FIRST_VERSION_WITH_IDS: Final = 13
ACKS_NONE, ACKS_WRITTEN, ACKS_DURABLE = 0, 1, -1


Checked: TypeAlias = dict[int, BatchHeader | Exception]
"""What became of batches that were checked before, by the `id` of their part of the request."""
NOTHING_CHECKED: Final[Checked] = {}


class Brought(NamedTuple):
    """A batch for a topic that there is, and what the topic is set to."""

    part: ProduceRequest.PartitionProduceData
    config: TopicConfig


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
    if closed or call.client.produces.waiting or not _is_quick(request):
        return _produce_in_turn(call.client.produces.turn(), closed, request, call)
    return _produce(request, call, NOTHING_CHECKED)


def _is_quick(request: ProduceRequest) -> bool:
    return records.is_loaded() and are_quick(
        part.records or b"" for data in request.topic_data for part in data.partition_data
    )


def _known_topic(data: ProduceRequest.TopicProduceData, call: Call) -> Topic | None:
    topics = call.broker.topics
    if call.version >= FIRST_VERSION_WITH_IDS:
        return topics.by_id(data.topic_id)
    return topics.by_kafka_name(data.name)


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
        await records.prepare()
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
        topic = _known_topic(data, call)
        brought = None if topic is None else _long_to_check(Brought(part, topic.config))
        checked = await _checked_in_thread([brought], call) if brought else NOTHING_CHECKED
    except Exception as error:
        return _refused(part, error)
    return _appended(data, part, acks, call, written, checked)


def _closed(request: ProduceRequest, call: Call) -> Iterator[Partition | None]:
    """Yield for each batch, and each topic, a partition of which the log is to be opened before
    anything is appended, or None.
    """
    for data in request.topic_data:
        topic = _known_topic(data, call)
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
        await records.prepare()
        checked = NOTHING_CHECKED
        if not _is_quick(request):
            checked = await _checked_in_thread(list(filter(None, _brought(request, call))), call)
        answer = _produce(request, call, checked)  # Which has appended all when it returns.
    return await answer if isinstance(answer, Awaitable) else answer


def _brought(request: ProduceRequest, call: Call) -> Iterator[Brought | None]:
    """Yield what each partition gets, and at least once for each topic."""
    for data in request.topic_data:
        topic = _known_topic(data, call)
        for part in data.partition_data:
            yield None if topic is None else Brought(part, topic.config)
        yield None


def _long_to_check(brought: Brought | None) -> Brought | None:
    if brought is None or are_quick([brought.part.records or b""]):
        return None
    return brought


async def _checked_in_thread(brought: list[Brought], call: Call) -> Checked:
    """Check batches that take longer than others can wait; they inflate one after another."""

    def size() -> int:
        return max((inflated_bytes(each.part.records or b"") for each in brought), default=0)

    def check() -> Checked:
        return {id(part): _outcome_of(part, config, call.version) for part, config in brought}

    return await in_thread(call.broker.memory, size, check)


def _outcome_of(
    part: ProduceRequest.PartitionProduceData, config: TopicConfig, version: int
) -> BatchHeader | Exception:
    try:
        return _check(part, config, version)
    except Exception as error:  # raised where the batch would be appended
        return error


def _check(
    part: ProduceRequest.PartitionProduceData, config: TopicConfig, version: int
) -> BatchHeader:
    batch = part.records or b""
    return check_records(batch, check_batch(batch, version), config)


def _produce(
    request: ProduceRequest, call: Call, checked: Checked
) -> Answer[ProduceResponse | None]:
    written: list[Written] = []
    answer = api("Produce").response(responses=[])
    for _ in _appending(request, call, answer, written, checked):
        pass
    return _outcome(request, answer, written)


async def _produce_in_steps(request: ProduceRequest, call: Call) -> ProduceResponse | None:
    pace = Pace()
    closed = await pace.each(_closed(request, call), lambda each: each)
    await open_all(filter(None, closed))
    await records.prepare()
    brought = await pace.each(_brought(request, call), _long_to_check)
    checked = await _checked_in_thread(list(filter(None, brought)), call)
    written: list[Written] = []
    answer = api("Produce").response(responses=[])
    await pace.through(_appending(request, call, answer, written, checked))
    outcome = _outcome(request, answer, written)
    reply = await outcome if isinstance(outcome, Awaitable) else outcome
    await pace.emptied(written)
    return reply


def _appending(
    request: ProduceRequest,
    call: Call,
    answer: ProduceResponse,
    written: list[Written],
    checked: Checked,
) -> Iterator[None]:
    """Append all batches and answer each, with a pause to take after each, and each topic."""
    for data in request.topic_data:
        results = _results_of(data, answer)
        for part in data.partition_data:
            results.append(_appended(data, part, request.acks, call, written, checked))
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
    checked: Checked,
) -> ProduceResponse.PartitionProduceResponse:
    """Append one batch; returns what became of it so far."""
    result = api("Produce").response.PartitionProduceResponse(index=part.index, base_offset=-1)
    try:
        topic = _find_topic(data, acks, call)
        partition = topic.partition(part.index)
        found = checked.get(id(part)) or _check(part, topic.config, call.version)
        written.append(_append(partition, part, acks, found, result))
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
    partition: Partition,
    part: ProduceRequest.PartitionProduceData,
    acks: int,
    found: BatchHeader | Exception,
    result: ProduceResponse.PartitionProduceResponse,
) -> Written:
    if isinstance(found, Exception):
        raise found
    offset = partition.append([part.records or b""], found)
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
    if isinstance(error, RequestError) and error.record is not None:
        refused = api("Produce").response.BatchIndexAndErrorMessage
        record = refused(batch_index=error.record, batch_index_error_message=str(error))
        result.record_errors = [record]


def _answer(answer: ProduceResponse, acks: int) -> ProduceResponse | None:
    if acks != ACKS_NONE:
        return answer
    for topic in answer.responses:
        for result in topic.partition_responses:
            if result.error_code != ErrorCode.NONE:
                # The only way to tell a client that expects no answer.
                raise PeerError(f"Produce with acks 0 was refused: {result.error_message}")
    return None
