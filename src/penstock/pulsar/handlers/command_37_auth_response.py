"""AUTH_RESPONSE: nobody was asked to prove who they are, so there is nothing to check."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.pulsar.wire.pulsar_api_pb2 import CommandAuthResponse

if TYPE_CHECKING:
    from penstock.pulsar.session import PulsarSession


def handle(_session: PulsarSession, _request: CommandAuthResponse, _entry: memoryview) -> None:
    return None
