"""Requests that real clients sent (see record_golden.py): whole, with more behind them, cut off."""

from __future__ import annotations

import pytest

from kafka_golden import GOLDEN, Golden, golden_frame
from penstock.kafka.wire import (
    MalformedMessageError,
    api,
    decode_request,
    decode_request_header,
    encode_request,
    frame_size,
)

LIMIT = 100 << 20


every_frame = pytest.mark.parametrize(
    "golden", GOLDEN, ids=lambda golden: f"{golden.client}-{golden.api}-{golden.version}"
)


def resized(frame: bytes) -> bytes:
    """The frame with the size that it now has."""
    return (len(frame) - 4).to_bytes(4) + frame[4:]


def rewritten(frame: bytes) -> bytes:
    header, request = decode_request(frame)
    parts = encode_request(
        header.api, header.version, header.correlation_id, header.client_id, request
    )
    return b"".join(parts)


def test_all_clients_are_there() -> None:
    assert {each.client for each in GOLDEN} == {"aiokafka", "confluent_kafka", "kafka_python"}
    for client in ("aiokafka", "confluent_kafka", "kafka_python"):
        apis = {each.api for each in GOLDEN if each.client == client}
        assert apis >= {"ApiVersions", "Metadata", "Produce", "Fetch", "JoinGroup", "SyncGroup"}


@every_frame
def test_whole(golden: Golden) -> None:
    header = decode_request_header(golden.frame)
    assert (header.api.name, header.version) == (golden.api, golden.version)
    assert frame_size(golden.frame, LIMIT) == len(golden.frame)
    # What we write for what we read is what the client wrote: nothing was lost or misread.
    assert rewritten(golden.frame) == golden.frame


@every_frame
def test_trailing_bytes_are_ignored(golden: Golden) -> None:
    # librdkafka leaves some: what follows the last field is no error.
    longer = resized(golden.frame + b"\x07\x00\xff")
    assert rewritten(longer) == golden.frame


@every_frame
def test_cut_off_at_every_byte(golden: Golden) -> None:
    for size in range(len(golden.frame)):
        cut = golden.frame[:size]
        if size < 4:
            assert frame_size(cut, LIMIT) is None
        with pytest.raises(MalformedMessageError):
            decode_request(resized(cut) if size >= 4 else cut)
        with pytest.raises(MalformedMessageError):
            decode_request(cut)


@pytest.mark.parametrize("client", ["aiokafka", "confluent_kafka", "kafka_python"])
def test_produced_records_are_the_frame_itself(client: str) -> None:
    frame = bytearray(golden_frame(client, "Produce"))
    _, request = decode_request(memoryview(frame))
    (topic,) = request.topic_data
    (partition,) = topic.partition_data
    records = partition.records
    assert isinstance(records, memoryview)
    assert records[16] == 2, "record batch v2"
    assert int.from_bytes(records[57:61]) == 3, "three records"
    records[0:8] = b"\x11" * 8
    assert b"\x11" * 8 in frame


def test_what_confluent_kafka_says_of_itself() -> None:
    header, request = decode_request(golden_frame("confluent_kafka", "ApiVersions"))
    assert header.client_id == "rdkafka"
    assert request.client_software_name == "confluent-kafka-python"


def test_what_clients_ask_for() -> None:
    _, metadata = decode_request(golden_frame("aiokafka", "Metadata"))
    assert metadata.topics == [] or metadata.topics[0].name == "golden"
    _, join = decode_request(golden_frame("kafka_python", "JoinGroup"))
    assert join.group_id == "golden"
    assert join.protocol_type == "consumer"
    _, fetch = decode_request(golden_frame("confluent_kafka", "Fetch"))
    assert fetch.topics[0].partitions[0].fetch_offset == 0


def test_a_body_is_not_read_for_a_version_that_is_not_there() -> None:
    frame = bytearray(golden_frame("confluent_kafka", "ApiVersions"))
    frame[6:8] = (99).to_bytes(2)
    header = decode_request_header(frame)
    assert header.api is api("ApiVersions")
    assert header.version == 99
    assert header.client_id == "rdkafka"
    with pytest.raises(MalformedMessageError, match="no version 99"):
        header.api.request.decode(frame, header.version, header.body_start)
