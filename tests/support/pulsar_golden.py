"""Frames that the real client sent; pulsar/record_golden.py recorded them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

FRAMES = Path(__file__).parents[1] / "pulsar" / "golden" / "pulsar_client.hex"


class Golden(NamedTuple):
    command: str
    frame: bytes


def _read() -> list[Golden]:
    lines = FRAMES.read_text().splitlines()
    return [Golden(name, bytes.fromhex(frame)) for name, frame in map(str.split, lines)]


GOLDEN = _read()
