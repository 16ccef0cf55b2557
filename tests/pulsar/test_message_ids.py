"""Ack sets as Java's BitSet writes them: a set bit is a message that is NOT acknowledged."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.pulsar.wire.message_ids import ack_set_from_mask, mask_from_ack_set


def test_a_batch_of_five_without_its_first_and_fourth() -> None:
    assert ack_set_from_mask(0b10110) == [22]


def test_zero_words_at_the_end_are_left_out_and_signs_kept() -> None:
    assert ack_set_from_mask(0) == []
    assert ack_set_from_mask(1 << 63) == [-(2**63)]
    assert ack_set_from_mask(1 << 64) == [0, 1]
    assert ack_set_from_mask((1 << 70) - 1) == [-1, 63]


@given(st.integers(0, 2**200 - 1), st.integers(0, 3))
def test_words_and_masks_are_the_same_thing(mask: int, zero_words: int) -> None:
    assert mask_from_ack_set([*ack_set_from_mask(mask), *[0] * zero_words]) == mask


def test_an_ack_set_that_fills_a_frame_is_read_in_linear_time() -> None:
    # Shifting every word into place took minutes.
    assert mask_from_ack_set([-1] * 500_000).bit_count() == 64 * 500_000
