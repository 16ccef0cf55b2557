"""What a client hears that creates more than it may for now (KIP-599)."""

from __future__ import annotations

from penstock.broker.errors import TopicsThrottledError
from penstock.kafka.errors import Refusal, refusal
from penstock.kafka.wire import ErrorCode
from penstock.limits import KAFKA_THROTTLE_SECONDS


class Throttle:
    """Of one request. `milliseconds` is what its answer asks the client to wait.

    Versions that do not know the error of KIP-599 have one that their clients do not try again.
    """

    def __init__(self, is_known: bool) -> None:
        self._is_known = is_known
        self.milliseconds = 0

    def refusal(self, error: BaseException) -> Refusal:
        """Return what to say of one topic."""
        refused = refusal(error)
        if not isinstance(error, TopicsThrottledError):
            return refused
        if not self._is_known:
            return Refusal(ErrorCode.POLICY_VIOLATION, refused.message)
        wait = round(min(error.seconds, KAFKA_THROTTLE_SECONDS) * 1000)
        self.milliseconds = max(self.milliseconds, wait, 1)
        return refused
