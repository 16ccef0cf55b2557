"""Polls, which clients send all the time: the place that one names is read when it is new.

In all dialects a poll begins with a place, in the dialect's own bytes, and ends alike.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, Self, cast

from penstock.iggy.wire.errors import IggyError
from penstock.iggy.wire.fields import Reader
from penstock.iggy.wire.identifiers import PollingKind, PollingStrategy
from penstock.iggy.wire.message import Message
from penstock.limits import IGGY_KNOWN_PLACES

LONGEST_POLL: Final = 800
"""Bytes of a poll with the longest names that there are, or more."""
_END: Final = struct.Struct("<BQIB")
"""What follows the place: the strategy, the number of messages and auto commit."""
_KINDS: Final = {int(kind): kind for kind in PollingKind}


class PlacedPoll(Message):
    """A poll of any dialect: the fields of its place, then `strategy`, `count` and `auto_commit`;
    what follows them has defaults.
    """

    @classmethod
    def read(cls, reader: Reader) -> Self:
        """Read it, as every message is where there is anything unusual in it; raises IggyError."""
        body = reader.ahead()
        at = len(body) - _END.size
        if 0 < at <= LONGEST_POLL:
            kind, value, count, auto_commit = _END.unpack_from(body, at)
            known, place = _KINDS.get(kind), _place(cls, bytes(body[:at]))
            if known is not None and count and place is not None:
                reader.rest()
                strategy = PollingStrategy(known, value)
                make = cast("Callable[..., Self]", cls)
                return make(*place, strategy, count, auto_commit == 1)
        return super().read(reader)


def _read_place(kind: type[PlacedPoll], data: bytes) -> list[Any] | None:
    """Read what a poll begins with; None where it is not that, or more."""
    reader = Reader(data)
    try:
        place = kind.read_fields(reader, before="strategy")
    except IggyError:
        return None
    return None if reader.remaining else place


_place: Callable[..., list[Any] | None]
_place = lru_cache(IGGY_KNOWN_PLACES)(_read_place)
