"""PushTelemetry: the metrics of a client that were asked for (KIP-714).

Version 0. None were, so what a client pushes all the same belongs to a subscription that is not
there: UNKNOWN_SUBSCRIPTION_ID, and the client asks for its subscription again. A last push that
brings nothing is accepted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.kafka.handlers.api_71_get_telemetry_subscriptions import NOTHING
from penstock.kafka.handlers.registry import handles
from penstock.kafka.wire import ErrorCode, api

if TYPE_CHECKING:
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import PushTelemetryRequest, PushTelemetryResponse


@handles(api("PushTelemetry"), 0, 0)
def push_telemetry(request: PushTelemetryRequest, _call: Call) -> PushTelemetryResponse:
    response = api("PushTelemetry").response
    if request.subscription_id != NOTHING or request.metrics:
        return response(error_code=ErrorCode.UNKNOWN_SUBSCRIPTION_ID)
    return response()
