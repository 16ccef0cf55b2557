"""CONNECT: who the client is and what it can do. Everybody is welcome: there is no log-in yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock import __version__, limits
from penstock.pulsar.wire.pulsar_api_pb2 import (
    BaseCommand,
    CommandConnect,
    CommandConnected,
    FeatureFlags,
)

if TYPE_CHECKING:
    from penstock.pulsar.session import PulsarSession

PROTOCOL_VERSION: Final = 21


def handle(session: PulsarSession, request: CommandConnect, _entry: memoryview) -> BaseCommand:
    # A client's newer version is none of our business; an older one is kept to.
    session.protocol_version = min(PROTOCOL_VERSION, request.protocol_version)
    session.client_version = request.client_version
    connected = CommandConnected(
        server_version=f"Penstock {__version__}",
        protocol_version=session.protocol_version,
        max_message_size=limits.PULSAR_MESSAGE_BYTES,
        feature_flags=FeatureFlags(
            supports_get_partitioned_metadata_without_auto_creation=True,
        ),
    )
    return BaseCommand(type=BaseCommand.CONNECTED, connected=connected)
