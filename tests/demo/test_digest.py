from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from penstock.demo.digest import Digest

events = st.lists(st.tuples(st.binary(max_size=8), st.binary(max_size=8)), max_size=20)


def digest(pairs: list[tuple[bytes, bytes]]) -> Digest:
    made = Digest()
    for key, value in pairs:
        made.add(key, value)
    return made


@given(events, st.randoms(use_true_random=False))
def test_order_does_not_matter(pairs: list[tuple[bytes, bytes]], order: random.Random) -> None:
    shuffled = order.sample(pairs, len(pairs))
    assert digest(shuffled) == digest(pairs)


@given(events.filter(bool))
def test_a_missing_event_shows(pairs: list[tuple[bytes, bytes]]) -> None:
    assert digest(pairs[1:]) != digest(pairs)
    assert digest([pairs[0], *pairs]) != digest(pairs)


def test_what_moves_from_key_to_value_shows() -> None:
    assert digest([(b"ab", b"c")]).total != digest([(b"a", b"bc")]).total


def test_one_missing_and_one_doubled_shows_though_the_count_is_right() -> None:
    assert str(digest([(b"", b"a"), (b"", b"a")])) != str(digest([(b"", b"a"), (b"", b"b")]))
