"""What is alike where a server ends nothing at once: each row is written at least once."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from penstock.clients.closing import Closing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from penstock.pipeline.sink.epochs.attempt import Outcome


class AtLeastOnceEpochs(Closing):
    """See `penstock.pipeline.sink.epochs.opening.Epochs`. No epoch is known to a server."""

    def last(self, writer: str) -> int:  # noqa: ARG002
        return -1

    @contextmanager
    def at_work(self, writer: str) -> Iterator[int]:  # noqa: ARG002
        yield -1

    def commit(
        self,
        writer: str,  # noqa: ARG002
        epoch: int,  # noqa: ARG002
        outcomes: Sequence[Outcome],  # noqa: ARG002
        fingerprint: str = "",  # noqa: ARG002
    ) -> bool:
        return True

    def abort(self, writer: str) -> None:
        """Nothing: what was sent is there."""


class AtLeastOnceWriter(Closing):
    """See `penstock.pipeline.sink.epochs.opening.TaskWriter`. What it is closed with is others'."""

    def close(self) -> None:
        """Nothing: the connection is somebody else's."""

    def finish(self) -> None:
        return None

    def abort(self) -> None:
        """Nothing: what was sent is there."""
