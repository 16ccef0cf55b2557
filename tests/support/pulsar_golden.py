"""Frames that real clients sent, as pulsar/record_golden.py and record_transactions.py saw them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parents[1] / "pulsar" / "golden"


class Golden(NamedTuple):
    command: str
    frame: bytes


def _read(name: str) -> list[Golden]:
    lines = (FOLDER / name).read_text().splitlines()
    return [Golden(name, bytes.fromhex(frame)) for name, frame in map(str.split, lines)]


GOLDEN = _read("pulsar_client.hex")
JAVA_TRANSACTIONS = _read("java_transactions.hex")
"""A whole conversation, in its order, with a broker that was new."""
