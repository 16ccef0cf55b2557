"""DescribeClientQuotas: the quotas of entities that match what is asked for (KIP-546).

Versions 0-1. Entities are users, client ids, and users with client ids. Addresses have no quotas,
and a type that Kafka does not know either is UNSUPPORTED_VERSION. INVALID_REQUEST are: a type that
is named twice or has no name, an address together with others, and a match that there is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.broker.quotas import Entity, Quota, name_of, named
from penstock.kafka.errors import RequestError, refusal
from penstock.kafka.handlers.registry import handles
from penstock.kafka.handlers.topics import check_asked_once
from penstock.kafka.quotas import KEY_OF_QUOTA
from penstock.kafka.wire import ErrorCode, api
from penstock.pace import Pace

if TYPE_CHECKING:
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import (
        DescribeClientQuotasRequest,
        DescribeClientQuotasResponse,
    )

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
TYPES: Final = {USER, CLIENT_ID, IP}

EXACTLY, DEFAULT, ANY = range(3)


@handles(api("DescribeClientQuotas"), 0, 1)
async def describe_client_quotas(
    request: DescribeClientQuotasRequest, call: Call
) -> DescribeClientQuotasResponse:
    response = api("DescribeClientQuotas").response
    pace = Pace()
    try:
        times = await pace.counted(each.entity_type for each in request.components)
        wanted = dict(
            await pace.each(
                request.components, lambda each: _component(each, times[each.entity_type])
            )
        )
        _check_together(wanted)
    except Exception as error:
        code, message = refusal(error)
        return response(error_code=code, error_message=message, entries=None)
    entries = []
    for entity, values in call.broker.quotas.all().items():
        if _matches(entity, wanted, strict=request.strict):
            entries.append(_entry(entity, values))
        if pace.is_over():
            await pace.others()
    return response(entries=entries)


def _component(
    component: DescribeClientQuotasRequest.ComponentData, times: int
) -> tuple[str, str | None]:
    """Return a type of entity, and the part that is wanted of it; None for any."""
    check_asked_once(times)
    kind = component.entity_type
    if not kind:
        raise RequestError(ErrorCode.INVALID_REQUEST, "the type of an entity has no name")
    if kind not in TYPES:
        raise RequestError(ErrorCode.UNSUPPORTED_VERSION, f"no entity is a {kind}")
    if component.match_type == EXACTLY and component.match is not None:
        return kind, named(component.match)
    if component.match_type in {DEFAULT, ANY} and component.match is None:
        return kind, named(None) if component.match_type == DEFAULT else None
    raise RequestError(
        ErrorCode.INVALID_REQUEST,
        f"match {component.match!r} of type {component.match_type} is none",
    )


def _check_together(wanted: dict[str, str | None]) -> None:
    if IP in wanted and len(wanted) > 1:
        raise RequestError(ErrorCode.INVALID_REQUEST, "an address is no part of another entity")


def _matches(entity: Entity, wanted: dict[str, str | None], *, strict: bool) -> bool:
    parts = _parts(entity)
    if strict and parts.keys() != wanted.keys():
        return False
    return all(kind in parts and part in {None, parts[kind]} for kind, part in wanted.items())


def _parts(entity: Entity) -> dict[str, str]:
    parts = {USER: entity.user, CLIENT_ID: entity.client_id}
    return {kind: part for kind, part in parts.items() if part}


def _entry(entity: Entity, values: dict[Quota, float]) -> DescribeClientQuotasResponse.EntryData:
    response = api("DescribeClientQuotas").response
    return response.EntryData(
        entity=[
            response.EntityData(entity_type=kind, entity_name=name_of(part))
            for kind, part in _parts(entity).items()
        ],
        values=[
            response.ValueData(key=KEY_OF_QUOTA[quota], value=value)
            for quota, value in values.items()
        ],
    )
