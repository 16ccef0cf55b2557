"""Entries: checksum, metadata, and counts that can be trusted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.pulsar.wire.frames import parse_frame
from penstock.records.pulsar.entry import (
    ChecksumMismatchError,
    MalformedEntryError,
    build_entry,
    parse_entry,
    read_entry,
    without_checksum,
)
from pulsar_golden import GOLDEN
from pulsar_peer import batch, entry


@pytest.mark.parametrize("golden", [g for g in GOLDEN if g.command == "SEND"])
def test_what_the_real_client_sends_fits_its_checksum(golden: object) -> None:
    frame = parse_frame(memoryview(golden.frame))  # type: ignore[attr-defined]
    parsed = read_entry(frame.entry)
    assert parsed.is_batch == (parsed.metadata.producer_name == "batched")
    assert parsed.message_count == frame.command.send.num_messages


def test_the_checksum_of_a_known_entry() -> None:
    made = entry(b"hello", producer_name="fake-0-0", publish_time=1795260066694)
    assert made[:6].hex() == "0e01698b6839"


@given(st.integers(min_value=0), st.integers(1, 255))
def test_any_flipped_bit_behind_the_checksum_is_found(place: int, flip: int) -> None:
    damaged = bytearray(entry(b"payload"))
    damaged[6 + place % (len(damaged) - 6)] ^= flip
    with pytest.raises(ChecksumMismatchError):
        read_entry(memoryview(damaged))


def test_an_entry_without_checksum_is_taken_as_it_is() -> None:
    bare = entry(b"payload", checksum=False)
    assert read_entry(memoryview(bare)).payload == b"payload"
    assert without_checksum(memoryview(bare)) == bare
    assert without_checksum(memoryview(entry(b"payload"))) == bare


def test_what_is_built_is_what_a_producer_sends() -> None:
    sent = entry(b"payload")
    metadata = read_entry(memoryview(sent)).metadata
    assert build_entry(metadata, b"payload") == sent


def test_of_a_stored_entry_the_checksum_is_not_looked_at() -> None:
    damaged = bytearray(entry(b"payload"))
    damaged[2] ^= 1
    assert parse_entry(memoryview(damaged)).payload == b"payload"
    with pytest.raises(MalformedEntryError):
        parse_entry(memoryview(damaged)[:8])


def test_presence_tells_a_batch_of_one_from_a_message() -> None:
    payload, count = batch(b"one")
    assert read_entry(memoryview(entry(payload, num_messages_in_batch=count))).is_batch
    assert not read_entry(memoryview(entry(b"one"))).is_batch


@pytest.mark.parametrize("count", [0, -1, 2, 2**31 - 1])
def test_a_batch_can_not_hold_more_than_fits(count: int) -> None:
    payload, _ = batch(b"one")
    with pytest.raises(MalformedEntryError):
        read_entry(memoryview(entry(payload, num_messages_in_batch=count)))


def test_a_compressed_batch_may_hold_more_than_its_bytes_tell() -> None:
    made = entry(b"x", num_messages_in_batch=100, compression=1, uncompressed_size=600)
    assert read_entry(memoryview(made)).message_count == 100


@pytest.mark.parametrize(
    "bad", [b"", b"\0\0", b"\0\0\0\x09\x0a", b"\xff\xff\xff\xff", b"\0\0\0\0", b"\0\0\0\1\xff"]
)
def test_what_is_no_entry_is_refused(bad: bytes) -> None:
    with pytest.raises(MalformedEntryError):
        read_entry(memoryview(bad))


@given(st.binary(max_size=100))
def test_rubbish_is_refused(rubbish: bytes) -> None:
    with pytest.raises((MalformedEntryError, ChecksumMismatchError)):
        read_entry(memoryview(rubbish))
