"""The log in local files does what the broker relies on, on a real disk and on the faulty one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from log_batches import SMALL
from log_conformance import LogConformance, OpenLog, TrimConformance
from penstock.log import LocalLog


@pytest.fixture
def open_log(open_anywhere: Callable[..., LocalLog]) -> OpenLog:
    return lambda leader_epoch=0: open_anywhere(SMALL, leader_epoch)


class TestLocalLog(LogConformance):
    pass


class TestTrimmedLocalLog(TrimConformance):
    pass
