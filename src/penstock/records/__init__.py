"""The batch formats of the three protocols, and the conversion between them.

Importing this package loads none of the compiled functions and no numpy. They are loaded by the
first call, which takes a tenth of a second; a program with an event loop awaits `prepare` before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.records.bounds import inflated_bytes, message_set_bytes
from penstock.records.compressed import is_compressed
from penstock.records.encoding import ENCODINGS, Encoding, MessageSetMagic
from penstock.records.errors import MalformedBatchError
from penstock.records.loading import is_loaded, prepare
from penstock.records.pulsar.joining import Joining, Wanted, join_in_steps, join_messages

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.records.columns import Columns
    from penstock.session import Buffer

__all__ = [
    "ENCODINGS",
    "Encoding",
    "Joining",
    "MalformedBatchError",
    "MessageSetMagic",
    "Wanted",
    "convert",
    "decode",
    "decode_run",
    "inflated_bytes",
    "is_compressed",
    "is_loaded",
    "join_in_steps",
    "join_messages",
    "message_set_bytes",
    "murmur3_32",
    "prepare",
]


def murmur3_32(data: bytes) -> int:
    """Return MurmurHash3 x86 with 32 bits, as an unsigned number: Pulsar's choices rest on it."""
    from penstock.records.pulsar.sticky_key import murmur3_32 as hash_now  # noqa: PLC0415 (loads numpy)

    return hash_now(data)


def decode(batches: Buffer, *, headers: bool = True) -> Columns:
    """Return the records of a run of whole stored batches of any encodings, in log order.

    The columns' positions index into `batches` itself where nothing had to be inflated or made up,
    so its memory must be kept and left alone as long as they are used. Without `headers` those
    are not looked at. Control batches and chunks of Pulsar messages hold no records of their own.

    Raises MalformedBatchError.
    """
    from penstock.records.decoding import decode as decode_now  # noqa: PLC0415 (loads numpy)

    return decode_now(batches, headers=headers)


def decode_run(batches: Buffer, *, headers: bool = True) -> Iterator[Columns]:
    """Do as `decode`, in several pieces where the batches inflate to too much at once."""
    from penstock.records.decoding import decode_run as decode_now  # noqa: PLC0415 (loads numpy)

    return decode_now(batches, headers=headers)


def convert(batches: Buffer, target: Encoding) -> Iterator[Buffer]:
    """Yield a run of whole stored batches with bodies in the encoding of `target`, piece by piece.

    Offsets are kept, batches that already have that encoding stay as they are, and of the others
    what holds no records is left out. A batch becomes one batch, or several where its times
    lie too far apart for one batch of Iggy. Message sets of Kafka have the log's header in front
    too, and lose the headers of messages.

    Raises MalformedBatchError.
    """
    from penstock.records.conversion import convert as convert_now  # noqa: PLC0415 (loads numpy)

    return convert_now(batches, target)
