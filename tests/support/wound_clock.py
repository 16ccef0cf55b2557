"""A time of day that a test winds, for what is due at a time."""

from __future__ import annotations

import pytest

from penstock import wall_clock
from penstock.broker.subscriptions import push

NOW = 1_700_000_000_000


class WoundClock:
    """It stands still at NOW, in milliseconds since 1970, until a test sets it."""

    def __init__(self) -> None:
        self.ms = NOW

    @classmethod
    def instead_of_the_real_one(cls, monkeypatch: pytest.MonkeyPatch) -> WoundClock:
        """Have all ask this one, and subscriptions soon see what it says."""
        clock = cls()
        monkeypatch.setattr(wall_clock, "now_ms", lambda: clock.ms)
        monkeypatch.setattr(push, "_LOOK_SECONDS", 0.002)
        return clock
