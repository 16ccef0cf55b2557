"""SaslHandshake: how a client may log in, which it can't and need not here.

Versions 0-1. The listener has no authentication, so every handshake is ILLEGAL_SASL_STATE with no
mechanisms, as on a listener of Kafka's without it. The connection stays open: a client that says
why it gives up is worth more than one that says that the broker hung up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.kafka.handlers.registry import handles
from penstock.kafka.wire import ErrorCode, api

if TYPE_CHECKING:
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import SaslHandshakeRequest, SaslHandshakeResponse


@handles(api("SaslHandshake"), 0, 1)
def sasl_handshake(_request: SaslHandshakeRequest, _call: Call) -> SaslHandshakeResponse:
    return api("SaslHandshake").response(error_code=ErrorCode.ILLEGAL_SASL_STATE)
