"""ADD_PARTITION_TO_TXN: messages of a transaction are about to be sent to partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.pace import Pace
from penstock.pulsar.handlers.registry import handles
from penstock.pulsar.topics import find_partition
from penstock.pulsar.transactions import answer, producer_of, refusing
from penstock.pulsar.wire.pulsar_api_pb2 import BaseCommand, CommandAddPartitionToTxn

if TYPE_CHECKING:
    from penstock.pulsar.client import Call


@handles(
    BaseCommand.ADD_PARTITION_TO_TXN, refuse=refusing(BaseCommand.ADD_PARTITION_TO_TXN_RESPONSE)
)
async def handle(request: CommandAddPartitionToTxn, call: Call) -> BaseCommand:
    producer, pace = producer_of(request), Pace()
    partition_ids = set()
    for name in request.partitions:
        partition_ids.add((await find_partition(call.client, name, may_create=False)).id)
        if pace.is_over():
            await pace.others()
    await call.broker.transactions.add_partitions("", producer, partition_ids)
    return answer(request, BaseCommand.ADD_PARTITION_TO_TXN_RESPONSE)
