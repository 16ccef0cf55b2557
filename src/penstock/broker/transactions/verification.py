"""What partitions ask of the coordinator, once there is one: whether a batch may be part of a
transaction, and what becomes of those that are open in a log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol, TypeAlias

from penstock.broker.errors import InvalidTransactionStateError

if TYPE_CHECKING:
    from penstock.broker.transactions.on_partition import OpenTransaction

Verify: TypeAlias = Callable[[int, int, int], None]
"""Called with a producer's id and epoch, and the id of the partition that it writes to, for each
batch of a transaction. It raises BrokerError unless the transaction is open and has that partition.
"""

LogOpened: TypeAlias = "Callable[[int, Iterable[OpenTransaction]], None]"
"""Called with a partition's id, and what is open in its log, whenever that was opened."""


class Verifier(Protocol):
    """The coordinator, as far as partitions know it."""

    @property
    def verify(self) -> Verify: ...

    @property
    def log_opened(self) -> LogOpened: ...


class Verification:
    """Shared by all partitions of a node. The coordinator needs them, so it comes later."""

    def __init__(self) -> None:
        self.verify: Verify = _refuse
        self.log_opened: LogOpened = _nothing

    def ask(self, verifier: Verifier) -> None:
        """Ask the coordinator from now on."""
        self.verify = verifier.verify
        self.log_opened = verifier.log_opened


def _refuse(producer_id: int, producer_epoch: int, partition_id: int) -> None:  # noqa: ARG001
    raise InvalidTransactionStateError(
        f"producer {producer_id} of epoch {producer_epoch} has no open transaction"
    )


def _nothing(partition_id: int, found: Iterable[OpenTransaction]) -> None:
    del partition_id, found
