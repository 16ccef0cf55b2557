"""What stored batches can be handed out in: the encodings of the log, and older ones of Kafka."""

from __future__ import annotations

from enum import IntEnum
from typing import Final, TypeAlias

from penstock.log.header import Magic


class MessageSetMagic(IntEnum):
    """Kafka's message sets of before its record batches (KIP-32 has the newer).

    None is stored. While one is handed on inside the broker it has the log's header in front, as
    every batch has, with this magic in it.
    """

    V0 = 0
    V1 = 1


Encoding: TypeAlias = Magic | MessageSetMagic
ENCODINGS: Final[tuple[Encoding, ...]] = (*Magic, *MessageSetMagic)
