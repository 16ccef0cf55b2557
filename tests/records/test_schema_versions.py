"""The versions of schemas that Pulsar's entries name."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.records import MalformedBatchError
from penstock.records.pulsar.metadata_pb2 import SingleMessageMetadata
from penstock.records.pulsar.schema_versions import NO_VERSION, schema_versions
from stored_batches import Record, batched, entry, join, kafka_batch, metadata, pulsar_batch


def versioned(version: bytes | None, offset: int, count: int = 1) -> bytes:
    said = {} if version is None else {"schema_version": version}
    if count == 1:
        return pulsar_batch(entry(metadata(**said), b"value"), offset)
    payload = batched([(SingleMessageMetadata(payload_size=0), b"value")] * count)
    body = entry(metadata(**said, num_messages_in_batch=count), payload)
    return pulsar_batch(body, offset, count)


def number(version: int) -> bytes:
    return version.to_bytes(8)


def test_each_message_has_the_version_of_its_entry() -> None:
    plain = kafka_batch([Record(b"key", b"value")], 9)
    run = join([versioned(number(3), 2, 4), versioned(None, 6), versioned(number(0), 7), plain])
    found = schema_versions(run).of(np.array([2, 5, 6, 7, 9]))
    assert found.tolist() == [3, 3, NO_VERSION, 0, NO_VERSION]


@pytest.mark.parametrize("version", [b"", b"\1", bytes(7), bytes(9), bytes(300)])
def test_a_version_that_is_no_number_is_none(version: bytes) -> None:
    assert schema_versions(versioned(version, 0)).of(np.array([0])).tolist() == [NO_VERSION]


def test_entries_that_can_not_be_read_are_reported() -> None:
    with pytest.raises(MalformedBatchError):
        schema_versions(pulsar_batch(b"\0\0\0\x09", 0))
