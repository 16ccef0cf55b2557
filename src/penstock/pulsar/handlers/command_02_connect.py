"""CONNECT: who the client is and what it can do. Everybody is welcome: there is no log-in yet.

So credentials have no effect, as with Pulsar's broker while authentication is off, and a line in
the log says so.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from penstock import __version__
from penstock.pulsar.client import NO_REQUEST
from penstock.pulsar.errors import RefusedError
from penstock.pulsar.handlers.registry import handles
from penstock.pulsar.wire.pulsar_api_pb2 import (
    BaseCommand,
    CommandConnect,
    CommandConnected,
    CommandError,
    FeatureFlags,
    ServerError,
)

if TYPE_CHECKING:
    from penstock.pulsar.client import Call, Client

PROTOCOL_VERSION: Final = 21
ENTRY_METADATA_VERSION: Final = 18

logger = logging.getLogger(__name__)


def refuse(_request: CommandConnect, code: ServerError.ValueType, message: str) -> BaseCommand:
    error = CommandError(request_id=NO_REQUEST, error=code, message=message)
    return BaseCommand(type=BaseCommand.ERROR, error=error)


@handles(BaseCommand.CONNECT, refuse=refuse)
def handle(request: CommandConnect, call: Call) -> BaseCommand:
    client = call.client
    _refuse_to_be_a_proxy(request, client)
    _warn_of_credentials(request, client)
    # A client's newer version is none of our business; an older one is kept to.
    client.protocol_version = min(PROTOCOL_VERSION, request.protocol_version)
    client.client_version = request.client_version
    client.wants_entry_metadata = (
        client.protocol_version >= ENTRY_METADATA_VERSION
        and request.feature_flags.supports_broker_entry_metadata
    )
    connected = CommandConnected(
        server_version=f"Penstock {__version__}",
        protocol_version=client.protocol_version,
        max_message_size=client.broker.settings.pulsar_message_bytes,
        feature_flags=FeatureFlags(
            supports_broker_entry_metadata=True,
            supports_topic_watchers=True,
            supports_get_partitioned_metadata_without_auto_creation=True,
        ),
    )
    return BaseCommand(type=BaseCommand.CONNECTED, connected=connected)


def _refuse_to_be_a_proxy(request: CommandConnect, client: Client) -> None:
    """Refuse a client that wants to be passed on to a broker that is not this one."""
    wanted = request.proxy_to_broker_url
    if not wanted or wanted.rpartition("/")[2] in _own_addresses(client):
        return
    client.transport.close(f"it wants to be passed on to {wanted[:100]!r}, and this is no proxy")
    raise RefusedError(
        ServerError.ServiceNotReady, f"this is {client.broker_address}, and no proxy to others"
    )


def _own_addresses(client: Client) -> set[str]:
    """Return what clients may call this broker, for they heard it in the answer to a LOOKUP."""
    listeners = client.broker.settings.pulsar_advertised_listeners.values()
    urls = [url for listener in listeners for url in listener]
    return {client.broker_address, *(url.rpartition("/")[2] for url in urls if url)}


def _warn_of_credentials(request: CommandConnect, client: Client) -> None:
    if request.auth_data or request.original_auth_data or request.original_principal:
        logger.warning(
            "Pulsar client %s sent credentials, which have no effect: there is no log-in yet, and "
            "it may do everything",
            client.transport.peer,
            extra={"address": client.address},
        )
