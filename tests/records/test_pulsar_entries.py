"""Pulsar entries of every shape, read into records."""

from __future__ import annotations

import base64

import pytest

from penstock import records
from penstock.log.header import HEADER_SIZE, Magic, read_header, walk
from penstock.records import MalformedBatchError
from penstock.records.pulsar.metadata_pb2 import (
    EncryptionKeys,
    KeyValue,
    MessageMetadata,
    SingleMessageMetadata,
)
from stored_batches import (
    TIME,
    Record,
    batched,
    entries,
    entry,
    iggy_batch,
    iggy_body,
    join,
    kafka_batch,
    metadata,
    pulsar_batch,
    read,
    singles,
)

PRODUCER = (b"penstock.pulsar.producer", b"maker")
SEQUENCE = (b"penstock.pulsar.sequence", b"5")


def single(**fields: object) -> SingleMessageMetadata:
    return SingleMessageMetadata(payload_size=0, **fields)


def decoded(body: bytes, count: int = 1) -> list[Record]:
    return read(records.decode(pulsar_batch(body, 0, count)))


@pytest.mark.parametrize("checksum", [True, False])
def test_a_single_message(checksum: bool) -> None:
    about = metadata(partition_key="k", properties=[KeyValue(key="a", value="1")])
    (record,) = decoded(entry(about, b"payload", checksum=checksum))
    assert record == Record(b"payload", b"k", ((b"a", b"1"), PRODUCER, SEQUENCE))


def test_keys() -> None:
    def key(**fields: object) -> bytes | None:
        return decoded(entry(metadata(**fields), b""))[0].key

    assert key() is None
    assert key(partition_key="") == b""
    assert key(partition_key="/w==", partition_key_b64_encoded=True) == b"\xff"
    assert key(partition_key="AAEC", partition_key_b64_encoded=True) == b"\x00\x01\x02"
    assert key(partition_key="no base64", partition_key_b64_encoded=True) == b"no base64"
    assert key(partition_key="k", null_partition_key=True) is None


def test_null_and_empty_values() -> None:
    assert decoded(entry(metadata(null_value=True), b""))[0].value is None
    assert decoded(entry(metadata(), b""))[0].value == b""
    body = entry(
        metadata(num_messages_in_batch=2),
        batched([(single(null_value=True), b""), (single(), b"")]),
    )
    assert [record.value for record in decoded(body, 2)] == [None, b""]


def test_an_event_time_is_the_time_and_the_publish_time_travels_on() -> None:
    (record,) = decoded(entry(metadata(event_time=99), b""))
    assert record.time == 99_000
    published = (b"penstock.pulsar.publish-time", str(TIME // 1000).encode())
    assert record.headers == (PRODUCER, SEQUENCE, published)


def test_ordering_keys_and_rarer_fields_travel_in_headers() -> None:
    about = metadata(ordering_key=b"\xff", schema_version=b"\0\1", deliver_at_time=7)
    (record,) = decoded(entry(about, b""))
    said = dict(record.headers)
    assert said[b"penstock.pulsar.ordering-key"] == b"\xff"
    rest = MessageMetadata.FromString(base64.b64decode(said[b"penstock.pulsar.metadata"]))
    assert [field.name for field, _ in rest.ListFields()] == ["schema_version", "deliver_at_time"]
    stored = pulsar_batch(entry(about, b""))
    ((back, _),) = entries(
        join(records.convert(join(records.convert(stored, Magic.KAFKA)), Magic.PULSAR))
    )
    assert (back.schema_version, back.deliver_at_time) == (b"\0\1", 7)
    assert (back.producer_name, back.sequence_id) == ("maker", 5)
    assert (back.publish_time, back.ordering_key) == (TIME // 1000, b"\xff")


def test_a_message_that_compaction_emptied_is_a_gap() -> None:
    pairs = [(single(), b"a"), (single(compacted_out=True), b""), (single(), b"c")]
    stored = pulsar_batch(entry(metadata(num_messages_in_batch=3), batched(pairs)), 10, 3)
    run = kafka_batch([Record(b"0")], 9) + stored + kafka_batch([Record(b"1")], 13)
    columns = records.decode(run)
    assert columns.offsets.tolist() == [9, 10, 12, 13]
    assert [record.value for record in read(columns)] == [b"0", b"a", b"c", b"1"]
    for target in Magic:
        converted = join(records.convert(run, target))
        assert records.decode(converted).offsets.tolist() == [9, 10, 12, 13]
        assert [header.next_offset for _, header in walk(converted)] == [10, 13, 14]


def spans(batches: bytes) -> list[tuple[int, int, int]]:
    """Return where batches begin and end, and how many records they have."""
    return [(each.base_offset, each.next_offset, each.record_count) for _, each in walk(batches)]


def test_an_entry_ends_at_a_gap_and_readers_pass_over_it() -> None:
    body = iggy_body([Record(b"a"), Record(b"b")], deltas=1)
    stored = bytearray(iggy_batch(body, 20, 2))
    stored[23:27] = (3).to_bytes(4, "big")
    columns = records.decode(stored)
    assert columns.offsets.tolist() == [21, 22]
    converted = join(records.convert(stored, Magic.PULSAR))
    assert spans(converted) == [(21, 23, 2), (23, 24, 0)]
    ((about, payload),) = entries(converted[: read_header(converted).size])
    assert about.num_messages_in_batch == 2
    assert [message.compacted_out for message, _ in singles(payload)] == [False, False]


def test_each_run_of_a_batch_becomes_an_entry() -> None:
    pairs = [(single(compacted_out=number % 3 == 1), b"%d" % number) for number in range(8)]
    said = metadata(num_messages_in_batch=8)
    kafka = join(records.convert(pulsar_batch(entry(said, batched(pairs)), 10, 8), Magic.KAFKA))
    run = kafka_batch([Record(b"before")], 9) + kafka
    converted = join(records.convert(run, Magic.PULSAR))
    assert spans(converted) == [(9, 10, 1), (10, 11, 1), (12, 14, 2), (15, 17, 2), (17, 18, 0)]
    filled = converted[:-HEADER_SIZE]
    assert [about.num_messages_in_batch for about, _ in entries(filled)] == [1, 1, 2, 2]
    assert {about.producer_name for about, _ in entries(filled)} == {"penstock", "maker"}
    found = [record.value for record in read(records.decode(converted))]
    assert found == [b"before", b"0", b"2", b"3", b"5", b"6"]


def test_a_gap_takes_no_memory() -> None:
    stored = bytearray(iggy_batch(iggy_body([Record(b"a")]), 0))
    stored[23:27] = (1 << 30).to_bytes(4, "big")
    assert len(records.decode(stored)) == 1
    converted = join(records.convert(stored, Magic.PULSAR))
    assert len(converted) < 500
    assert spans(converted) == [(0, 1, 1), (1, (1 << 30) + 1, 0)]


def test_an_encrypted_entry_is_one_opaque_record() -> None:
    about = metadata(
        encryption_keys=[EncryptionKeys(key="k", value=b"v")],
        num_messages_in_batch=3,
        compression=1,
        uncompressed_size=1000,
    )
    stored = pulsar_batch(entry(about, b"secret"), 5, 3)
    columns = records.decode(stored)
    (record,) = read(columns)
    assert (record.value, columns.offsets.tolist()) == (b"secret", [5])
    whole = base64.b64decode(dict(record.headers)[b"penstock.pulsar.metadata"])
    assert MessageMetadata.FromString(whole) == about
    (converted,) = records.convert(stored, Magic.KAFKA)
    assert [header.next_offset for _, header in walk(converted)] == [8]
    assert list(records.convert(stored, Magic.PULSAR)) == [stored]
    again = join(records.convert(converted, Magic.PULSAR))
    assert spans(again) == [(5, 6, 1), (6, 8, 0)]
    ((back, _),) = entries(again[: read_header(again).size])
    assert not back.encryption_keys


@pytest.mark.parametrize("fields", [{"marker_type": 21}, {"num_chunks_from_msg": 2}])
def test_markers_and_chunks_hold_no_records(fields: dict[str, int]) -> None:
    stored = pulsar_batch(entry(metadata(**fields), b"payload"))
    assert len(records.decode(stored)) == 0
    assert list(records.convert(stored, Magic.KAFKA)) == []
    assert list(records.convert(stored, Magic.PULSAR)) == [stored]


def test_the_counts_of_header_and_metadata_agree() -> None:
    body = entry(metadata(num_messages_in_batch=2), batched([(single(), b"a"), (single(), b"b")]))
    with pytest.raises(MalformedBatchError):
        decoded(body, 1)
    with pytest.raises(MalformedBatchError):
        decoded(entry(metadata(), b""), 2)


def test_metadata_without_what_is_required() -> None:
    about = MessageMetadata(producer_name="maker", sequence_id=1)
    body = entry(metadata(), b"")
    encoded = about.SerializePartialToString()
    assert decoded(body)
    with pytest.raises(MalformedBatchError):
        decoded(len(encoded).to_bytes(4, "big") + encoded)


def test_fields_that_are_not_known_are_skipped() -> None:
    encoded = metadata().SerializeToString()
    unknown = b"\xfa\x3f\x03abc" + b"\xf1\x3f12345678" + b"\xf5\x3f1234" + b"\xf0\x3f\x05"
    summed = (len(encoded) + len(unknown)).to_bytes(4, "big") + unknown + encoded + b"payload"
    assert decoded(summed)[0].value == b"payload"
    with pytest.raises(MalformedBatchError):
        decoded((len(encoded) + 1).to_bytes(4, "big") + encoded + b"\x0b")


def test_a_batch_for_pulsar_is_what_its_clients_expect() -> None:
    written = [Record(b"a", b"\xff", ((b"h", b"1"),)), Record(None, b"k", time=TIME + 5_000)]
    stored = kafka_batch(written, 40)
    ((about, payload),) = entries(join(records.convert(stored, Magic.PULSAR)))
    assert (about.producer_name, about.sequence_id) == ("penstock", 40)
    assert (about.num_messages_in_batch, about.publish_time) == (2, TIME // 1000 + 5)
    assert (about.partition_key, about.partition_key_b64_encoded) == ("/w==", True)
    (first, _), (second, _) = singles(payload)
    assert (first.partition_key, first.partition_key_b64_encoded) == ("/w==", True)
    assert (first.event_time, first.properties[0].key) == (TIME // 1000, "h")
    assert (second.partition_key, second.null_value) == ("k", True)
    assert not second.HasField("partition_key_b64_encoded")


def test_records_of_two_producers_keep_their_names_as_properties() -> None:
    one = pulsar_batch(entry(metadata(), b"1"))
    two = pulsar_batch(entry(metadata(producer_name="other"), b"2"))
    found = read(records.decode(one)) + read(records.decode(two))
    ((about, payload),) = entries(join(records.convert(kafka_batch(found), Magic.PULSAR)))
    assert about.producer_name == "penstock"
    names = [message.properties[0].value for message, _ in singles(payload)]
    assert names == ["maker", "other"]
