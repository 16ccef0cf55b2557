"""Typed entries on the wire, and the options of topics behind them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iggy_messages import entries, options
from penstock.iggy import topic_options
from penstock.iggy.wire.errors import ErrorCode, IggyError
from penstock.iggy.wire.fields import Reader
from penstock.iggy.wire.options import (
    ENTRIES_MAX,
    Entry,
    Typed,
    ValueKind,
    decode_options,
    encode_entries,
    encode_options,
    read_entries,
)


@given(entries)
def test_entries_read_back_as_written(written: list[Entry]) -> None:
    assert read_entries(Reader(encode_entries(written))) == written


@given(options)
def test_options_read_back_as_written(written: dict[str, Typed]) -> None:
    assert decode_options(encode_options(written)) == written


def refused(block: bytes) -> ErrorCode:
    with pytest.raises(IggyError) as error:
        decode_options(block)
    return error.value.code


def test_blocks_that_are_not_legal_are_refused() -> None:
    entry = bytes(encode_options({"key": Typed.text("value")}))
    assert refused(entry[:-1]) is ErrorCode.INVALID_COMMAND
    assert refused(entry + entry) is ErrorCode.INVALID_OPTION_VALUE
    assert refused(b"\0" + entry[1:]) is ErrorCode.INVALID_COMMAND
    assert refused(b"\x10" + entry[1:]) is ErrorCode.INVALID_COMMAND
    assert refused(b"\x02\0\0\0\0" + entry[5:]) is ErrorCode.INVALID_HEADER_KEY
    assert refused(entry[:8] + b"\x02\0\1\0\0" + entry[13:]) is ErrorCode.INVALID_HEADER_VALUE
    assert refused(b"\x01" + entry[1:]) is ErrorCode.INVALID_OPTION_VALUE
    assert refused(bytes(100_001)) is ErrorCode.OPTIONS_BLOCK_TOO_LARGE
    many = {f"{number}": Typed.text("v") for number in range(ENTRIES_MAX + 1)}
    assert refused(bytes(encode_options(many))) is ErrorCode.INVALID_OPTION_VALUE


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("segment_size", Typed.text("128 MiB"), "134217728"),
        ("segment_size", Typed.u64(1 << 20), "1048576"),
        ("max_topic_size", Typed.text("1.5 GiB"), "1610612736"),
        ("max_topic_size", Typed.text("unlimited"), str((1 << 64) - 1)),
        ("max_topic_size", Typed.u64((1 << 64) - 1), str((1 << 64) - 1)),
        ("message_expiry", Typed.text("1day 2h"), str(26 * 3600 * 10**6)),
        ("message_expiry", Typed.text("never"), str((1 << 64) - 1)),
        ("message_expiry", Typed.u64(5), "5"),
        ("message_expiry", Typed.u64(0), str((1 << 64) - 1)),
        ("max_topic_size", Typed.text("server_default"), str((1 << 64) - 1)),
        ("compression_algorithm", Typed.text("GZIP"), "gzip"),
        ("durability", Typed.text("persisted"), "persisted"),
        ("preallocate_segments", Typed.boolean(True), "True"),
        ("preallocate_segments", Typed.text("false"), "False"),
        ("messages_required_to_save", Typed.u32(7), "7"),
    ],
)
def test_option_is_kept_in_its_own_form(name: str, value: Typed, kept: str) -> None:
    config = topic_options.configuration({name: value})
    assert config == {f"iggy.{name}": kept}
    (explicit,) = topic_options.explicit(config).items()
    assert explicit[0] == name
    assert explicit[1].kind is topic_options.CATALOGUE[name].kind
    # What goes out can come in again and means the same.
    assert topic_options.configuration(dict([explicit])) == config
    assert name not in topic_options.derived(config)


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("unheard_of", Typed.text("x"), ErrorCode.UNSUPPORTED_OPTION_KEY),
        ("segment_size", Typed.text("many"), ErrorCode.INVALID_OPTION_VALUE),
        ("segment_size", Typed.text("1 lightyear"), ErrorCode.INVALID_OPTION_VALUE),
        ("segment_size", Typed.u64(1000), ErrorCode.INVALID_OPTION_VALUE),
        ("segment_size", Typed.u64((1 << 20) + 1), ErrorCode.INVALID_OPTION_VALUE),
        ("max_topic_size", Typed.text("99999999999999999999"), ErrorCode.INVALID_OPTION_VALUE),
        ("message_expiry", Typed.text("soon"), ErrorCode.INVALID_OPTION_VALUE),
        ("message_expiry", Typed.text("1 fortnight"), ErrorCode.INVALID_OPTION_VALUE),
        ("message_expiry", Typed(ValueKind.INT64, bytes(8)), ErrorCode.INVALID_OPTION_VALUE),
        ("compression_algorithm", Typed.text("zip"), ErrorCode.INVALID_OPTION_VALUE),
        ("compression_algorithm", Typed.u32(1), ErrorCode.INVALID_OPTION_VALUE),
        ("durability", Typed.text("none"), ErrorCode.INVALID_OPTION_VALUE),
        ("durability", Typed(ValueKind.STRING, b"\xff"), ErrorCode.INVALID_UTF8),
        ("preallocate_segments", Typed.u32(1), ErrorCode.INVALID_OPTION_VALUE),
    ],
)
def test_option_that_means_nothing_is_refused(name: str, value: Typed, code: ErrorCode) -> None:
    with pytest.raises(IggyError) as error:
        topic_options.configuration({name: value})
    assert error.value.code is code


def test_topic_smaller_than_its_segments_is_refused() -> None:
    topic_options.check_sizes(topic_options.configuration({"max_topic_size": Typed.u64(0)}))
    topic_options.check_sizes({"iggy.max_topic_size": "1048576", "iggy.segment_size": "1048576"})
    with pytest.raises(IggyError) as error:
        topic_options.check_sizes({"iggy.max_topic_size": "1048576"})
    assert error.value.code is ErrorCode.INVALID_TOPIC_SIZE


def test_update_changes_only_what_may_change() -> None:
    topic_options.configuration({"message_expiry": Typed.u64(1)}, update=True)
    with pytest.raises(IggyError) as error:
        topic_options.configuration({"segment_size": Typed.u64(1 << 20)}, update=True)
    assert error.value.code is ErrorCode.UNSUPPORTED_OPTION_KEY


@given(st.sampled_from(sorted(topic_options.CATALOGUE)), st.text(max_size=12))
def test_any_text_is_a_value_or_refused(name: str, text: str) -> None:
    try:
        config = topic_options.configuration({name: Typed.text(text or "-")})
    except IggyError:
        return
    topic_options.explicit(config)
