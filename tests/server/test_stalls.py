"""The tests' own rule, that no broker holds its event loop up, is able to fail."""

from __future__ import annotations

from stalls import busy_stalls

LINE = "2026-01-01 00:00:00,000 WARNING penstock.server.watchdog: the event loop was held up for "


def test_a_busy_turn_fails_and_a_waiting_one_does_not() -> None:
    waited = f"{LINE}300 ms (busy 20 ms, waiting 280 ms) by a callback: read (files.py:1)\n"
    worked = f"{LINE}300 ms (busy 280 ms, waiting 20 ms) by a callback: spin (x.py:1)\n"
    assert busy_stalls(waited) == []
    (found,) = busy_stalls(waited + worked + waited)
    assert found.endswith("spin (x.py:1)")
