"""Which part of a run was the limit: the broker, the client that measured it, or neither."""

from __future__ import annotations

from typing import Final

BUSY: Final = 0.85
"""A processor or thread counts as used up from this share on; the rest is switching and start."""
DISTURBED: Final = 0.2
"""Share of the processors from which other programs count as having disturbed a run."""


def bottleneck(
    *,
    seconds: float,
    client_busiest: float,
    client: float,
    broker_busiest: float,
    broker: float,
    others: float,
    cores: int,
    shared: bool,
) -> str:
    """Name what could not have gone faster. All but `cores` are seconds.

    `cores` is what each of the two may use; where it is `shared`, both use the same ones. One
    thread that is always busy is a limit as well: neither a Python client nor an event loop can
    use a second core. What other programs took says that the run is not to be trusted.
    """
    if others >= DISTURBED * cores * seconds * (1 if shared else 2):
        return "others"
    if broker_busiest >= BUSY * seconds or broker >= BUSY * cores * seconds:
        return "broker"
    if client_busiest >= BUSY * seconds or client >= BUSY * cores * seconds:
        return "client"
    if shared and client + broker >= BUSY * cores * seconds:
        return "processor"
    return "waiting"
