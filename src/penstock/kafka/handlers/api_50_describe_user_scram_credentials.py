"""DescribeUserScramCredentials: by which SCRAM mechanisms users can log in (KIP-554).

Version 0. Nobody can: a user who is named is RESOURCE_NOT_FOUND, one who is named twice
DUPLICATE_RESOURCE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.kafka.handlers.registry import handles
from penstock.kafka.wire import ErrorCode, api
from penstock.pace import Pace

if TYPE_CHECKING:
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import (
        DescribeUserScramCredentialsRequest,
        DescribeUserScramCredentialsResponse,
    )


@handles(api("DescribeUserScramCredentials"), 0, 0)
async def describe_user_scram_credentials(
    request: DescribeUserScramCredentialsRequest, _call: Call
) -> DescribeUserScramCredentialsResponse:
    pace = Pace()
    times = await pace.counted(each.name for each in request.users or ())
    results = await pace.each(times.items(), lambda each: _unknown(*each))
    return api("DescribeUserScramCredentials").response(results=results)


def _unknown(
    user: str, times: int
) -> DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult:
    twice = times > 1
    return api("DescribeUserScramCredentials").response.DescribeUserScramCredentialsResult(
        user=user,
        error_code=ErrorCode.DUPLICATE_RESOURCE if twice else ErrorCode.RESOURCE_NOT_FOUND,
        error_message=f"user {user} {'is named twice' if twice else 'has no SCRAM credentials'}",
    )
