"""Goal: what is allowed at once and over time is that, and no more keys are kept than may be."""

from __future__ import annotations

from penstock.allowance import Allowance, Allowances


def test_what_was_taken_comes_back_over_time():
    bucket = Allowance(at_once=3, per_second=2, now=0)
    assert [bucket.take(0) for _ in range(4)] == [True, True, True, False]
    assert not bucket.take(0.0)
    assert bucket.take(0.5)
    assert bucket.left(100) == 3, "no more than at once"


def test_more_than_is_left_is_taken_on_credit():
    bucket = Allowance(at_once=10, per_second=1, now=0)
    assert bucket.take(0, count=50)
    assert not bucket.take(40)
    assert bucket.take(41)


def test_the_wait_is_for_a_whole_one():
    bucket = Allowance(at_once=10, per_second=2, now=0)
    assert bucket.wait(0) == 0
    bucket.take(0, count=10)
    assert bucket.wait(0) == 0.5
    assert bucket.wait(0.25) == 0.25
    assert bucket.wait(0.5) == 0


def test_the_key_that_came_longest_ago_is_forgotten():
    buckets: Allowances[str] = Allowances(at_once=1, per_second=0, keys=2)
    assert [buckets.take(key, 0) for key in "aabb"] == [True, False, True, False]
    assert not buckets.take("a", 0)
    assert buckets.take("c", 0), "in place of b"
    assert not buckets.take("a", 0)
    assert buckets.take("b", 0)
