"""AlterClientQuotas: set and remove quotas of users and client ids (KIP-546).

Versions 0-1. All changes of an entity are made, or none. INVALID_REQUEST are: an entity that is
nobody, has a type twice, or is no user and client id; a key that is not in effect here, that is
named twice, or whose value is not above 0; and an entity that occurs twice. validate_only makes all
checks and changes nothing.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from penstock.broker.quotas import Entity, Quota, named
from penstock.kafka.errors import RequestError, refusal
from penstock.kafka.handlers.api_48_describe_client_quotas import CLIENT_ID, USER
from penstock.kafka.handlers.registry import handles
from penstock.kafka.handlers.topics import check_asked_once
from penstock.kafka.quotas import QUOTA_OF_KEY
from penstock.kafka.wire import ErrorCode, api
from penstock.pace import Pace

if TYPE_CHECKING:
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import AlterClientQuotasRequest, AlterClientQuotasResponse

    Change = dict[Quota, float | None]
    Parts = tuple[tuple[str, str | None], ...]

TYPES: Final = (USER, CLIENT_ID)


@handles(api("AlterClientQuotas"), 0, 1)
async def alter_client_quotas(
    request: AlterClientQuotasRequest, call: Call
) -> AlterClientQuotasResponse:
    response = api("AlterClientQuotas").response
    pace = Pace()
    times = await pace.counted(_parts(each) for each in request.entries)

    async def altered(
        entry: AlterClientQuotasRequest.EntryData,
    ) -> AlterClientQuotasResponse.EntryData:
        result = response.EntryData(
            error_message=None,
            entity=await pace.each(
                entry.entity,
                lambda each: response.EntityData(
                    entity_type=each.entity_type, entity_name=each.entity_name
                ),
            ),
        )
        try:
            parts = _parts(entry)
            entity = _entity(parts)
            check_asked_once(times[parts])
            change = await _change(entry, pace)
            if request.validate_only:
                call.broker.quotas.check_room(entity, change)
            else:
                await call.broker.quotas.change(entity, change)
        except Exception as error:
            result.error_code, result.error_message = refusal(error)
        return result

    return response(entries=await pace.each_awaited(request.entries, altered))


def _parts(entry: AlterClientQuotasRequest.EntryData) -> Parts:
    """Return the types and names of an entity, no more than tell that there are too many."""
    return tuple((each.entity_type, each.entity_name) for each in entry.entity[: len(TYPES) + 1])


def _entity(parts: Parts) -> Entity:
    by_type = dict(parts)
    if not parts or len(by_type) < len(parts) or not by_type.keys() <= set(TYPES):
        raise RequestError(
            ErrorCode.INVALID_REQUEST, "quotas are for a user, a client-id, or one of each here"
        )
    return Entity(*(named(by_type[kind]) if kind in by_type else "" for kind in TYPES))


async def _change(entry: AlterClientQuotasRequest.EntryData, pace: Pace) -> Change:
    times = await pace.counted(each.key for each in entry.ops)
    return dict(await pace.each(entry.ops, lambda each: _operation(each, times[each.key])))


def _operation(
    operation: AlterClientQuotasRequest.OpData, times: int
) -> tuple[Quota, float | None]:
    check_asked_once(times)
    quota = QUOTA_OF_KEY.get(operation.key)
    if quota is None:
        known = " and ".join(QUOTA_OF_KEY)
        raise RequestError(
            ErrorCode.INVALID_REQUEST, f"{operation.key} is not in effect here; {known} are"
        )
    if operation.remove:
        return quota, None
    if not 0 < operation.value < math.inf:
        raise RequestError(ErrorCode.INVALID_REQUEST, f"{operation.key} has to be above 0")
    return quota, operation.value
