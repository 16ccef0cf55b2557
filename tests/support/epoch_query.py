"""A query whose batches are written and committed step by step, without a Spark."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest

from patience import PATIENCE_SECONDS
from penstock.pipeline.sink.epochs.attempt import Attempt, Outcome, errors_in_words
from penstock.pipeline.sink.epochs.opening import Epochs, open_epochs
from penstock.pipeline.sink.errors import SinkError
from penstock.pipeline.sink.options import parse
from penstock.pipeline.sink.writing import write_task
from penstock.pipeline.source.patience import Patience
from source_rows import rows_read

PARTITIONS = 3
ROWS = 20


class EpochQuery:
    """Writes two tasks an epoch to a topic that is there, of which each has rows in partitions."""

    def __init__(self, servers: str, topic: str, **given: str) -> None:
        self.servers = servers
        self.topic = topic
        self.writer = f"test-{uuid.uuid4()}"
        options = {"penstock.bootstrap.servers": servers, "topic": topic, **given}
        self.options = parse(options, streaming=True)

    def task(self, epoch: int, task: int, attempt: int = 0) -> Any:
        names = [b"%d.%d.%d" % (epoch, task, row) for row in range(ROWS)]
        batch = pa.record_batch({"key": names, "value": names})
        return write_task(iter([batch]), Attempt(self.writer, epoch, task, attempt), self.options)

    def tasks(self, epoch: int) -> list[Any]:
        return [each for task in range(2) if (each := self.task(epoch, task)) is not None]

    def commit(self, epoch: int, outcomes: Sequence[Outcome], fingerprint: str = "") -> bool:
        with errors_in_words(self.servers), self.epochs() as epochs:
            return epochs.commit(self.writer, epoch, outcomes, fingerprint)

    def epochs(self) -> Epochs:
        return open_epochs(self.options, Patience(answered=True).ask)

    def values(self) -> list[bytes]:
        """Return what readers of committed messages see."""
        return sorted(row["value"] for row in rows_read(self.servers, self.topic))

    def shows(self, values: list[bytes]) -> bool:
        """Whether that is what can be read: a broker ends a transaction behind its answer."""
        return within_patience(lambda: self.values() == values)


def expected(*epochs: int) -> list[bytes]:
    return sorted(
        b"%d.%d.%d" % (epoch, task, row)
        for epoch in epochs
        for task in range(2)
        for row in range(ROWS)
    )


def dies_behind_the_decision(query: EpochQuery, kind: type[Epochs], fingerprint: str = "") -> None:
    """Have the driver die when batch 0 is decided, and none of its transactions is committed."""

    def dying(*_: object) -> None:
        raise DeathError

    with pytest.MonkeyPatch.context() as patching:
        patching.setattr(kind, "_finish", dying)
        with pytest.raises(DeathError):
            query.commit(0, query.tasks(0), fingerprint)


def refuses_others_of_that_number(query: EpochQuery) -> None:
    """Check that batch 0, of which the driver died behind the decision, stays what it was made of:
    `1:these:there`.
    """
    with pytest.raises(SinkError, match=r"batch 0 of .* read other rows than it does now"):
        query.commit(0, query.tasks(0), "1:others:there")
    assert query.shows(expected(0)), "what was decided is finished, whoever comes"
    with pytest.raises(SinkError, match=r"batch 0 of .* was written to another topic"):
        query.commit(0, query.tasks(0), "1:these:elsewhere")
    for same in ("1:these:there", "1::there", "", "2:of a later version"):
        assert query.commit(0, query.tasks(0), same) is False
    assert query.commit(1, query.tasks(1), "1:others:there") is True
    assert query.shows(expected(0, 1))


def within_patience(holds: Callable[[], bool]) -> bool:
    """Whether something holds, or does so before long."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (found := holds()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


class DeathError(BaseException):
    """Ends the driver."""
