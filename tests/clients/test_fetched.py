"""Goal: what a broker cuts off is no damage, and what is damaged is never handed out."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from penstock.clients.kafka.connection import ClientConnection
from penstock.clients.kafka.fetched import DamagedBatchError, Fetched
from penstock.clients.kafka.fetching import FetchingClient
from penstock.clients.kafka.record_batch import Record, encode_batch
from penstock.kafka.wire import api
from penstock.limits import KAFKA_RESPONSE_BYTES
from penstock.log.header import stamp, walk

FETCH = api("Fetch")


def stored(*sizes: int) -> bytes:
    batches = b""
    for offset, size in enumerate(sizes):
        batch = encode_batch([Record(b"v" * size)])
        stamp(batch, offset, 0)
        batches += batch
    return batches


def answer(records: bytes) -> Any:
    response = FETCH.response
    partition = response.PartitionData(records=records, aborted_transactions=None)
    return response(responses=[response.FetchableTopicResponse(partitions=[partition])])


def offsets(fetched: Fetched) -> list[int]:
    return [header.base_offset for _, header in walk(fetched.batches)]


class CuttingBroker(ClientConnection):
    """Answers as Apache Kafka may: with as many bytes as were asked for, wherever that cuts."""

    def __init__(self, batches: bytes) -> None:
        super().__init__("nowhere:1", "test", 1)
        self.batches = batches
        self.asked: list[int] = []

    def versions(self) -> dict[int, tuple[int, int]]:
        return {FETCH.key: (4, 12)}

    def send(self, api: Any, request: Any, newest: int | None = None) -> Any:  # its only one
        self.asked.append(request.max_bytes)
        return answer(self.batches[: request.max_bytes])


def test_a_batch_that_is_cut_off_is_left_out() -> None:
    batches = stored(100, 100, 100)
    for end in range(len(stored(100)), len(batches) + 1):
        found = Fetched.of(answer(batches[:end]).responses[0].partitions[0])
        assert offsets(found) == list(range(end // (len(batches) // 3)))
        assert len(found.batches) == len(found.sound().batches)


@pytest.mark.parametrize("max_bytes", [1, 11, 12, 60, 5000])
def test_a_first_batch_that_is_cut_off_is_asked_for_as_a_whole(max_bytes: int) -> None:
    broker = CuttingBroker(stored(5000, 10))
    fetched = FetchingClient(broker).fetch_stored("t", 0, 0, max_bytes=max_bytes)
    assert offsets(fetched)[0] == 0
    assert len(broker.asked) <= 10


def test_what_can_be_no_batch_is_not_asked_for_without_end() -> None:
    broker = CuttingBroker(b"\0" * 8 + (1 << 30).to_bytes(4, "big") + bytes(100))
    with pytest.raises(ConnectionError, match="holds no batch at offset 7"):
        FetchingClient(broker).fetch("t", 0, 7)
    assert sum(broker.asked) < KAFKA_RESPONSE_BYTES


def test_what_does_not_fit_its_checksum_is_damaged() -> None:
    batches = bytearray(stored(100, 100, 100))
    size = len(batches) // 3
    batches[size + 80] ^= 1
    fetch = FetchingClient(CuttingBroker(bytes(batches))).fetch_stored
    assert offsets(fetch("t", 0, 0)) == [0]
    with pytest.raises(DamagedBatchError) as raised:
        FetchingClient(CuttingBroker(bytes(batches[size:]))).fetch_stored("t", 0, 1)
    damage = raised.value
    assert (damage.base_offset, damage.next_offset, damage.segment) == (1, 2, None)
    assert damage.data == bytes(batches[size : 2 * size])


def test_what_our_own_broker_says_of_damage_is_kept() -> None:
    types = api("FetchStored").response
    damage = types.Damage(base_offset=3, next_offset=5, segment_base_offset=1, segment_position=99)
    said = types(error_code=2, damage=damage, aborted_transactions=[], records=None)
    key = api("FetchStored").key
    connection: Any = SimpleNamespace(versions=lambda: {key: (0, 0)}, send=lambda *_: said)
    with pytest.raises(DamagedBatchError) as raised:
        FetchingClient(connection).fetch_stored("t", 0, 3)
    assert (raised.value.next_offset, raised.value.segment) == (5, (1, 99))
