"""What stands for the machine of a client: what it can't have many of."""

from __future__ import annotations

import ipaddress
from typing import Final

_CLIENT_NETWORK_BITS: Final = 64
"""The network that an IPv6 host is given (RFC 6177): it may use any address in it."""


def network_address(host: str) -> str:
    """Return the address itself, or of an IPv6 one the network, of which each client has one.

    Raises ValueError where `host` is no address.
    """
    given = ipaddress.ip_address(host.partition("%")[0])
    if isinstance(given, ipaddress.IPv6Address):
        if given.ipv4_mapped is not None:
            return str(given.ipv4_mapped)
        return str(ipaddress.ip_network((given, _CLIENT_NETWORK_BITS), strict=False))
    return str(given)
