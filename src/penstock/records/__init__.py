"""The batch formats of the three protocols, and the conversion between them.

Importing this package loads none of the compiled functions and no numpy. They are loaded by the
first call, which takes about half a second; a program with an event loop awaits `prepare` before.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from importlib import import_module
from typing import TYPE_CHECKING, Final

from penstock.records.errors import MalformedBatchError
from penstock.records.kernels import cache as kernel_cache
from penstock.records.pulsar.joining import Wanted, join_in_steps, join_messages

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.log.header import Magic
    from penstock.records.columns import Columns
    from penstock.session import Buffer

_LAST_LOADED: Final = "penstock.records.conversion"
_preparing = asyncio.Lock()
_loaded = threading.Event()

__all__ = [
    "MalformedBatchError",
    "Wanted",
    "convert",
    "decode",
    "decode_run",
    "is_loaded",
    "join_in_steps",
    "join_messages",
    "prepare",
]


def decode(batches: Buffer, *, headers: bool = True) -> Columns:
    """Return the records of a run of whole stored batches of any encodings, in log order.

    The columns' positions index into `batches` itself where nothing had to be inflated or made up,
    so its memory must be kept and left alone as long as they are used. Without `headers` those
    are not looked at. Control batches and chunks of Pulsar messages hold no records of their own.

    Raises MalformedBatchError.
    """
    from penstock.records.decoding import decode as decode_now  # noqa: PLC0415 (loads numba)

    return decode_now(batches, headers=headers)


def decode_run(batches: Buffer, *, headers: bool = True) -> Iterator[Columns]:
    """Do as `decode`, in several pieces where the batches inflate to too much at once."""
    from penstock.records.decoding import decode_run as decode_now  # noqa: PLC0415 (loads numba)

    return decode_now(batches, headers=headers)


def convert(batches: Buffer, target: Magic) -> Iterator[Buffer]:
    """Yield a run of whole stored batches with bodies in the encoding of `target`, piece by piece.

    Offsets are kept, batches that already have that encoding are views of what was given, and
    what holds no records is left out. A batch becomes one batch, or several where its times
    lie too far apart for one batch of Iggy.

    Raises MalformedBatchError.
    """
    from penstock.records.conversion import convert as convert_now  # noqa: PLC0415 (loads numba)

    return convert_now(batches, target)


async def prepare() -> None:
    """Have the compiled functions ready without keeping the event loop from its work.

    What no run before this has compiled is compiled by a process of its own, which takes up to a
    minute once; then all are loaded beside the loop.
    """
    if is_loaded():
        return
    async with _preparing:
        if not kernel_cache.is_complete():
            command = (sys.executable, "-m", "penstock.records.kernels.compile")
            compiler = await asyncio.create_subprocess_exec(*command)
            try:
                await compiler.wait()
            finally:
                if compiler.returncode is None:  # Whoever waits was cancelled: the broker stops.
                    compiler.kill()
        await asyncio.to_thread(import_module, _LAST_LOADED)
        _loaded.set()


def is_loaded() -> bool:
    """Whether the first call of `convert` or `decode` starts at once."""
    return _loaded.is_set()
