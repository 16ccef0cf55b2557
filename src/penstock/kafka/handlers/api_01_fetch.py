"""Fetch: read batches of several partitions, waiting for some to come.

Versions 0-18. Before version 4 the answer is message sets (`penstock.kafka.message_sets`), of magic
0 before version 2. They are made of stored batches, not compressed, and begin with the message at
the offset. Before version 3 they are cut at the bytes that a partition may have, also within the
first message, and from then on behind it at least.

* Stored batches are handed out whole, from the one that contains the offset on. The first one of
  the answer is whole even when it is larger than all limits (KIP-74). A batch of another protocol
  is converted first.
* Who asks for no minimum wants something soon, and gets at most 2 MiB of a partition at a time if
  they have to be read: nothing of an answer goes out before, and so long the client idles.
* Where memory is short, the answer ends early, and is empty where there is no room for a while.
* With fewer than min_bytes to read, the answer waits for more up to max_wait_ms, or 5 s where very
  many partitions are asked for. An error in any partition, or a topic that is deleted meanwhile,
  ends the wait.
* Who reads what is committed gets batches up to the last stable offset, and is named the aborted
  transactions of what it gets by their first offsets; it leaves them out itself. Where very many
  aborted, the answer ends early. Message sets have all that is safe, but no control batches.
* Version 13 on names topics by id; a leader epoch other than 0 is refused as 74 or 75.
* In a session (KIP-227) a client says what changes, and hears of partitions with messages, with an
  error, and with another start or end. Partitions that had messages are served last the next time.

Deviations: a session belongs to its connection, which has one at a time. There is none where memory
is short or there are too many partitions, which session id 0 says.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from penstock import limits
from penstock.kafka.errors import RequestError, refusal
from penstock.kafka.fetch_session import FetchSession
from penstock.kafka.handlers.reading import (
    FIRST_VERSION_WITH_IDS,
    find,
    opened,
    read_in_time,
    suffices,
    take_latest,
    terms_of,
)
from penstock.kafka.handlers.registry import handles
from penstock.kafka.quotas import throttle_reader
from penstock.kafka.wire import ErrorCode, api
from penstock.pace import Pace
from penstock.session import Signal, ended

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from uuid import UUID

    from penstock.broker.topics.partition import Partition
    from penstock.kafka.client import Call
    from penstock.kafka.fetch_session import Watched
    from penstock.kafka.handlers.reading import Reading, Terms
    from penstock.kafka.wire.messages import FetchRequest, FetchResponse

_RESPONSE: Final = api("Fetch").response
NO_SESSION: Final = 0
FULL_AND_NEW_SESSION: Final = 0
"""The epoch of a request that says all and asks for a session; below it is one without."""
_READING_BYTES: Final = 450
"""About what one partition of a request takes of memory while its answer waits."""


@handles(api("Fetch"), 0, 18)
async def fetch(request: FetchRequest, call: Call) -> FetchResponse:
    if request.session_epoch > FULL_AND_NEW_SESSION:
        answer = await _fetch_news(request, call)
    else:
        call.client.end_fetch_session()
        answer = await _fetch_all(request, call)
    if call.broker.quotas:
        await throttle_reader(answer, call)
    return answer


async def _fetch_all(request: FetchRequest, call: Call) -> FetchResponse:
    terms = terms_of(request, call)
    pace = Pace()
    answer = _RESPONSE(responses=[])
    readings = await _find_all(request, call, terms, answer, pace)
    await opened(readings, pace)
    with call.broker.memory.reading() as held:
        in_time = await read_in_time(readings, request, held, pace)
        waits = in_time and readings and request.max_wait_ms > 0
        if waits and not await suffices(readings, request.min_bytes, pace):
            partitions = await pace.each(readings, lambda each: each.partition)
            held.grow(len(readings) * _READING_BYTES)
            await _wait(
                partitions, lambda: suffices(readings, request.min_bytes, pace), request, call, pace
            )
            if not call.client.is_gone and not take_latest(readings, request):
                await read_in_time(readings, request, held, pace)
    if request.session_epoch == FULL_AND_NEW_SESSION:
        answer.session_id = await _begin_session(request, call, readings, pace)
    if call.is_large:
        await pace.emptied(readings)
    return answer


async def _find_all(
    request: FetchRequest, call: Call, terms: Terms, answer: FetchResponse, pace: Pace
) -> list[Reading]:
    """Return what is to be read, with its places in the answer."""
    readings: list[Reading] = []
    for topic in request.topics:
        results: list[FetchResponse.PartitionData] = []
        answer.responses.append(
            _RESPONSE.FetchableTopicResponse(
                topic=topic.topic, topic_id=topic.topic_id, partitions=results
            )
        )
        for asked in topic.partitions:
            reading = find(topic, call, terms, asked)
            readings.append(reading)
            results.append(reading.result)
            if pace.is_over():
                await pace.others()
        if pace.is_over():
            await pace.others()
    return readings


async def _begin_session(
    request: FetchRequest, call: Call, readings: list[Reading], pace: Pace
) -> int:
    """Return the id of a session that begins with this answer, or 0."""
    session = FetchSession(call.broker.memory.clients, by_id=_by_id(call))
    await pace.through(session.update(request))
    # A session has each partition once.
    if len(session) < len(readings) or not _may_last(session, call):
        session.close()
        return NO_SESSION
    for watched, reading in zip([*session.all()], readings, strict=True):
        _hear(watched, reading, session)
        if pace.is_over():
            await pace.others()
    call.client.fetch_session = session
    return session.id


def _may_last(session: FetchSession, call: Call) -> bool:
    return 0 < len(session) <= limits.KAFKA_SESSION_PARTITIONS and call.client.has_room(
        session.held.size
    )


async def _fetch_news(request: FetchRequest, call: Call) -> FetchResponse:
    pace = Pace()
    try:
        session = _session(request, call)
    except RequestError as error:
        return _RESPONSE(error_code=refusal(error).code, responses=[])
    await pace.through(session.update(request))
    if not _may_last(session, call):
        call.client.end_fetch_session()
        return _RESPONSE(responses=[])
    return await _read_news(session, request, call, pace)


def _session(request: FetchRequest, call: Call) -> FetchSession:
    session = call.client.fetch_session
    if session is None:
        raise RequestError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    session.begin(request, by_id=_by_id(call))
    return session


async def _read_news(
    session: FetchSession, request: FetchRequest, call: Call, pace: Pace
) -> FetchResponse:
    terms = terms_of(request, call)

    def enough() -> Awaitable[bool]:
        return session.suffices(request.min_bytes, terms.isolation, pace)

    with call.broker.memory.reading() as held:
        watched, readings = await _look(session, terms, call, pace)
        in_time = await read_in_time(readings, request, held, pace)
        waits = in_time and request.max_wait_ms > 0
        if waits and not await suffices(readings, request.min_bytes, pace):
            await _wait(
                await pace.each(session.all(), lambda each: each.partition),
                enough,
                request,
                call,
                pace,
            )
            if not call.client.is_gone:
                watched, readings = await _look(session, terms, call, pace)
                if not take_latest(readings, request):
                    await read_in_time(readings, request, held, pace)
    return await _news(session, watched, readings, pace)


async def _look(
    session: FetchSession, terms: Terms, call: Call, pace: Pace
) -> tuple[list[Watched], list[Reading]]:
    """Return the partitions of which there may be something to say, and what is to be read."""
    watched = await session.news(terms.isolation, pace)
    readings = await pace.each(watched, lambda each: find(each.topic, call, terms, each.asked))
    await opened(readings, pace)
    for each, reading in zip(watched, readings, strict=True):
        each.look_up(None if reading.failed else reading.partition)
        if pace.is_over():
            await pace.others()
    return watched, readings


async def _news(
    session: FetchSession, watched: Iterable[Watched], readings: Iterable[Reading], pace: Pace
) -> FetchResponse:
    topics: dict[tuple[str, UUID], FetchResponse.FetchableTopicResponse] = {}
    for each, reading in zip(watched, readings, strict=True):
        if _hear(each, reading, session):
            name = each.topic.topic, each.topic.topic_id
            topic = topics.get(name)
            if topic is None:
                topic = topics[name] = _RESPONSE.FetchableTopicResponse(
                    topic=name[0], topic_id=name[1], partitions=[]
                )
            topic.partitions.append(reading.result)
        if pace.is_over():
            await pace.others()
    return _RESPONSE(session_id=session.id, responses=[*topics.values()])


def _hear(watched: Watched, reading: Reading, session: FetchSession) -> bool:
    """Have a session know what its client hears; return whether it has to be said."""
    if reading.bytes_read:
        session.put_last(watched)
    result = reading.result
    watched.look_up(None if reading.failed else reading.partition)
    is_new = watched.hear(result.high_watermark, result.log_start_offset)
    return is_new or reading.failed or reading.bytes_read > 0


def _by_id(call: Call) -> bool:
    return call.version >= FIRST_VERSION_WITH_IDS


async def _wait(
    partitions: Iterable[Partition | None],
    enough: Callable[[], Awaitable[bool]],
    request: FetchRequest,
    call: Call,
    pace: Pace,
) -> None:
    """Return when enough can be read, when something ended, or when the time is up."""
    changed = Signal()
    is_over = call.client.is_gone

    def end() -> None:
        nonlocal is_over
        is_over = True
        changed.set()

    # A request may have a partition more than once.
    heard: set[Partition] = set()
    await pace.each((each for each in partitions if each is not None), heard.add)
    for partition in heard:
        partition.add_listener(changed.set)
    timer = asyncio.get_running_loop().call_later(_longest_wait(request, call), end)
    try:
        with call.client.waiting(end):
            while not is_over:
                changed.clear()
                if await enough():
                    break
                await ended(changed)
    finally:
        timer.cancel()
        for partition in heard:
            partition.remove_listener(changed.set)


def _longest_wait(request: FetchRequest, call: Call) -> float:
    seconds = request.max_wait_ms / 1000
    return min(seconds, limits.KAFKA_LARGE_FETCH_SECONDS) if call.is_large else seconds
