"""Which groups there are of the clients of one address, of all protocols that have groups."""

from __future__ import annotations

from collections import Counter, OrderedDict
from typing import TYPE_CHECKING, Final

from penstock import limits
from penstock.broker.errors import GroupFullError

if TYPE_CHECKING:
    from collections.abc import Iterator

_FORGOTTEN_TOGETHER: Final = 100


class Census:
    """Counts groups by the addresses of those who made them; the node itself has none."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def is_full(self, address: str | None) -> bool:
        return address is not None and self._counts[address] >= limits.ADDRESS_GROUPS

    def check(self, address: str | None) -> None:
        """Raises GroupFullError where an address has as many groups as one may have."""
        if self.is_full(address):
            raise GroupFullError(f"{address} has {limits.ADDRESS_GROUPS} groups")

    def add(self, address: str | None) -> None:
        if address is not None:
            self._counts[address] += 1

    def remove(self, address: str | None) -> None:
        if address is not None:
            self._counts[address] -= 1
            if not self._counts[address]:
                del self._counts[address]


class IdleGroups:
    """Names of groups that nobody is in, the longest ago first: of all, and of each address."""

    def __init__(self) -> None:
        self._all: OrderedDict[str, str | None] = OrderedDict()
        self._of_address: dict[str, OrderedDict[str, None]] = {}

    def add(self, group_id: str, address: str | None) -> None:
        self.remove(group_id)
        self._all[group_id] = address
        if address is not None:
            self._of_address.setdefault(address, OrderedDict())[group_id] = None

    def remove(self, group_id: str) -> None:
        address = self._all.pop(group_id, None)
        if address is not None:
            del self._of_address[address][group_id]
            if not self._of_address[address]:
                del self._of_address[address]

    def take(self, address: str | None = None) -> Iterator[str]:
        """Take out some: of one address, or of all."""
        names = self._all if address is None else self._of_address.get(address, ())
        for group_id in [name for name, _ in zip(names, range(_FORGOTTEN_TOGETHER), strict=False)]:
            self.remove(group_id)
            yield group_id
