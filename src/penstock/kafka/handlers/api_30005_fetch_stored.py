"""FetchStored: read batches of one partition as they are stored, whoever's encoding they are in.

For Penstock's own pipelines: what Pulsar's and Iggy's clients wrote comes with all that
it says, microseconds among it, and the broker converts nothing.

* Whole batches, from the one that contains the offset on, at most 2 MiB unless the first alone is
  larger; nothing at the end, without a wait. Chunks of Pulsar's messages come as they are.
* Who reads what is committed gets batches up to the last stable offset, and is named the aborted
  transactions of what it gets, as in a Fetch.
* From version 1 on the topic's id may be said, by which it is found then, so that no other one of
  its name is read: UNKNOWN_TOPIC_ID where there is none.
* A damaged batch is CORRUPT_MESSAGE, with where the damage lies and the offset behind it, so that
  the reader can go on there.
* Where memory is short, the answer is empty, and the reader asks again.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from penstock.broker.quotas import Quota
from penstock.broker.transactions.aborted_rows import ROW
from penstock.broker.transactions.isolation import Isolation
from penstock.kafka.errors import refusal
from penstock.kafka.handlers.registry import handles
from penstock.kafka.handlers.topics import find_topic, isolation_of
from penstock.kafka.quotas import throttled_ms
from penstock.kafka.wire import api
from penstock.limits import KAFKA_CONVERSION_SECONDS, KAFKA_PROMPT_FETCH_BYTES
from penstock.log.errors import CorruptBatchError
from penstock.log.header import Magic
from penstock.tasks import within

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.broker.topics.partition import Partition
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import FetchStoredRequest, FetchStoredResponse
    from penstock.session import Part

_RESPONSE: Final = api("FetchStored").response


@handles(api("FetchStored"), 0, 1)
async def fetch_stored(request: FetchStoredRequest, call: Call) -> FetchStoredResponse:
    answer = _RESPONSE(aborted_transactions=[], damage=None, records=b"")
    try:
        isolation = isolation_of(request.isolation_level)
        by_id = request.topic_id.int != 0
        topic = find_topic(call.broker, request.topic, request.topic_id, by_id=by_id)
        partition = topic.partition(request.partition_index)
        await partition.opened()
        parts, end = await _read(request, partition, isolation, call)
        _describe(answer, partition)
        if isolation is Isolation.READ_COMMITTED and parts:
            aborted = partition.named_in(request.fetch_offset, end)
            answer.aborted_transactions = [
                _RESPONSE.AbortedTransaction(producer_id=producer_id, first_offset=first)
                for producer_id, first in ROW.iter_unpack(aborted)
            ]
    except CorruptBatchError as error:
        answer.error_code = refusal(error).code
        answer.damage = _damage(error)
    except Exception as error:
        answer.error_code = refusal(error).code
    else:
        answer.records = [*parts] or b""
        if call.broker.quotas:
            size = sum(map(len, parts))
            quota = Quota.CONSUMED_BYTES
            answer.throttle_time_ms = throttled_ms(call.client, quota, call.client_id, size)
    return answer


async def _read(
    request: FetchStoredRequest, partition: Partition, isolation: Isolation, call: Call
) -> tuple[Sequence[Part], int]:
    """Return what is read, and the offset behind it."""
    offset = request.fetch_offset
    max_bytes = max(0, min(request.max_bytes, KAFKA_PROMPT_FETCH_BYTES))
    if call.client.transport.sends_files:
        stored = partition.sound_range(offset, max_bytes, Magic.KAFKA, isolation)
        if stored is not None:
            return [stored], stored.next_offset
    with call.broker.memory.reading() as held:
        wanted = max(0, min(max_bytes, partition.bytes_from(offset)))
        try:
            granted = await within(KAFKA_CONVERSION_SECONDS, held.grant(wanted))
        except TimeoutError:
            return [], offset
        taken = await partition.read_stored(offset, granted, isolation)
    return taken.parts, taken.next_offset


def _describe(answer: FetchStoredResponse, partition: Partition) -> None:
    answer.log_start_offset = partition.start_offset
    answer.high_watermark = partition.readable_end(Isolation.READ_UNCOMMITTED)
    answer.last_stable_offset = partition.readable_end(Isolation.READ_COMMITTED)


def _damage(error: CorruptBatchError) -> FetchStoredResponse.Damage:
    return _RESPONSE.Damage(
        base_offset=error.base_offset,
        next_offset=error.next_offset,
        segment_base_offset=int(Path(error.path).stem),
        segment_position=error.position,
    )
