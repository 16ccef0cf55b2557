"""Keys go where Kafka's own clients put them."""

from __future__ import annotations

import pytest
from aiokafka.partitioner import murmur2 as reference
from hypothesis import given
from hypothesis import strategies as st

from penstock.clients.kafka.partitioner import murmur2, partition_of


@pytest.mark.parametrize(
    ("key", "expected"), [(b"21", -973932308), (b"foobar", -790332482), (b"abc", 479470107)]
)
def test_hashes_that_kafka_publishes(key: bytes, expected: int) -> None:
    assert murmur2(key) == expected % (1 << 32)


@given(key=st.binary(max_size=70))
def test_every_key_hashes_as_in_aiokafka(key: bytes) -> None:
    assert murmur2(key) == reference(key) % (1 << 32)


@given(key=st.binary(max_size=20), partitions=st.integers(1, 1000))
def test_a_key_has_one_partition_of_those_there_are(key: bytes, partitions: int) -> None:
    assert 0 <= partition_of(key, partitions) < partitions
