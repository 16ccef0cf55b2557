from __future__ import annotations

import pytest

from penstock.pipeline.source.offsets import TopicPartition
from penstock.pipeline.source.options import OptionError, ReadMode, includes_headers, parse

SERVERS = {"penstock.bootstrap.servers": "127.0.0.1:9092"}
BASE = {**SERVERS, "subscribe": "orders"}


def test_a_batch_reads_all_there_is_unless_told_otherwise() -> None:
    options = parse(BASE, streaming=False)
    assert options.servers == "127.0.0.1:9092"
    assert options.topics == ("orders",)
    assert (options.starting, options.ending) == (-2, -1)
    assert options.fail_on_data_loss
    assert not options.include_headers
    assert options.read_mode is ReadMode.AUTO


def test_a_stream_begins_with_what_is_new() -> None:
    assert parse(BASE, streaming=True).starting == -1


def test_names_are_taken_in_any_case_and_kafkas_address_too() -> None:
    options = {"KAFKA.bootstrap.servers": "b:1", "SUBSCRIBE": "a, b,a", "INCLUDEheaders": "TRUE"}
    parsed = parse(options, streaming=False)
    assert parsed.servers == "b:1"
    assert parsed.topics == ("a", "b")
    assert parsed.include_headers
    assert includes_headers(options)


def test_partitions_can_be_assigned() -> None:
    parsed = parse({**SERVERS, "assign": '{"a": [1, 0], "b": [3]}'}, streaming=False)
    assert parsed.assigned == (
        TopicPartition("a", 1),
        TopicPartition("a", 0),
        TopicPartition("b", 3),
    )
    assert parsed.topics == ("a", "b")


def test_positions_can_be_offsets_or_words() -> None:
    text = '{"orders": {"0": 17, "1": -2}}'
    parsed = parse({**BASE, "startingOffsets": text, "endingOffsets": "latest"}, streaming=False)
    assert parsed.starting == {TopicPartition("orders", 0): 17, TopicPartition("orders", 1): -2}
    assert parsed.ending == -1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subscribe": "a"}, "penstock.bootstrap.servers is missing"),
        ({**SERVERS}, "exactly one of the options subscribe and assign"),
        ({**BASE, "assign": '{"a":[0]}'}, "exactly one of the options subscribe and assign"),
        ({**SERVERS, "subscribe": " , "}, "subscribe names no topic"),
        ({**SERVERS, "assign": "a"}, "assign must be JSON"),
        ({**SERVERS, "assign": '{"a": [-1]}'}, "assign must be JSON"),
        ({**SERVERS, "assign": '["a"]'}, "assign must be JSON"),
        ({**BASE, "startingoffset": "latest"}, "did you mean startingOffsets"),
        ({**BASE, "kafka.security.protocol": "SSL"}, "unknown option"),
        ({**BASE, "penstock.bootstrap.servers": "nowhere"}, "not of the form host:port"),
        ({**BASE, "startingOffsets": "newest"}, "startingOffsets must be earliest, latest or JSON"),
        ({**BASE, "startingOffsets": '{"a": {"0": -3}}'}, "offset below -2"),
        ({**BASE, "endingOffsets": "earliest"}, "endingOffsets must be latest or JSON"),
        ({**BASE, "endingOffsets": '{"a": {"0": -2}}'}, "offset below -1"),
        ({**BASE, "maxOffsetsPerTrigger": "0"}, "whole number above 0"),
        ({**BASE, "minPartitions": "many"}, "whole number above 0"),
        ({**BASE, "failOnDataLoss": "no"}, "failOnDataLoss must be true or false"),
        ({**BASE, "readMode": "fast"}, "readMode must be one of auto, log, wire"),
    ],
)
def test_what_is_wrong_is_named_with_what_is_right(options: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        parse(options, streaming=False)


def test_a_stream_has_no_ending_offsets() -> None:
    with pytest.raises(OptionError, match="end a stream with its trigger"):
        parse({**BASE, "endingOffsets": "latest"}, streaming=True)
