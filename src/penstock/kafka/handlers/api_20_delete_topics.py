"""DeleteTopics: delete topics with their messages, by name or (version 6 on) by id.

Versions 0-6. Those of one request share transactions. A topic that is asked for twice, or by name
and id at once, is INVALID_REQUEST; an unknown one is 3 by name and 100 by id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.broker.topics.topic import Topic
from penstock.kafka.errors import RequestError, refusal
from penstock.kafka.handlers.registry import handles
from penstock.kafka.handlers.topics import check_asked_once, topic_by_id, topic_by_name
from penstock.kafka.wire import NO_UUID, ErrorCode, api
from penstock.pace import Pace

if TYPE_CHECKING:
    from uuid import UUID

    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import DeleteTopicsRequest, DeleteTopicsResponse

FIRST_VERSION_WITH_IDS: Final = 6


@handles(api("DeleteTopics"), 0, 6)
async def delete_topics(request: DeleteTopicsRequest, call: Call) -> DeleteTopicsResponse:
    response = api("DeleteTopics").response
    pace = Pace()
    if call.version >= FIRST_VERSION_WITH_IDS:
        asked = await pace.each(request.topics, lambda topic: (topic.name, topic.topic_id))
    else:
        asked = await pace.each(request.topic_names, lambda name: (name, NO_UUID))
    times = await pace.counted(asked)
    topics: list[Topic] = []
    found = await pace.each(asked, lambda each: _found(*each, times[each], call, topics))
    failures = iter(await call.broker.topics.delete_all(topics))

    results = []
    for (name, topic_id), topic in zip(asked, found, strict=True):
        result = response.DeletableTopicResult(name=name, topic_id=topic_id)
        results.append(result)
        failure: BaseException | None
        if isinstance(topic, Topic):
            result.name, result.topic_id = topic.name.kafka, topic.id
            failure = next(failures)
        else:
            failure = topic
        if failure is not None:
            result.error_code, result.error_message = refusal(failure)
        if pace.is_over():
            await pace.others()
    return response(responses=results)


def _found(
    name: str | None, topic_id: UUID, times: int, call: Call, topics: list[Topic]
) -> Topic | Exception:
    """Return what is to be deleted, after adding it to `topics`, or why nothing is."""
    try:
        check_asked_once(times)
        topic = _find(name, topic_id, call)
    except Exception as error:
        return error
    topics.append(topic)
    return topic


def _find(name: str | None, topic_id: UUID, call: Call) -> Topic:
    if name is None:
        return topic_by_id(call.broker, topic_id)
    if topic_id != NO_UUID:
        raise RequestError(ErrorCode.INVALID_REQUEST, "both a name and an id are given")
    return topic_by_name(call.broker, name)
