"""Slots: what hashes of keys are counted in, so that what is known of keys is bounded.

Of a subscription that keeps the order of each key, all that is out in one slot is out with one
holder, until it is acknowledged or comes back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.pace import drop

if TYPE_CHECKING:
    from collections.abc import Callable

NO_SLOT: Final = 0
"""That of a message of which nobody asks for the key. Pulsar uses none of this number either."""


class SlotUse:
    """Who has leases of a slot, and how many."""

    __slots__ = ("count", "holder")

    def __init__(self, holder: object) -> None:
        self.holder = holder
        self.count = 1


class Slots:
    """The slots of which something is out. `freed` is called with one of which nothing is any more.

    Where order is not kept, a slot may be out with several, and counts as its first holder's.
    """

    def __init__(self, freed: Callable[[int], None]) -> None:
        self._uses: dict[int, SlotUse] = {}
        self._freed = freed

    def __len__(self) -> int:
        return len(self._uses)

    def holder(self, slot: int) -> object | None:
        """Return with whom a slot is out."""
        use = self._uses.get(slot)
        return None if use is None else use.holder

    def add(self, slot: int, holder: object) -> None:
        """Count one lease more."""
        use = self._uses.get(slot)
        if use is None:
            self._uses[slot] = SlotUse(holder)
        else:
            use.count += 1

    def remove(self, slot: int) -> None:
        """Count one lease less."""
        use = self._uses[slot]
        use.count -= 1
        if not use.count:
            del self._uses[slot]
            self._freed(slot)

    def clear(self) -> None:
        drop(self._uses)
        self._uses = {}
