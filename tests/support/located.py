"""Values as decoders take them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.pipeline.values.decoding import Values


def located(values: Sequence[bytes | None]) -> Values:
    """Return values one behind the other."""
    sizes = np.array([-1 if value is None else len(value) for value in values], np.int64)
    ends = np.cumsum(np.maximum(sizes, 0))
    data = np.frombuffer(b"".join(value or b"" for value in values), np.uint8)
    return Values(data, np.stack([ends - np.maximum(sizes, 0), sizes]))
