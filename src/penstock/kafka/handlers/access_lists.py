"""What is said to those who ask for access lists (KIP-140)."""

from __future__ import annotations

from typing import Final

from penstock.kafka.wire import ErrorCode

SECURITY_DISABLED: Final = (
    ErrorCode.SECURITY_DISABLED,
    "there are no access lists here: nobody is refused",
)
"""What Kafka says without an authorizer: tools know it, and go on."""
