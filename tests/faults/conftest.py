"""What every scenario gets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from stand import Stand


@pytest.fixture
def stand(tmp_path: Path) -> Iterator[Stand]:
    """A test stand; what the broker must hold after every scenario is checked at its end."""
    made = Stand(tmp_path)
    try:
        yield made
        made.check()
    finally:
        made.close()
