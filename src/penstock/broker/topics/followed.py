"""Who follows the two ends of what can be read of a partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class Followed:
    """Calls those who follow it, as long as they do."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[], None]] = []
        self._trim_listeners: dict[Callable[[], Awaitable[None]], None] = {}

    def add_listener(self, listener: Callable[[], None]) -> None:
        """Have `listener` called when the readable end has moved, and when the topic is deleted."""
        self._listeners.append(listener)

    def remove_listener(self, listener: Callable[[], None]) -> None:
        self._listeners.remove(listener)

    def add_trim_listener(self, listener: Callable[[], Awaitable[None]]) -> None:
        """Have `listener` awaited when the start offset has moved, for good."""
        self._trim_listeners[listener] = None

    def remove_trim_listener(self, listener: Callable[[], Awaitable[None]]) -> None:
        del self._trim_listeners[listener]

    def _notify(self) -> None:
        for listener in tuple(self._listeners):
            listener()

    async def _notify_of_trim(self) -> None:
        for listener in tuple(self._trim_listeners):
            await listener()
