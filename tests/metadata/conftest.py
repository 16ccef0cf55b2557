"""Databases as brokers have them."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def metadata_waits_for_no_disk() -> None:
    """Have commits wait for the disk, unlike those of all other tests."""
