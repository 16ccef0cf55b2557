"""Typed entries on the wire, and the options of topics behind them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iggy_messages import entries, options
from penstock.broker.settings import BrokerSettings, Flush
from penstock.broker.topics.config import TopicConfig
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
from penstock.log import LogConfig

NODE = BrokerSettings()


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
    ("name", "value", "setting", "kept"),
    [
        ("segment_size", Typed.text("128 MiB"), "segment_bytes", "134217728"),
        ("segment_size", Typed.u64(1 << 20), "segment_bytes", "1048576"),
        ("max_topic_size", Typed.text("1.5 GiB"), "retention_topic_bytes", "1610612736"),
        ("max_topic_size", Typed.text("unlimited"), "retention_topic_bytes", "-1"),
        ("max_topic_size", Typed.u64((1 << 64) - 1), "retention_topic_bytes", "-1"),
        ("message_expiry", Typed.text("1day 2h"), "retention_ms", str(26 * 3600 * 10**3)),
        ("message_expiry", Typed.text("never"), "retention_ms", "-1"),
        ("message_expiry", Typed.u64(5000), "retention_ms", "5"),
        ("compression_algorithm", Typed.text("GZIP"), "compression_label", "gzip"),
        ("compression_algorithm", Typed(ValueKind.UINT8, b"\2"), "compression_label", "gzip"),
        ("durability", Typed.text("persisted"), "flush", "acknowledged"),
        (
            "consumer_offset_durability",
            Typed.text("persisted"),
            "consumer_offset_durability",
            "persisted",
        ),
        ("preallocate_segments", Typed.boolean(True), "preallocate", "true"),
        ("preallocate_segments", Typed.text("false"), "preallocate", "false"),
        ("messages_required_to_save", Typed.u32(7), "save_after_messages", "7"),
        ("size_of_messages_required_to_save", Typed.text("1 KiB"), "save_after_bytes", "1024"),
    ],
)
def test_option_is_a_setting_and_back(name: str, value: Typed, setting: str, kept: str) -> None:
    settings = topic_options.settings_of({name: value}, NODE)
    assert settings == {setting: kept}
    config = TopicConfig.of(settings, NODE)
    (explicit,) = topic_options.explicit(config).items()
    assert explicit[0] == name
    assert explicit[1].kind is topic_options.OPTIONS[name].kind
    # What goes out can come in again and means the same.
    assert topic_options.settings_of(dict([explicit]), NODE) == settings
    assert name not in topic_options.derived(config)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("message_expiry", Typed.u64(0)),
        ("max_topic_size", Typed.text("server_default")),
        ("segment_size", Typed.u64(0)),
        ("size_of_messages_required_to_save", Typed.u64(0)),
    ],
)
def test_what_is_left_to_the_server_is_not_set(name: str, value: Typed) -> None:
    assert topic_options.settings_of({name: value}, NODE) == {}


def test_durability_that_asks_for_less_than_is_given_sets_nothing() -> None:
    settings = topic_options.settings_of({"durability": Typed.text("replicated")}, NODE)
    assert settings == {}
    config = TopicConfig.of(settings, NODE)
    assert config.flush is Flush.ACKNOWLEDGED
    assert topic_options.derived(config)["durability"] == Typed.text("replicated")


def test_what_other_protocols_set_is_shown_in_the_words_of_options() -> None:
    settings = {
        "retention_ms": "60000",
        "segment_bytes": "52428800",
        "flush": "written",
        "max_message_bytes": "100",
    }
    assert topic_options.explicit(TopicConfig.of(settings, NODE)) == {
        "message_expiry": Typed.u64(60_000_000),
        "segment_size": Typed.u64(50 << 20),
        "durability": Typed.text("replicated"),
    }
    endless = TopicConfig.of({"retention_ms": str((1 << 63) - 1)}, NODE)
    assert topic_options.explicit(endless) == {"message_expiry": Typed.u64((1 << 64) - 1)}


def test_rounded_expiry_is_never_early() -> None:
    assert topic_options.settings_of({"message_expiry": Typed.u64(1)}, NODE) == {
        "retention_ms": "1"
    }


def test_defaults_of_the_node_are_derived() -> None:
    node = BrokerSettings(log=LogConfig(segment_bytes=1 << 20))
    config = TopicConfig.of({}, node)
    assert topic_options.derived(config).keys() == topic_options.OPTIONS.keys()
    assert topic_options.derived(config)["segment_size"] == Typed.u64(1 << 20)


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("unheard_of", Typed.text("x"), ErrorCode.UNSUPPORTED_OPTION_KEY),
        ("segment_size", Typed.text("many"), ErrorCode.INVALID_OPTION_VALUE),
        ("segment_size", Typed.text("1 lightyear"), ErrorCode.INVALID_OPTION_VALUE),
        ("segment_size", Typed.u64(1000), ErrorCode.INVALID_OPTION_VALUE),
        ("segment_size", Typed.u64((1 << 20) + 1), ErrorCode.INVALID_OPTION_VALUE),
        ("max_topic_size", Typed.text("99999999999999999999"), ErrorCode.INVALID_OPTION_VALUE),
        ("max_topic_size", Typed.text("-5 MiB"), ErrorCode.INVALID_OPTION_VALUE),
        ("message_expiry", Typed.text("-1s"), ErrorCode.INVALID_OPTION_VALUE),
        ("message_expiry", Typed.text("soon"), ErrorCode.INVALID_OPTION_VALUE),
        ("message_expiry", Typed.text("1 fortnight"), ErrorCode.INVALID_OPTION_VALUE),
        ("message_expiry", Typed(ValueKind.INT64, bytes(8)), ErrorCode.INVALID_OPTION_VALUE),
        ("compression_algorithm", Typed.text("zip"), ErrorCode.INVALID_OPTION_VALUE),
        ("compression_algorithm", Typed.u32(1), ErrorCode.INVALID_OPTION_VALUE),
        ("compression_algorithm", Typed(ValueKind.UINT8, b"\3"), ErrorCode.INVALID_OPTION_VALUE),
        ("segment_size", Typed.u32(1 << 20), ErrorCode.INVALID_OPTION_VALUE),
        ("segment_size", Typed(ValueKind.UINT64, b"\0\0\x10"), ErrorCode.INVALID_OPTION_VALUE),
        ("messages_required_to_save", Typed.u32(0), ErrorCode.INVALID_OPTION_VALUE),
        ("messages_required_to_save", Typed.u32(1 << 25), ErrorCode.INVALID_OPTION_VALUE),
        ("preallocate_segments", Typed(ValueKind.BOOL, b"\2"), ErrorCode.INVALID_OPTION_VALUE),
        ("durability", Typed.text("none"), ErrorCode.INVALID_OPTION_VALUE),
        ("durability", Typed(ValueKind.STRING, b"\xff"), ErrorCode.INVALID_UTF8),
        ("preallocate_segments", Typed.u32(1), ErrorCode.INVALID_OPTION_VALUE),
    ],
)
def test_option_that_means_nothing_is_refused(name: str, value: Typed, code: ErrorCode) -> None:
    with pytest.raises(IggyError) as error:
        topic_options.settings_of({name: value}, NODE)
    assert error.value.code is code


def test_update_changes_only_what_may_change() -> None:
    topic_options.settings_of({"message_expiry": Typed.u64(1)}, NODE, update=True)
    with pytest.raises(IggyError) as error:
        topic_options.settings_of({"segment_size": Typed.u64(1 << 20)}, NODE, update=True)
    assert error.value.code is ErrorCode.UNSUPPORTED_OPTION_KEY


@given(st.sampled_from(sorted(topic_options.OPTIONS)), st.text(max_size=12))
def test_any_text_is_a_value_or_refused(name: str, text: str) -> None:
    try:
        settings = topic_options.settings_of({name: Typed.text(text or "-")}, NODE)
    except IggyError:
        return
    topic_options.explicit(TopicConfig.of(settings, NODE))
