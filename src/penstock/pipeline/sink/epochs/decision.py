"""What the driver writes down before it ends the transactions of an epoch.

It is the metadata of an offset, of which a broker takes 4,096 bytes where nothing else is set
(`offset.metadata.max.bytes`): some 600 tasks.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from penstock.clients.kafka.coordinator import KeptOffset, ProducerState
from penstock.pipeline.sink.errors import SinkError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_FORM: Final = "penstock-2:"
"""Begins the metadata; the rest is packed JSON: the fingerprint, and of each producer the suffix of
its id, its number and its epoch."""

_FIRST_FORM: Final = "penstock-1:"
"""Of earlier versions: without a fingerprint, the rest is the list of the producers."""


class Decision(NamedTuple):
    """That an epoch is to be committed, and what it consists of."""

    epoch: int
    producers: Sequence[ProducerState]
    """Those whose transactions may still be open; none once all are committed."""
    topic: str
    """One that was written to, of whose first partition the group keeps the offset."""
    fingerprint: str = ""
    """Of what the epoch is made from; empty where that is not known."""


def noted(decision: Decision, prefix: str) -> KeptOffset:
    """Return the offset to be kept that says what was decided; all ids begin with the prefix."""
    lines = [
        [each.transactional_id.removeprefix(prefix), each.producer_id, each.epoch]
        for each in decision.producers
    ]
    content = json.dumps([decision.fingerprint, lines], separators=(",", ":"))
    packed = zlib.compress(content.encode(), 9)
    metadata = _FORM + base64.b64encode(packed).decode()
    return KeptOffset(decision.topic, 0, decision.epoch, metadata)


def last_noted(kept: Iterable[KeptOffset], prefix: str) -> Decision | None:
    """Return the decision of the highest epoch. Raises SinkError for what is none."""
    last = max(kept, key=lambda each: each.offset, default=None)
    if last is None:
        return None
    try:
        if last.metadata.startswith(_FIRST_FORM):
            fingerprint, lines = "", _unpacked(last.metadata.removeprefix(_FIRST_FORM))
        else:
            fingerprint, lines = _unpacked(last.metadata.removeprefix(_FORM))
        producers = [ProducerState(prefix + suffix, *numbers) for suffix, *numbers in lines]
    except (binascii.Error, zlib.error, ValueError, TypeError) as error:
        raise SinkError(
            f"the group {prefix.rstrip('/')} keeps an offset of {last.topic} that this sink did "
            "not write: its names are reserved, so delete the group where nobody writes"
        ) from error
    return Decision(last.offset, producers, last.topic, fingerprint)


def _unpacked(text: str) -> Any:
    return json.loads(zlib.decompress(base64.b64decode(text, validate=True)))
