"""XXH3-64 against its C implementation, at every length where it changes its ways."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xxhash import xxh3_64_intdigest

from penstock.records.kernels.xxh3 import xxh3_64

LENGTHS = [*range(300), *range(500, 530), 1023, 1024, 1025, 1087, 1088, 1089, 2048, 2049, 100_000]


def test_a_known_value() -> None:
    assert xxh3_64(np.frombuffer(b"hello world", np.uint8), 0, 11) == 0xD447B1EA40E6988B


@pytest.mark.parametrize("seed", [1, 2])
def test_every_length(seed: int) -> None:
    noise = np.random.default_rng(seed).integers(0, 256, 100_003, np.uint8)
    for length in LENGTHS:
        expected = xxh3_64_intdigest(noise[3 : 3 + length].tobytes())
        assert xxh3_64(noise, 3, length) == expected, length


@given(st.binary(max_size=2_000))
def test_any_bytes(data: bytes) -> None:
    assert xxh3_64(np.frombuffer(data, np.uint8), 0, len(data)) == xxh3_64_intdigest(data)
