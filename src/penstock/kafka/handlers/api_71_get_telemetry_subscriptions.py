"""GetTelemetrySubscriptions: which of its metrics a client shall push (KIP-714).

Version 0. None are asked for, so a client has nothing to push and asks again after five minutes. A
client without an id is given one.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Final

from penstock.kafka.handlers.registry import handles
from penstock.kafka.wire import NO_UUID, api

if TYPE_CHECKING:
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import (
        GetTelemetrySubscriptionsRequest,
        GetTelemetrySubscriptionsResponse,
    )

NOTHING: Final = 0
"""The number of the one subscription there is, which asks for nothing."""
PUSH_INTERVAL_MS: Final = 300_000
TELEMETRY_BYTES: Final = 1 << 20
ZSTD: Final = 4


@handles(api("GetTelemetrySubscriptions"), 0, 0)
def get_telemetry_subscriptions(
    request: GetTelemetrySubscriptionsRequest, _call: Call
) -> GetTelemetrySubscriptionsResponse:
    given = request.client_instance_id
    return api("GetTelemetrySubscriptions").response(
        client_instance_id=uuid.uuid4() if given == NO_UUID else given,
        subscription_id=NOTHING,
        accepted_compression_types=[ZSTD],
        push_interval_ms=PUSH_INTERVAL_MS,
        telemetry_max_bytes=TELEMETRY_BYTES,
        delta_temporality=True,
        requested_metrics=[],
    )
