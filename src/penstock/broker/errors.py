"""What the broker refuses, named once; each protocol maps these to its own codes in one table."""

from __future__ import annotations


class BrokerError(Exception):
    """A request that the broker refuses; the message says what was wrong."""


class OutOfOrderSequenceError(BrokerError):
    """Batches of an idempotent producer are missing before this one."""


class InvalidProducerEpochError(BrokerError):
    """A newer epoch of the same producer id has taken over."""
