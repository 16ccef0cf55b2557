"""SaslAuthenticate: a client logs in, which it can't and need not here.

Versions 0-2. ILLEGAL_SASL_STATE, for no handshake has been agreed on: see SaslHandshake.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.kafka.handlers.registry import handles
from penstock.kafka.wire import ErrorCode, api

if TYPE_CHECKING:
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import SaslAuthenticateRequest, SaslAuthenticateResponse


@handles(api("SaslAuthenticate"), 0, 2)
def sasl_authenticate(_request: SaslAuthenticateRequest, _call: Call) -> SaslAuthenticateResponse:
    return api("SaslAuthenticate").response(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="this listener has no authentication: connect without SASL",
    )
