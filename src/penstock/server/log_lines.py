"""Keeps clients from filling the disk and the processor with log lines.

A kind of line is what the code that writes it says, whatever it is about. Each kind has an
allowance, and where a line is about one client its address has one too, so that one client does
not hide what others do. What is left out is counted, and told in a line of its own.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import Counter
from typing import Final

from penstock import limits
from penstock.allowance import Allowances

logger = logging.getLogger(__name__)

KINDS = 1_000
"""More than there are in the code."""
ONCE_A_MINUTE: Final = "once_a_minute"
"""The attribute of a line that says what is said once a minute at most about one address."""


class LogLines(logging.Filter):
    """A filter for the handlers of a broker's log lines.

    A line about one client has the attribute `address`, and may have ONCE_A_MINUTE. Any thread may
    log.
    """

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._kinds: Allowances[str] = Allowances(
            limits.LOG_LINES_AT_ONCE, limits.LOG_LINES_A_MINUTE / 60, KINDS
        )
        self._addresses: Allowances[tuple[str, str]] = Allowances(
            limits.ADDRESS_LOG_LINES_AT_ONCE,
            limits.ADDRESS_LOG_LINES_A_MINUTE / 60,
            limits.ADDRESSES_REMEMBERED,
        )
        self._once: Allowances[tuple[str, str]] = Allowances(
            1, 1 / limits.STRANGER_LINE_SECONDS, limits.ADDRESSES_REMEMBERED
        )
        self._left_out: Counter[str] = Counter()
        self._last: dict[str, logging.LogRecord] = {}
        """The last that was left out, of each kind."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a line is written; see logging.Filter."""
        if record.name == __name__:
            return True
        kind = str(record.msg)
        address = getattr(record, "address", None)
        once = getattr(record, ONCE_A_MINUTE, "")
        now = time.monotonic()
        with self._lock:
            is_written = (
                (address is None or self._addresses.take((kind, address), now))
                and (not once or self._is_first(once, address, now))
                and self._kinds.take(kind, now)
            )
            if not is_written:
                self._left_out[kind] += 1
                self._last[kind] = record
        return is_written

    def _is_first(self, once: str, address: str | None, now: float) -> bool:
        key = (once, address or "")
        # A whole one has to be there: part of one is back at once.
        return self._once.wait(key, now) == 0 and self._once.take(key, now)

    def report(self) -> None:
        """Say how many lines were left out since the last report."""
        with self._lock:
            left_out, self._left_out = self._left_out, Counter()
            last, self._last = self._last, {}
        for kind, count in left_out.items():
            example = last[kind].getMessage()
            logger.warning("%d more lines like this were left out: %s", count, example)

    async def report_for_ever(self) -> None:
        """Say once a while how many lines were left out."""
        while True:
            await asyncio.sleep(limits.LOG_REPORT_SECONDS)
            self.report()


def limit_log_lines() -> LogLines:
    """Have all handlers of this process leave out what is too much."""
    lines = LogLines()
    for handler in logging.root.handlers:
        handler.addFilter(lines)
    return lines
