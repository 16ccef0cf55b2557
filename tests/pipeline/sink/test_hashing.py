"""Goal: a column of keys goes where each protocol's own clients put its keys."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.clients.kafka.partitioner import murmur2
from penstock.pipeline.sink.hashing import HASHES
from penstock.pipeline.sink.options import PARTITIONERS
from penstock.records.columns import Bytes, Numbers
from penstock.xxh32 import xxh32

KEYS = st.lists(st.binary(max_size=40), max_size=12)
TEXTS = st.lists(st.text(max_size=12), max_size=12)


def column(keys: list[bytes]) -> tuple[Bytes, Numbers, Numbers]:
    sizes = np.array([len(key) for key in keys], np.int64)
    return np.frombuffer(b"".join(keys), np.uint8), np.cumsum(sizes) - sizes, sizes


def java_hash(text: str) -> int:
    units = text.encode("utf-16-le")
    state = 0
    for at in range(0, len(units), 2):
        state = (31 * state + int.from_bytes(units[at : at + 2], "little")) & 0xFFFFFFFF
    return state & 0x7FFFFFFF


@given(keys=KEYS)
def test_keys_of_kafka_and_iggy(keys: list[bytes]) -> None:
    assert HASHES["kafka"](*column(keys)).tolist() == [murmur2(key) & 0x7FFFFFFF for key in keys]
    assert HASHES["iggy"](*column(keys)).tolist() == [xxh32(key) for key in keys]


@given(texts=TEXTS)
def test_keys_of_pulsar(texts: list[str]) -> None:
    keys = [text.encode() for text in texts]
    assert HASHES["pulsar"](*column(keys)).tolist() == [java_hash(text) for text in texts]


def test_each_partitioner_has_its_hash() -> None:
    assert tuple(HASHES) == PARTITIONERS


def test_hashes_that_java_gives() -> None:
    assert java_hash("hello") == 99162322
    with pytest.raises(UnicodeDecodeError):
        HASHES["pulsar"](*column([b"\xff"]))
