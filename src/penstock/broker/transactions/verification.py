"""Who says whether a batch may be part of a transaction: the coordinator, once there is one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from penstock.broker.errors import InvalidTransactionStateError

Verify: TypeAlias = Callable[[int, int, int], None]
"""Called with a producer's id and epoch, and the id of the partition that it writes to, for each
batch of a transaction. It raises BrokerError unless the transaction is open and has that partition.
"""


class Verification:
    """Shared by all partitions of a node; the coordinator, which needs them, sets `verify`."""

    def __init__(self) -> None:
        self.verify: Verify = _refuse


def _refuse(producer_id: int, producer_epoch: int, partition_id: int) -> None:  # noqa: ARG001
    raise InvalidTransactionStateError(
        f"producer {producer_id} of epoch {producer_epoch} has no open transaction"
    )
