"""From each encoding to each other and back: key, value, headers, order, offsets and times."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import records
from penstock.log.header import Magic, checksum_matches, walk
from penstock.records.pulsar.metadata_pb2 import KeyValue, SingleMessageMetadata
from stored_batches import (
    TIME,
    Record,
    batched,
    entry,
    iggy_batch,
    iggy_body,
    join,
    kafka_batch,
    metadata,
    own,
    pulsar_batch,
    read,
)

MILLISECONDS = st.integers(0, 1 << 41).map(lambda number: number * 1000)
NAMES = st.text(max_size=12).map(str.encode) | st.text(min_size=250, max_size=300).map(str.encode)
CONTENTS = st.binary(max_size=20) | st.binary(min_size=250, max_size=600)
KEYS = st.none() | st.just(b"") | CONTENTS

kafka_records = st.lists(
    st.builds(
        Record,
        value=st.none() | CONTENTS,
        key=KEYS,
        headers=st.lists(st.tuples(NAMES, st.none() | CONTENTS), max_size=4).map(tuple),
        time=MILLISECONDS,
    ),
    min_size=1,
    max_size=5,
)
TEXTS = st.text(max_size=20)
pulsar_messages = st.lists(
    st.builds(
        SingleMessageMetadata,
        payload_size=st.just(0),
        properties=st.lists(
            st.builds(KeyValue, key=st.text(min_size=1, max_size=9), value=TEXTS),
            max_size=3,
            unique_by=lambda pair: pair.key,
        ),
        partition_key=st.none() | TEXTS,
        event_time=st.none() | st.integers(1, 1 << 41),
        ordering_key=st.none() | st.binary(max_size=9),
        sequence_id=st.integers(0, 1 << 40),
    ),
    min_size=1,
    max_size=4,
)
iggy_records = st.lists(
    st.builds(
        Record,
        value=st.binary(min_size=1, max_size=40),
        key=st.none() | st.binary(min_size=1, max_size=255),
        headers=st.dictionaries(
            st.text(min_size=1, max_size=9).map(str.encode), st.binary(min_size=1, max_size=255),
            max_size=3,
        ).map(lambda named: tuple(named.items())),
        time=st.integers(TIME, TIME + 4_000_000_000),
    ),
    min_size=1,
    max_size=5,
)  # fmt: skip


def there_and_back(stored: bytes, native: Magic, other: Magic) -> bytes:
    converted = join(records.convert(stored, other))
    for position, header in walk(converted):
        assert checksum_matches(converted[position : position + header.size])
        assert header.magic == other
    return join(records.convert(converted, native))


@pytest.mark.parametrize("other", [Magic.PULSAR, Magic.IGGY])
@given(written=kafka_records, codec=st.sampled_from(range(5)), offset=st.integers(0, 1 << 50))
def test_kafka_records_come_back(
    other: Magic, written: list[Record], codec: int, offset: int
) -> None:
    stored = kafka_batch(written, offset, codec)
    assert read(records.decode(stored)) == written
    returned = records.decode(there_and_back(stored, Magic.KAFKA, other))
    assert read(returned) == written
    assert returned.offsets.tolist() == list(range(offset, offset + len(written)))


@pytest.mark.parametrize("other", [Magic.PULSAR, Magic.IGGY])
def test_records_without_a_time_come_back(other: Magic) -> None:
    stored = kafka_batch([Record(b"a", time=-1000), Record(b"b", time=-1000)])
    returned = records.decode(there_and_back(stored, Magic.KAFKA, other))
    assert returned.timestamps.tolist() == [-1, -1]
    assert returned.headers.shape[1] == 0


@pytest.mark.parametrize("other", [Magic.KAFKA, Magic.IGGY])
@given(messages=pulsar_messages, payloads=st.lists(st.none() | CONTENTS, min_size=4, max_size=4))
def test_pulsar_messages_come_back(
    other: Magic, messages: list[SingleMessageMetadata], payloads: list[bytes | None]
) -> None:
    pairs = []
    for message, payload in zip(messages, payloads, strict=False):
        if payload is None:
            message.null_value = True
        pairs.append((message, payload or b""))
    about = metadata(num_messages_in_batch=len(pairs))
    stored = pulsar_batch(entry(about, batched(pairs)), 1000, len(pairs))
    # With event times and ordering keys, which travel as headers in between.
    returned = there_and_back(stored, Magic.PULSAR, other)
    assert read(records.decode(returned)) == read(records.decode(stored))


@pytest.mark.parametrize("other", [Magic.KAFKA, Magic.PULSAR])
@given(
    written=iggy_records,
    number=st.integers(1, (1 << 128) - 10),
    kinds=st.sampled_from([0x21, 0x22]),
)
def test_iggy_messages_come_back(
    other: Magic, written: list[Record], number: int, kinds: int
) -> None:
    if kinds == 0x22:
        written = [
            record._replace(headers=tuple((name, b"text") for name, _ in record.headers))
            for record in written
        ]
    ids = range(number, number + len(written))
    stored = iggy_batch(iggy_body(written, ids=ids, kinds=kinds), 7, len(written))
    columns = records.decode(stored, headers=False)
    assert [record[:2] for record in read(columns)] == [record[:2] for record in written]
    returned = there_and_back(stored, Magic.IGGY, other)
    before, after = records.decode(stored), records.decode(returned)
    assert read(after) == read(before)
    assert after.headers[4].tolist() == before.headers[4].tolist()


@settings(max_examples=20)
@given(written=kafka_records)
def test_a_run_of_all_encodings_is_one_table(written: list[Record]) -> None:
    first = kafka_batch(written, 10)
    count = len(written)
    run = b"".join(
        join(records.convert(kafka_batch(written, 10 + index * count), magic))
        for index, magic in enumerate([*Magic, *Magic])
    )
    columns = records.decode(run)
    assert read(columns) == 6 * read(records.decode(first))
    assert columns.offsets.tolist() == list(range(10, 10 + 6 * count))
    for target in Magic:
        converted = records.decode(join(records.convert(run, target)))
        assert own(read(converted)) == own(read(columns))
