"""Ack sets as Java's BitSet writes them: a set bit is a message that is NOT acknowledged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.limits import PULSAR_ACK_SET_WORDS
from penstock.pulsar.wire.message_ids import ack_set_from_mask, mask_from_ack_set
from penstock.session import PeerError


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


def test_the_largest_ack_set_is_read_and_a_larger_one_is_refused() -> None:
    # Shifting every word into place took minutes where one filled a frame.
    words = [-1] * PULSAR_ACK_SET_WORDS
    assert mask_from_ack_set(words).bit_count() == 64 * PULSAR_ACK_SET_WORDS
    with pytest.raises(PeerError, match="16385 words"):
        mask_from_ack_set([*words, 0])
