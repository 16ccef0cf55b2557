"""Quotas: how many bytes a second certain clients may send and be sent (KIP-13, KIP-55, KIP-546).

A quota is for those that match an entity: a user, a client id, or both, of which each is a name or
all that no name matches. Of the quotas that match a client the most special one holds. Those who
match the same names share it; of those who match as one of many, each has it to itself.

Who has had more waits until it has come back. It comes back over ten seconds, Kafka's window, so
that a short burst costs no wait.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from enum import StrEnum
from itertools import product
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock import limits
from penstock.allowance import Allowance
from penstock.broker.errors import TooManyQuotasError
from penstock.metadata.quotas import QuotaRow

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from penstock.metadata.quotas import QuotaRepository

_WINDOW_SECONDS: Final = 10

_ANYBODY: Final = ""
_OTHERS: Final = "*"
_NAMED: Final = "="


class Quota(StrEnum):
    """What there is so much of a second."""

    PRODUCED_BYTES = "produced_bytes"
    CONSUMED_BYTES = "consumed_bytes"


class Entity(NamedTuple):
    """Who matches: `*` those without a quota of their own, `=name` the named, nothing anybody."""

    user: str = _ANYBODY
    client_id: str = _ANYBODY


def named(name: str | None) -> str:
    """Return the part of an entity that matches a name, or with None those without their own."""
    return _OTHERS if name is None else _NAMED + name


def name_of(part: str) -> str | None:
    """Return the name that a part of an entity matches; None for those without their own."""
    return None if part == _OTHERS else part.removeprefix(_NAMED)


class _Bucket(NamedTuple):
    quota: Quota
    user: str
    client_id: str


class Quotas:
    """The quotas of a node, and how much of them was used."""

    def __init__(self, repository: QuotaRepository) -> None:
        self._repository = repository
        self._rates: dict[tuple[Entity, Quota], float] = {}
        self._buckets: OrderedDict[_Bucket, Allowance] = OrderedDict()

    def load(self) -> None:
        """Read them; blocks. Raises MetadataError."""
        for row in self._repository.all():
            entity = Entity(row.user_name, row.client_id)
            self._rates[entity, Quota(row.quota)] = float(row.a_second)

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self._rates)

    def all(self) -> dict[Entity, dict[Quota, float]]:
        """Return what was set, a second."""
        found: dict[Entity, dict[Quota, float]] = {}
        for (entity, quota), rate in self._rates.items():
            found.setdefault(entity, {})[quota] = rate
        return found

    def check_room(self, entity: Entity, changes: Iterable[Quota]) -> None:
        """Raise TooManyQuotasError where there would be too many quotas after a change."""
        new = sum((entity, quota) not in self._rates for quota in changes)
        if len(self._rates) + new > limits.QUOTAS:
            raise TooManyQuotasError(f"there are {limits.QUOTAS} quotas at most")

    async def change(self, entity: Entity, changes: Mapping[Quota, float | None]) -> None:
        """Set quotas of an entity, or with None remove them: all or none.

        Raises TooManyQuotasError and MetadataError.
        """
        kept = {quota: rate for quota, rate in changes.items() if rate is not None}
        self.check_room(entity, kept)
        await self._repository.change(
            [QuotaRow(*entity, quota.value, repr(rate)) for quota, rate in kept.items()],
            [QuotaRow(*entity, quota.value, "") for quota in changes.keys() - kept.keys()],
        )
        for quota, rate in changes.items():
            if rate is None:
                self._rates.pop((entity, quota), None)
            else:
                self._rates[entity, quota] = rate
        self._buckets.clear()

    def spend(self, quota: Quota, user: str, client_id: str, amount: int) -> float:
        """Count what a client had; return for how many seconds it has to wait for more."""
        found = self._find(quota, user, client_id)
        if found is None:
            return 0.0
        bucket, rate = found
        now = time.monotonic()
        allowance = self._buckets.get(bucket)
        if allowance is None:
            allowance = self._buckets[bucket] = Allowance(rate * _WINDOW_SECONDS, rate, now)
            if len(self._buckets) > limits.QUOTA_BUCKETS:
                self._buckets.popitem(last=False)
        else:
            self._buckets.move_to_end(bucket)
        allowance.spend(now, amount)
        return max(0.0, -allowance.left(now)) / rate

    def _find(self, quota: Quota, user: str, client_id: str) -> tuple[_Bucket, float] | None:
        """Return the rate that holds for a client, and with whom it shares it."""
        for entity in map(Entity._make, product(_matching(user), _matching(client_id))):
            rate = self._rates.get((entity, quota))
            if rate is not None:
                shared_user = user if entity.user else _ANYBODY
                shared_client = client_id if entity.client_id else _ANYBODY
                return _Bucket(quota, shared_user, shared_client), rate
        return None


def _matching(name: str) -> tuple[str, str, str]:
    """The parts of entities that match a name, the most special one first."""
    return (_NAMED + name, _OTHERS, _ANYBODY)
