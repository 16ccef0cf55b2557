"""IncrementalAlterConfigs: set, remove and extend settings of topics (KIP-339).

Versions 0-1. 42 are also: a key that is asked for twice, a value that is null, and an operation
that there is not. The rest is in `penstock.kafka.handlers.altering`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.kafka.errors import RequestError
from penstock.kafka.handlers.altering import alter
from penstock.kafka.handlers.registry import handles
from penstock.kafka.handlers.topics import check_asked_once
from penstock.kafka.topic_configs import ConfigChange, Operation, changed
from penstock.kafka.wire import ErrorCode, api
from penstock.pace import Pace

if TYPE_CHECKING:
    from penstock.kafka.client import Call
    from penstock.kafka.handlers.altering import Change
    from penstock.kafka.wire.messages import (
        IncrementalAlterConfigsRequest,
        IncrementalAlterConfigsResponse,
    )

_OPERATIONS: Final = {operation.value: operation for operation in Operation}


@handles(api("IncrementalAlterConfigs"), 0, 1)
async def incremental_alter_configs(
    request: IncrementalAlterConfigsRequest, call: Call
) -> IncrementalAlterConfigsResponse:
    response = api("IncrementalAlterConfigs").response
    pace = Pace()

    async def change_of(resource: IncrementalAlterConfigsRequest.AlterConfigsResource) -> Change:
        times = await pace.counted(each.name for each in resource.configs)
        changes = await pace.each(resource.configs, lambda each: _change(each, times[each.name]))
        return lambda config: changed(config, changes)

    async def sets_nothing(resource: IncrementalAlterConfigsRequest.AlterConfigsResource) -> bool:
        operations = await pace.counted(each.config_operation for each in resource.configs)
        return operations.keys() <= {Operation.DELETE}

    results = await alter(
        request.resources,
        change_of,
        sets_nothing,
        response.AlterConfigsResourceResponse,
        call,
        pace,
        validate_only=request.validate_only,
    )
    return response(responses=results)


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
