"""IncrementalAlterConfigs: set, remove and extend settings of topics (KIP-339).

Versions 0-1. All changes of a topic are made, or none. A key or a value that a topic can't have is
40, an unknown topic 3. 42 are: a topic or a key that is asked for twice, a value that is null, an
operation that there is not, and other resources, for a node's settings are not changed while it
runs. validate_only makes all checks and changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.broker.errors import InvalidSettingError
from penstock.broker.topics.config import checked
from penstock.kafka.errors import RequestError, refusal
from penstock.kafka.handlers.registry import handles
from penstock.kafka.handlers.topics import check_asked_once, topic_by_name
from penstock.kafka.topic_configs import ConfigChange, Operation, changed, invalid_config
from penstock.kafka.wire import ErrorCode, api
from penstock.pace import Pace

if TYPE_CHECKING:
    from penstock.broker.topics.topic import Topic
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import (
        IncrementalAlterConfigsRequest,
        IncrementalAlterConfigsResponse,
    )

TOPIC: Final = 2
_OPERATIONS: Final = {operation.value: operation for operation in Operation}


@handles(api("IncrementalAlterConfigs"), 0, 1)
async def incremental_alter_configs(
    request: IncrementalAlterConfigsRequest, call: Call
) -> IncrementalAlterConfigsResponse:
    response = api("IncrementalAlterConfigs").response
    pace = Pace()
    asked = await pace.counted(
        (each.resource_type, each.resource_name) for each in request.resources
    )
    results = []
    for resource in request.resources:
        kind, name = resource.resource_type, resource.resource_name
        result = response.AlterConfigsResourceResponse(
            error_message=None, resource_type=kind, resource_name=name
        )
        results.append(result)
        try:
            check_asked_once(asked[kind, name])
            await _alter(resource, request.validate_only, call, pace)
        except Exception as error:
            result.error_code, result.error_message = refusal(error)
        if pace.is_over():
            await pace.others()
    return response(responses=results)


async def _alter(
    resource: IncrementalAlterConfigsRequest.AlterConfigsResource,
    validate_only: bool,
    call: Call,
    pace: Pace,
) -> None:
    if resource.resource_type != TOPIC:
        raise RequestError(
            ErrorCode.INVALID_REQUEST, "only the settings of topics are changed while a node runs"
        )
    topic = topic_by_name(call.broker, resource.resource_name)
    keys = await pace.counted(each.name for each in resource.configs)
    changes = await pace.each(resource.configs, lambda each: _change(each, keys[each.name]))
    try:
        if validate_only:
            checked(changed(topic.config, changes), topic.config.explicit)
        else:
            await _configure(topic, changes, call)
    except InvalidSettingError as error:
        raise invalid_config(error) from error


async def _configure(topic: Topic, changes: list[ConfigChange], call: Call) -> None:
    await call.broker.topics.configure(topic, lambda config: changed(config, changes))


def _change(config: IncrementalAlterConfigsRequest.AlterableConfig, times: int) -> ConfigChange:
    check_asked_once(times)
    operation = _OPERATIONS.get(config.config_operation)
    if operation is None:
        raise RequestError(
            ErrorCode.INVALID_REQUEST, f"there is no operation {config.config_operation}"
        )
    if config.value is None and operation is not Operation.DELETE:
        raise RequestError(ErrorCode.INVALID_REQUEST, f"{config.name} is null")
    return ConfigChange(config.name, operation, config.value or "")
