"""Faults in Kafka's protocol, where each response has its own places for errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from penstock.kafka.handlers import HANDLERS
from penstock.kafka.wire import NO_UUID, ErrorCode, Struct
from penstock.session import PeerError
from penstock.testing.protocols.dialect import by_plain_name, number

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from penstock.kafka.session import KafkaRequest
    from penstock.kafka.wire import AnyApi, MessageType
    from penstock.kafka.wire.schema import Field, StructType
    from penstock.session import Answer

_ERRORS: Final = {code.name: int(code) for code in ErrorCode if code is not ErrorCode.NONE}
_TOPIC_FIELDS: Final = ("name", "topic", "resource_name")
_ANSWERED_TOPIC: Final = "topic_name"
"""What a topic's name is called where the answer does not call it as the request does."""
_INDEX_FIELDS: Final = ("partition_index", "partition", "partition_id", "index")
_IDENTITY_FIELDS: Final = (*_INDEX_FIELDS, "group_id", "transactional_id", "key", "name")
"""What an element of a response is found by, in the order in which they count."""
_ERROR_FIELDS: Final = ("error_code", "partition_error_code")


class KafkaDialect:
    """A `penstock.testing.protocols.dialect.Dialect`."""

    requests = by_plain_name(handler.api.name for handler in HANDLERS.values())

    def error(self, request: str, name: str | int) -> int:
        del request  # Each may fail.
        return number(name, _ERRORS)

    def name(self, request: KafkaRequest) -> str:
        return request.header.api.name

    def topics(self, request: KafkaRequest) -> set[str]:
        by_id = request.broker.topics.by_id
        found = set()
        for name in _topics(_message(request)):
            topic = None if isinstance(name, str) else by_id(name)
            found.add(topic.name.kafka if topic else str(name))
        return found

    def fail(self, request: KafkaRequest, error: int) -> Answer[Struct]:
        message, api = _message(request), request.header.api
        if api.name == "Metadata":
            return _failed_topics(request, error)
        if api.name == "Produce" and message.acks == 0:
            raise PeerError("a test asked for an error, and a producer with acks=0 hears of none")
        reply: Struct = failed_reply(api, message, request.version, error)
        return reply


def failed_reply(api: AnyApi, asked: Struct, version: int, error: int) -> Any:
    """Return the response in which all that was asked for has failed.

    The error stands at the outermost place that there is, as where Kafka's own brokers put it; of
    a fetch it is that of each partition, for the whole answer's is about its session.
    """
    made = _failed(api.response, api.response.root, asked, version, error)
    if api.name == "Fetch" and made.responses:
        made.error_code = 0
    return made


async def _failed_topics(request: KafkaRequest, error: int) -> Struct:
    """Return what is really there but for the topics, so that the client still knows a broker."""
    answer: Any = request.begin()
    reply: Any = await answer if hasattr(answer, "__await__") else answer
    for topic in reply.topics:
        topic.error_code = error
        topic.partitions = []
    assert isinstance(reply, Struct)
    return reply


def _failed(
    response: MessageType[Any], struct: StructType, asked: Struct, version: int, error: int
) -> Any:
    made = getattr(response, struct.name)()
    fields = [field for field in struct.fields if version in field.versions]
    for field in fields:
        if field.name in _ERROR_FIELDS:
            setattr(made, field.name, error)
        elif field.name == "error_message":
            made.error_message = "a test asked for it"
        elif not field.is_array and field.name in asked.field_names:
            setattr(made, field.name, getattr(asked, field.name))
        elif field.name in _INDEX_FIELDS:
            made_of = next(name for name in _INDEX_FIELDS if name in asked.field_names)
            setattr(made, field.name, getattr(asked, made_of))
        elif field.name == _ANSWERED_TOPIC:
            called = next(name for name in _TOPIC_FIELDS if name in asked.field_names)
            setattr(made, field.name, getattr(asked, called))
    has_error = any(field.name in _ERROR_FIELDS for field in fields)
    if not has_error or struct.name == "FetchResponse":
        for field in fields:
            if field.struct is not None and field.is_array and _says_errors(field.struct, version):
                setattr(made, field.name, _elements(response, field, asked, version, error))
    return made


def _elements(
    response: MessageType[Any], field: Field, asked: Struct, version: int, error: int
) -> list[Struct]:
    assert field.struct is not None
    made = []
    for each in _asked_elements(asked, field.struct):
        if isinstance(each, Struct):
            made.append(_failed(response, field.struct, each, version, error))
        else:
            names = [known.name for known in field.struct.fields]
            identity = next(name for name in _IDENTITY_FIELDS if name in names)
            error_field = next(name for name in _ERROR_FIELDS if name in names)
            values = {identity: each, error_field: error}
            made.append(getattr(response, field.struct.name)(**values))
    return made


def _asked_elements(asked: Struct, answered: StructType) -> Iterable[Any]:
    """Return what is asked for: the elements of the first array that has any; of folders, their
    topics, for answers are by topic.
    """
    arrays = (getattr(asked, name) for name in asked.field_names)
    elements: list[Any] = next((each for each in arrays if isinstance(each, list) and each), [])
    if any(field.name == _ANSWERED_TOPIC for field in answered.fields):
        return [topic for each in elements for topic in each.topics]
    return elements


def _says_errors(struct: StructType, version: int) -> bool:
    return any(
        field.name in _ERROR_FIELDS
        or (field.struct is not None and _says_errors(field.struct, version))
        for field in struct.fields
        if version in field.versions
    )


def _message(request: KafkaRequest) -> Any:
    frame = getattr(request, "frame", None)
    if frame is None:
        return request.message
    header = request.header
    return header.api.request.decode(frame, header.version, header.body_start)


def _topics(message: Struct) -> Iterator[Any]:
    """Yield names and ids of topics, and of what looks like one."""
    for field in message.field_names:
        value = getattr(message, field)
        for each in value if isinstance(value, list) else ():
            if isinstance(each, Struct):
                names = (getattr(each, name, None) for name in (*_TOPIC_FIELDS, "topic_id"))
                yield from (name for name in names if name and name != NO_UUID)
                yield from _topics(each)
            elif field == "topic_names":
                yield each
