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

Records are looked at as in Kafka, and what is wrong with one is INVALID_RECORD with its index. All
records without a key on a compacted topic are named, and all that are too far ahead of the clock.

A batch of a transaction goes to a partition that was added to it; from version 12 on it adds the
partition by itself, and begins there at sequence 0 (`produced_in_transactions`). Where the request
has no transactional id, it is TRANSACTIONAL_ID_AUTHORIZATION_FAILED.

Deviations: of the records at fault the first KAFKA_RECORDS_NAMED are named. Wrong offsets inside a
compressed batch are refused, where Kafka writes it anew, and so are wrong ones in one that is not,
which Kafka stores. What inflates to more than may be read is MESSAGE_TOO_LARGE. A batch that is
sent again is answered without the time at which it was appended, where the topic has that.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from penstock import records
from penstock.broker.errors import BrokerError
from penstock.broker.topics.opening import open_all
from penstock.kafka.batches import (
    are_quick,
    check_batch,
    check_records,
    inflated_bytes,
    naming_bytes,
)
from penstock.kafka.errors import RequestError, refusal
from penstock.kafka.handlers.produced_in_transactions import (
    Refused,
    Target,
    check_begins,
    check_named,
    has_a_part,
    join,
)
from penstock.kafka.handlers.registry import handles
from penstock.kafka.handlers.topics import find_topic
from penstock.kafka.message_sets import is_message_set, to_batch
from penstock.kafka.recompression import Sound, bytes_taken, in_codec, is_due
from penstock.kafka.wire import ErrorCode, api
from penstock.letting_go import bare
from penstock.limits import RECOMPRESSED_BYTES
from penstock.log.header import NO_TIMESTAMP, append_time
from penstock.pace import Pace
from penstock.requests.validation import in_thread
from penstock.session import Deferred, PeerError, ended

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractAsyncContextManager

    from penstock.broker.topics.partition import Partition
    from penstock.broker.topics.topic import Topic
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import ProduceRequest, ProduceResponse
    from penstock.session import Answer, Awaited, Buffer

FIRST_VERSION_WITH_BATCHES: Final = 3
LAST_VERSION_WITH_MORE_ACKS: Final = 0
FIRST_VERSION_WITH_IDS: Final = 13
_RESPONSE: Final = api("Produce").response
ACKS_NONE, ACKS_WRITTEN, ACKS_DURABLE = 0, 1, -1


Checked: TypeAlias = dict[int, Sound | Exception]
"""What became of batches that were checked before, by the `id` of their part of the answer."""
NOTHING_CHECKED: Final[Checked] = {}


Written: TypeAlias = "tuple[Awaited, ProduceResponse.PartitionProduceResponse]"
"""What a batch in line waits for, and the part of the answer that says so."""


class Appended(NamedTuple):
    """What became of all batches of a request."""

    answer: ProduceResponse
    written: list[Written]
    pace: Pace


@handles(api("Produce"), 0, 13)
def produce(request: ProduceRequest, call: Call) -> Answer[ProduceResponse | None]:
    if call.version < FIRST_VERSION_WITH_BATCHES:
        return _produce_one_by_one(call.client.produces.turn(), request, call)
    if call.is_large:
        return _produce_in_steps(request, call)
    answer = _RESPONSE(responses=[])
    targets = list(filter(None, _find_all(request, call, answer)))
    closed: list[Partition] = []
    batches: list[Buffer] = []
    for partition, batch, _ in targets:
        if is_due(batch, partition.topic.config):
            return _produce_one_by_one(call.client.produces.turn(), request, call)
        if not partition.is_open:
            closed.append(partition)
        batches.append(batch)
    is_quick = records.is_loaded() and are_quick(batches)
    has_part = request.transactional_id is None or has_a_part(targets, call)
    if closed or call.client.produces.waiting or not is_quick or not has_part:
        return _produce_in_turn(call.client.produces.turn(), closed, request, call, answer, targets)
    return _produce(request, call, answer, targets, NOTHING_CHECKED)


async def _produce_one_by_one(
    turn: AbstractAsyncContextManager[None], request: ProduceRequest, call: Call
) -> ProduceResponse | None:
    """Do as `produce` where the broker makes other batches of what was sent."""
    if request.acks > ACKS_WRITTEN and call.version <= LAST_VERSION_WITH_MORE_ACKS:
        request.acks = ACKS_DURABLE
    async with turn:
        appended = await _append_one_by_one(request, call)
    return await _answered(request, appended)


async def _append_one_by_one(request: ProduceRequest, call: Call) -> Appended:
    """Append one batch after the other. What the broker has made anew is counted nowhere once it is
    appended, so where that is much, the next is made when it is written.
    """
    pace = Pace()
    answer = _RESPONSE(responses=[])
    found = await _opened(request, call, answer, pace)
    refused = await join(request.transactional_id, filter(None, found), call)
    written: list[Written] = []
    made_bytes = safe = 0
    for target in found:
        if target is not None and _is_taken(target, refused):
            made_bytes += await _append_anew(target, request.acks, call, written)
        if made_bytes > RECOMPRESSED_BYTES:
            for ready, _ in written[safe:]:
                await ended(ready)
            made_bytes, safe = 0, len(written)
        if pace.is_over():
            await pace.others()
    await pace.emptied(found)
    return Appended(answer, written, pace)


async def _answered(request: ProduceRequest, appended: Appended) -> ProduceResponse | None:
    outcome = _outcome(request.acks, appended.answer, appended.written)
    reply = await outcome if isinstance(outcome, Awaitable) else outcome
    await appended.pace.emptied(appended.written)
    return reply


async def _append_anew(target: Target, acks: int, call: Call, written: list[Written]) -> int:
    """Append what a message set or a batch becomes; returns how many bytes of it were made."""
    batch = target.records
    try:
        if call.version < FIRST_VERSION_WITH_BATCHES and batch and is_message_set(batch):
            batch = await to_batch(batch, call.client)
    except Exception as error:
        _refuse(target.result, error)
        return 0
    target = target._replace(records=batch)
    checked = await _checked_ahead([target], call)
    _append(target, acks, call.version, checked, written)
    sound = checked.get(id(target.result))
    return len(sound.batch) if isinstance(sound, Sound) and sound.batch is not batch else 0


async def _produce_in_turn(
    turn: AbstractAsyncContextManager[None],
    closed: list[Partition],
    request: ProduceRequest,
    call: Call,
    answer: ProduceResponse,
    targets: list[Target],
) -> ProduceResponse | None:
    async with turn:
        await open_all(closed)
        refused = await join(request.transactional_id, targets, call)
        targets = [target for target in targets if _is_taken(target, refused)]
        checked = await _checked_ahead(targets, call)
        # All is appended when it returns.
        outcome = _produce(request, call, answer, targets, checked)
    return await outcome if isinstance(outcome, Awaitable) else outcome


def _is_taken(target: Target, refused: Refused) -> bool:
    """Whether a batch goes on; where it does not, its part of the answer says why."""
    error = refused.get(id(target.result))
    if error is not None:
        _refuse(target.result, error)
    return error is None


def _is_recompressed(target: Target) -> bool:
    return is_due(target.records, target.partition.topic.config)


async def _checked_ahead(targets: list[Target], call: Call) -> Checked:
    """Check batches in a thread where that takes longer than others can wait.

    They inflate one after another.
    """

    def size() -> int:
        return max(
            inflated_bytes(batch) + naming_bytes(batch) + bytes_taken(batch, partition.topic.config)
            for partition, batch, _ in targets
        )

    def check() -> Checked:
        return {id(target.result): _outcome_of(target, call.version) for target in targets}

    await records.prepare()
    is_quick = are_quick(target.records for target in targets)
    if is_quick and not any(map(_is_recompressed, targets)):
        return NOTHING_CHECKED
    sent = sum(len(target.records) for target in targets)
    return await in_thread(call.client, sent, size, check)


def _outcome_of(target: Target, version: int) -> Sound | Exception:
    try:
        return _check(target, version)
    except (RequestError, BrokerError) as error:  # It is told where the batch would be appended.
        return bare(error)
    except Exception as error:
        return error


def _check(target: Target, version: int) -> Sound:
    config = target.partition.topic.config
    header = check_batch(target.records, version)
    header = check_records(target.records, header, config)
    return in_codec(target.records, header, config)


def _produce(
    request: ProduceRequest,
    call: Call,
    answer: ProduceResponse,
    targets: list[Target],
    checked: Checked,
) -> Answer[ProduceResponse | None]:
    written: list[Written] = []
    for target in targets:
        _append(target, request.acks, call.version, checked, written)
    return _outcome(request.acks, answer, written)


async def _produce_in_steps(request: ProduceRequest, call: Call) -> ProduceResponse | None:
    return await _answered(request, await _append_one_by_one(request, call))


async def _opened(
    request: ProduceRequest, call: Call, answer: ProduceResponse, pace: Pace
) -> list[Target | None]:
    """Return what `_find_all` yields, once the logs are open."""
    found = await pace.each(_find_all(request, call, answer), lambda each: each)
    await open_all(target.partition for target in found if target is not None)
    return found


def _find_all(
    request: ProduceRequest, call: Call, answer: ProduceResponse
) -> Iterator[Target | None]:
    """Yield for each batch where it goes, or None where it is refused, and None for each topic.

    All of them get their places in the answer.
    """
    response = _RESPONSE
    for data in request.topic_data:
        results: list[ProduceResponse.PartitionProduceResponse] = []
        answer.responses.append(
            response.TopicProduceResponse(
                name=data.name, topic_id=data.topic_id, partition_responses=results
            )
        )
        topic: Topic | Exception
        try:
            topic = _find_topic(data, request.acks, call)
        except Exception as error:
            topic = error
        for part in data.partition_data:
            result = response.PartitionProduceResponse(index=part.index, base_offset=-1)
            results.append(result)
            if isinstance(topic, Exception):
                _refuse(result, topic)
                yield None
            else:
                yield _find(topic, part, result, request.transactional_id)
        yield None


def _find(
    topic: Topic,
    part: ProduceRequest.PartitionProduceData,
    result: ProduceResponse.PartitionProduceResponse,
    transactional_id: str | None,
) -> Target | None:
    batch = part.records or b""
    try:
        check_named(batch, transactional_id)
        return Target(topic.partition(part.index), batch, result)
    except Exception as error:
        _refuse(result, error)
        return None


def _find_topic(data: ProduceRequest.TopicProduceData, acks: int, call: Call) -> Topic:
    if acks not in (ACKS_NONE, ACKS_WRITTEN, ACKS_DURABLE):
        raise RequestError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks {acks}, not -1, 0 or 1")
    by_id = call.version >= FIRST_VERSION_WITH_IDS
    return find_topic(call.broker, data.name, data.topic_id, by_id=by_id)


def _append(
    target: Target, acks: int, version: int, checked: Checked, written: list[Written]
) -> None:
    """Put a batch in line to be written, or refuse it."""
    partition, _, result = target
    found = checked.get(id(result))
    if isinstance(found, Exception):
        # Not raised: its traceback would know who knows it, and keep all of the request.
        _refuse(result, found)
        return
    try:
        batch, header = found or _check(target, version)
        check_begins(partition, header, version)
        offset = partition.append([batch], header)
        result.base_offset = offset
        result.log_start_offset = partition.start_offset
        result.log_append_time_ms = append_time(batch)
        ready = partition.durable(offset) if acks == ACKS_DURABLE else partition.written(offset)
        written.append((ready, result))
    except Exception as error:
        _refuse(result, error)


def _outcome(
    acks: int, answer: ProduceResponse, written: list[Written]
) -> Answer[ProduceResponse | None]:
    # Also for acks 0, so that what is in line to be written counts as a request under way.
    if not written:
        return _answer(answer, acks)
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
    result.log_append_time_ms = NO_TIMESTAMP
    if isinstance(error, RequestError):
        named = _RESPONSE.BatchIndexAndErrorMessage
        result.record_errors = [
            named(batch_index=index, batch_index_error_message=str(error))
            for index in error.records
        ]


def _answer(answer: ProduceResponse, acks: int) -> ProduceResponse | None:
    if acks != ACKS_NONE:
        return answer
    for topic in answer.responses:
        for result in topic.partition_responses:
            if result.error_code != ErrorCode.NONE:
                # The only way to tell a client that expects no answer.
                raise PeerError(f"Produce with acks 0 was refused: {result.error_message}")
    return None
