"""Kernels are compiled for what their annotations say."""

from __future__ import annotations

import numpy as np
import pytest
from numba import types

from penstock.records import batch_headers
from penstock.records.iggy.batch import batch_checksum
from penstock.records.kernels.arguments import TableOut, Word, compiled_type


def test_the_annotations_are_the_compiled_signature() -> None:
    bytes_in = types.Array(types.uint8, 1, "C", readonly=True)
    assert batch_headers.count_batches.signatures == [(bytes_in,)]  # type: ignore[attr-defined]
    assert batch_checksum.signatures == [(bytes_in, types.int64, types.int64)]  # type: ignore[attr-defined]


def test_other_types_are_refused() -> None:
    with pytest.raises(TypeError):
        batch_headers.count_batches(np.zeros(61, np.int32))


def test_what_a_kernel_can_not_take_has_no_compiled_type() -> None:
    assert compiled_type(int) == types.int64
    assert compiled_type(Word) == types.uint64
    assert compiled_type(TableOut) == types.Array(types.int64, 2, "C")
    with pytest.raises(KeyError):
        compiled_type(float)
