"""AlterConfigs: give topics these settings and no others (KIP-133).

Versions 0-2. What is not named goes back to its default. 42 are also: a key that is asked for twice
and a value that is null. The rest is in `penstock.kafka.handlers.altering`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.kafka.errors import RequestError
from penstock.kafka.handlers.altering import alter
from penstock.kafka.handlers.registry import handles
from penstock.kafka.handlers.topics import check_asked_once
from penstock.kafka.topic_configs import setting_of
from penstock.kafka.wire import ErrorCode, api
from penstock.pace import Pace

if TYPE_CHECKING:
    from penstock.kafka.client import Call
    from penstock.kafka.handlers.altering import Change
    from penstock.kafka.wire.messages import AlterConfigsRequest, AlterConfigsResponse


@handles(api("AlterConfigs"), 0, 2)
async def alter_configs(request: AlterConfigsRequest, call: Call) -> AlterConfigsResponse:
    response = api("AlterConfigs").response
    pace = Pace()

    async def change_of(resource: AlterConfigsRequest.AlterConfigsResource) -> Change:
        times = await pace.counted(each.name for each in resource.configs)
        explicit = dict(
            await pace.each(resource.configs, lambda each: _setting(each, times[each.name]))
        )
        return lambda _config: explicit

    async def sets_nothing(resource: AlterConfigsRequest.AlterConfigsResource) -> bool:
        return not resource.configs

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


def _setting(config: AlterConfigsRequest.AlterableConfig, times: int) -> tuple[str, str]:
    check_asked_once(times)
    if config.value is None:
        raise RequestError(ErrorCode.INVALID_REQUEST, f"{config.name} is null")
    return setting_of(config.name), config.value
