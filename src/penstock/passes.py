"""The next pass of the event loop, in which somebody has something done once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class NextPass:
    """Has `work` called once in the next pass, however often that is asked for in this one."""

    __slots__ = ("_is_due", "_work")

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._is_due = False

    def ask(self) -> None:
        """`work` itself may ask for the pass that follows. Raises RuntimeError where no loop runs,
        and is not taken for asked then.
        """
        if not self._is_due:
            asyncio.get_running_loop().call_soon(self._begin)
            self._is_due = True

    def _begin(self) -> None:
        self._is_due = False
        self._work()
