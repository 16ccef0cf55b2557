"""How much that lasts clients may create: so much at once, and so much a second after that."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from penstock import limits
from penstock.allowance import Allowance, Allowances
from penstock.broker.errors import (
    GroupsThrottledError,
    NamespacesThrottledError,
    ThrottledError,
    TopicsThrottledError,
)

if TYPE_CHECKING:
    from collections.abc import Callable


class Creations:
    """What clients create of one kind: those of one address, and all of them together."""

    def __init__(
        self,
        of_address: Allowances[str],
        of_all: Allowance,
        refusal: type[ThrottledError],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._of_address = of_address
        self._of_all = of_all
        self._refusal = refusal
        self._clock = clock

    def take(self, address: str | None, count: int = 1) -> None:
        """Count what a client is about to create; the node itself has no address and no bound.

        Raises ThrottledError, and nothing is counted then.
        """
        if address is None:
            return
        now = self._clock()
        seconds = max(self._of_address.wait(address, now), self._of_all.wait(now))
        if seconds > 0:
            raise self._refusal(seconds)
        self._of_address.take(address, now, count)
        self._of_all.take(now, count)


def partition_creations() -> Creations:
    """Return what is allowed of partitions: they cost the same in one topic as in many."""
    return _creations(
        (limits.ADDRESS_PARTITIONS_CREATED_AT_ONCE, limits.ADDRESS_PARTITIONS_CREATED_A_SECOND),
        (limits.PARTITIONS_CREATED_AT_ONCE, limits.PARTITIONS_CREATED_A_SECOND),
        TopicsThrottledError,
    )


def namespace_creations() -> Creations:
    """Return what is allowed of namespaces that are created by themselves, without a topic."""
    return _creations(
        (limits.ADDRESS_NAMESPACES_CREATED_AT_ONCE, limits.ADDRESS_NAMESPACES_CREATED_A_SECOND),
        (limits.NAMESPACES_CREATED_AT_ONCE, limits.NAMESPACES_CREATED_A_SECOND),
        NamespacesThrottledError,
    )


def group_creations() -> Creations:
    """Return what is allowed of consumer groups, of every protocol that has them."""
    return _creations(
        (limits.ADDRESS_GROUPS_CREATED_AT_ONCE, limits.ADDRESS_GROUPS_CREATED_A_SECOND),
        (limits.GROUPS_CREATED_AT_ONCE, limits.GROUPS_CREATED_A_SECOND),
        GroupsThrottledError,
    )


def _creations(
    of_address: tuple[float, float],
    of_all: tuple[float, float],
    refusal: type[ThrottledError],
) -> Creations:
    """Each allowance is how many at once, and how many a second after those."""
    return Creations(
        Allowances(*of_address, limits.ADDRESSES_REMEMBERED),
        Allowance(*of_all, time.monotonic()),
        refusal,
    )
