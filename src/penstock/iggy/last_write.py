"""The last write of a session: one that comes again is answered as it was, and not done again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.iggy.wire.errors import ErrorCode, IggyError
from penstock.limits import IGGY_REPEATED_REPLY_BYTES

if TYPE_CHECKING:
    from collections.abc import Hashable

    from penstock.iggy.wire.replies import Reply


class LastWrite:
    """Clients send again what they sent last, so that only the last one can come again.

    One that was refused did nothing, and is carried out when it comes again.
    """

    __slots__ = ("_began", "_came", "_is_kept", "_repetition", "_reply")

    def __init__(self) -> None:
        self._came: Hashable | None = None
        self._began: Hashable | None = None
        self.forget()

    def came(self, repetition: Hashable) -> bool:
        """A write is to be carried out; return whether it may be the one before again."""
        is_again = repetition == self._came
        self._came = repetition
        return is_again

    def forget(self) -> None:
        """A session has begun or ended."""
        self._repetition: Hashable | None = None
        self._reply: Reply = None
        self._is_kept = False

    def begins(self, repetition: Hashable) -> bool:
        """A write's turn has come; return whether it is done already."""
        self._began = repetition
        return repetition == self._repetition

    def done(self, repetition: Hashable, reply: Reply, size: int | None) -> None:
        """A write was answered with so many bytes; None is many."""
        if repetition != self._began:
            return  # Sends run side by side, and may end in any order.
        self._repetition = repetition
        self._is_kept = size is not None and size <= IGGY_REPEATED_REPLY_BYTES
        self._reply = reply if self._is_kept else None

    def reply(self) -> Reply:
        """Return what it was answered with. Raises IggyError where that was too much to keep."""
        if not self._is_kept:
            raise IggyError(ErrorCode.REQUEST_ALREADY_APPLIED)
        return self._reply
