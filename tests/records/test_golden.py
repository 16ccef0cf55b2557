"""What real clients sent, as the log stored it: librdkafka 2.16, Pulsar C++ 4.2, Iggy 0.9."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock import records
from penstock.log.header import Magic, walk
from penstock.records.iggy.batch import verify_iggy_batch
from stored_batches import Record, join, own, read

FOLDER = Path(__file__).parent / "golden"
SENT = [
    Record(b"one " * 40, b"k1", ((b"name", b"text"),), 1_700_000_000_123_000),
    Record(b"two " * 40, None, (), 1_700_000_000_456_000),
    Record(b"three " * 40, b"k3", ((b"a", b"1"), (b"b", "ü".encode())), 1_700_000_000_789_000),
]
SAMPLES = sorted(path.stem for path in FOLDER.glob("*.hex"))


def golden(name: str) -> bytes:
    return bytes.fromhex((FOLDER / f"{name}.hex").read_text(encoding="ascii"))


def expected(name: str) -> list[Record]:
    if not name.startswith("iggy"):
        return SENT
    # Iggy's client gives the times itself.
    times = records.decode(golden(name)).timestamps.tolist()
    return [record._replace(time=time) for record, time in zip(SENT, times, strict=True)]


def test_there_are_samples_of_every_client_and_codec() -> None:
    assert len(SAMPLES) == 12


@pytest.mark.parametrize("name", SAMPLES)
def test_stored_batches_are_read(name: str) -> None:
    columns = records.decode(golden(name))
    assert own(read(columns)) == expected(name)
    assert columns.offsets.tolist() == [0, 1, 2]
    assert columns.timestamp_types.tolist() == [0, 0, 0]


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("target", Magic)
def test_stored_batches_are_converted(name: str, target: Magic) -> None:
    stored = golden(name)
    converted = join(records.convert(stored, target))
    assert {header.magic for _, header in walk(converted)} == {target}
    columns = records.decode(converted)
    assert own(read(columns)) == expected(name)
    assert columns.offsets.tolist() == [0, 1, 2]


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("target", Magic)
def test_what_only_one_protocol_can_say_comes_back(name: str, target: Magic) -> None:
    """Even ids, sequences and kinds, which travel in headers, are as they were."""
    stored = golden(name)
    native = Magic(records.decode(stored).batches[1, 0])
    returned = join(records.convert(join(records.convert(stored, target)), native))
    assert read(records.decode(returned)) == read(records.decode(stored))


def test_a_batch_of_the_wanted_encoding_is_handed_out_as_it_is() -> None:
    stored = golden("kafka-lz4")
    (same,) = records.convert(stored, Magic.KAFKA)
    assert same == stored
    assert memoryview(same).obj is stored


def test_a_real_producers_iggy_batch_is_sound() -> None:
    batch = verify_iggy_batch(golden("iggy-user-headers")[61:])
    assert batch.message_count == 3
