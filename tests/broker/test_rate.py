"""What a rate is of: the last minute or two."""

from __future__ import annotations

import pytest

from penstock.broker.rate import Rate


def test_a_young_rate_is_of_the_time_that_there_is() -> None:
    rate = Rate(100.0)
    assert rate.a_second(100.0) == 0
    rate.add(30, 100.1)
    assert rate.a_second(100.5) == 30
    assert rate.a_second(110.0) == 3


def test_what_is_older_than_two_minutes_does_not_count() -> None:
    rate = Rate(0.0)
    rate.add(600, 30.0)
    assert rate.a_second(60.0) == 10
    rate.add(60, 90.0)
    assert rate.a_second(100.0) == pytest.approx(660 / 100)
    assert rate.a_second(120.0) == 1
    assert rate.a_second(170.0) == pytest.approx(60 / 110)
    assert rate.a_second(180.0) == 0


def test_after_a_long_time_it_is_as_if_there_had_been_nothing() -> None:
    rate = Rate(0.0)
    rate.add(600, 1.0)
    rate.add(60, 1000.0)
    assert rate.a_second(1000.0) == 1
