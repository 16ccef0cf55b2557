"""CRC-32 in kernels against zlib, at every length where it changes its ways."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from iggy_dialog import producer_batch
from penstock.records.iggy.older import Form
from penstock.records.iggy.older_polls import Frames, to_older
from penstock.records.kernels.crc32 import crc32
from penstock.records.kernels.crc32_folding import BLOCK

LENGTHS = [*range(3 * BLOCK + 9), 1023, 1024, 1025, 10_000]


@pytest.mark.parametrize("seed", [1, 2])
def test_every_length(seed: int) -> None:
    noise = np.random.default_rng(seed).integers(0, 256, 10_003, np.uint8)
    for length in LENGTHS:
        expected = zlib.crc32(noise[3 : 3 + length])
        assert crc32(noise, 3, 3 + length) == expected, length


def test_every_length_where_it_is_compiled() -> None:
    """Messages of 2023 have it of their payload, which ends them."""
    noise = np.random.default_rng(3).integers(0, 256, 10_000, np.uint8).tobytes()
    payloads = [noise[:length] for length in LENGTHS[1:]]
    batch = producer_batch(*payloads)
    written = to_older([Frames(batch, batch, 256)], len(payloads), Form.EARLY)
    position = 0
    for payload in payloads:
        end = position + 45 + len(payload)
        assert written[position + 45 : end] == payload
        checksum = int.from_bytes(written[position + 33 : position + 37], "little")
        assert checksum == zlib.crc32(payload), len(payload)
        position = end
    assert position == len(written)
