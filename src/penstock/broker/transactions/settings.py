"""What holds for all transactions."""

from __future__ import annotations

from typing import NamedTuple


class TransactionSettings(NamedTuple):
    """Times are milliseconds; the defaults are Kafka's."""

    max_timeout_ms: int = 900_000
    """The longest that a transaction may be open."""
    id_expiration_ms: int = 7 * 86_400_000
    """How long a transactional id is kept that nobody uses."""
