from __future__ import annotations

from pathlib import Path

import pytest

from penstock.pipeline.source.kafka_options import NO_EFFECT, REFUSED
from penstock.pipeline.source.offsets import TopicPartition
from penstock.pipeline.source.options import (
    OnCorruption,
    OptionError,
    ReadMode,
    Retries,
    columns_of,
    parse,
)
from penstock.pipeline.source.positions import Strategy, Times

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
    assert columns_of(options)[-1] == "headers"


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
        ({**SERVERS}, "exactly one of the options subscribe, subscribePattern and assign"),
        (
            {**BASE, "assign": '{"a":[0]}'},
            "exactly one of the options subscribe, subscribePattern and assign",
        ),
        ({**SERVERS, "subscribe": " , "}, "subscribe names no topic"),
        ({**SERVERS, "assign": "a"}, "assign must be JSON"),
        ({**SERVERS, "assign": '{"a": [-1]}'}, "assign must be JSON"),
        ({**SERVERS, "assign": '["a"]'}, "assign must be JSON"),
        ({**BASE, "startingoffset": "latest"}, "did you mean startingOffsets"),
        ({**BASE, "kafka.security.protocol": "TLS"}, "must be one of PLAINTEXT, SSL"),
        ({**BASE, "penstock.bootstrap.servers": "nowhere"}, "not of the form host:port"),
        ({**BASE, "startingOffsets": "newest"}, "startingOffsets must be earliest, latest or JSON"),
        ({**BASE, "startingOffsets": '{"a": {"0": -3}}'}, "offset below -2"),
        ({**BASE, "endingOffsets": "earliest"}, "endingOffsets must be latest or JSON"),
        ({**BASE, "endingOffsets": '{"a": {"0": -2}}'}, "offset below -1"),
        ({**BASE, "maxOffsetsPerTrigger": "0"}, "whole number above 0"),
        ({**BASE, "minPartitions": "many"}, "whole number above 0"),
        ({**BASE, "failOnDataLoss": "no"}, "failOnDataLoss must be true or false"),
        ({**BASE, "readMode": "fast"}, "readMode must be one of auto, log, wire"),
        ({**SERVERS, "subscribePattern": "a("}, "subscribePattern must be a regular expression"),
        ({**BASE, "startingOffsets": "latest"}, "a batch that begins at the end reads nothing"),
        ({**BASE, "startingOffsets": '{"orders": {"0": -1}}'}, "is for streams"),
        ({**BASE, "startingTimestamp": "yesterday"}, "startingTimestamp must be milliseconds"),
        ({**BASE, "startingOffsetsByTimestamp": "5"}, "must be JSON of milliseconds"),
        ({**BASE, "endingOffsetsByTimestamp": '{"a": {"0": -5}}'}, "a time below 0"),
        (
            {**BASE, "startingOffsetsByTimestampStrategy": "first"},
            "startingOffsetsByTimestampStrategy must be one of error, latest",
        ),
        (
            {**BASE, "minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "8"},
            "minOffsetsPerTrigger 9 must not be above maxOffsetsPerTrigger 8",
        ),
        ({**BASE, "maxTriggerDelay": "soon"}, "maxTriggerDelay must be a duration such as"),
        ({**BASE, "maxRecordsPerPartition": "0"}, "maxRecordsPerPartition must be a whole number"),
        ({**BASE, "fetchOffset.numRetries": "-1"}, "fetchOffset.numRetries must be a whole"),
        ({**BASE, "kafkaConsumer.pollTimeoutMs": "x"}, "kafkaConsumer.pollTimeoutMs must be"),
        ({**BASE, "groupIdPrefix": " "}, "groupIdPrefix must not be empty"),
        ({**BASE, "kafka.group.id": ""}, "kafka.group.id must not be empty"),
        ({**BASE, "kafka.auto.offset.reset": "latest"}, "set startingOffsets instead"),
        ({**BASE, "kafka.enable.auto.commit": "true"}, "set kafka.group.id"),
        ({**BASE, "kafka.value.deserializer": "x"}, "values are bytes"),
        ({**BASE, "kafka.ssl.truststore.location": "x"}, "in PEM as tlsCaFile"),
        ({**BASE, "kafka.sasl.mechanism": "PLAIN"}, "kafka.sasl.jaas.config belong together"),
        ({**BASE, "kafka.isolation.levle": "x"}, "did you mean kafka.isolation.level"),
        ({**BASE, "flatten": "true"}, "give schema with it"),
        (
            {**BASE, "flatten": "true", "schema": "a INT", "filterPushdown": "true"},
            "leave out flatten",
        ),
        ({**BASE, "columns": "key,colour"}, "columns must name some of key, value"),
        ({**BASE, "columns": "key,KEY"}, "each once"),
        ({**BASE, "columns": ""}, "columns must name some of"),
        ({**BASE, "columns": "key", "includeHeaders": "true"}, "does not name headers"),
        ({**BASE, "onCorruption": "ignore"}, "onCorruption must be one of fail, skip, deadLetter"),
        ({**BASE, "onCorruption": "deadLetter"}, "belong together"),
        ({**BASE, "deadLetterPath": "/tmp/x"}, "belong together"),
    ],
)
def test_what_is_wrong_is_named_with_what_is_right(options: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        parse(options, streaming=False)


def test_a_stream_has_no_ending_offsets() -> None:
    with pytest.raises(OptionError, match="end a stream with its trigger"):
        parse({**BASE, "endingOffsets": "latest"}, streaming=True)


def test_all_options_of_sparks_kafka_source_are_taken() -> None:
    given = {
        "kafka.bootstrap.servers": "b:1",
        "subscribePattern": "orders-.*",
        "startingTimestamp": "1500000000000",
        "startingOffsetsByTimestamp": '{"orders": {"0": 1000}}',
        "startingOffsetsByTimestampStrategy": "LATEST",
        "maxOffsetsPerTrigger": "1000",
        "minOffsetsPerTrigger": "10",
        "maxTriggerDelay": "90s",
        "minPartitions": "7",
        "maxRecordsPerPartition": "5000",
        "failOnDataLoss": "false",
        "includeHeaders": "true",
        "groupIdPrefix": "mine",
        "fetchOffset.numRetries": "5",
        "fetchOffset.retryIntervalMs": "0",
        "kafkaConsumer.pollTimeoutMs": "1500",
        "kafka.isolation.level": "read_uncommitted",
        "kafka.client.id": "job",
        "kafka.request.timeout.ms": "2000",
        "kafka.max.poll.records": "100",
        "kafka.security.protocol": "plaintext",
    }
    options = parse(given, streaming=True)
    assert options.pattern is not None
    assert options.pattern.fullmatch("orders-1")
    assert options.starting == Times("startingTimestamp", 1_500_000_000_000, Strategy.LATEST)
    assert (options.max_offsets_per_trigger, options.min_offsets_per_trigger) == (1000, 10)
    assert (options.max_trigger_delay_s, options.poll_timeout_s) == (90, 1.5)
    assert (options.min_partitions, options.max_records_per_partition) == (7, 5000)
    assert options.retries == Retries(5, 0)
    assert not options.committed
    assert (options.kafka.client_id, options.kafka.timeout_s) == ("job", 2)


def test_a_time_for_each_partition_counts_where_there_is_none_for_all() -> None:
    text = '{"orders": {"0": 1000, "1": 2000}}'
    both = {"startingOffsetsByTimestamp": text, "startingOffsets": "latest"}
    starting = parse({**BASE, **both}, streaming=False).starting
    assert isinstance(starting, Times)
    assert starting.of(TopicPartition("orders", 1)) == 2000
    assert starting.strategy is Strategy.ERROR


@pytest.mark.parametrize("name", ["endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"])
def test_a_stream_ends_by_its_trigger(name: str) -> None:
    with pytest.raises(OptionError, match=f"{name} is for batch reads"):
        parse({**BASE, name: "1000"}, streaming=True)


def test_a_stream_takes_no_conditions() -> None:
    with pytest.raises(OptionError, match="filterPushdown is for batch reads"):
        parse({**BASE, "filterPushdown": "true"}, streaming=True)


def test_a_group_is_named_or_made_of_a_prefix_and_the_topics() -> None:
    def group(**options: str) -> str | None:
        named = {name.replace("_", "."): value for name, value in options.items()}
        return parse({**SERVERS, **named}, streaming=True).group

    assert group(subscribe="a") is None
    assert group(subscribe="a", kafka_group_id="g", groupIdPrefix="p") == "g"
    first, again = (group(subscribe="a", groupIdPrefix="p") for _ in range(2))
    assert first == again
    assert first is not None
    assert first.startswith("p-")
    assert first != group(subscribe="b", groupIdPrefix="p")


def test_every_option_of_kafkas_consumer_has_its_reason(caplog: pytest.LogCaptureFixture) -> None:
    tuning = {f"kafka.{name}": "1" for name in NO_EFFECT}
    with caplog.at_level("INFO"):
        parse({**BASE, **tuning}, streaming=False)
    assert all(any(name in each.getMessage() for each in caplog.records) for name in tuning)
    for name, reason in REFUSED.items():
        with pytest.raises(OptionError, match=reason):
            parse({**BASE, f"kafka.{name}": "1"}, streaming=False)


def test_columns_come_in_the_order_in_which_they_are_named() -> None:
    assert columns_of({"columns": "Offset, KEY"}) == ("offset", "key")
    assert parse({**BASE, "columns": "headers"}, streaming=False).include_headers


def test_dead_letters_go_to_a_folder(tmp_path: Path) -> None:
    given = {**BASE, "onCorruption": "DEADLETTER", "deadLetterPath": str(tmp_path / "dead")}
    options = parse(given, streaming=False)
    assert options.on_corruption is OnCorruption.DEAD_LETTER
    assert options.dead_letters == tmp_path / "dead"


def test_what_is_typed_is_a_column() -> None:
    with pytest.raises(OptionError, match="schema is for value, which columns leaves out"):
        parse({**BASE, "schema": "id BIGINT", "columns": "key"}, streaming=False)
