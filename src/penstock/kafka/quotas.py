"""Quotas as Kafka names them, and how a client is throttled by one (KIP-13, KIP-219).

A request is carried out and answered at once, with the time to wait in the answer; the next request
of the connection is not begun before that time is over, whether the client minds it or not.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from penstock.broker.quotas import Quota
from penstock.limits import KAFKA_THROTTLE_SECONDS
from penstock.pace import Pace
from penstock.session import Signal, ended

if TYPE_CHECKING:
    from penstock.kafka.client import Call, Client
    from penstock.kafka.wire.messages import FetchResponse

QUOTA_OF_KEY: Final = {
    "producer_byte_rate": Quota.PRODUCED_BYTES,
    "consumer_byte_rate": Quota.CONSUMED_BYTES,
}
KEY_OF_QUOTA: Final = {quota: key for key, quota in QUOTA_OF_KEY.items()}

ANONYMOUS: Final = "ANONYMOUS"
"""What Kafka calls the user who did not log in."""

NOT_THROTTLED: Final = 0.0
MILLISECONDS: Final = 1000


def throttled_ms(client: Client, quota: Quota, client_id: str, amount: int) -> int:
    """Count what a client had, and throttle it where that was too much; return for how long."""
    user = client.principal.name or ANONYMOUS
    seconds = client.broker.quotas.spend(quota, user, client_id, amount)
    if not seconds:
        return 0
    seconds = min(seconds, KAFKA_THROTTLE_SECONDS)
    client.throttled_until = asyncio.get_running_loop().time() + seconds
    return max(1, round(seconds * MILLISECONDS))


async def unthrottled(client: Client) -> None:
    """Return when the client's next request may begin, or when the client is gone."""
    over = Signal()
    until = client.throttled_until
    timer = asyncio.get_running_loop().call_at(until, over.set)
    try:
        with client.waiting(over.set):
            await ended(over)
    finally:
        timer.cancel()
    if client.throttled_until == until:
        client.throttled_until = NOT_THROTTLED


async def throttle_reader(answer: FetchResponse, call: Call) -> None:
    """Count what an answer has of records, and say in it for how long its client is throttled."""
    pace = Pace()
    size = 0
    for topic in answer.responses:
        for partition in topic.partitions:
            if isinstance(partition.records, list):
                size += sum(map(len, partition.records))
            if pace.is_over():
                await pace.others()
    answer.throttle_time_ms = throttled_ms(call.client, Quota.CONSUMED_BYTES, call.client_id, size)
