"""Which way a server commits epochs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from penstock.clients.closing import Closed
from penstock.clients.kafka.client import KafkaClient
from penstock.clients.kafka.transactions import END_EPOCH
from penstock.pipeline.clusters.address import Protocol as Spoken
from penstock.pipeline.sink.epochs.attempt import CLIENT_ID
from penstock.pipeline.sink.epochs.kafka import KafkaEpochs
from penstock.pipeline.sink.epochs.penstock import PenstockEpochs

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    import pyarrow as pa

    from penstock.clients.asking import Ask
    from penstock.pipeline.sink.epochs.attempt import Attempt, Outcome
    from penstock.pipeline.sink.options import SinkOptions


class TaskWriter(Closed, Protocol):
    """One task's rows. Methods raise SinkError, KafkaError and OSError."""

    def write(self, rows: pa.RecordBatch) -> None:
        """Send rows, of which some may still be on their way."""

    def finish(self) -> Outcome | None:
        """Return when all rows are safe, whose open transaction has them; None for nobody's."""

    def abort(self) -> None:
        """Give up what was written, where that can be."""


class Epochs(Closed, Protocol):
    """What the batches of writers are to a server. Methods raise KafkaError and OSError."""

    def check(self) -> None:
        """Raise unless the topic can be written to, and as it is asked for, before any row is."""

    def last(self, writer: str) -> int:
        """Return the last epoch of a writer that was decided, -1 where none was."""

    def at_work(self, writer: str) -> AbstractContextManager[int]:
        """Yield the last epoch, while a task of the next one is at work."""

    def task(self, attempt: Attempt) -> TaskWriter:
        """Return what writes a task's rows."""

    def commit(
        self, writer: str, epoch: int, outcomes: Sequence[Outcome], fingerprint: str = ""
    ) -> bool:
        """Commit what tasks have left open; False where that epoch was decided before.

        Raises SinkError where it was with another fingerprint; see `check_fingerprint`.
        """

    def abort(self, writer: str) -> None:
        """Abort all that a writer has open and was not decided."""


def open_epochs(options: SinkOptions, ask: Ask) -> Epochs:
    """Return how the servers that the options name commit. Raises KafkaError and OSError."""
    address = options.address
    if address.protocol is Spoken.IGGY:
        from penstock.pipeline.sink.epochs.iggy import IggyEpochs  # noqa: PLC0415  # if it is one

        return IggyEpochs(options, ask)
    if address.protocol is Spoken.PULSAR:
        return _pulsar_epochs(options, ask)
    with KafkaClient(address.servers, client_id=CLIENT_ID, access=address.access) as client:
        is_penstock = END_EPOCH.key in ask(client.api_versions)
    return (PenstockEpochs if is_penstock else KafkaEpochs)(options, ask)


def _pulsar_epochs(options: SinkOptions, ask: Ask) -> Epochs:
    # Loaded if it is one.
    from penstock.pipeline.sink.epochs.pulsar import PulsarRepeating  # noqa: PLC0415
    from penstock.pipeline.sink.epochs.pulsar_transactions import PulsarEpochs  # noqa: PLC0415

    return (PulsarRepeating if options.at_least_once else PulsarEpochs)(options, ask)
