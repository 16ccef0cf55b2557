"""What a query notes about its transactions at a Pulsar server.

The topic's order decides: of several drivers who each decide the same epoch, the one whose note is
the first has decided it, and the others find that when they read.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from penstock.clients.pulsar.client import MessageId
from penstock.clients.pulsar.transactions import TransactionId
from penstock.pipeline.sink.epochs.pulsar_notes import Notes, entry_of, topic_of
from penstock.pipeline.sink.errors import SinkError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from penstock.clients.asking import Ask
    from penstock.clients.pulsar.client import PulsarClient
    from penstock.clients.pulsar.producing import Outgoing, Sender
    from penstock.pipeline.sink.epochs.pulsar_notes import Note


class Decision(NamedTuple):
    """That an epoch is to be committed, and what it consists of."""

    epoch: int
    transactions: Sequence[TransactionId]
    """Those that may still be open; none once all are committed."""
    fingerprint: str = ""
    """Of what the epoch is made from; empty where that is not known."""


class Known(NamedTuple):
    """All that a query has noted and not forgotten."""

    decision: Decision
    """Of the last epoch; -1 before the first."""
    begun: Sequence[tuple[int, TransactionId]]
    """By their epochs the transactions of attempts, those that were decided too."""
    last: MessageId
    """Where it was noted."""

    def abandoned(self, until: int | None = None) -> list[TransactionId]:
        """Return what was begun, for epochs up to one if that is given, and is not decided."""
        return [
            each
            for epoch, each in self.begun
            if (until is None or epoch <= until) and each not in self.decision.transactions
        ]


class Journal:
    """A query's, in two topics beside the one that it writes to. Methods raise as `Notes` do."""

    def __init__(self, client: PulsarClient, writer: str, written: str | None, ask: Ask) -> None:
        self.topic, self.committed_topic = (
            topic_of(writer, written, suffix) for suffix in ("decided", "committed")
        )
        self._notes = Notes(client, self.topic, ask)
        self._committed = Notes(client, self.committed_topic, ask)

    def begin(self, epoch: int, transaction: TransactionId) -> None:
        """Note a transaction before anything is in it, so that it can be ended when it is lost."""
        self._add(epoch=epoch, begun=transaction)

    def decide(self, decision: Decision) -> None:
        epoch, transactions, fingerprint = decision
        self._add(epoch=epoch, decided=transactions, fingerprint=fingerprint)

    def read(self) -> Known:
        """Return what is noted. Raises SinkError too."""
        return known_of(self._notes.read(), self.topic)

    def forget(self, known: Known) -> None:
        """Forget what was read, which something that was noted since says as well."""
        self._notes.forget(known.last)

    def token(self, sender: Sender) -> Outgoing:
        """Return the message in a transaction by which it is known later that it was committed."""
        self._committed.keep()
        return entry_of(json.dumps(sender.transaction).encode(), self.committed_topic, sender)

    def committed(self) -> dict[TransactionId, MessageId]:
        """Return the transactions whose tokens are there, and where."""
        return {TransactionId(*json.loads(each.text)): each.id for each in self._committed.read()}

    def forget_committed(self, last: MessageId) -> None:
        """Forget the tokens up to one."""
        self._committed.forget(last)

    def drop(self) -> None:
        """Remember nothing more."""
        self._notes.drop()
        self._committed.drop()

    def _add(self, **note: object) -> None:
        self._notes.add(json.dumps(note, separators=(",", ":")).encode())


def known_of(notes: Iterable[Note], topic: str) -> Known:
    """Return what notes say. Raises SinkError for what is none."""
    decision, begun, last = Decision(-1, ()), [], MessageId(-1, -1)
    for last, text in notes:  # noqa: B007  # the last one
        try:
            note = json.loads(text)
            epoch = int(note["epoch"])
            if "begun" in note:
                begun.append((epoch, TransactionId(*note["begun"])))
                continue
            decided = [TransactionId(*each) for each in note["decided"]]
            # Earlier versions noted none.
            found = Decision(epoch, decided, str(note.get("fingerprint", "")))
        except (ValueError, TypeError, KeyError) as error:
            raise SinkError(
                f"{topic} holds a message that this sink did not write: its names are reserved, "
                "so delete the topic where nobody writes"
            ) from error
        is_done = found.epoch == decision.epoch and not found.transactions
        if found.epoch > decision.epoch or is_done:
            decision = found
    return Known(decision, begun, last)
