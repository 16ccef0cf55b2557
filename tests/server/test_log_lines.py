"""Goal: nobody fills the log, nobody hides others in it, and what is left out is counted."""

from __future__ import annotations

import logging

import pytest

from penstock import limits
from penstock.server import log_lines
from penstock.server.log_lines import ONCE_A_MINUTE, LogLines


class Kept(logging.Handler):
    def __init__(self, lines: LogLines) -> None:
        super().__init__()
        self.written: list[str] = []
        self.addFilter(lines)

    def emit(self, record: logging.LogRecord) -> None:
        self.written.append(record.getMessage())


@pytest.fixture
def lines():
    return LogLines()


@pytest.fixture
def kept(lines):
    kept = Kept(lines)
    logging.getLogger().addHandler(kept)
    yield kept
    logging.getLogger().removeHandler(kept)


@pytest.fixture
def now(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(log_lines.time, "monotonic", lambda: now[0])
    return now


def say(count: int, address: str | None = None, what: str = "%s is junk", once: str = "") -> None:
    extra = {"address": address, ONCE_A_MINUTE: once} if address else {}
    for number in range(count):
        logging.getLogger("penstock.test").warning(what, number, extra=extra)


def test_one_address_does_not_hide_the_others(lines, kept, now):
    say(5_000, "10.0.0.1")
    assert len(kept.written) == limits.ADDRESS_LOG_LINES_AT_ONCE
    say(1, "10.0.0.2")
    assert len(kept.written) == limits.ADDRESS_LOG_LINES_AT_ONCE + 1
    say(1, "10.0.0.1", "another kind %s")
    assert kept.written[-1] == "another kind 0"


def test_many_addresses_together_are_limited_too(lines, kept, now):
    for number in range(1_000):
        say(5, f"10.0.{number // 256}.{number % 256}")
    assert len(kept.written) == limits.LOG_LINES_AT_ONCE
    now[0] += 60
    say(1_000, None)
    assert len(kept.written) == limits.LOG_LINES_AT_ONCE + limits.LOG_LINES_A_MINUTE


def test_what_was_left_out_is_told_once(lines, kept, now):
    say(100, "10.0.0.1")
    kept.written.clear()
    lines.report()
    left_out = 100 - limits.ADDRESS_LOG_LINES_AT_ONCE
    assert kept.written == [f"{left_out} more lines like this were left out: 99 is junk"]
    lines.report()
    assert len(kept.written) == 1


def test_what_is_said_once_a_minute_is_said_of_each_address_and_about_each_thing(lines, kept, now):
    for what in ("wrong port", "other wrong port"):
        for address in ("10.0.0.1", "10.0.0.2"):
            say(1, address, once=what)
            now[0] += 0.1
            say(4, address, once=what)
    assert len(kept.written) == 4
    now[0] += limits.STRANGER_LINE_SECONDS
    say(5, "10.0.0.1", once="wrong port")
    assert len(kept.written) == 5
    lines.report()
    assert kept.written[-1].startswith("20 more lines like this were left out")
