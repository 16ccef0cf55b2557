"""Waiting for a broker that is being restarted, so that a job outlives it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

from penstock.pipeline.source.options import Retries

Answer = TypeVar("Answer")

WAIT_SECONDS: Final = 60
_PAUSE_SECONDS: Final = 0.2


class Patience:
    """Tries again when a connection fails, but only once there has been one.

    A first connection that fails is most often a wrong address, and is reported at once. With
    `retries` it tries so often, the first time too.
    """

    def __init__(self, *, answered: bool, retries: Retries | None = None) -> None:
        self._answered = answered
        self._retries = retries

    def ask(self, question: Callable[[], Answer]) -> Answer:
        """Return the answer; raises OSError where the broker stays away."""
        if self._retries is not None:
            return _ask_often(question, self._retries)
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            try:
                answer = question()
            except OSError:
                if not self._answered or time.monotonic() > deadline:
                    raise
                time.sleep(_PAUSE_SECONDS)
            else:
                self._answered = True
                return answer


def _ask_often(question: Callable[[], Answer], retries: Retries) -> Answer:
    for _ in range(retries.count):
        try:
            return question()
        except OSError:
            time.sleep(retries.interval_s)
    return question()
