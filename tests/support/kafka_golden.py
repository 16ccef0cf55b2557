"""Requests that real clients sent, as kafka_wire/record_golden.py and kafka/record_old_clients.py
recorded them.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

FRAMES = Path(__file__).parents[1] / "kafka_wire" / "golden"
OLD_FRAMES = Path(__file__).parents[1] / "kafka" / "golden"


class Golden(NamedTuple):
    client: str
    api: str
    version: int
    frame: bytes


def _read(folder: Path) -> list[Golden]:
    found = []
    for path in sorted(folder.glob("*.hex")):
        for line in path.read_text().splitlines():
            name, version, frame = line.split()
            found.append(Golden(path.stem, name, int(version), bytes.fromhex(frame)))
    return found


GOLDEN = _read(FRAMES)
OLD_GOLDEN = _read(OLD_FRAMES)
"""Whole conversations of clients of before 2020, without those of groups."""


def golden_frame(client: str, name: str) -> bytes:
    return next(each.frame for each in GOLDEN if (each.client, each.api) == (client, name))
