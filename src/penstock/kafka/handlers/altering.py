"""What AlterConfigs and IncrementalAlterConfigs have in common: resources that are changed whole.

All changes of a topic are made, or none. A key or a value that a topic can't have is 40, an unknown
topic 3. A node's settings are not changed while it runs: what sets none of them leaves it as it is,
as a tool does that takes back what it may have set; anything else is 42. 42 are also: a resource
that is asked for twice, and other kinds. What is only validated goes through all checks and changes
nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from penstock.broker.errors import InvalidSettingError
from penstock.broker.topics.config import checked
from penstock.kafka.errors import ACCEPTED, RequestError, refusal
from penstock.kafka.handlers.topics import check_asked_once, check_node, topic_by_name
from penstock.kafka.topic_configs import invalid_config
from penstock.kafka.wire import ErrorCode
from penstock.kafka.wire.config_resources import ConfigResource

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.broker.topics.config import TopicConfig
    from penstock.broker.topics.topic import Topic
    from penstock.kafka.client import Call
    from penstock.pace import Pace

Change: TypeAlias = "Callable[[TopicConfig], dict[str, str]]"
"""Returns what is set for a topic after it. Raises RequestError."""


class Resource(Protocol):
    """What is common to the resources of both requests."""

    resource_type: int
    resource_name: str


ResourceT = TypeVar("ResourceT", bound=Resource)
ResultT = TypeVar("ResultT")


async def alter(
    resources: Iterable[ResourceT],
    change_of: Callable[[ResourceT], Awaitable[Change]],
    sets_nothing: Callable[[ResourceT], Awaitable[bool]],
    result_type: Callable[..., ResultT],
    call: Call,
    pace: Pace,
    *,
    validate_only: bool,
) -> list[ResultT]:
    """Make the change of each resource; return of each, in their order, what the answer has."""
    times = await pace.counted((each.resource_type, each.resource_name) for each in resources)

    async def altered(resource: ResourceT) -> ResultT:
        code, message = ACCEPTED
        try:
            check_asked_once(times[resource.resource_type, resource.resource_name])
            if resource.resource_type == ConfigResource.BROKER:
                _check_node(resource.resource_name, call, sets_nothing=await sets_nothing(resource))
            else:
                topic = _topic(resource, call)
                change = await change_of(resource)
                await _configure(topic, change, call, validate_only=validate_only)
        except Exception as error:
            code, message = refusal(error)
        return result_type(
            error_code=code,
            error_message=message,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )

    return await pace.each_awaited(resources, altered)


def _check_node(name: str, call: Call, *, sets_nothing: bool) -> None:
    check_node(name, call.broker)
    if not sets_nothing:
        raise RequestError(
            ErrorCode.INVALID_REQUEST, "only the settings of topics are changed while a node runs"
        )


def _topic(resource: Resource, call: Call) -> Topic:
    if resource.resource_type != ConfigResource.TOPIC:
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"resources of type {resource.resource_type} are not changed while a node runs",
        )
    return topic_by_name(call.broker, resource.resource_name)


async def _configure(topic: Topic, change: Change, call: Call, *, validate_only: bool) -> None:
    try:
        if validate_only:
            checked(change(topic.config), topic.config.explicit)
        else:
            await call.broker.topics.configure(topic, change)
    except InvalidSettingError as error:
        raise invalid_config(error) from error
