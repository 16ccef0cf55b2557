"""Members of groups that fall silent: others get their partitions, as iggy-server does it.

Any frame is a sign of life, so that a poll or a ping is. A client whose request is being carried
out is not silent: it waits for us.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from penstock import limits
from penstock.deadlines import Deadline, Deadlines

if TYPE_CHECKING:
    from collections.abc import Callable


class Silence:
    """Watches one client while it is a member. `end` is called when it was silent for too long."""

    def __init__(self, is_member: Callable[[], bool], end: Callable[[], None]) -> None:
        self._is_member = is_member
        self._end = end
        self._since = time.monotonic()
        self._unanswered = 0
        self._timer: Deadline | None = None

    def asked(self) -> None:
        """A frame came."""
        self._unanswered += 1

    def answered(self) -> None:
        """It was carried out."""
        if self._unanswered:
            self._unanswered -= 1
        self._since = time.monotonic()

    def watch(self) -> None:
        """The client is a member from now on."""
        if self._timer is None:
            self._look_in(limits.IGGY_SILENCE_SECONDS)

    def stop(self) -> None:
        """The client is gone."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        # Only now, so that a frame costs no timer.
        self._timer = None
        if not self._is_member():
            return
        silent = 0.0 if self._unanswered else time.monotonic() - self._since
        if silent >= limits.IGGY_SILENCE_SECONDS:
            self._end()
        else:
            self._look_in(limits.IGGY_SILENCE_SECONDS - silent)

    def _look_in(self, seconds: float) -> None:
        self._timer = Deadlines().call_later(seconds, self._look)
