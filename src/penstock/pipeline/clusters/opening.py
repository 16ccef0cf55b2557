"""Which servers a read is of: how the driver asks them, and how a task reads."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TypeAlias

from penstock.clients.closing import Closed
from penstock.pipeline.clusters.address import Protocol as Spoken
from penstock.pipeline.source.cluster import KafkaCluster, kafka_client
from penstock.pipeline.source.planning import Cluster
from penstock.pipeline.source.stored import StoredBatches

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from penstock.clients.kafka.fetched import Fetched
    from penstock.pipeline.source.corruption import Damage
    from penstock.pipeline.source.offsets import Offsets
    from penstock.pipeline.source.options import SourceOptions
    from penstock.pipeline.source.planning import Task
    from penstock.session import Buffer

Met: TypeAlias = "Callable[[Damage], None]"


class OpenCluster(Cluster, Closed, Protocol):
    """What a read asks besides planning. Methods raise SourceError."""

    def commit(self, group: str, offsets: Offsets) -> None:
        """Commit offsets as a group's."""

    def release(self) -> None:
        """Have the servers keep nothing for this reader any more."""

    def close(self) -> None: ...


class Batches(Protocol):
    """What one task reads of a range, in batches as the log stores them; raises SourceError."""

    def runs(self) -> Iterator[Buffer]:
        """Yield runs of whole, sound batches in the order of the log."""

    def earlier(self, start: int, end: int) -> Iterable[Buffer]:
        """Yield runs from a place before the range, where chunks of a message may lie."""

    def aborted(self, offset: int) -> Fetched:
        """Read what is committed from an offset on, for the transactions that were aborted."""


def open_cluster(options: SourceOptions) -> OpenCluster:
    """Return what the driver asks."""
    if options.address.protocol is Spoken.IGGY:
        from penstock.pipeline.clusters.iggy import IggyCluster  # noqa: PLC0415  # if it is one

        return IggyCluster(options)
    if options.address.protocol is Spoken.PULSAR:
        from penstock.pipeline.clusters.pulsar import PulsarCluster  # noqa: PLC0415  # if it is one

        return PulsarCluster(options)
    return KafkaCluster(options)


@contextmanager
def opening(options: SourceOptions) -> Iterator[Callable[[Task, Met], Batches]]:
    """Yield what opens the ranges of one task, which all but Pulsar's have one client for.

    A range of Pulsar's is a consumer, which ends with its client; few are so small that they share
    a task. `Met` hears of damage and raises where that is the end.
    """
    if options.address.protocol is Spoken.IGGY:
        from penstock.pipeline.clusters.iggy import (  # noqa: PLC0415  # if it is one
            IggyBatches,
            iggy_client,
        )

        with iggy_client(options) as iggy:
            yield lambda task, _: IggyBatches(task, options, iggy)
    elif options.address.protocol is Spoken.PULSAR:
        from penstock.pipeline.clusters.pulsar import PulsarBatches  # noqa: PLC0415  # if it is one

        yield lambda task, _: PulsarBatches(task, options)
    else:
        with kafka_client(options) as kafka:
            yield lambda task, met: StoredBatches(task, options, met, kafka)
