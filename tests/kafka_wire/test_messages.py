"""What encoders and decoders promise beside the bytes: copies, defaults, versions, cost."""

from __future__ import annotations

import random
import subprocess
import sys
import time
import traceback
import uuid

import pytest

from kafka_samples import joined, message_types, random_message, versions
from penstock.kafka.wire import (
    APIS,
    NO_UUID,
    AnyApi,
    MalformedMessageError,
    api,
    api_by_key,
    decode_response,
    encode_response,
)


@pytest.mark.parametrize("each", APIS, ids=lambda each: each.name)
def test_round_trip_of_every_version(each: AnyApi) -> None:
    chance = random.Random(each.key + 2000)
    for _, message_type in message_types(each):
        for version in versions(each):
            message = random_message(message_type, version, chance)
            encoded = joined(message_type.encode(message, version))
            assert message_type.decode(encoded, version) == message
            assert message_type.decode(memoryview(encoded + b"\xff"), version) == message
            shifted = message_type.decode(b"abc" + encoded, version, 3)
            assert joined(message_type.encode(shifted, version)) == encoded


def test_all_keys_and_names() -> None:
    assert [each.key for each in APIS] == [*range(95), *range(30_000, 30_007)]
    assert api("HoldOffsets").key == 30_002
    assert api_by_key(0) is api("Produce")
    assert api_by_key(95) is None
    assert api("IncrementalAlterConfigs").key == 44
    with pytest.raises(KeyError):
        api("Consume")
    assert repr(api("Fetch")) == "<Kafka API 1 Fetch>"


def test_versions_are_facts_of_the_schema() -> None:
    assert str(api("Produce").versions) == "0-13"
    assert str(api("Produce").flexible_versions) == "9-13"
    assert 13 in api("Produce").versions
    assert 14 not in api("Produce").versions
    assert 0 not in api("SaslHandshake").flexible_versions


def fetch_response(records: object) -> object:
    response = api("Fetch").response
    partition = response.PartitionData(partition_index=1, records=records)
    topic = response.FetchableTopicResponse(topic="t", partitions=[partition])
    return response(responses=[topic, topic])


@pytest.mark.parametrize("version", [0, 4, 12, 18])
def test_records_are_parts_of_their_own(version: int) -> None:
    first, second = memoryview(bytearray(b"first")), b"second batch"
    message = fetch_response([first, second])
    parts = encode_response(api("Fetch"), version, 7, message)  # type: ignore[arg-type]
    assert parts[1] is first
    assert parts[2] is second
    assert len(parts) == 7
    frame = joined(parts)
    assert int.from_bytes(frame[:4]) == len(frame) - 4
    _, decoded = decode_response(api("Fetch"), version, frame)
    assert [bytes(topic.partitions[0].records) for topic in decoded.responses] == [
        b"firstsecond batch",
        b"firstsecond batch",
    ]


@pytest.mark.parametrize("version", [0, 12])
@pytest.mark.parametrize("records", [None, b"", [], b"one", (b"one",), memoryview(b"one")])
def test_records_as_given(version: int, records: object) -> None:
    response = api("Fetch").response
    encoded = joined(response.encode(fetch_response(records), version))  # type: ignore[arg-type]
    got = response.decode(memoryview(encoded), version).responses[1].partitions[0].records
    assert (
        got is None
        if records is None
        else bytes(got)
        == b"".join(
            [records] if isinstance(records, bytes | memoryview) else records  # type: ignore[arg-type]
        )
    )


def test_records_of_a_request_are_the_frame() -> None:
    request = api("Produce").request
    data = request.PartitionProduceData(records=b"batch")
    message = request(topic_data=[request.TopicProduceData(partition_data=[data])])
    frame = bytearray(joined(request.encode(message, 9)))
    records = request.decode(memoryview(frame), 9).topic_data[0].partition_data[0].records
    records[:] = b"BATCH"
    assert b"BATCH" in frame
    frozen = request.decode(memoryview(bytes(frame)), 9)
    assert frozen.topic_data[0].partition_data[0].records.readonly


def test_other_bytes_are_copies() -> None:
    request = api("SaslAuthenticate").request
    frame = bytearray(joined(request.encode(request(auth_bytes=b"secret"), 2)))
    auth_bytes = request.decode(memoryview(frame), 2).auth_bytes
    frame[:] = bytes(len(frame))
    assert auth_bytes == b"secret"


def test_defaults() -> None:
    request = api("Fetch").request()
    assert (request.replica_id, request.max_bytes, request.rack_id) == (-1, 2**31 - 1, "")
    assert request.cluster_id is None
    assert request.topics == []
    assert request.topics is not api("Fetch").request().topics
    assert request.replica_state.replica_epoch == -1
    assert api("Fetch").request.FetchTopic().topic_id == NO_UUID
    assert api("Metadata").request().allow_auto_topic_creation is True


def test_what_a_version_lacks_is_left_out_and_reads_as_its_default() -> None:
    request = api("Produce").request
    message = request(transactional_id="t", acks=1)
    assert request.decode(joined(request.encode(message, 2)), 2).transactional_id is None
    assert request.decode(joined(request.encode(message, 3)), 3).transactional_id == "t"


def test_tagged_fields_at_their_defaults_are_left_out() -> None:
    response = api("Produce").response
    equal = response.LeaderIdAndEpoch(leader_id=-1, leader_epoch=-1)
    sizes = []
    for leader in (None, equal, response.LeaderIdAndEpoch(leader_id=3)):
        given = {} if leader is None else {"current_leader": leader}
        partition = response.PartitionProduceResponse(**given)
        topic = response.TopicProduceResponse(name="a", partition_responses=[partition])
        sizes.append(len(joined(response.encode(response(responses=[topic]), 10))))
    assert sizes[0] == sizes[1]
    assert sizes[2] == sizes[0] + 2 + 9, "tag, size, and the struct with no tags of its own"


def test_tagged_fields_that_are_not_known_are_passed_over() -> None:
    response = api("Fetch").response
    empty = joined(response.encode(response(), 16))
    assert empty.endswith(b"\x00")
    unknown = b"\x02" + b"\x09\x03abc" + b"\x80\x01\x00"
    assert response.decode(empty[:-1] + unknown, 16) == response()
    request = api("Metadata").request
    encoded = joined(request.encode(request(), 12))
    assert request.decode(encoded[:-1] + unknown, 12) == request()


def test_more_tags_and_elements_than_one_byte_counts() -> None:
    request = api("Metadata").request
    names = [request.MetadataRequestTopic(name="n" * size) for size in range(300)]
    encoded = joined(request.encode(request(topics=names), 12))
    assert request.decode(encoded, 12).topics == names
    many = b"".join(bytes([0x80 | n & 127, 1 + (n >> 7), 0]) for n in range(200))
    assert request.decode(encoded[:-1] + b"\xc8\x01" + many, 12).topics == names
    fetch = api("Fetch").response
    encoded = joined(fetch.encode(fetch(), 16))
    assert fetch.decode(encoded[:-1] + b"\xc8\x01" + many, 16) == fetch()


def test_structs_are_compared_and_shown_by_value() -> None:
    request = api("Metadata").request
    one, same = request.MetadataRequestTopic(name="a"), request.MetadataRequestTopic(name="a")
    assert one == same
    assert one != request.MetadataRequestTopic(name="b")
    assert one != "a"
    assert repr(one) == f"MetadataRequestTopic(topic_id={NO_UUID!r}, name='a')"
    with pytest.raises(TypeError):
        hash(one)
    with pytest.raises(TypeError):
        request.MetadataRequestTopic(nme="a")
    with pytest.raises(AttributeError):
        one.nme = "a"


def test_ids_are_uuids() -> None:
    topic_id = uuid.uuid4()
    request = api("DeleteTopics").request
    message = request(topics=[request.DeleteTopicState(topic_id=topic_id)])
    encoded = joined(request.encode(message, 6))
    assert topic_id.bytes in encoded
    assert request.decode(encoded, 6).topics[0].topic_id == topic_id


def test_versions_that_do_not_exist() -> None:
    request = api("Metadata").request
    for version in (-1, 14):
        with pytest.raises(MalformedMessageError, match="no version"):
            request.decode(b"", version)
        with pytest.raises(ValueError, match="no version"):
            request.encode(request(), version)


def test_import_reads_no_schema_and_compiles_nothing() -> None:
    program = (
        "import penstock.kafka.wire.apis as apis\n"
        "assert not any('_schema' in vars(api) for api in apis.APIS)\n"
        "assert 'request' not in vars(apis.api('Produce'))\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_version_compiles_in_a_few_milliseconds() -> None:
    """Of processor time, in the best of some tries."""
    message_type = api("Fetch").response

    def each() -> float:
        message_type._decoders.clear()
        message_type._encoders.clear()
        start = time.thread_time()
        for version in versions(api("Fetch")):
            message_type.decode(joined(message_type.encode(message_type(), version)), version)
        return (time.thread_time() - start) / len(versions(api("Fetch")))

    assert min(each() for _ in range(5)) < 0.02


def test_a_traceback_shows_the_generated_line() -> None:
    response = api("Metadata").response
    message = response(topics=[response.MetadataResponseTopic(name=None)])
    with pytest.raises(AttributeError) as caught:
        response.encode(message, 5)
    shown = "".join(traceback.format_exception(caught.value))
    assert "<kafka encoder MetadataResponse v5>" in shown
    assert ".encode()" in shown
