"""Commands of features that are not there: refused, so that clients don't wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from penstock.pulsar.errors import RefusedError
from penstock.pulsar.handlers.answers import refusal
from penstock.pulsar.handlers.registry import handles
from penstock.pulsar.wire.pulsar_api_pb2 import BaseCommand, ServerError

if TYPE_CHECKING:
    from penstock.pulsar.client import Call

UNSUPPORTED: Final = (BaseCommand.SCALABLE_TOPIC_SUBSCRIBE,)
"""Those that carry a request id. Others of their kind are never sent to a broker that does not
announce the feature, and are ignored."""


def handle(request: Any, _call: Call) -> BaseCommand:
    raise RefusedError(
        ServerError.NotAllowedError, f"{type(request).__name__} is not supported by this broker"
    )


for _kind in UNSUPPORTED:
    handles(_kind, refuse=refusal)(handle)
