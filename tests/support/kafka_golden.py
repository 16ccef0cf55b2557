"""Requests that real clients sent; kafka_wire/record_golden.py recorded them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

FRAMES = Path(__file__).parents[1] / "kafka_wire" / "golden"


class Golden(NamedTuple):
    client: str
    api: str
    version: int
    frame: bytes


def _read() -> list[Golden]:
    found = []
    for path in sorted(FRAMES.glob("*.hex")):
        for line in path.read_text().splitlines():
            name, version, frame = line.split()
            found.append(Golden(path.stem, name, int(version), bytes.fromhex(frame)))
    return found


GOLDEN = _read()


def golden_frame(client: str, name: str) -> bytes:
    return next(each.frame for each in GOLDEN if (each.client, each.api) == (client, name))
