"""The last write of a session: one that comes again is answered as it was, and not done again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.iggy.wire.errors import ErrorCode, IggyError
from penstock.limits import IGGY_REPEATED_REPLY_BYTES

if TYPE_CHECKING:
    from collections.abc import Hashable

    from penstock.iggy.wire.replies import Reply


class LastWrite:
    """Clients have one request under way, so that only the last one can come again.

    One that was refused did nothing, and is carried out when it comes again.
    """

    __slots__ = ("_is_kept", "_repetition", "_reply")

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """A session has begun or ended."""
        self._repetition: Hashable | None = None
        self._reply: Reply = None
        self._is_kept = False

    def done(self, repetition: Hashable, reply: Reply, size: int | None) -> None:
        """A write was answered with so many bytes; None is many."""
        self._repetition = repetition
        self._is_kept = size is not None and size <= IGGY_REPEATED_REPLY_BYTES
        self._reply = reply if self._is_kept else None

    def is_repeated(self, repetition: Hashable) -> bool:
        return repetition == self._repetition

    def reply(self) -> Reply:
        """Return what it was answered with. Raises IggyError where that was too much to keep."""
        if not self._is_kept:
            raise IggyError(ErrorCode.REQUEST_ALREADY_APPLIED)
        return self._reply
